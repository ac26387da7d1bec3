"""Which text of an event does a person look for when they search a log?

What was said, thought, called, printed and refused. Not the prompt, which is the same everywhere,
nor the notebook's state around a message, nor the whole file before and after an edit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic_core import from_json

_SILENT = {
    "SystemPromptEvent",
    "ConversationStateUpdateEvent",
    "LLMCompletionLogEvent",
    "TokenEvent",
}
_PLAIN = (
    "summary",
    "error",
    "detail",
    "rejection_reason",
    "reason",
    "additional_context",
    "stdout",
    "stderr",
)


class Spoken(NamedTuple):
    """The text of an event, and where it belongs."""

    text: str
    timestamp: str = ""
    begins_turn: bool = False


def spoken_text(event_json: str) -> str:
    """The text of the event with this JSON that can be searched for; "" when it has none.

    >>> spoken_text('{"kind": "MessageEvent", "llm_message": {"content": [{"text": "hi"}]}}')
    'hi'
    """
    return spoken(event_json).text


def spoken(event_json: str) -> Spoken:
    """The same, with its time and whether a turn begins with it."""
    try:
        data = from_json(event_json)
    except ValueError:
        return Spoken("")
    if not isinstance(data, dict) or data.get("kind") in _SILENT:
        return Spoken("")
    begins_turn = data.get("kind") == "MessageEvent" and data.get("source") == "user"
    text = "\n".join(text for text in _texts(data) if text)
    return Spoken(text, str(data.get("timestamp", "")), begins_turn)


def _texts(data: dict[str, Any]) -> Iterator[str]:
    yield from _content(_inner(data, "llm_message").get("content"))
    yield from _content(data.get("thought"))
    yield from _arguments(data)
    if data.get("tool_name") != "finish" or "observation" not in data:  # it repeats its call
        yield from _content(_inner(data, "observation").get("content"))
    yield from (str(data[name]) for name in _PLAIN if data.get(name))


def _inner(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _content(parts: object) -> Iterator[str]:
    if isinstance(parts, str):
        yield parts
    if isinstance(parts, list):
        yield from (str(p["text"]) for p in parts if isinstance(p, dict) and p.get("text"))


def _arguments(data: dict[str, Any]) -> Iterator[str]:
    """The values a tool was called with; as the model wrote them when they make no action."""
    action = data.get("action")
    if isinstance(action, dict):
        yield from _strings({name: v for name, v in action.items() if name != "kind"})
    else:
        yield str(_inner(data, "tool_call").get("arguments", ""))


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
