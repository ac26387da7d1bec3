"""What is happening in a turn right now, between the events?

Streamed text, output of running tools and waits are held here until the event arrives that says
the same for good. Nothing here knows HTML.
"""

import time
from dataclasses import dataclass, field, replace

from oh_kernel.conversation.log import Passing, ToolOutput
from oh_kernel.conversation.state import Status
from oh_kernel.events import ActionEvent, Event, LLMCompletionLogEvent, MessageEvent
from oh_kernel.llm.base import (
    ModelNotice,
    ReasoningDelta,
    RetryNotice,
    TextDelta,
    ToolCallDelta,
)
from oh_kernel.views.calls import Call
from oh_kernel.views.escape import one_line
from oh_kernel.views.turn import Block, Notice, Saying, Turn

# Live output that is kept of one call; the observation brings the rest.
_OUTPUT_CHARS = 16_000


@dataclass
class LiveTurn:
    """A turn and what is on its way. Not thread-safe; its owner holds a lock."""

    activity: str = "starting"
    turn: Turn = field(default_factory=Turn)
    _since: float = field(default_factory=time.monotonic)
    _text: str = ""
    _reasoning: str = ""
    _outputs: dict[str, str] = field(default_factory=dict)

    def begin(self, activity: str) -> None:
        """Something else is being waited for from now on."""
        if activity != self.activity:
            self.activity = activity
            self._since = time.monotonic()

    def event(self, event: Event) -> None:
        """Take in an event; what was streamed of it goes."""
        self.turn.add(event)
        if isinstance(event, LLMCompletionLogEvent | ActionEvent | MessageEvent):
            self._forget_stream()
        open_calls = self.turn.open_calls
        self._outputs = {call.call_id: self._outputs.get(call.call_id, "") for call in open_calls}
        if self.turn.status is Status.WAITING_FOR_CONFIRMATION:
            self.begin("waiting for your decision")
        elif open_calls:
            self.begin(f"running {open_calls[0].tool}: {one_line(open_calls[0].summary, 60)}")
        else:
            self.begin("thinking")

    def delta(self, delta: Passing) -> None:
        """Take in a piece of something that is on its way."""
        match delta:
            case TextDelta(text=text):
                self._text += text
                self.begin("answering")
            case ReasoningDelta(text=text):
                self._reasoning += text
                self.begin("thinking")
            case ToolCallDelta(name=name):
                self.begin(f"preparing a call of {name}" if name else self.activity)
            case RetryNotice():
                self._forget_stream()
                self.begin(
                    f"{delta.reason}; trying again in {delta.wait_s:.0f} s"
                    f" (attempt {delta.attempt} of {delta.max_attempts})"
                )
            case ModelNotice(text=text):
                self.turn.blocks.append(Notice(text))
            case ToolOutput():
                whole = self._outputs.get(delta.call_id, "") + delta.text
                self._outputs[delta.call_id] = whole[-_OUTPUT_CHARS:]

    @property
    def status_line(self) -> str:
        """What is being waited for, and since when."""
        return f"{self.activity} · {time.monotonic() - self._since:.0f} s"

    def blocks(self, start: int) -> list[Block]:
        """The blocks from number `start` on, with running output, then what is streamed."""
        shown = [
            self._with_output(block) if isinstance(block, Call) else block
            for block in self.turn.blocks[start:]
        ]
        if self._reasoning and not self._text:
            shown.append(Saying("reasoning", self._reasoning))
        if self._text:
            shown.append(Saying("agent", self._text))
        return shown

    def end(self) -> None:
        """Nothing more will come. Streamed text that no event repeats is kept."""
        if self._text:
            self.turn.blocks.append(Saying("agent", self._text))
        for call in self.turn.open_calls:
            self.turn.replace(self._with_output(call))
        self.turn.end()
        self._forget_stream()

    def _forget_stream(self) -> None:
        self._text = self._reasoning = ""

    def _with_output(self, call: Call) -> Call:
        return call if call.output else replace(call, output=self._outputs.get(call.call_id, ""))
