"""Where does an interrupt go: to the agent's Python on the main thread, or to the agent?

Python's own handler raises KeyboardInterrupt wherever the main thread happens to be. Ours raises it
only inside user code that the agent runs, and never between frames of IPython's or ours, where it
would leave things half done. Everything else is told to stop by a call.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

# IPython executes user code in this function: the frame above it is the cell itself.
_RUNS_CELLS = InteractiveShell.run_code.__code__

# How long a signal that was sent may take to arrive at the main thread.
ARRIVAL_S = 0.2

SignalHandler = Callable[[int, FrameType | None], Any] | int | None


class Interrupts:
    """The SIGINT handling of one process, while the agent works.

    `turn` and `interrupt` may be called on any thread. The signal handler, `running` and `deferred`
    belong to the main thread.
    """

    def __init__(self, runner: CodeType | None = None) -> None:
        self.runner = runner  # the function that has IPython run the agent's code
        self.raised_at = -1e9  # monotonic time of the last KeyboardInterrupt raised here
        self.by_person = 0  # how many interrupts did not come from `interrupt`
        self._stops: list[Callable[[], object]] = []
        self._cancels: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._installed = 0
        self._asked = False
        self._deferring = 0
        self._pending = False
        self._unheard = False

    @contextmanager
    def turn(self, stop: Callable[[], object]) -> Iterator[None]:
        """While in this block, an interrupt calls `stop` (of the innermost such block).

        Entered on the main thread it also takes over SIGINT; entered elsewhere it relies on an
        outer block, or on `running`, to have done so.
        """
        self._stops.append(stop)
        try:
            if _on_main_thread():
                with self._handled():
                    yield
            else:
                yield
        finally:
            self._stops.remove(stop)

    @contextmanager
    def running(self, cancel: Callable[[], object]) -> Iterator[None]:
        """While in this block the agent's code runs; `cancel` ends it where it awaits something."""
        self._cancels.append(cancel)
        try:
            with self._handled():
                yield
        finally:
            self._cancels.remove(cancel)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Hold KeyboardInterrupt back for this block: for our own code called by user code."""
        if not _on_main_thread():
            yield
            return
        self._deferring += 1
        try:
            yield
        finally:
            self._deferring -= 1
            if self._pending and not self._deferring:
                self._pending = False
                raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Interrupt the agent's code on the main thread, if some runs there."""
        with self._lock:
            if not self._installed or self._asked:
                return
            self._asked = True
            signal.pthread_kill(_main_thread_id(), signal.SIGINT)

    @contextmanager
    def _handled(self) -> Iterator[None]:
        previous = signal.signal(signal.SIGINT, self._on_signal)
        self._installed += 1
        try:
            yield
        finally:
            with self._lock:
                self._installed -= 1
            self._await_own_signal()
            signal.signal(signal.SIGINT, previous)

    def _await_own_signal(self) -> None:
        """A signal of `interrupt` must not find Python's handler, which raises anywhere."""
        deadline = time.monotonic() + ARRIVAL_S
        while self._asked and time.monotonic() < deadline:
            time.sleep(0.001)
        self._asked = False

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        by_person, self._asked = not self._asked, False
        self.by_person += by_person
        will_raise = self._in_user_code(frame)
        if will_raise:
            # Before anybody is told to stop: who hears of it need not interrupt the code again.
            self.raised_at = time.monotonic()
        if by_person and self._stops:
            self._stops[-1]()
        elif by_person:
            self._unheard = True
        if will_raise and self._deferring:
            self._pending = True
        elif will_raise:
            raise KeyboardInterrupt
        elif by_person and self._cancels and not self._stops:
            self._cancels[-1]()

    def pass_on(self) -> None:
        """Give a person's interrupt to the handler outside as well, once the code has ended.

        Without a turn nobody was told to stop: whoever waits for the agent has to hear of it.
        """
        if self._unheard and not self._installed:
            self._unheard = False
            signal.raise_signal(signal.SIGINT)

    def _in_user_code(self, frame: FrameType | None) -> bool:
        """Whether the stack from `frame` down reads: user code, IPython's runner, the agent's."""
        seen = False
        while frame is not None and frame.f_code is not self.runner:
            below = frame.f_back
            if below is not None and below.f_code is _RUNS_CELLS and not _is_ipython(frame):
                seen = True
            frame = below
        return frame is not None and seen


def _is_ipython(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(("IPython.", "ipykernel."))


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _main_thread_id() -> int:
    return threading.main_thread().ident or 0


interrupts = Interrupts()
