"""What do messages consist of: texts, images, reasoning and calls of tools."""

from typing import Annotated, Any, Literal

from pydantic import Field

from oh_kernel.events.base import Wire


class TextContent(Wire):
    """A piece of text."""

    cache_prompt: bool = False
    type: Literal["text"] = "text"
    text: str


class ImageContent(Wire):
    """Pictures, each as a URL or a `data:` URL."""

    cache_prompt: bool = False
    type: Literal["image"] = "image"
    image_urls: list[str]


Content = Annotated[TextContent | ImageContent, Field(discriminator="type")]


class ThinkingBlock(Wire):
    """A model's reasoning as its provider signed it; goes back to that provider unaltered."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(Wire):
    """Reasoning that the provider encrypted; goes back to that provider unaltered."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


Thinking = Annotated[ThinkingBlock | RedactedThinkingBlock, Field(discriminator="type")]


class ReasoningItemModel(Wire):
    """A reasoning item of the OpenAI Responses API."""

    id: str | None = None
    summary: list[str] = Field(default_factory=list)
    content: list[str] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class MessageToolCall(Wire):
    """A model's request to call a tool. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    origin: Literal["completion", "responses"]


class Message(Wire):
    """A message to or from a model."""

    role: Literal["user", "system", "assistant", "tool"]
    content: list[Content] = Field(default_factory=list)
    tool_calls: list[MessageToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: list[Thinking] = Field(default_factory=list)
    responses_reasoning_item: ReasoningItemModel | None = None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return joined_text(self.content)

    @classmethod
    def of(
        cls, role: Literal["user", "system", "assistant", "tool"], text: str, **fields: Any
    ) -> "Message":
        """A message of one text."""
        return cls(role=role, content=[TextContent(text=text)], **fields)


def joined_text(content: list[TextContent | ImageContent]) -> str:
    """The text parts of `content`, joined without a separator."""
    return "".join(part.text for part in content if isinstance(part, TextContent))
