"""On which thread does work run, and how does one thread wait for another?

Everything asynchronous of the agent runs on one background event loop, the agent loop. `spawn`
starts a coroutine there, `run_blocking` waits for one from any other thread, and
`main_thread.submit` is the way back: it has a plain function run on the main thread, where the
user's namespace lives. Context variables (Jupyter keeps the cell an output belongs to in one) go
along every time.

    >>> async def double(x: int) -> int:
    ...     return 2 * x
    >>> run_blocking(double(21))
    42
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# How long a cancelled coroutine may take to put things in order before its caller stops waiting.
CANCEL_GRACE_S = 5.0
# Only the main thread runs signal handlers, and one that another thread received does not wake it.
SIGNAL_CHECK_S = 0.2
# How long the agent loop may take to end its tasks when the process exits.
EXIT_GRACE_S = 2.0


class Interrupted(Exception):
    """Work on the main thread was cut short by KeyboardInterrupt or SystemExit.

    It stands in for them on other threads, where an event loop would take them as an order to stop.
    """


class Spawned(concurrent.futures.Future[T]):
    """The future of a coroutine on the agent loop.

    Unlike with the base class, `cancel` asks and does not settle: the future is done when the
    coroutine is, and a coroutine that answers its cancellation with a value gives that value.
    """

    def __init__(self, coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._task: asyncio.Task[T] | None = None  # owned by the agent thread
        loop.call_soon_threadsafe(self._start, coro)

    def cancel(self) -> bool:
        if self.done():
            return False
        self._loop.call_soon_threadsafe(self._cancel_task)
        return True

    def _start(self, coro: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(coro)
        self._task.add_done_callback(self._settle)

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif error := task.exception():
            self.set_exception(error)
        else:
            self.set_result(task.result())


class _Job(Generic[T]):
    """One function to run on the main thread, in the context it was submitted from."""

    def __init__(self, fn: Callable[[], T]) -> None:
        self._fn = fn
        self._context = contextvars.copy_context()
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._context.run(self._fn)
        except Exception as error:
            self.future.set_exception(error)
        except BaseException as error:
            self.future.set_exception(Interrupted(type(error).__name__))
            raise
        else:
            self.future.set_result(result)


class MainThread:
    """The way to the main thread. `submit` may be called anywhere, the rest on the main thread.

    Work waits in a queue that is emptied by whoever holds the main thread: a `run_blocking` that
    waits there, or the kernel's own event loop, which `wake` asks to call `serve`.
    """

    def __init__(self) -> None:
        self._inbox: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._waiting = 0
        # Thread-safe; None: no event loop serves the queue.
        self.wake: Callable[[], object] | None = None

    def submit(self, fn: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Have `fn()` run on the main thread."""
        job = _Job(fn)
        self._inbox.put(job)
        if self.wake is not None:
            self.wake()
        return job.future

    @property
    def blocked(self) -> bool:
        """Work that runs now runs inside a blocking wait, so an event loop on main stands still."""
        return self._waiting > 0

    def serve(self) -> None:
        """Run what is waiting and return. An interrupt ends only the piece of work it strikes."""
        while True:
            try:
                job = self._inbox.get_nowait()
            except Empty:
                return
            if job is not None:
                try:
                    job.run()
                except (KeyboardInterrupt, SystemExit):
                    continue  # told to whoever submitted the job

    def serve_until(self, done: concurrent.futures.Future[Any], deadline: float | None) -> None:
        """Run what comes in until `done` is done or the deadline (monotonic) has passed."""
        # The queue is written in C, so that an interrupt cannot strike while it holds a lock.
        done.add_done_callback(lambda _: self._inbox.put(None))
        self._waiting += 1
        try:
            while not done.done():
                job = self._next_job(deadline)
                if job is not None:
                    job.run()
        except TimeoutError:
            return
        finally:
            self._waiting -= 1

    def _next_job(self, deadline: float | None) -> _Job[Any] | None:
        remaining = _remaining(deadline)
        if remaining == 0:
            raise TimeoutError
        try:
            return self._inbox.get(timeout=min(SIGNAL_CHECK_S, remaining or SIGNAL_CHECK_S))
        except Empty:
            return None


class _AgentThread:
    """The background thread and its event loop, made at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # An empty context: what the first caller had set must not be everybody's default.
                run = contextvars.Context().run
                self._thread = threading.Thread(
                    target=run, args=(self._run, self._loop), name="openhands-agent", daemon=True
                )
                self._thread.start()
                atexit.register(self._close, self._loop, self._thread)
            return self._loop

    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not loop.is_closed():
            try:
                loop.run_forever()
                return
            except (KeyboardInterrupt, SystemExit):
                continue  # raised by one task, which keeps it; the other tasks go on

    @staticmethod
    def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        if not thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop)
        thread.join(EXIT_GRACE_S)


async def _end_tasks() -> None:
    """Cancel every other task, give each the time to end, and stop the loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=EXIT_GRACE_S / 2)
    asyncio.get_running_loop().stop()


main_thread = MainThread()
_agent_thread = _AgentThread()


def on_agent_thread() -> bool:
    """Whether the caller runs on the agent loop's thread."""
    return _agent_thread.is_current()


def spawn(coro: Coroutine[Any, Any, T]) -> Spawned[T]:
    """Start `coro` on the agent loop, from any thread."""
    return Spawned(coro, _agent_thread.loop())


async def run_on_main(fn: Callable[[], T]) -> T:
    """What `fn()` gives, run on the main thread. For callers on the agent loop."""
    return await asyncio.wrap_future(main_thread.submit(fn))


async def on_agent_loop(coro: Coroutine[Any, Any, T]) -> T:
    """The result of `coro`, run on the agent loop. For callers on any event loop."""
    if on_agent_thread():
        return await coro
    return await asyncio.wrap_future(spawn(coro))


def run_blocking(coro: Coroutine[Any, Any, T], *, timeout_s: float | None = None) -> T:
    """Run `coro` on the agent loop and wait for its result.

    On the main thread, work submitted to it is done while waiting. KeyboardInterrupt and the
    timeout (TimeoutError) cancel the coroutine and wait up to CANCEL_GRACE_S for its end. On the
    agent thread itself this raises RuntimeError, since it would wait for itself.
    """
    if on_agent_thread():
        coro.close()
        raise RuntimeError("run_blocking would wait for its own thread: await the coroutine")
    future = spawn(coro)
    try:
        _wait(future, None if timeout_s is None else time.monotonic() + timeout_s)
    except BaseException:
        _cancel_and_wait(future)
        raise
    if not future.done():
        _cancel_and_wait(future)
        raise TimeoutError(f"not done after {timeout_s} s")
    return future.result()


def _wait(future: concurrent.futures.Future[Any], deadline: float | None) -> None:
    if threading.current_thread() is threading.main_thread():
        main_thread.serve_until(future, deadline)
    else:
        concurrent.futures.wait([future], timeout=_remaining(deadline))


def _cancel_and_wait(future: concurrent.futures.Future[Any]) -> None:
    future.cancel()
    _wait(future, time.monotonic() + CANCEL_GRACE_S)


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
