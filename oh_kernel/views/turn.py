"""What is there to show of a series of events?

The events of a turn become blocks: what was said, tool calls with their results, notices. Both the
live view and the static one draw these; nothing here knows HTML.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal

from oh_kernel.conversation.limits import MORE_MONEY, MORE_TOKENS
from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.state import Status, recorded_status
from oh_kernel.events import (
    ActionEvent,
    Condensation,
    ConversationErrorEvent,
    Event,
    HookExecutionEvent,
    InterruptEvent,
    MessageEvent,
    PauseEvent,
    ThinkingBlock,
    ToolResultEvent,
    UnknownEvent,
)
from oh_kernel.views.calls import OPEN, Call, answered, arguments_of, call_of, seconds_between
from oh_kernel.views.escape import one_line

# What a person can do about an error whose text is fixed by the API.
_REMEDIES = {
    "MaxIterationsReached": "Send a message to go on, or allow more with max_steps.",
    "MaxBudgetReached": MORE_MONEY,
    "MaxTokensReached": MORE_TOKENS,
}


_OBJECTIONS = {
    "PreToolUse": "blocked {tool}",
    "PostToolUse": "objects to {tool}, which has run",
    "UserPromptSubmit": "blocked your message, so no model is asked",
    "Stop": "does not let the agent end yet",
    "SessionStart": "objects, in vain",
    "SessionEnd": "objects, in vain",
}
_STUCK = (
    "The agent went in circles and was stopped. Send a message to go on; stuck_detection=no turns "
    "the watch off."
)


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
    details: str = ""
    """Folded away, where there is a fold."""


Block = Saying | Notice | Call


@dataclass
class Turn:
    """The blocks of the events so far. Not thread-safe."""

    show_prompt: bool = False
    workspace: PurePath | None = None
    blocks: list[Block] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    status: Status = Status.IDLE
    files_changed: list[str] = field(default_factory=list)
    _first: str = ""
    _last: str = ""
    _reply: str = ""
    _replies: int = 0

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        *,
        show_prompt: bool = False,
        workspace: PurePath | None = None,
    ) -> "Turn":
        """The turn of all these events."""
        turn = cls(show_prompt=show_prompt, workspace=workspace)
        for event in events:
            turn.add(event)
        return turn

    @property
    def steps(self) -> int:
        """Model calls; a log of another product may not record them, but shows their replies."""
        return max(self.metrics.steps, self._replies)

    @property
    def elapsed_s(self) -> float:
        """From the first event to the last."""
        return seconds_between(self._first, self._last)

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
        if recorded_status(event) is Status.STUCK:
            self.blocks.append(Notice(_STUCK, is_error=True))
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
            case InterruptEvent():
                self._add_interrupt(event)
            case ConversationErrorEvent():
                text, remedy = event.detail or event.code, _REMEDIES.get(event.code, "")
                text = text if remedy in text else f"{text} {remedy}"
                self.blocks.append(Notice(text, is_error=True))
            case Condensation():
                self.blocks.append(_told_of_condensation(event))
            case HookExecutionEvent():
                if text := _told_of_hook(event):
                    self.blocks.append(Notice(text))
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
        elif event.source == "environment" and text:
            self.blocks.append(Notice(f"The agent is told: {_unbracketed(text)}"))
        elif text:
            self._replies += event.source == "agent"
            self._add_reasoning(event.llm_message.reasoning_content, ())
            self.blocks.append(Saying("answer", text))
            self._add_judgement(event)

    def _add_action(self, event: ActionEvent) -> None:
        if event.llm_response_id != self._reply:
            self._reply = event.llm_response_id
            self._replies += 1
            thinking = [b.thinking for b in event.thinking_blocks if isinstance(b, ThinkingBlock)]
            self._add_reasoning(event.reasoning_content, thinking)
        if thought := "\n\n".join(part.text for part in event.thought).strip():
            self.blocks.append(Saying("agent", thought))
        arguments = arguments_of(event)
        if event.action is not None and event.tool_name == "think":
            self.blocks.append(Saying("agent", str(arguments.get("thought", ""))))
        elif event.action is not None and event.tool_name == "finish":
            if data := arguments.get("structured_output"):
                self.blocks.append(Saying("agent", f"```json\n{_as_json(data)}\n```"))
            self.blocks.append(Saying("answer", str(arguments.get("message", ""))))
            self._add_judgement(event)
        else:
            self.blocks.append(call_of(event))

    def _add_interrupt(self, event: InterruptEvent) -> None:
        if event.source == "environment" and not self.blocks:
            return  # it ended the turn before this one
        self._mark_interrupted()
        who = "Stopped by you" if event.source == "user" else "Cut off"
        self.blocks.append(Notice(f"{who}: {event.cut}." if event.cut else f"{who}."))

    def _add_judgement(self, event: MessageEvent | ActionEvent) -> None:
        if result := event.critic_result:
            self.blocks.append(Notice(f"Judged {result.score:.2f} of 1. {result.message or ''}"))

    def _add_reasoning(self, content: str | None, thinking: Sequence[str]) -> None:
        if text := (content or "\n\n".join(thinking)).strip():
            self.blocks.append(Saying("reasoning", text))

    def _add_result(self, event: ToolResultEvent) -> None:
        call = self._call(event.tool_call_id)
        if call is None:
            return  # of think or finish, which are shown as words
        call = answered(call, event, began=self._last, workspace=self.workspace)
        if call.tasks:
            self._supersede_tasks()
        paths = [diff.path for diff in call.diffs]
        self.files_changed = list(dict.fromkeys([*self.files_changed, *paths]))
        self.replace(call)

    def _supersede_tasks(self) -> None:
        """The lists of tasks so far are not the last."""
        for at, block in enumerate(self.blocks):
            if isinstance(block, Call) and block.tasks and not block.superseded:
                self.blocks[at] = replace(block, superseded=True)

    def _mark_interrupted(self) -> None:
        """The call that the stop cut short says so itself, in an error without an exit code."""
        for block in reversed(self.blocks):
            if not isinstance(block, Call):
                return
            if block.may_be_cut_short:
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


def _told_of_hook(event: HookExecutionEvent) -> str:
    """What a person should know of a hook that blocked something or failed; "" if it did not."""
    hook = f"Hook {event.hook_event_type} ({one_line(event.hook_command)})"
    if event.blocked:
        objection = _OBJECTIONS[event.hook_event_type].format(tool=event.tool_name)
        return f"{hook} {objection}: {event.reason}"
    return f"{hook}: {event.error}" if event.error else ""


def _unbracketed(text: str) -> str:
    """Without the brackets that tell a model that it is not the user who speaks."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _as_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


def _told_of_condensation(event: Condensation) -> Notice:
    count = len(event.forgotten_event_ids)
    what = "1 earlier event was" if count == 1 else f"{count} earlier events were"
    how = "left out" if event.summary is None else "summed up"
    return Notice(f"{what} {how} for the model; the log keeps them.", details=event.summary or "")
