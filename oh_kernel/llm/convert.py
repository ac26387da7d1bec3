"""How do our messages become the model library's, and its replies ours?

Opaque blocks (signed thinking, encrypted reasoning) go back byte for byte, and only to the kind of
provider that made them: another one would refuse the signature.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from oh_kernel.events import (
    ImageContent,
    Message,
    MessageToolCall,
    ReasoningItemModel,
    RedactedThinkingBlock,
    TextContent,
    ThinkingBlock,
)
from oh_kernel.events.text import without_lone_surrogates
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.sendable import sendable

if TYPE_CHECKING:  # the model library takes a second to import: see provider.py
    from pydantic_ai.messages import (
        CachePoint,
        InstructionPart,
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ThinkingPart,
        ToolCallPart,
        UserContent,
    )
    from pydantic_ai.models import ModelRequestParameters

Kind = Literal["chat", "responses", "anthropic", "other"]

NO_IMAGES = "[A picture is left out here: this model takes no images.]"
UNREADABLE_IMAGE = "[A picture is left out here: its data cannot be read.]"
BLANK = "(blank)"


@dataclass(frozen=True)
class Dialect:
    """What one provider wants back. `system` is its name in the model library."""

    kind: Kind
    system: str
    takes_images: bool = True
    thinking_field: str | None = None


def to_request(
    messages: Sequence[Message], tools: Sequence[ToolSpec], dialect: Dialect
) -> tuple[list["ModelMessage"], "ModelRequestParameters"]:
    """The arguments of the model library's `request_stream`."""
    from pydantic_ai.messages import ModelRequest, ModelResponse
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    converted: list[ModelMessage] = []
    for is_reply, run in _runs(sendable(messages)):
        if is_reply:
            converted += [
                ModelResponse(parts=_reply_parts(m, dialect), provider_name=dialect.system)
                for m in run
            ]
        else:
            converted.append(ModelRequest(parts=_request_parts(run, dialect)))
    parameters = ModelRequestParameters(
        function_tools=[
            # Not strict: a strict schema must list every field as required, ours have defaults.
            ToolDefinition(
                name=t.name,
                description=t.description,
                parameters_json_schema=t.parameters,
                strict=False,
            )
            for t in tools
        ],
        instruction_parts=_instructions(messages) if dialect.kind == "anthropic" else None,
    )
    return converted, parameters


def _runs(messages: Sequence[Message]) -> Iterator[tuple[bool, list[Message]]]:
    """Messages grouped into replies and what stands between them.

    Results come first among what stands between: every provider wants them right after the calls.
    """
    run: list[Message] = []
    for message in messages:
        if run and (message.role == "assistant") != (run[-1].role == "assistant"):
            yield run[-1].role == "assistant", run
            run = []
        run.append(message)
    if run:
        yield run[-1].role == "assistant", run


def _instructions(messages: Sequence[Message]) -> "list[InstructionPart] | None":
    """The system prompt as blocks; the cache mark goes after the last one that asks for it."""
    from pydantic_ai.messages import InstructionPart

    texts = [p for m in _leading_system(messages) for p in m.content if isinstance(p, TextContent)]
    cached = max((i for i, part in enumerate(texts) if part.cache_prompt), default=-1)
    parts = [
        InstructionPart(content=part.text, dynamic=i > cached)
        for i, part in enumerate(texts)
        if part.text.strip()
    ]
    return parts or None


def _leading_system(messages: Sequence[Message]) -> list[Message]:
    leading = []
    for message in messages:
        if message.role != "system":
            break
        leading.append(message)
    return leading


def _request_parts(run: Sequence[Message], dialect: Dialect) -> "list[ModelRequestPart]":
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    leading = _leading_system(run)
    parts: list[ModelRequestPart] = []
    if leading and dialect.kind != "anthropic":
        text = "\n\n".join(p.text for m in leading for p in m.content if isinstance(p, TextContent))
        parts.append(SystemPromptPart(content=text))
    pictures: list[UserContent] = []
    for message in run[len(leading) :]:
        content = _user_content(message, dialect)
        if message.role != "tool":
            parts.append(UserPromptPart(content=_plain(content)))
            continue
        kept, moved = _result_content(content, message, dialect)
        pictures += moved
        parts.append(
            ToolReturnPart(
                tool_name=message.name or "", content=kept, tool_call_id=message.tool_call_id or ""
            )
        )
        if dialect.kind == "anthropic" and _asks_for_cache(message):
            parts.append(UserPromptPart(content=[_cache_point()]))
    if pictures:
        # After all results: most providers take no pictures inside them.
        position = next(
            (i for i in range(len(parts), 0, -1) if isinstance(parts[i - 1], ToolReturnPart)), 0
        )
        parts.insert(position, UserPromptPart(content=pictures))
    return parts


