"""How is one hook run, and what is it told?"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from oh_kernel.errors import ModelError
from oh_kernel.events import HookExecutionEvent
from oh_kernel.events.kinds import HookEventType
from oh_kernel.security.hooks.config import BLOCKING, Hook
from oh_kernel.security.hooks.process import run_command
from oh_kernel.security.hooks.verdicts import (
    Outcome,
    failing_closed,
    verdict_of_command,
    verdict_of_model,
)
from oh_kernel.sessions.shell_environment import shell_environment

MAX_FIELD_CHARS = 50_000
TRUNCATED = "\n<TRUNCATED>"

Ask = Callable[[str], Awaitable[str]]
"""A question to a model; raises ModelError when it has no answer."""


@dataclass(frozen=True)
class Occasion:
    """What happens, as a hook is told of it."""

    event_type: HookEventType
    session_id: str
    working_dir: Path
    tool_name: str | None = None
    tool_input: Mapping[str, Any] | None = None
    tool_response: Mapping[str, Any] | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """What stands on a hook's standard input."""
        return {**vars(self), "working_dir": str(self.working_dir)}

    def variables(self) -> dict[str, str]:
        """What stands in a hook's environment."""
        return {
            "OPENHANDS_PROJECT_DIR": str(self.working_dir),
            "OPENHANDS_SESSION_ID": self.session_id,
            "OPENHANDS_EVENT_TYPE": self.event_type,
            "OPENHANDS_TOOL_NAME": self.tool_name or "",
        }


async def outcome_of(
    hook: Hook, occasion: Occasion, text: str, ask: Ask, *, fails_closed: bool = True
) -> Outcome:
    """Run `hook` with `text`, the occasion as JSON. One that fails where it could have forbidden
    something forbids it, unless `fails_closed` is off or nobody waits for it.
    """
    outcome = await _tried(hook, occasion, text, ask)
    forbids = fails_closed and not hook.is_async and occasion.event_type in BLOCKING
    return failing_closed(outcome, hook.name) if outcome.error and forbids else outcome


async def _tried(hook: Hook, occasion: Occasion, text: str, ask: Ask) -> Outcome:
    limit_s = hook.timeout_s
    try:
        if hook.type == "prompt":
            async with asyncio.timeout(limit_s):
                return verdict_of_model(await ask(f"{hook.command}\n\n{text}"))
        env = shell_environment() | occasion.variables()
        folder = occasion.working_dir
        ended = await run_command(hook.command, text, folder=folder, env=env, timeout_s=limit_s)
        return verdict_of_command(ended, limit_s)
    except TimeoutError:
        return Outcome(False, error=f"the model gave no answer in its {limit_s:g} s")
    except (OSError, ValueError, ModelError) as error:  # ValueError: a NUL in the command
        return Outcome(False, error=f"it could not be run: {error}")


def as_json(occasion: Occasion) -> str:
    """The occasion as one line of JSON."""
    return to_json(occasion.as_data()).decode()


def recorded(hook: Hook, occasion: Occasion, outcome: Outcome, **ids: str) -> HookExecutionEvent:
    """The event for the log, no text of it longer than the limit."""
    fields = {name: value for name, value in vars(outcome).items() if value is not None}
    return HookExecutionEvent(
        hook_event_type=occasion.event_type,
        hook_command=_cut(hook.command),
        tool_name=occasion.tool_name,
        hook_input=_cut(occasion.as_data()),
        **{name: _cut(value) for name, value in fields.items()},
        **ids,
    )


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > MAX_FIELD_CHARS:
            return value[:MAX_FIELD_CHARS] + TRUNCATED
        case dict() | Mapping():
            return {name: _cut(item) for name, item in value.items()}
        case list() | tuple():
            return [_cut(item) for item in value]
        case _:
            return value
