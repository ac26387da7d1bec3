"""What is found in a reply that has its calls in its text, and how do they become real calls?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from oh_kernel.events import Message, MessageToolCall, TextContent
from oh_kernel.llm.base import Completion, ToolCallDelta


@dataclass(frozen=True)
class Call:
    """A call with its arguments as JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Reading:
    """What was said before the calls, and the calls."""

    before: str
    calls: tuple[Call, ...]


def as_deltas(reading: Reading) -> Iterator[ToolCallDelta]:
    """The calls as a stream has them."""
    for index, call in enumerate(reading.calls):
        yield ToolCallDelta(index, call.name, call.arguments)


def as_completion(reading: Reading, completion: Completion) -> Completion:
    """`completion` with the calls where calls belong."""
    before = reading.before.rstrip()
    message: Message = completion.message.model_copy(
        update={
            "content": [TextContent(text=before)] if before.strip() else [],
            "tool_calls": [
                MessageToolCall(
                    id=f"call_{index}",
                    name=call.name,
                    arguments=call.arguments,
                    origin="completion",
                )
                for index, call in enumerate(reading.calls)
            ],
        }
    )
    reached_limit = completion.finish_reason == "length"
    reason = completion.finish_reason if reached_limit else "tool_call"
    return replace(completion, message=message, finish_reason=reason)
