"""Which hooks does a file `hooks.json` ask for?

    {"pre_tool_use": [{"matcher": "terminal", "hooks": [{"command": "./check.sh", "timeout": 10}]}]}

Names of events may also be written as `PreToolUse`, and all of it may stand below `"hooks"`, as in
the older layout. What cannot be understood is refused: a guard must not be lost by a slip.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from oh_kernel.errors import SettingsError
from oh_kernel.events.kinds import HookEventType
from oh_kernel.events.text import parsed_json
from oh_kernel.security.hooks.matching import pattern_of

EVENTS: tuple[HookEventType, ...] = get_args(HookEventType)
BLOCKING: tuple[HookEventType, ...] = ("PreToolUse", "UserPromptSubmit", "Stop")
"""The events that a hook can forbid; the others have happened already."""

_NO_AGENT = "the type agent is not supported; a hook is a command or a prompt"


class Hook(BaseModel):
    """One thing to do when an event comes."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="allow")

    type: Literal["command", "prompt"] = "command"
    command: str = Field(min_length=1)
    """A command for the shell, or what a model is asked."""
    timeout_s: float = Field(60.0, alias="timeout", gt=0, allow_inf_nan=False)
    is_async: bool = Field(False, alias="async")
    """Nobody waits for it, so it cannot forbid anything."""

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("type") == "agent":
            raise ValueError(_NO_AGENT)
        if data.get("type") == "prompt" and "prompt" in data:
            return {**data, "command": data["prompt"]}
        return data

    @property
    def name(self) -> str:
        """What it is called in the log and in a view: one line, nothing in it that could act."""
        line = " ".join(self.command.split())
        shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
        return shown if len(shown) <= 100 else shown[:99] + "…"


class Matched(BaseModel):
    """Hooks for the tools whose name fits `matcher`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    matcher: str = "*"
    hooks: tuple[Hook, ...] = ()

    @model_validator(mode="after")
    def _pattern_is_one(self) -> "Matched":
        try:
            pattern_of(self.matcher)
        except re.error as error:
            raise ValueError(
                f"matcher {self.matcher!r} is no regular expression: {error}"
            ) from None
        return self


class HookConfig(BaseModel):
    """The hooks of one or of several files, by event."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: dict[HookEventType, tuple[Matched, ...]] = Field(default_factory=dict)

    def of(self, event: HookEventType, tool_name: str | None = None) -> list[Hook]:
        """The hooks for `event`, in their order. Where there is no tool, no matcher is asked."""
        return [
            hook
            for matched in self.events.get(event, ())
            if tool_name is None or pattern_of(matched.matcher)(tool_name)
            for hook in matched.hooks
        ]

    def __add__(self, other: "HookConfig") -> "HookConfig":
        both = {e: self.events.get(e, ()) + other.events.get(e, ()) for e in EVENTS}
        return HookConfig(events={event: found for event, found in both.items() if found})

    def __bool__(self) -> bool:
        return any(matched.hooks for found in self.events.values() for matched in found)

    def in_words(self) -> Iterator[str]:
        """Each hook as a person is told of it: `PreToolUse[terminal]: ./check.sh`."""
        for event, found in self.events.items():
            for matched in found:
                tool = "" if matched.matcher in ("", "*") else f"[{matched.matcher}]"
                yield from (f"{event}{tool}: {hook.name}" for hook in matched.hooks)


def read_hooks(path: Path, content: bytes) -> HookConfig:
    """What `content` of the file `path` asks for; raises SettingsError, which names the place."""
    try:
        data = parsed_json(content.decode("utf-8-sig"))
    except ValueError as error:  # not UTF-8, not JSON
        raise _refused(path, f"is no JSON: {error}") from None
    try:
        return HookConfig(events=_by_event(data))
    except ValidationError as error:
        raise _refused(path, _first_of(error)) from None
    except ValueError as error:
        raise _refused(path, str(error)) from None


def _by_event(data: Any) -> dict[Any, Any]:
    if isinstance(data, dict) and "hooks" in data:
        data = data["hooks"]
    if not isinstance(data, dict):
        raise ValueError("must be an object with names of events, such as pre_tool_use")
    found: dict[Any, Any] = {}
    for name, matched in data.items():
        event = _event_named(name)
        if event in found:
            raise ValueError(f"has {event} twice, in two spellings")
        found[event] = matched
    return found


def _event_named(name: str) -> str:
    for event in EVENTS:
        if name in (event, _snake(event)):
            return event
    near = get_close_matches(name, [*EVENTS, *map(_snake, EVENTS)], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EVENTS)}"
    raise ValueError(f"has the event {name!r}, which is none; {hint}")


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _first_of(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return f"cannot be used at {place}: {first['msg'].removeprefix('Value error, ')}"


def _refused(path: Path, what: str) -> SettingsError:
    return SettingsError(
        f"{path} {what}",
        remedy="Until it is mended or taken away, no turn begins, so that no hook is left out.",
    )
