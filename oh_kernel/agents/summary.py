"""What is a model told to have old events summed up, and what stands for them in the end?"""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from oh_kernel.events import CondensationSummaryEvent, Event, Message, MessageEvent
from oh_kernel.events.messages import message_of
from oh_kernel.events.text import clip
from oh_kernel.events.untrusted import untrusted

MAX_EVENT_CHARS = 10_000
"""Of one event in the record; its middle is left out."""
MAX_QUOTE_CHARS = 2_000
SCALE = 0.8
"""By how much each text is shortened when the record itself is too long for the model."""
_CUT = " [...] "
_HEADER = "[Summary of {count} earlier events, which are no longer shown here.]"
_QUOTE = "The user's {which} message among them, word for word:\n{text}"
_LEFT_OUT = "They were left out without a summary. Look again at files and variables you need."


def summary_request(events: Sequence[Event], scale: float = 1.0) -> list[Message]:
    """The messages that ask for a summary of `events`, texts shortened by `scale`."""
    prompt = files("oh_kernel.agents").joinpath("prompts/condense.md").read_text("utf-8")
    limit = max(1, int(min(MAX_EVENT_CHARS, longest_text(events)) * scale))
    record = "\n\n".join(_entry(event, limit) for event in events)
    asked = f"{untrusted(record, 'record')}\n\nWrite the summary of this record now."
    return [Message.of("system", prompt), Message.of("user", asked)]


def longest_text(events: Sequence[Event]) -> int:
    """The characters of the longest event, as the record shows it whole."""
    return max((len(_words(message_of(event))) for event in events), default=0)


def summary_text(events: Sequence[Event], words: str) -> str:
    """What the model is shown in place of `events`: a summary in `words`, "" if there is none.

    The user's first and last messages are kept as they were: what a task asks for must not depend
    on how well it was retold.
    """
    said = [_words(message_of(e)) for e in events if _is_users(e)]
    parts = [_HEADER.format(count=len(events)), words.strip() or _LEFT_OUT]
    parts += [
        _QUOTE.format(which=which, text=clip(text, MAX_QUOTE_CHARS, _CUT))
        for which, text in _first_and_last(said)
    ]
    return "\n\n".join(parts)


def _first_and_last(said: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(said) > 1:
        yield "first", said[0]
    if said:
        yield "last", said[-1]


def _entry(event: Event, limit: int) -> str:
    return f"[{_who(event)}]\n{clip(_words(message_of(event)), limit, _CUT)}"


def _who(event: Event) -> str:
    if isinstance(event, CondensationSummaryEvent):
        return "earlier summary"
    if isinstance(event, MessageEvent):
        return event.source
    return {"assistant": "agent"}.get(message_of(event).role, "result")


def _words(message: Message) -> str:
    """The message as text: what was said, then each call with its arguments."""
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls or ()]
    pictures = ["(a picture)" for part in message.content if part.type == "image"]
    return "\n".join(filter(None, [message.text, *pictures, *calls]))


def _is_users(event: Event) -> bool:
    return isinstance(event, MessageEvent) and event.source == "user"
