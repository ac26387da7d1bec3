"""How does a person see a turn where there is only text?"""

import time
from pathlib import PurePath
from typing import Protocol

from oh_kernel.conversation.log import Passing
from oh_kernel.events import Event
from oh_kernel.llm.base import ModelNotice, RetryNotice, TextDelta
from oh_kernel.views.blocks import Limits, heading_text, render_block
from oh_kernel.views.calls import OPEN, Call
from oh_kernel.views.escape import printable
from oh_kernel.views.static import footer
from oh_kernel.views.turn import Block, Notice, Saying, Turn

# Of a diff the middle matters, which is what would be left out of it.
_SHORT = Limits(lines=12, chars=1_200, diff_lines=60)


class TextStream(Protocol):
    """Where text goes, such as a file."""

    def write(self, text: str, /) -> object:
        """Take the text."""

    def flush(self) -> object:
        """Show what was taken."""


class ConsoleTranscript:
    """Writes a turn as it goes: text when it comes, a line for each tool call, short output.

    A listener of a conversation, used on the agent thread; `begin` and `close` on any.
    """

    def __init__(
        self, stream: TextStream, *, workspace: PurePath | None = None, limits: Limits = _SHORT
    ) -> None:
        self._stream = stream
        self._limits = limits
        self._turn = Turn(workspace=workspace)
        self._started = time.monotonic()
        self._written: list[Block] = []
        self._streamed = ""  # text of the reply that is on its way
        self._closed = False

    def begin(self, activity: str = "starting") -> None:
        """Say what is being waited for."""
        self._line(f"[{printable(activity)}]")

    def event(self, event: Event) -> None:
        """An event was stored."""
        self._turn.add(event)
        self._show_new()
        for at, block in enumerate(self._turn.blocks):
            if isinstance(block, Call) and block != self._written[at]:
                self._end_call(block, self._written[at])
                self._written[at] = block

    def notice(self, text: str) -> None:
        """Say something about the conversation itself, in one line."""
        self._turn.blocks.append(Notice(text))
        self._show_new()

    def delta(self, delta: Passing) -> None:
        """A piece of something that is on its way."""
        match delta:
            case TextDelta(text=text):
                self._streamed += text
                self._write(printable(text))
            case RetryNotice():
                self._break_line()
                self._line(f"[{printable(delta.reason)}; trying again in {delta.wait_s:.0f} s]")
                self._streamed = ""
            case ModelNotice(text=text):
                streamed = self._streamed
                self.notice(text)
                self._streamed = f"{streamed}\n"  # not to be written again when it is an event

    def segment(self) -> None:
        """Nothing to do: text has its place."""

    def close(self) -> None:
        """Write how the turn ended. Does nothing a second time."""
        if self._closed:
            return
        self._closed = True
        self._break_line()
        self._turn.end()
        self._line(footer(self._turn, time.monotonic() - self._started).text)

    @property
    def answer(self) -> str:
        """The final answer, as far as there is one."""
        return self._turn.answer

    def _show_new(self) -> None:
        for block in self._turn.blocks[len(self._written) :]:
            self._begin_block(block)
            self._written.append(block)

    def _begin_block(self, block: Block) -> None:
        if isinstance(block, Saying) and block.text.strip() == self._streamed.strip():
            self._break_line()
            return
        self._break_line()
        if isinstance(block, Call):
            self._line(heading_text(block))
        elif text := render_block(block).text:
            self._line(text)

    def _end_call(self, call: Call, written: Block) -> None:
        was_open = isinstance(written, Call) and written.state in OPEN
        if was_open and call.state not in OPEN:
            self._line(render_block(call, self._limits).text)

    def _break_line(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._write("\n")
        self._streamed = ""

    def _line(self, text: str) -> None:
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
