"""How is a history made into a request that every provider accepts?

Providers refuse a request in which a call has no result, a result has no call, two calls share an
id, or arguments are no JSON object; and one refused history is refused for ever. `sendable` mends
all of it. It is a pure function: the same history always gives the same request, and a longer
history begins with the request of the shorter one, so that prompt caches keep hitting.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from oh_kernel.events import Message, MessageToolCall, TextContent
from oh_kernel.events.text import parsed_json, without_lone_surrogates

M = TypeVar("M", bound=BaseModel)

MALFORMED_KEY = "malformed_arguments"
NO_RESULT = "No result of this call was recorded; it may have run or not."

# The narrowest rules among the providers: OpenAI's 40 characters, Anthropic's alphabet.
MAX_ID_CHARS = 40
MAX_NAME_CHARS = 64
MAX_MALFORMED_CHARS = 1000
# ASCII in the text, and half a character once it is read.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def sendable(messages: Sequence[Message]) -> list[Message]:
    """`messages` with every call answered once, directly after it, under an id of its own."""
    messages = [_encodable(message) for message in messages]
    sent: list[Message] = []
    ids = _Ids()
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.role == "assistant" and message.tool_calls:
            end = _end_of_step(messages, position)
            sent += _answered(message, message.tool_calls, messages[position:end], ids)
            position = end
        elif message.role != "tool" and not _is_empty_reply(message):
            sent.append(message)
    return sent


def _encodable(message: Message) -> Message:
    """The message without lone surrogates, which no UTF-8 body can hold."""
    strings = [part.text for part in message.content if isinstance(part, TextContent)]
    strings += [message.reasoning_content or "", message.tool_call_id or "", message.name or ""]
    for call in message.tool_calls or ():
        strings += [call.id, call.name, call.arguments]
    try:
        "".join(strings).encode()
    except UnicodeEncodeError:
        return Message.model_validate(without_lone_surrogates(message.model_dump()))
    return message


class _Ids:
    """Hands out ids: the provider's own where it is valid and new, else one made from it."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def unique(self, wanted: str) -> str:
        base = _valid_id(wanted)
        candidate, number = base, 2
        while candidate in self._used:
            candidate = f"{base[: MAX_ID_CHARS - 8]}_{number}"
            number += 1
        self._used.add(candidate)
        return candidate


def _valid_id(wanted: str) -> str:
    cleaned = _FOREIGN.sub("_", wanted) or "call"
    if cleaned == wanted and len(wanted) <= MAX_ID_CHARS:
        return cleaned
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    return f"{cleaned[: MAX_ID_CHARS - 9]}_{digest}"


def _end_of_step(messages: Sequence[Message], start: int) -> int:
    """Where the next reply begins; results after it belong to another step."""
    return next(
        (i for i in range(start, len(messages)) if messages[i].role == "assistant"), len(messages)
    )


def _answered(
    message: Message, calls: Sequence[MessageToolCall], rest: Sequence[Message], ids: _Ids
) -> list[Message]:
    """The reply, the results in the order of its calls, then what else stood between them."""
    results = [m for m in rest if m.role == "tool"]
    sent_calls: list[MessageToolCall] = []
    sent_results: list[Message] = []
    for call in calls:
        sent_calls.append(_valid_call(call, ids.unique(call.id)))
        sent_results.append(_take_result(results, call, sent_calls[-1]))
    return [
        _changed(message, tool_calls=sent_calls),
        *sent_results,
        *(m for m in rest if m.role != "tool"),
    ]


def _take_result(results: list[Message], call: MessageToolCall, sent: MessageToolCall) -> Message:
    """The first result of `call` that is left, taken off `results`, under the id that is sent."""
    for result in results:
        if (result.tool_call_id or "") == call.id:
            results.remove(result)
            return _changed(result, tool_call_id=sent.id, name=sent.name)
    return Message.of("tool", NO_RESULT, tool_call_id=sent.id, name=sent.name)


def _valid_call(call: MessageToolCall, call_id: str) -> MessageToolCall:
    name = _FOREIGN.sub("_", call.name)[:MAX_NAME_CHARS] or "unnamed"
    return _changed(call, id=call_id, name=name, arguments=valid_arguments(call.arguments))


def _changed(model: M, **fields: Any) -> M:
    """A copy with other `fields`, or `model` itself where they are the same: most of them are."""
    if all(getattr(model, name) == value for name, value in fields.items()):
        return model
    return model.model_copy(update=fields)


def valid_arguments(arguments: str) -> str:
    """`arguments` as they are when they parse to a JSON object, else an object that quotes them.

    >>> valid_arguments('["ls"]')
    '{"malformed_arguments": "[\\\\"ls\\\\"]"}'
    """
    try:
        parsed = parsed_json(arguments)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        return json.dumps({MALFORMED_KEY: arguments[:MAX_MALFORMED_CHARS]}, ensure_ascii=False)
    if not _SURROGATE_ESCAPE.search(arguments):
        return arguments
    mended = without_lone_surrogates(parsed)
    return arguments if mended == parsed else json.dumps(mended, ensure_ascii=False)


def _is_empty_reply(message: Message) -> bool:
    return message.role == "assistant" and not message.text.strip()
