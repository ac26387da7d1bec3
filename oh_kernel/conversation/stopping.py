"""How is a run stopped: before its next step, or now?"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# How long a tool that is told to stop may take to say how far it got. Its own deadlines are
# shorter; this one is for a tool that has none.
STOP_GRACE_S = 15.0


class Stopped(Exception):
    """A person stopped the run."""


class Stop:
    """What a person said about stopping one run, and the work it reaches. Used on the agent thread.

    A pause waits for the step to end, except where the step only waits itself (`between_attempts`).
    """

    def __init__(self) -> None:
        self.is_now = False
        self.between_attempts = False
        self._is_soon = False
        self._signal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inner: asyncio.Task[Any] | None = None

    def pause(self) -> None:
        """Stop before the next step."""
        self._is_soon = True
        if self.between_attempts and self._inner is not None:
            self._inner.cancel()

    def interrupt(self) -> None:
        """Stop now: end the model's stream, and the tool that runs."""
        if self.is_now:
            return  # cancelling twice would cut short the tool's putting things in order
        self._is_soon = self.is_now = True
        self._signal.set_result(None)
        if self._inner is not None:
            self._inner.cancel()

    def check_between_steps(self) -> None:
        """Raise `Stopped` if any stop was asked for."""
        if self._is_soon:
            raise Stopped

    def check_now(self) -> None:
        """Raise `Stopped` if an immediate stop was asked for."""
        if self.is_now:
            raise Stopped

    async def reaching(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; `Stopped` when it was told to stop and had nothing to say."""
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._inner = task
        if self.is_now:
            task.cancel()
        either: set[asyncio.Future[Any]] = {task, self._signal}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=STOP_GRACE_S)
        self._inner = None
        if not task.done() or task.cancelled():
            raise Stopped
        return task.result()
