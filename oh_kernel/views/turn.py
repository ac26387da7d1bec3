"""What is there to show of a series of events?

The events of a turn become blocks: what was said, tool calls with their results, notices. Both the
live view and the static one draw these; nothing here knows HTML.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any, Literal

from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.run import CANCELLED_CALL, STOPPED_CALL
from oh_kernel.conversation.state import Status, recorded_status
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    ConversationErrorEvent,
    Event,
    ImageContent,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    ThinkingBlock,
    ToolResultEvent,
    UnknownEvent,
    UserRejectObservation,
)
from oh_kernel.views.linediff import Diff

CallState = Literal["running", "waiting", "ok", "failed", "timed out", "rejected", "interrupted"]
OPEN: tuple[CallState, ...] = ("running", "waiting")

# Tools whose argument is better read as code than as JSON: the argument and its language.
_CODE_ARGUMENTS = {"terminal": ("command", "bash"), "ipython": ("code", "python")}


@dataclass(frozen=True)
class Saying:
    """Words of the user or the agent; the agent's are Markdown."""

    who: Literal["user", "agent", "answer", "reasoning"]
    text: str


@dataclass(frozen=True)
class Notice:
    """One line about the conversation itself."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Call:
    """A tool call: what was asked, how it stands, what came of it."""

    call_id: str
    tool: str
    summary: str
    risk: str
    code: str
    language: str
    started: str
    state: CallState = "running"
    output: str = ""
    diff: Diff | None = None
    exit_code: int | None = None
    duration_s: float | None = None
    images: int = 0

    @property
    def facts(self) -> list[str]:
        """State, exit code and duration in words."""
        facts: list[str] = [self.state]
        if self.exit_code is not None and self.state in ("ok", "failed"):
            facts.append(f"exit {self.exit_code}")
        if self.diff:
            facts.append(self.diff.headline)
        if self.duration_s is not None and self.duration_s >= 0.1:
            facts.append(f"{self.duration_s:.1f} s")
        if self.risk in ("MEDIUM", "HIGH"):
            facts.append(f"risk {self.risk.lower()}")
        return facts


Block = Saying | Notice | Call


@dataclass
class Turn:
    """The blocks of the events so far. Not thread-safe."""

    show_prompt: bool = False
    blocks: list[Block] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    status: Status = Status.IDLE
    files_changed: list[str] = field(default_factory=list)
    _first: str = ""
    _last: str = ""
    _reply: str = ""
    _replies: int = 0

    @classmethod
    def of(cls, events: Iterable[Event], *, show_prompt: bool = False) -> "Turn":
        turn = cls(show_prompt=show_prompt)
        for event in events:
            turn.add(event)
        return turn

    @property
    def steps(self) -> int:
        """Model calls; a log of another product may not record them, but shows their replies."""
        return max(self.metrics.calls, self._replies)

    @property
    def elapsed_s(self) -> float:
        """From the first event to the last."""
        return _seconds(self._first, self._last)

    @property
    def answer(self) -> str:
        """The last answer, "" if there is none yet."""
        answers = (b.text for b in reversed(self.blocks) if isinstance(b, Saying))
        return next(answers, "") if self._has_answer() else ""

    @property
    def open_calls(self) -> list[Call]:
        return [b for b in self.blocks if isinstance(b, Call) and b.state in OPEN]

    def add(self, event: Event) -> None:
        """Take in the next event of the log."""
        self.metrics = self.metrics.plus(event)
        self.status = recorded_status(event) or self.status
        match event:
            case MessageEvent():
                self._add_message(event)
            case ActionEvent():
                self._add_action(event)
            case ToolResultEvent():
                self._add_result(event)
            case PauseEvent():
                self._mark_interrupted()
                self.blocks.append(Notice("Stopped by you."))
            case ConversationErrorEvent():
                self.blocks.append(Notice(event.detail or event.code, is_error=True))
            case Condensation():
                count = len(event.forgotten_event_ids)
                self.blocks.append(Notice(f"{count} earlier events were summarised for the model."))
            case UnknownEvent():
                self.blocks.append(Notice(f"unknown event: {event.kind or 'without a kind'}"))
            case _:
                self._set_waiting()
        self._first = self._first or event.timestamp
        self._last = max(self._last, event.timestamp)

    def end(self) -> None:
        """Nothing more will come: what still runs counts as interrupted."""
        for call in self.open_calls:
            self.replace(replace(call, state="interrupted"))

    def _add_message(self, event: MessageEvent) -> None:
        text = event.llm_message.text.strip()
        if event.source == "user":
            if self.show_prompt or self.blocks:
                self.blocks.append(Saying("user", text))
        elif text:
            self._replies += event.source == "agent"
            self._add_reasoning(event.llm_message.reasoning_content, ())
            self.blocks.append(Saying("answer" if event.source == "agent" else "agent", text))

    def _add_action(self, event: ActionEvent) -> None:
        if event.llm_response_id != self._reply:
            self._reply = event.llm_response_id
            self._replies += 1
            thinking = [b.thinking for b in event.thinking_blocks if isinstance(b, ThinkingBlock)]
            self._add_reasoning(event.reasoning_content, thinking)
        if thought := "\n\n".join(part.text for part in event.thought).strip():
            self.blocks.append(Saying("agent", thought))
        arguments = _arguments(event)
        if event.action is not None and event.tool_name == "think":
            self.blocks.append(Saying("agent", str(arguments.get("thought", ""))))
        elif event.action is not None and event.tool_name == "finish":
            self.blocks.append(Saying("answer", str(arguments.get("message", ""))))
        else:
            self.blocks.append(_call(event, arguments))

    def _add_reasoning(self, content: str | None, thinking: Sequence[str]) -> None:
        if text := (content or "\n\n".join(thinking)).strip():
            self.blocks.append(Saying("reasoning", text))

    def _add_result(self, event: ToolResultEvent) -> None:
        call = self._call(event.tool_call_id)
        if call is None:
            return  # of think or finish, which are shown as words
        duration_s = _seconds(max(call.started, self._last), event.timestamp)
        match event:
            case ObservationEvent():
                call = _with_observation(replace(call, duration_s=duration_s), event)
            case UserRejectObservation():
                call = replace(call, state="rejected", output=event.rejection_reason)
            case AgentErrorEvent(error=text):
                stopped = text in (STOPPED_CALL, CANCELLED_CALL)
                call = replace(call, state="interrupted" if stopped else "failed", output=text)
        if call.diff and call.diff.path not in self.files_changed:
            self.files_changed.append(call.diff.path)
        self.replace(call)

    def _mark_interrupted(self) -> None:
        """The call that the stop cut short says so itself, in an error without an exit code."""
        for block in reversed(self.blocks):
            if not isinstance(block, Call):
                return
            if block.state == "failed" and block.exit_code in (None, -1, 130):
                self.replace(replace(block, state="interrupted"))
                return
            if block.state != "interrupted":
                return

    def _set_waiting(self) -> None:
        waits = self.status is Status.WAITING_FOR_CONFIRMATION
        for call in self.open_calls:
            self.replace(replace(call, state="waiting" if waits else "running"))

    def _has_answer(self) -> bool:
        said = [block for block in self.blocks if isinstance(block, Saying)]
        return bool(said) and said[-1].who == "answer"

    def _call(self, call_id: str) -> Call | None:
        calls = (block for block in reversed(self.blocks) if isinstance(block, Call))
        return next((call for call in calls if call.call_id == call_id), None)

    def replace(self, call: Call) -> None:
        """Put `call` in the place of the block of the same call."""
        for at in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[at]
            if isinstance(block, Call) and block.call_id == call.call_id:
                self.blocks[at] = call
                return


def _call(event: ActionEvent, arguments: dict[str, Any]) -> Call:
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
        summary=_summary(event, arguments),
        risk=str(event.security_risk),
        code=code,
        language=language,
        started=event.timestamp,
    )


def _summary(event: ActionEvent, arguments: dict[str, Any]) -> str:
    """The model's words, else the command or the path."""
    # The reference fills a missing summary with the call as JSON, which says nothing new.
    if event.summary and not event.summary.startswith(f"{event.tool_name}: {{"):
        return event.summary
    if path := arguments.get("path"):
        return f"{arguments.get('command', '')} {PurePath(str(path)).name}".strip()
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return texts[0] if texts else ""


def _arguments(event: ActionEvent) -> dict[str, Any]:
    if event.action is None:
        return {}
    return event.action.model_dump(mode="json", exclude={"kind"}, exclude_defaults=True)


def _with_observation(call: Call, event: ObservationEvent) -> Call:
    observation = event.observation
    exit_code = getattr(observation, "exit_code", None)
    state: CallState = "ok"
    if getattr(observation, "timeout", False) is True:
        state = "timed out"
    elif observation.is_error or exit_code not in (None, 0, -1):
        state = "failed"
    images = [p for p in observation.content if isinstance(p, ImageContent)]
    return replace(
        call,
        state=state,
        output=observation.text,
        diff=None if observation.is_error else _edit(observation),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        images=sum(len(part.image_urls) for part in images),
    )


def _edit(observation: object) -> Diff | None:
    """The change that an editing tool reports, whatever the tool."""
    old, new = (getattr(observation, name, None) for name in ("old_content", "new_content"))
    path = getattr(observation, "path", None) or getattr(observation, "file_path", None)
    if path is None or (old is None and new is None) or old == new:
        return None
    return Diff(str(path), old, new)


def _seconds(start: str, end: str) -> float:
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except ValueError:
        return 0.0
    return max(0.0, span.total_seconds())
