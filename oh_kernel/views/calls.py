"""What is there to show of a tool call: what was asked, how it stands, what came of it?"""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any, Literal

from oh_kernel.conversation.calls import CANCELLED_CALL, STOPPED_CALL
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    FileEdit,
    ImageContent,
    ObservationEvent,
    ToolResultEvent,
    UserRejectObservation,
)
from oh_kernel.tools.task_tracker import TaskItem, TaskTrackerAction, TaskTrackerObservation
from oh_kernel.views.checklist import progress
from oh_kernel.views.linediff import Diff, headline
from oh_kernel.views.titles import found, title

CallState = Literal["running", "waiting", "ok", "failed", "timed out", "rejected", "interrupted"]
OPEN: tuple[CallState, ...] = ("running", "waiting")

# Tools whose argument is better read as code than as JSON: the argument and its language.
_CODE_ARGUMENTS = {
    "terminal": ("command", "bash"),
    "ipython": ("code", "python"),
    "apply_patch": ("patch", "diff"),
}
# Exit codes of a command that was cut short: it has none yet, or ended by C-c.
_CUT_SHORT = (None, -1, 130)
# Shorter than this is not worth a reader's time.
_LEAST_SECONDS = 0.1


@dataclass(frozen=True)
class Call:
    """A tool call as a person sees it."""

    call_id: str
    tool: str
    summary: str
    risk: str
    code: str
    language: str
    started: str
    state: CallState = "running"
    output: str = ""
    diffs: tuple[Diff, ...] = ()
    exit_code: int | None = None
    duration_s: float = 0.0
    images: int = 0
    found: str = ""
    tasks: tuple[TaskItem, ...] = ()
    superseded: bool = False
    """Whether a later call of the turn shows the tasks as they are by now."""

    @property
    def facts(self) -> list[str]:
        """State, exit code, what came of it, duration and a notable risk, each a few words."""
        facts: list[str] = [self.state]
        if self.exit_code is not None and self.state in ("ok", "failed"):
            facts.append(f"exit {self.exit_code}")
        if self.diffs:
            facts.append(headline(self.diffs))
        if self.found:
            facts.append(self.found)
        if self.shows_tasks:
            facts.append(progress(self.tasks))
        if self.duration_s >= _LEAST_SECONDS:
            facts.append(f"{self.duration_s:.1f} s")
        if self.risk in ("MEDIUM", "HIGH"):
            facts.append(f"risk {self.risk.lower()}")
        return facts

    @property
    def shows_tasks(self) -> bool:
        """Whether it is a list of tasks that holds, or will if nothing prevents it."""
        return bool(self.tasks) and self.state in ("ok", *OPEN)

    @property
    def may_be_cut_short(self) -> bool:
        """Whether the failure is one that a stop would leave behind."""
        return self.state == "failed" and self.exit_code in _CUT_SHORT


def call_of(event: ActionEvent) -> Call:
    """The call as it was asked for."""
    arguments = arguments_of(event)
    argument, language = _CODE_ARGUMENTS.get(event.tool_name, ("", ""))
    if event.action is None:  # not understood, so it is shown as the model wrote it
        code, language = event.tool_call.arguments, ""
    elif argument in arguments:
        code = str(arguments[argument])
    else:
        code, language = json.dumps(arguments, indent=2, ensure_ascii=False), "json"
    return Call(
        call_id=event.tool_call_id,
        tool=event.tool_name,
        summary=title(event, arguments),
        risk=str(event.security_risk),
        code=code,
        language=language,
        started=event.timestamp,
        tasks=_tasks(event.action),
    )


def answered(
    call: Call, event: ToolResultEvent, *, began: str, workspace: PurePath | None = None
) -> Call:
    """The call with its result; `began` is when its turn came among the calls of a reply.

    The path of an edited file is shown relative to `workspace`, where it is below it.
    """
    call = replace(call, duration_s=seconds_between(max(call.started, began), event.timestamp))
    match event:
        case ObservationEvent():
            return _observed(call, event, workspace)
        case UserRejectObservation():
            return replace(call, state="rejected", output=event.rejection_reason)
        case AgentErrorEvent(error=text):
            stopped = text in (STOPPED_CALL, CANCELLED_CALL)
            return replace(call, state="interrupted" if stopped else "failed", output=text)
        case _:
            return replace(call, state="ok")


def arguments_of(event: ActionEvent) -> dict[str, Any]:
    """What the tool was asked, without what it would assume anyway."""
    if event.action is None:
        return {}
    return event.action.model_dump(mode="json", exclude={"kind"}, exclude_defaults=True)


def diff_of(edit: FileEdit, workspace: PurePath | None) -> Diff:
    """The change that a tool reports or announces, as it is shown."""
    names = [shown_path(path, workspace) for path in (edit.path, edit.moved_to) if path]
    return Diff(" → ".join(names), edit.old, edit.new)


def shown_path(path: str, workspace: PurePath | None) -> str:
    """The path as it is shown: relative to the workspace if the file is below it.

    >>> shown_path("/w/a/b.py", PurePath("/w")), shown_path("/x/b.py", PurePath("/w"))
    ('a/b.py', '/x/b.py')
    """
    if workspace is None or not PurePath(path).is_relative_to(workspace):
        return path
    return str(PurePath(path).relative_to(workspace))


def seconds_between(start: str, end: str) -> float:
    """The time between two timestamps of events; 0 if one of them is not readable."""
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (ValueError, TypeError):  # a log of another product, or one with and one without zone
        return 0.0
    return max(0.0, span.total_seconds())


def _observed(call: Call, event: ObservationEvent, workspace: PurePath | None) -> Call:
    observation = event.observation
    exit_code = getattr(observation, "exit_code", None)
    state: CallState = "ok"
    if getattr(observation, "timeout", False) is True:
        state = "timed out"
    elif observation.is_error or exit_code not in (None, 0, -1):
        state = "failed"
    images = [part for part in observation.content if isinstance(part, ImageContent)]
    return replace(
        call,
        state=state,
        output=observation.text,
        diffs=tuple(diff_of(edit, workspace) for edit in observation.edits()),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        images=sum(len(part.image_urls) for part in images),
        found=found(observation),
        tasks=_tasks(observation) or call.tasks,
    )


def _tasks(of: object) -> tuple[TaskItem, ...]:
    return tuple(of.task_list) if isinstance(of, TaskTrackerAction | TaskTrackerObservation) else ()
