"""What was cut when a run was stopped at once, and what is a person told of it?"""

from collections.abc import Iterable, Sequence

from oh_kernel.conversation.calls import CANCELLED_CALL, failure
from oh_kernel.conversation.confirmation import run_text
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.events import ActionEvent, Event, InterruptEvent, MessageEvent

MAX_SUBJECT_CHARS = 60


async def cut_short(log: ConversationLog, stopped: ActionEvent | None = None) -> None:
    """Answer the calls that are left, and record that a person stopped the agent during `stopped`,
    or while the model was asked.
    """
    left = log.open_calls
    for call in left:
        await log.append(failure(call, CANCELLED_CALL))
    cut = cut_in_words(stopped, len(left)) or "the model's reply was stopped"
    await log.append(InterruptEvent(cut=cut))


def cut_in_words(stopped: ActionEvent | None, not_started: int, *, how: str = "was stopped") -> str:
    """One line: the call that was stopped and how many never began; "" if none was cut.

    >>> cut_in_words(None, 2)
    '2 calls were not started'
    """
    parts = [f"{_subject(stopped)} {how}"] if stopped else []
    if not_started:
        parts.append(f"{not_started} call{' was' if not_started == 1 else 's were'} not started")
    return ", ".join(parts)


def _subject(call: ActionEvent) -> str:
    """A call in a few words, such as "terminal `pytest -q`"."""
    text = " ".join(run_text(call.action).split()) if call.action is not None else ""
    if len(text) > MAX_SUBJECT_CHARS:
        text = text[: MAX_SUBJECT_CHARS - 1] + "…"
    return f"{call.tool_name} `{text}`" if text else call.tool_name


def last_cut(events: Sequence[Event]) -> str:
    """What was cut of the turn before this one, or of this one; "" if nothing was."""
    for event in _last_turns(events, 2):
        if isinstance(event, InterruptEvent) and event.cut:
            return f"The last turn was cut: {event.cut}."
    return ""


def _last_turns(events: Sequence[Event], count: int) -> Iterable[Event]:
    """The events of the last turns, newest first."""
    for event in reversed(events):
        yield event
        if isinstance(event, MessageEvent) and event.source == "user":
            count -= 1
            if count == 0:
                return
