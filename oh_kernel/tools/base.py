"""What is a tool: a definition that a model reads and an executor that does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from oh_kernel.events import Action, Observation, ToolDefinition
from oh_kernel.events.text import clip as clip  # the one place where tools cut output
from oh_kernel.events.tools import ToolAnnotations
from oh_kernel.llm.base import ToolSpec
from oh_kernel.loop import run_blocking
from oh_kernel.tools.schema import parameters, schema_of

A = TypeVar("A", bound=Action)
O = TypeVar("O", bound=Observation)  # noqa: E741 - the pair A, O reads as action, observation


def _show_nothing(text: str) -> None:
    """A view for calls that nobody watches."""


def _make_no_room() -> None:
    """A view that shows nothing needs no room for plots."""


@dataclass(frozen=True)
class ToolContext:
    """What an executor is told beside the action; made for each call."""

    workspace: Path
    call_id: str = ""
    show: Callable[[str], None] = field(default=_show_nothing)
    """Live output for whoever watches; to be called on the agent thread."""
    make_room: Callable[[], None] = field(default=_make_no_room)
    """Output that shows itself, such as a plot, is about to come; on the agent thread too."""


@dataclass(frozen=True)
class Preview:
    """What an edit would do to a file. `old_text` is None for a file that does not exist yet."""

    path: Path
    old_text: str | None
    new_text: str | None
    moved_to: Path | None = None


class ToolExecutor(Generic[A, O]):
    """Does the work of one tool. It knows neither conversation nor notebook.

    `run` is called on the agent thread. When it is cancelled it stops what it started and returns
    an observation that says how far that got, or lets the cancellation pass if there is nothing
    to tell. Failures that the model can act on are observations with `is_error=True`.
    """

    def __init__(self, workspace: str | Path) -> None:
        self.workspace = Path(workspace)

    async def run(self, action: A, context: ToolContext) -> O:
        """Carry out `action`."""
        raise NotImplementedError

    def resources(self, action: A) -> tuple[str, ...] | None:
        """What `action` must have to itself: keys like `file:/w/a.py` or `terminal:session`.

        None: one call of this tool at a time. Empty: nothing, it may run beside any other.
        """
        return None

    def __call__(self, action: A) -> O:
        """Carry out `action` and wait for it; from any thread but the agent's."""
        return run_blocking(self.run(action, ToolContext(workspace=self.workspace)))

    def close(self) -> None:
        """Stop whatever the executor started. May be called twice."""


class Tool(ToolDefinition, abstract=True):
    """A definition whose class also says which action, observation and executor belong to it.

    A tool is one file; adding it to a list of `presets` is all that registers it.
    """

    name: ClassVar[str]
    prose: ClassVar[str]
    action: ClassVar[type[Action]]
    observation: ClassVar[type[Observation]]
    executor: ClassVar[type[ToolExecutor[Any, Any]]]
    hints: ClassVar[ToolAnnotations]

    @classmethod
    def define(cls) -> Self:
        """The definition as it is stored and shown."""
        return cls(
            description=cls.prose,
            action_type=cls.action.__name__,
            observation_type=cls.observation.__name__,
            annotations=cls.hints,
            title=cls.name,
        )

    @classmethod
    def arguments(cls) -> dict[str, Any]:
        """The JSON schema of what a model fills in."""
        return schema_of(cls.action)

    @classmethod
    def action_of(cls, arguments: Mapping[str, Any]) -> Action:
        """The action that a model asks for; raises ValueError with what is wrong."""
        return cls.action.model_validate(arguments)

    @classmethod
    def spec(cls) -> ToolSpec:
        """What a model is told."""
        asks_risk = not cls.hints.readOnlyHint
        return ToolSpec(cls.name, cls.prose, parameters(cls.arguments(), asks_risk=asks_risk))
