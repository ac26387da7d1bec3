"""How is a model asked, whoever provides it?"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oh_kernel.events import Message


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Usage:
    """What a call cost, in tokens. `prompt_tokens` includes those read from a cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True)
class ToolCallDelta:
    """A piece of a tool call; `index` counts the calls of this reply from 0."""

    index: int
    name: str
    arguments: str


@dataclass(frozen=True)
class RetryNotice:
    """The request failed and is sent again after `wait_s` seconds; forget what was streamed."""

    attempt: int
    max_attempts: int
    wait_s: float
    reason: str


@dataclass(frozen=True)
class ModelNotice:
    """Something that a person should know of the model itself."""

    text: str


@dataclass(frozen=True)
class Completion:
    """A whole reply, the last thing of a stream. `cost_usd` is None for models of unknown price."""

    message: Message
    response_id: str
    model: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    finish_reason: str = "stop"


Delta = TextDelta | ReasoningDelta | ToolCallDelta | RetryNotice | ModelNotice


class LLM(Protocol):
    """A model. Used on the agent thread only.

    `stream` yields deltas and ends with one `Completion`. Closing the iterator early, or cancelling
    the task that reads it, closes the connection: nothing more is sent or billed. (A loop that may
    be left early reads it within `contextlib.aclosing`, since `break` alone closes nothing.) What
    goes wrong is raised as one of `errors.ModelError`.
    """

    @property
    def model(self) -> str:
        """The name as `provider:model`."""

    @property
    def takes_images(self) -> bool:
        """Whether image parts may be sent."""

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask the model to go on after `messages`."""

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for, such as imports; may be left out."""

    async def aclose(self) -> None:
        """Close connections."""
