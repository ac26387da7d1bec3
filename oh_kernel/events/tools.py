"""What does a tool look like in the log: its definition, what it is asked, what it answers."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ConfigDict, Field, SerializeAsAny, ValidationError

from oh_kernel.events.base import Kinded, Wire, find_kind
from oh_kernel.events.content import Content, TextContent, joined_text
from oh_kernel.events.edits import FileEdit


class SecurityRisk(StrEnum):
    """How much harm an action could do; ordered, with UNKNOWN apart."""

    UNKNOWN = "UNKNOWN"
    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"

    def at_least(self, threshold: "SecurityRisk") -> bool:
        """Whether this known risk reaches `threshold`; UNKNOWN reaches nothing."""
        order = list(SecurityRisk)
        return self is not SecurityRisk.UNKNOWN and order.index(self) >= order.index(threshold)


class Action(Kinded):
    """What a model asks a tool to do. Its fields are the tool's parameters; others are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    registry: ClassVar[dict[str, type[Kinded]]] = {}


class UnknownAction(Action, abstract=True):
    """An action of a tool that is not here; kept as it is, never carried out."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Observation(Kinded):
    """What a tool answers: texts and images for the model, and fields for everybody else."""

    registry: ClassVar[dict[str, type[Kinded]]] = {}

    content: list[Content] = Field(default_factory=list)
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return joined_text(self.content)

    def for_model(self) -> list[Content]:
        """What the model is told; a tool with facts beside its text adds them here."""
        return list(self.content)

    def edits(self) -> list[FileEdit]:
        """The changes of files that it reports, for views; of any tool with these fields."""
        old, new = (getattr(self, name, None) for name in ("old_content", "new_content"))
        path = getattr(self, "path", None) or getattr(self, "file_path", None)
        if self.is_error or path is None or old == new:
            return []
        return [FileEdit(str(path), old, new)]

    @classmethod
    def from_text(cls, text: str, is_error: bool = False, **fields: Any) -> Self:
        """An observation of one text."""
        return cls(content=[TextContent(text=text)], is_error=is_error, **fields)


class UnknownObservation(Observation, abstract=True):
    """An answer of a tool that is not here; its text, or else its fields, still reach the model."""

    def for_model(self) -> list[Content]:
        """The content, or the fields as JSON where there is none."""
        if self.content:
            return list(self.content)
        fields = self.model_dump_json(exclude={"content", "is_error", "kind"}, exclude_none=True)
        return [TextContent(text=fields)]


class ToolAnnotations(Wire):
    """Hints about what a tool may do, with the names and defaults of the MCP specification."""

    title: str | None = None
    readOnlyHint: bool = False
    destructiveHint: bool = True
    idempotentHint: bool = False
    openWorldHint: bool = True


class ToolDefinition(Kinded):
    """A tool as the model was told of it."""

    registry: ClassVar[dict[str, type[Kinded]]] = {}

    description: str
    action_type: str
    observation_type: str | None = None
    annotations: ToolAnnotations | None = None
    meta: dict[str, Any] | None = None
    title: str


class UnknownTool(ToolDefinition, abstract=True):
    """A tool that is not here."""


def _decoder(root: type[Kinded], unknown: type[Kinded]) -> Callable[[Any], Any]:
    def decode(data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        from oh_kernel.events.codec import load_kind  # it imports the tools, which import this

        cls = find_kind(root, data.get("kind"), load_kind) or unknown
        try:
            return cls.model_validate(data)
        except ValidationError:
            if cls is unknown:
                raise
            return unknown.model_validate(data)

    return decode


AnyAction = Annotated[SerializeAsAny[Action], BeforeValidator(_decoder(Action, UnknownAction))]
AnyObservation = Annotated[
    SerializeAsAny[Observation], BeforeValidator(_decoder(Observation, UnknownObservation))
]
AnyTool = Annotated[
    SerializeAsAny[ToolDefinition], BeforeValidator(_decoder(ToolDefinition, UnknownTool))
]
