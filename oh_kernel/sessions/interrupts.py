"""Where does an interrupt go: to the agent's Python on the main thread, or to the agent?

Python's own handler raises KeyboardInterrupt wherever the main thread happens to be. Ours raises it
only inside user code that the agent runs, and never between frames of IPython's or ours, where it
would leave things half done. Everything else is told to stop by a call.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import CodeType, FrameType

from IPython.core.interactiveshell import InteractiveShell

from oh_kernel.loop import spawn

# IPython executes user code in this function: the frame above it is the cell itself.
_RUNS_CELLS = InteractiveShell.run_code.__code__

# How long a signal that was sent may take until the main thread has handled it.
ARRIVAL_S = 0.1
_HANDLED = b"\xff"  # no number of a signal


class _Watch:
    """Sends a signal to the main thread again that it slept through.

    A signal that comes just before the thread enters a system call (a `select`, a `sleep`) does not
    end that call, and no handler of Python's runs before it returns. But a byte of its number is
    written at once, which the agent loop reads here, and our handler writes another.
    """

    def __init__(self) -> None:
        self._is_unhandled = False  # owned by the agent loop
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        spawn(self._start())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch SIGINT for this block, on the main thread."""
        own = self._writing.fileno()
        previous = signal.set_wakeup_fd(own, warn_on_full_buffer=False)
        try:
            yield
        finally:
            last = signal.set_wakeup_fd(previous)
            if last != own:
                signal.set_wakeup_fd(last)  # the code has set one of its own meanwhile

    def handled(self) -> None:
        """The handler runs. Called by it, on the main thread."""
        with suppress(BlockingIOError):  # nobody reads: then nobody sends again either
            self._writing.send(_HANDLED)

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._reading, self._arrived, loop)

    def _arrived(self, loop: asyncio.AbstractEventLoop) -> None:
        received = self._reading.recv(4096)
        last_signal, last_handled = received.rfind(bytes([signal.SIGINT])), received.rfind(_HANDLED)
        if last_signal != last_handled:
            self._is_unhandled = last_signal > last_handled
        if self._is_unhandled:
            loop.call_later(ARRIVAL_S, self._send_again)

    def _send_again(self) -> None:
        if self._is_unhandled:
            self._is_unhandled = False  # until its byte arrives
            signal.pthread_kill(_main_thread_id(), signal.SIGINT)


@cache
def _watch() -> _Watch:
    return _Watch()


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
            with _watch().watching():
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
        _watch().handled()
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
            if below is not None and below.f_code is _RUNS_CELLS and _is_cell(frame):
                seen = True
            frame = below
        return frame is not None and seen


def _is_cell(frame: FrameType) -> bool:
    return "_ih" in frame.f_globals  # IPython's history, which every namespace of a user has


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _main_thread_id() -> int:
    return threading.main_thread().ident or 0


interrupts = Interrupts()