def _result_content(
    content: "list[UserContent]", message: Message, dialect: Dialect
) -> "tuple[str | list[UserContent], list[UserContent]]":
    """What stays in the result, and what a user message carries after it."""
    texts: list[UserContent] = [c for c in content if isinstance(c, str)]
    pictures = [c for c in content if _is_picture(c)]
    text = "".join(str(t) for t in texts)
    if not pictures:
        return text, []
    if dialect.kind == "anthropic":
        return [*texts, *pictures], []
    label = f"Pictures from the result of call {message.tool_call_id}:"
    return text or "(pictures follow)", [label, *pictures]


def _user_content(message: Message, dialect: Dialect) -> "list[UserContent]":
    content: list[UserContent] = []
    for part in message.content:
        match part:
            case TextContent():
                if part.text.strip():
                    content.append(part.text)
            case ImageContent():
                content += [_picture(url, dialect) for url in part.image_urls]
    if not content:
        content.append(BLANK)
    if dialect.kind == "anthropic" and message.role != "tool" and _asks_for_cache(message):
        content.append(_cache_point())
    return content


def _plain(content: "list[UserContent]") -> "str | list[UserContent]":
    """One text as a string: the form that every compatible server takes."""
    return content[0] if len(content) == 1 and isinstance(content[0], str) else content


def _asks_for_cache(message: Message) -> bool:
    return any(part.cache_prompt for part in message.content)


def _cache_point() -> "CachePoint":
    from pydantic_ai.messages import CachePoint

    return CachePoint()


def _is_picture(content: "UserContent") -> bool:
    from pydantic_ai.messages import BinaryContent, ImageUrl

    return isinstance(content, BinaryContent | ImageUrl)


def _picture(url: str, dialect: Dialect) -> "UserContent":
    from pydantic_ai.messages import BinaryContent, ImageUrl

    if not dialect.takes_images:
        return NO_IMAGES
    if not url.startswith("data:"):
        return ImageUrl(url=url)
    head, _, encoded = url.partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return UNREADABLE_IMAGE
    if not media_type.startswith("image/") or not data:
        return UNREADABLE_IMAGE
    return BinaryContent(data=data, media_type=media_type)


def _reply_parts(message: Message, dialect: Dialect) -> "list[ModelResponsePart]":
    from pydantic_ai.messages import TextPart, ToolCallPart

    parts: list[ModelResponsePart] = list(_reasoning_parts(message, dialect))
    if message.text.strip():
        parts.append(TextPart(content=message.text))
    parts += [
        ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)
        for call in message.tool_calls or []
    ]
    return parts


def _reasoning_parts(message: Message, dialect: Dialect) -> "Iterator[ThinkingPart]":
    from pydantic_ai.messages import ThinkingPart

    if dialect.kind == "anthropic":
        yield from _signed_parts(message, dialect)
    elif dialect.kind == "responses" and message.responses_reasoning_item is not None:
        item = message.responses_reasoning_item
        for i, summary in enumerate(item.summary or [""]):
            signature = item.encrypted_content if i == 0 else None
            yield ThinkingPart(
                content=summary, id=item.id, signature=signature, provider_name=dialect.system
            )
    elif dialect.kind == "chat" and dialect.thinking_field and _is_of_chat_model(message):
        yield ThinkingPart(
            content=message.reasoning_content or "",
            id=dialect.thinking_field,
            provider_name=dialect.system,
        )


def _is_of_chat_model(message: Message) -> bool:
    """Whether the reasoning is the plain text of a chat model, not that of opaque blocks."""
    opaque = message.thinking_blocks or message.responses_reasoning_item
    return bool(message.reasoning_content) and not opaque


def _signed_parts(message: Message, dialect: Dialect) -> "Iterator[ThinkingPart]":
    from pydantic_ai.messages import ThinkingPart

    for block in message.thinking_blocks:
        match block:
            case ThinkingBlock(thinking=thinking, signature=str(signature)) if signature:
                yield ThinkingPart(
                    content=thinking, signature=signature, provider_name=dialect.system
                )
            case RedactedThinkingBlock(data=data):
                yield ThinkingPart(
                    content="",
                    id="redacted_thinking",
                    signature=data,
                    provider_name=dialect.system,
                )
            case _:
                continue  # unsigned thinking is never accepted back


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
            id=call.tool_call_id,
            name=call.tool_name,
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
