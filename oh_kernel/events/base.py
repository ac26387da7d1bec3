"""What is an event, and how does a `kind` in JSON find its class?

Classes with a `kind` register when they are defined, each in the registry of its family (events,
actions, observations, tools). The value of `kind` is the class's name; once stored, it is forever.
"""

import inspect
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError

from oh_kernel.events.text import without_lone_surrogates

EventSource = Literal["agent", "user", "environment"]

_clock_lock = threading.Lock()
_last_timestamp = ""


def utc_now(not_before: str = "") -> str:
    """The time in UTC as `YYYY-MM-DDTHH:MM:SS.ffffff` (26 characters), never going backwards.

    Within a process it does not fall below what it gave before, nor below `not_before` (the last
    timestamp of a stored conversation, when the system's clock was set back in between).
    """
    global _last_timestamp
    with _clock_lock:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        _last_timestamp = max(now, _last_timestamp)
        return max(_last_timestamp, not_before)


def new_id() -> str:
    """A fresh event or conversation id: a random UUID in its usual spelling."""
    return str(uuid.uuid4())


class Wire(BaseModel):
    """Data off the wire or out of the log: frozen, and keeping the fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The model of `obj`, with half surrogate pairs in it made whole characters.

        One of these (a Latin-1 byte read with surrogateescape, a cut JSON escape) cannot be encoded
        as UTF-8 and would spoil every later request. Text is walked only on failure; a validator
        for it would be called for each part of each event, which is half the time of reading one.
        """
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            if any(e["type"] == "string_unicode" for e in error.errors(include_url=False)):
                return super().model_validate(without_lone_surrogates(obj), **options)
            raise

    def to_json(self) -> str:
        """This as one line of JSON: `kind` included, nulls left out."""
        try:
            return self.model_dump_json(exclude_none=True)
        except (PydanticSerializationError, UnicodeEncodeError):
            # A lone surrogate inside a free-form value, which validation does not look into.
            clean = without_lone_surrogates(self.model_dump(exclude_none=True))
            return type(self).model_validate(clean).model_dump_json(exclude_none=True)


class Kinded(Wire):
    """Data whose class is named by its `kind`. The direct root of a family holds its `registry`."""

    registry: ClassVar[dict[str, type["Kinded"]]]
    kind: str = ""

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if abstract or "registry" in cls.__dict__:
            return
        name = cls.__name__
        cls.__annotations__ = {**inspect.get_annotations(cls), "kind": Literal[name]}
        cls.kind = name
        _register(cls.registry, name, cls)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if "kind" in schema.get("properties", {}):
            schema["properties"]["kind"].pop("default", None)
            required = [name for name in schema.get("required", []) if name != "kind"]
            schema["required"] = [*required, "kind"]
        return schema


class Event(Kinded):
    """Something that happened in a conversation. Frozen; `id` is unique, `timestamp` is UTC."""

    registry: ClassVar[dict[str, type[Kinded]]] = {}

    id: str = Field(default_factory=new_id)
    timestamp: str = Field(default_factory=utc_now)
    source: EventSource


class UnknownEvent(Event, abstract=True):
    """An event that this version cannot read: a newer kind, or values outside what it knows.

    Its JSON text is kept byte for byte, shown as "unknown event", and never sent to a model.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    source: str  # type: ignore[assignment]  # a newer version may know more sources
    _text: str = PrivateAttr(default="")

    @classmethod
    def from_text(cls, text: str, data: Mapping[str, Any]) -> "UnknownEvent":
        """The event whose JSON is `text`; `data` is the same, parsed."""
        known = {k: str(data[k]) for k in ("id", "timestamp", "source", "kind") if data.get(k)}
        event = cls.model_validate({"source": "environment", "timestamp": "", **known})
        event._text = text
        return event

    def to_json(self) -> str:
        """The text this was read from, unchanged."""
        return self._text


def find_kind(
    root: type[Kinded], kind: object, load: Callable[[str], None] | None = None
) -> type[Kinded] | None:
    """The class of `root`'s family with this `kind`, asking `load` to import it if need be."""
    if not isinstance(kind, str):
        return None
    if kind not in root.registry and load is not None:
        load(kind)
    return root.registry.get(kind)


def _register(registry: dict[str, type[Kinded]], name: str, cls: type[Kinded]) -> None:
    other = registry.get(name)
    redefined = other is not None and (
        cls.__module__ == "__main__"  # a cell run again
        or (other.__module__, other.__qualname__) == (cls.__module__, cls.__qualname__)
    )
    if other is not None and not redefined:
        raise TypeError(
            f"kind {name!r} of {cls.__module__} is already taken by {other.__module__}; "
            "stored conversations find a class by this name, so choose another"
        )
    registry[name] = cls
