"""What do recorded actions answer when they are carried out again, in another workspace?

No model is asked. Each answer is compared with the recorded one after what differs by itself from
run to run was put aside; a difference stops nothing. Paths of the recorded workspace mean the new
one; all else that an action names is as real as it was the first time.
"""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oh_kernel.conversation.confirmation import run_text
from oh_kernel.conversation.rerun_report import RerunCall, RerunReport
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.errors import ConversationError
from oh_kernel.events import (
    Action,
    ActionEvent,
    AgentErrorEvent,
    Event,
    ImageContent,
    Observation,
    ObservationEvent,
    SecurityRisk,
    ToolResultEvent,
    UnknownAction,
    UnknownObservation,
    UserRejectObservation,
)
from oh_kernel.events.content import joined_text
from oh_kernel.llm.canonical import Canonical
from oh_kernel.security.analyzers import assess
from oh_kernel.settings import Settings
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.presets import ALL_TOOLS, Resources, make_executor, tool_named

MAX_DIFF_LINES = 60
MAX_DIFF_CHARS = 6_000
MAX_ASKED_CHARS = 100

_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# What Canonical leaves alone, as a model reads it but seldom, and commands print it often.
_VOLATILE = (
    ("<date>", re.compile(rf"\b{_DAY}{_MONTH} +\d{{1,2}},? +(?:\d\d:\d\d(?::\d\d)?|\d{{4}})\b")),
    ("<time>", re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b")),
    ("<duration>", re.compile(r"\b\d+m\d+\.(?:\d+s|<duration>)")),
    ("<pid>", re.compile(r"(?<=\bpid)(?:[ :=]+)\d+\b", re.IGNORECASE)),
    ("[<job>] <pid>", re.compile(r"^\[\d+\] \d+$", re.MULTILINE)),
    ("<temporary>", re.compile(r"\btmp(?:\.\w{6,}|[a-z0-9_]{8})\b")),
)


class Steady:
    """Texts of one workspace without what differs by itself from run to run."""

    def __init__(self, workspace: Path, outputs: Path | None = None) -> None:
        self._canonical = Canonical(workspace)
        self._outputs = str(outputs) if outputs else ""

    def __call__(self, observation: Observation) -> list[str]:
        """What a model is told by `observation`, line by line."""
        parts = observation.for_model()
        text = joined_text(parts).replace(self._outputs or "\0", "<outputs>")
        text = self._canonical.text(text)
        for placeholder, pattern in _VOLATILE:
            text = pattern.sub(placeholder, text)
        pictures = sum(len(part.image_urls) for part in parts if isinstance(part, ImageContent))
        more = ["(an error)"] * observation.is_error + [f"({pictures} images)"] * bool(pictures)
        return [*text.splitlines(), *more]


class Rerun:
    """One rerun. Used on the agent thread; `close` stops what its tools started."""

    def __init__(
        self,
        recorded_workspace: Path,
        workspace: Path,
        settings: Settings,
        *,
        allow_risky: bool = False,
        recorded_outputs: Path | None = None,
    ) -> None:
        check_apart(recorded_workspace, workspace)
        self._recorded_workspace = recorded_workspace
        self._workspace = workspace
        self._settings = settings
        self._allow_risky = allow_risky
        self._as_recorded = Steady(recorded_workspace, recorded_outputs)
        self._as_now = Steady(workspace)
        self._files = Files(workspace)
        self._answered: list[Event] = []
        self._toolbox = Toolbox([], workspace, self._executor)

    async def __call__(self, conversation_id: str, events: Sequence[Event]) -> RerunReport:
        """Carry out the actions among `events`, one after the other."""
        results = {e.tool_call_id: e for e in events if isinstance(e, ToolResultEvent)}
        calls = [event for event in events if isinstance(event, ActionEvent)]
        names = dict.fromkeys(call.tool_name for call in calls if call.tool_name in ALL_TOOLS)
        self._toolbox.tools = tuple(tool_named(name) for name in names)
        told = [await self._told(call, results.get(call.tool_call_id)) for call in calls]
        return RerunReport(
            conversation_id=conversation_id,
            recorded_workspace=str(self._recorded_workspace),
            workspace=str(self._workspace),
            calls=tuple(told),
        )

    def close(self) -> None:
        """Stop the tools."""
        self._toolbox.close()

    async def _told(self, call: ActionEvent, result: ToolResultEvent | None) -> RerunCall:
        def told(outcome: Any, detail: str = "") -> RerunCall:
            return RerunCall(
                call_id=call.tool_call_id,
                tool=call.tool_name,
                asked=_asked(call),
                outcome=outcome,
                detail=detail,
            )

        if reason := self._reason_to_skip(call, result):
            return told("skipped", reason)
        executor = self._toolbox.executor(call.tool_name)
        if executor is None or call.action is None or not isinstance(result, ObservationEvent):
            return told("skipped", f"there is no tool {call.tool_name!r} here")
        try:
            now = await self._answer(executor, call, call.action)
        except Exception as error:  # as in a conversation, whatever it is, it is told
            return told("error", f"{type(error).__name__}: {error}")
        self._answered.append(result.model_copy(update={"observation": now}))
        difference = diff(self._as_recorded(result.observation), self._as_now(now))
        return told("differs" if difference else "same", difference)

    def _reason_to_skip(self, call: ActionEvent, result: ToolResultEvent | None) -> str:
        """Why a call is not carried out again; "" when it is."""
        match result:
            case None:
                return "it has no result in the recording"
            case UserRejectObservation():
                return f"it was rejected: {result.rejection_reason}"
            case AgentErrorEvent():
                return f"it was not carried out, or not to its end: {result.error}"
            case ObservationEvent(observation=UnknownObservation()):
                return "its recorded answer is of a kind that this version does not know"
        if call.action is None or isinstance(call.action, UnknownAction):
            return "it could not be understood"
        found = assess(call.tool_name, call.action, call.security_risk)
        if (found.always_ask or found.risk is SecurityRisk.HIGH) and not self._allow_risky:
            return f"it is risky: {', '.join(found.reasons) or found.risk}"
        return ""

    async def _answer(
        self, executor: ToolExecutor[Any, Any], call: ActionEvent, action: Action
    ) -> Observation:
        context = ToolContext(workspace=self._workspace, call_id=call.tool_call_id)
        with self._files.during_call(executor, call.tool_name):
            moved_action = moved(action, self._recorded_workspace, self._workspace)
            observation: Observation = await executor.run(moved_action, context)
        return observation

    def _executor(self, tool: type[Tool]) -> ToolExecutor[Any, Any]:
        resources = Resources(events=lambda: self._answered, files=self._files)
        return make_executor(tool, self._workspace, self._settings, resources)


def check_apart(recorded: Path, workspace: Path) -> None:
    """Raise ConversationError unless neither folder holds the other."""
    recorded, workspace = recorded.resolve(), workspace.resolve()
    if recorded in (workspace, *workspace.parents) or workspace in recorded.parents:
        raise ConversationError(
            f"{workspace} is not apart from {recorded}, where the conversation worked.",
            remedy="Name another folder: an empty one, or one with the files that it began with.",
        )


def moved(action: Action, old: Path, new: Path) -> Action:
    """The action with each path in the folder `old` as the same path in `new`."""
    written = action.model_dump_json()
    # As it stands inside a JSON string. What goes on with a letter is another folder's name.
    path, target = (json.dumps(str(folder), ensure_ascii=False)[1:-1] for folder in (old, new))
    text = re.sub(rf"{re.escape(path)}(?![\w-]|\.\w)", lambda _: target, written)
    return type(action).model_validate_json(text) if text != written else action


def diff(recorded: list[str], now: list[str]) -> str:
    """The difference in the format of `diff -u`, its end left out where it is long; "" if none."""
    lines = list(difflib.unified_diff(recorded, now, "recorded", "now", n=2, lineterm=""))
    shown = list(_within(lines[:MAX_DIFF_LINES], MAX_DIFF_CHARS))
    if left := len(lines) - len(shown):
        shown.append(f"[... {left:,} more lines of this difference ...]")
    return "\n".join(shown)


def _within(lines: Sequence[str], chars: int) -> Iterator[str]:
    for line in lines:
        chars -= len(line) + 1
        if chars < 0:
            return
        yield line


def _asked(call: ActionEvent) -> str:
    """What the call was for, in one line."""
    text = run_text(call.action) if call.action is not None else ""
    line = " ".join((text or call.summary or "").split())
    return line if len(line) <= MAX_ASKED_CHARS else line[: MAX_ASKED_CHARS - 1] + "…"
