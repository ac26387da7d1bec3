"""How does a reply of the model library become one of our messages?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oh_kernel.events import (
    Message,
    MessageToolCall,
    ReasoningItemModel,
    RedactedThinkingBlock,
    TextContent,
    ThinkingBlock,
)
from oh_kernel.events.text import without_lone_surrogates
from oh_kernel.llm.convert import Kind

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart


def from_response(response: "ModelResponse", kind: Kind) -> Message:
    """A reply as one of our messages: reasoning, text and calls, each in the reply's order."""
    from pydantic_ai.messages import TextPart, ThinkingPart

    thinking = [p for p in response.parts if isinstance(p, ThinkingPart)]
    return Message(
        role="assistant",
        content=[
            TextContent(text=without_lone_surrogates(p.content))
            for p in response.parts
            if isinstance(p, TextPart) and p.content
        ],
        tool_calls=_calls(response, kind) or None,
        reasoning_content=_plain_reasoning(thinking) or None,
        thinking_blocks=_thinking_blocks(thinking) if kind == "anthropic" else [],
        responses_reasoning_item=_reasoning_item(thinking) if kind == "responses" else None,
    )


def _plain_reasoning(parts: "Sequence[ThinkingPart]") -> str:
    text = "\n\n".join(part.content for part in parts if part.content)
    return str(without_lone_surrogates(text))


def _calls(response: "ModelResponse", kind: Kind) -> list[MessageToolCall]:
    return [
        MessageToolCall(
            id=without_lone_surrogates(call.tool_call_id),
            name=without_lone_surrogates(call.tool_name),
            arguments=_written_arguments(call, kind),
            origin="responses" if kind == "responses" else "completion",
        )
        for call in response.tool_calls
    ]


def _written_arguments(call: "ToolCallPart", kind: Kind) -> str:
    """The text the model wrote. Anthropic writes none for a call without arguments."""
    if isinstance(call.args, str) and call.args:
        return str(without_lone_surrogates(call.args))
    return call.args_as_json_str() if call.args or kind == "anthropic" else ""


def _thinking_blocks(
    parts: "Sequence[ThinkingPart]",
) -> list[ThinkingBlock | RedactedThinkingBlock]:
    return [
        RedactedThinkingBlock(data=part.signature or "")
        if part.id == "redacted_thinking"
        else ThinkingBlock(thinking=part.content, signature=part.signature)
        for part in parts
    ]


def _reasoning_item(parts: "Sequence[ThinkingPart]") -> ReasoningItemModel | None:
    """The first reasoning item of the reply; the parts of one item share its id."""
    if not parts:
        return None
    item_id = parts[0].id
    own = [part for part in parts if part.id == item_id]
    return ReasoningItemModel(
        id=item_id,
        summary=[part.content for part in own if part.content],
        encrypted_content=next((p.signature for p in own if p.signature), None),
    )
