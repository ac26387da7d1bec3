"""How do our messages become the model library's?

Opaque blocks (signed thinking, encrypted reasoning) go back byte for byte, and only to the kind of
provider that made them: another one would refuse the signature.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Literal

from oh_kernel.events import (
    ImageContent,
    Message,
    RedactedThinkingBlock,
    TextContent,
    ThinkingBlock,
)
from oh_kernel.llm import pictures
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.sendable import sendable

if TYPE_CHECKING:  # the model library takes a second to import: see provider.py
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelRequestPart,
        ModelResponsePart,
        ThinkingPart,
        UserContent,
    )
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

Kind = Literal["chat", "responses", "anthropic", "other"]

NO_IMAGES = "[A picture is left out here: this model takes no images.]"
BLANK = "(blank)"  # some providers refuse a message without any text


@dataclass(frozen=True)
class Dialect:
    """What one provider wants. `system` is its name in the model library."""

    kind: Kind
    system: str
    takes_images: bool = True
    thinking_field: str | None = None  # where a chat model wants its own reasoning back
    id_chars: int | None = None  # the one length that ids of calls must have
    many_pictures: bool = False  # in this request, which may then hold only smaller ones
    refused_pictures: frozenset[str] = frozenset()  # by their keys

    def call_id(self, wanted: str) -> str:
        """An id that is valid here; the same one for the same `wanted`."""
        if self.id_chars is None or (len(wanted) == self.id_chars and wanted.isalnum()):
            return wanted
        return hashlib.sha256(wanted.encode()).hexdigest()[: self.id_chars]


def to_request(
    messages: Sequence[Message], tools: Sequence[ToolSpec], dialect: Dialect
) -> tuple[list["ModelMessage"], "ModelRequestParameters"]:
    """The arguments of the model library's `request_stream`."""
    from pydantic_ai.models import ModelRequestParameters

    sent = sendable(messages)
    dialect = replace(dialect, many_pictures=len(pictures.urls_of(sent)) > pictures.MANY)
    system = list(takewhile(lambda message: message.role == "system", sent))
    history = _history(sent[len(system) :], dialect)
    texts = [part for m in system for part in m.content if isinstance(part, TextContent)]
    if dialect.kind != "anthropic":
        _put_first(history, "\n\n".join(part.text for part in texts))
    return history, ModelRequestParameters(
        function_tools=[_tool(tool) for tool in tools],
        instruction_parts=_instructions(texts) if dialect.kind == "anthropic" else None,
    )


def _tool(tool: ToolSpec) -> "ToolDefinition":
    from pydantic_ai.tools import ToolDefinition

    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.parameters,
        strict=False,  # a strict schema would have to require every field; ours have defaults
    )


def _put_first(history: "list[ModelMessage]", system: str) -> None:
    """The system prompt as one message: strict servers take no second one."""
    from pydantic_ai.messages import ModelRequest, SystemPromptPart

    if system:
        history.insert(0, ModelRequest(parts=[SystemPromptPart(content=system)]))


def _instructions(texts: Sequence[TextContent]) -> "list[InstructionPart] | None":
    """The system prompt as blocks; the cache mark goes after the last one that asks for it."""
    from pydantic_ai.messages import InstructionPart

    cached = max((i for i, part in enumerate(texts) if part.cache_prompt), default=-1)
    parts = [
        InstructionPart(content=part.text, dynamic=i > cached)
        for i, part in enumerate(texts)
        if part.text.strip()
    ]
    return parts or None


def _history(messages: Sequence[Message], dialect: Dialect) -> "list[ModelMessage]":
    from pydantic_ai.messages import ModelRequest, ModelResponse

    history: list[ModelMessage] = []
    for is_reply, run in groupby(messages, lambda message: message.role == "assistant"):
        if is_reply:
            history += [
                ModelResponse(parts=_reply_parts(message, dialect), provider_name=dialect.system)
                for message in run
            ]
        else:
            history.append(ModelRequest(parts=_request_parts(list(run), dialect)))
    return history


