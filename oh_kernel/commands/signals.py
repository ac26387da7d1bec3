"""How does a run end in order when the process is told to go, by `kill`, `timeout` or a hang-up?"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Ended(KeyboardInterrupt):
    """An interrupt that stands for another signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextmanager
def ended_like_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP do in this block what C-c does, and `Ended` leaves it in the end.

    What somebody ignores on purpose (nohup) stays ignored. Entered on the main thread.
    """
    own_pid, received = os.getpid(), []

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() != own_pid:  # a fork, which is to end as it would without us
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        received.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)

    taken = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, handle)
    try:
        yield
    except KeyboardInterrupt as stop:
        if received:
            raise Ended(received[0]) from stop
        raise
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
