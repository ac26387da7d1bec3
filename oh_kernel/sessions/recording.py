"""What did one run of Python print, display and raise, and who else is told of it as it happens?"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

# Of a run that prints without end, this much is kept of the beginning and of the end.
KEPT_CHARS = 500_000
# How long code that shows something rich waits for the view to make place for it.
VIEW_S = 1.0


@dataclass(frozen=True)
class Output:
    """One piece of output.

    `text` is its plain text; `name` is the stream of a stream and the exception of an error; `data`
    is the MIME bundle of a display or result. `late`: it comes from work of an earlier run.
    """

    kind: Literal["stream", "display", "result", "error"]
    text: str = ""
    name: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    late: bool = False
    display_id: str = ""

    @property
    def is_rich(self) -> bool:
        return any(mime != "text/plain" for mime in self.data)


class Recording:
    """The output of one run. Any thread may add to it."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.closed = False
        self._lock = threading.Lock()
        self._head: list[Output] = []
        self._tail: deque[Output] = deque()
        self._head_chars = self._tail_chars = self._dropped_chars = 0

    def add(self, output: Output) -> None:
        with self._lock:
            if output.display_id and self._replace(output):
                return
            if self._head_chars < KEPT_CHARS:
                self._head.append(output)
                self._head_chars += len(output.text)
            else:
                self._tail.append(output)
                self._tail_chars += len(output.text)
                self._drop()

    def clear(self) -> None:
        """Forget what was printed, as a notebook does on clear_output."""
        with self._lock:
            self._head = [output for output in self._head if output.kind != "stream"]
            self._tail = deque(output for output in self._tail if output.kind != "stream")
            self._head_chars = sum(len(output.text) for output in self._head)
            self._tail_chars = sum(len(output.text) for output in self._tail)

    def close(self) -> tuple[Output, ...]:
        """Take nothing more, and give what was recorded, neighbouring pieces of a stream joined."""
        with self._lock:
            self.closed = True
            pieces = [*self._head]
            if self._dropped_chars:
                notice = f"\n[{self._dropped_chars:,} characters of output were not kept here]\n"
                pieces.append(Output("stream", notice, "stdout"))
            pieces.extend(self._tail)
            self._head, self._tail = [], deque()
        return _joined(pieces)

    def _replace(self, output: Output) -> bool:
        for pieces in (self._tail, self._head):
            for at, earlier in enumerate(pieces):
                if earlier.display_id == output.display_id:
                    pieces[at] = output
                    return True
        return False

    def _drop(self) -> None:
        while self._tail_chars > KEPT_CHARS and len(self._tail) > 1:
            oldest = self._tail.popleft()
            self._tail_chars -= len(oldest.text)
            if oldest.kind == "stream":
                self._dropped_chars += len(oldest.text)
            else:
                self._head.append(oldest)


class Live:
    """Hands text to a view on the agent loop, in order, as it comes.

    `text` and `rich` may be called on any thread; the callbacks run on the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_output: Callable[[str], object] | None,
        on_rich: Callable[[], object] | None,
    ) -> None:
        self._loop = loop
        # Not that of the code which shows something: the view's own output would count as its.
        self._context = contextvars.copy_context()
        self._on_output = on_output
        self._on_rich = on_rich
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._waiting_chars = 0
        self._is_scheduled = False

    def text(self, text: str) -> None:
        if self._on_output is None or not text:
            return
        with self._lock:
            self._waiting.append(text)
            self._waiting_chars += len(text)
            while self._waiting_chars > KEPT_CHARS and len(self._waiting) > 1:
                self._waiting_chars -= len(self._waiting.popleft())
            if self._is_scheduled:
                return
            self._is_scheduled = True
        self._loop.call_soon_threadsafe(self.flush, context=self._context)

    def flush(self) -> None:
        """Hand over what is waiting. Runs on the loop."""
        with self._lock:
            text = "".join(self._waiting)
            self._waiting.clear()
            self._waiting_chars = 0
            self._is_scheduled = False
        if text and self._on_output is not None:
            self._on_output(text)

    def rich(self) -> None:
        """Have the view finish what it shows, so that something rich can follow it."""
        if self._on_rich is None:
            return
        finished = threading.Event()
        self._loop.call_soon_threadsafe(self._finish_segment, finished, context=self._context)
        finished.wait(VIEW_S)

    def _finish_segment(self, finished: threading.Event) -> None:
        try:
            self.flush()
            if self._on_rich is not None:
                self._on_rich()
        finally:
            finished.set()


def _joined(pieces: list[Output]) -> tuple[Output, ...]:
    joined: list[Output] = []
    texts: list[str] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last and _continues(last, piece):
            texts.append(piece.text)
            continue
        if last and last.kind == "stream":
            joined[-1] = replace(last, text="".join(texts))
        joined.append(piece)
        texts = [piece.text]
    if joined and joined[-1].kind == "stream":
        joined[-1] = replace(joined[-1], text="".join(texts))
    return tuple(joined)


def _continues(last: Output, piece: Output) -> bool:
    same = (last.name, last.late) == (piece.name, piece.late)
    return last.kind == piece.kind == "stream" and same