def _request_parts(run: Sequence[Message], dialect: Dialect) -> "list[ModelRequestPart]":
    """What stands between two replies: results (`sendable` put them first), then what was said."""
    from pydantic_ai.messages import UserPromptPart

    results = [message for message in run if message.role == "tool"]
    parts: list[ModelRequestPart] = []
    for message in results:
        parts += _result_parts(message, dialect)
    if dialect.kind != "anthropic":
        # After all results: most providers take no pictures inside them.
        shown = [part for message in results for part in _labelled_pictures(message, dialect)]
        parts += [UserPromptPart(content=shown)] if shown else []
    for message in run[len(results) :]:
        parts.append(UserPromptPart(content=_said(message, dialect)))
    return parts


def _result_parts(message: Message, dialect: Dialect) -> "list[ModelRequestPart]":
    from pydantic_ai.messages import CachePoint, ToolReturnPart, UserPromptPart

    content = _contents(message, dialect)
    texts = [part for part in content if isinstance(part, str)]
    with_pictures = dialect.kind == "anthropic" and len(texts) < len(content)
    result = ToolReturnPart(
        tool_name=message.name or "",
        content=content if with_pictures else "".join(texts) or BLANK,
        tool_call_id=dialect.call_id(message.tool_call_id or ""),
    )
    if dialect.kind == "anthropic" and _asks_for_cache(message):
        return [result, UserPromptPart(content=[CachePoint()])]
    return [result]


def _labelled_pictures(message: Message, dialect: Dialect) -> "list[UserContent]":
    found = [part for part in _contents(message, dialect) if not isinstance(part, str)]
    if not found:
        return []
    call_id = dialect.call_id(message.tool_call_id or "")
    return [f"Pictures from the result of call {call_id}:", *found]


def _said(message: Message, dialect: Dialect) -> "str | list[UserContent]":
    """A message as one text where it is no more than text: every compatible server takes that."""
    from pydantic_ai.messages import CachePoint

    content = _contents(message, dialect) or [BLANK]
    if dialect.kind == "anthropic" and _asks_for_cache(message):
        return [*content, CachePoint()]
    texts = [part for part in content if isinstance(part, str)]
    return content if len(texts) < len(content) else "\n\n".join(texts)


def _contents(message: Message, dialect: Dialect) -> "list[UserContent]":
    """The texts that are not blank, and the pictures; one that cannot be sent becomes a text."""
    content: list[UserContent] = []
    for part in message.content:
        match part:
            case TextContent(text=text):
                content += [text] if text.strip() else []
            case ImageContent(image_urls=urls):
                content += [_picture(url, dialect) for url in urls]
    return content


def _asks_for_cache(message: Message) -> bool:
    return any(part.cache_prompt for part in message.content)


def _picture(url: str, dialect: Dialect) -> "UserContent":
    from pydantic_ai.messages import BinaryContent, ImageUrl

    if not dialect.takes_images:
        return NO_IMAGES
    if pictures.key_of(url) in dialect.refused_pictures:
        return pictures.REFUSED
    if not url.startswith("data:"):
        return ImageUrl(url=url)
    picture = pictures.fitted(url, many=dialect.many_pictures)
    if isinstance(picture, str):
        return picture
    return BinaryContent(data=picture.data, media_type=picture.media_type)


def _reply_parts(message: Message, dialect: Dialect) -> "list[ModelResponsePart]":
    from pydantic_ai.messages import TextPart, ToolCallPart

    parts: list[ModelResponsePart] = list(_reasoning_parts(message, dialect))
    if message.text.strip():
        parts.append(TextPart(content=message.text))
    parts += [
        ToolCallPart(
            tool_name=call.name, args=call.arguments, tool_call_id=dialect.call_id(call.id)
        )
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
