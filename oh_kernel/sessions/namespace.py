"""How does the agent's Python run among the user's variables?

On the main thread, in the shell that the user's cells run in, one run at a time. What a run prints
and shows is recorded, shown live, and kept apart from the user's own output; what a cell would
change in the shell besides variables stays as it was. A run always gives an answer: an error, a
time limit and an interrupt are results, and so is code that reacts to neither.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from oh_kernel.loop import main_thread, run_on_main
from oh_kernel.sessions.interrupts import interrupts
from oh_kernel.sessions.outputs import KernelTaps, Outputs, ShellTaps
from oh_kernel.sessions.process_shell import Program, process_shell
from oh_kernel.sessions.recording import Live, Output, Recording
from oh_kernel.sessions.short_traceback import one_line, short_traceback
from oh_kernel.sessions.undisturbed import bound_in_builtins, undisturbed

# Code whose time is up is interrupted this often, with this much time to end after each.
INTERRUPTS = 3
END_S = 1.0


@dataclass(frozen=True)
class CodeError:
    """What the code raised: class name, text, and the traceback in few lines."""

    name: str
    value: str
    traceback: str = ""


@dataclass(frozen=True)
class Execution:
    """How a run went: what it put out, in order, and what ended it.

    `still_running`: it answers no interrupt. `refused`: nothing was run, because of `error`.
    """

    outputs: tuple[Output, ...] = ()
    error: CodeError | None = None
    interrupted: bool = False
    timed_out: bool = False
    still_running: bool = False
    refused: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None and not self.timed_out and not self.interrupted

    @property
    def text(self) -> str:
        """All output of the run's own as plain text."""
        return "".join(_line(output) for output in self.outputs if not output.late)

    @property
    def late_text(self) -> str:
        """What work of earlier runs printed meanwhile."""
        return "".join(_line(output) for output in self.outputs if output.late)

    @property
    def note(self) -> str:
        """What a reader of the output should know besides, in a sentence; empty if nothing."""
        if self.refused or self.timed_out or self.interrupted:
            return self.error.value if self.error else ""
        return ""


@dataclass
class _Run:
    """One run. The main thread fills it in, the agent loop waits for `done`."""

    code: str
    recording: Recording
    can_ask: bool
    done: concurrent.futures.Future[Any] = field(default_factory=concurrent.futures.Future)
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # of the agent loop: `done` is
    submitted_at: float = field(default_factory=time.monotonic)
    has_started: bool = False
    cancel: Callable[[], object] = lambda: None
    was_cancelled: bool = False
    was_interrupted: bool = False  # by a person, while it ran


class Namespace:
    """Runs code in one shell: `run` is awaited on the agent loop, the code runs on main."""

    def __init__(self, shell: Any, *, program: Program | None = None) -> None:
        self.shell = shell
        self._program = program
        kernel = getattr(shell, "kernel", None)
        self._taps = ShellTaps(shell) if kernel is None else KernelTaps(kernel)
        self._running: _Run | None = None  # owned by the agent loop

    @classmethod
    async def in_process(cls, folder: str | Path = ".") -> Namespace:
        """The namespace of this process without a notebook: code runs in `folder`.

        In a process that has an IPython shell already, it is that shell's namespace.
        """
        shell, is_ours = await run_on_main(process_shell)
        return cls(shell, program=Program(shell, Path(folder).resolve()) if is_ours else None)

    async def run(
        self,
        code: str,
        *,
        timeout_s: float | None = None,
        on_output: Callable[[str], object] | None = None,
        on_rich: Callable[[], object] | None = None,
        forward_text: bool = False,
        can_ask: bool = False,
        mask: Callable[[str], str] | None = None,
    ) -> Execution:
        """Run `code` and give how it went; cancelled, it interrupts the code and still gives that.

        Text goes to `on_output` as it comes (and to the cell itself with `forward_text`), errors
        included. Rich displays appear in the cell, masked, after a call of `on_rich`. With
        `can_ask` somebody can answer input().
        """
        if self._running is not None:
            return _refusal(self._running)
        live = Live(asyncio.get_running_loop(), on_output, on_rich)
        run = self._running = _Run(code, Recording(live), can_ask)
        outputs = Outputs(self._taps, forward_text=forward_text, mask=mask)
        job = main_thread.submit(lambda: self._start(run, outputs))
        job.add_done_callback(lambda job: _settle(run, job))
        run.done.add_done_callback(self._free_on(asyncio.get_running_loop(), run))
        ending = await self._ending(run, timeout_s, job)
        recorded = run.recording.close()
        live.flush()
        return self._execution(run, recorded, ending, timeout_s)

    # On the agent loop

    def _free_on(
        self, loop: asyncio.AbstractEventLoop, run: _Run
    ) -> Callable[[concurrent.futures.Future[Any]], object]:
        def free(run: _Run) -> None:
            self._running = None
            run.ended.set()

        return lambda _: loop.call_soon_threadsafe(free, run)

    async def _ending(
        self, run: _Run, timeout_s: float | None, job: concurrent.futures.Future[None]
    ) -> str:
        """How it ended: "done", "timed out", "interrupted"."""
        try:
            # Not wait_for: where both come at once it forgets the cancellation.
            async with asyncio.timeout(timeout_s):
                await run.ended.wait()
            return "done"
        except TimeoutError:
            ending = "timed out"
        except asyncio.CancelledError:
            ending = "interrupted"
        if not job.cancel():
            await self._end(run)
        return ending

    async def _end(self, run: _Run) -> None:
        """Interrupt the code until it ends or it has had its chances."""
        for _ in range(INTERRUPTS):
            # A person's interrupt may have reached the code by itself: let it finish on that one.
            if interrupts.raised_at < max(run.submitted_at, time.monotonic() - END_S):
                run.was_cancelled = True
                run.cancel()
                interrupts.interrupt()
            try:
                async with asyncio.timeout(END_S):
                    await run.ended.wait()
                return
            except (TimeoutError, asyncio.CancelledError):
                continue  # whoever asks a second time asks the code, too

    def _execution(
        self, run: _Run, outputs: tuple[Output, ...], ending: str, timeout_s: float | None
    ) -> Execution:
        error = self._error_of(run)
        timed_out = ending == "timed out"
        interrupted = ending == "interrupted" or (run.was_interrupted and error is not None)
        if timed_out:
            error = _ended_early(run, f"timed out after {timeout_s:g} s", error)
        elif interrupted:
            error = _ended_early(run, "was interrupted", error)
        return Execution(
            outputs=outputs,
            error=error,
            interrupted=interrupted and not timed_out,
            timed_out=timed_out,
            still_running=not run.done.done(),
        )

    def _error_of(self, run: _Run) -> CodeError | None:
        if not run.done.done() or run.done.cancelled():
            return None
        error = run.done.exception()
        if error is None:
            result = run.done.result()
            error = result.error_before_exec or result.error_in_exec
        return None if error is None else self._code_error(run, error)

    def _code_error(self, run: _Run, error: BaseException) -> CodeError:
        if run.was_cancelled and isinstance(error, asyncio.CancelledError):
            # How an interrupt reaches code that awaits is no concern of the reader.
            return CodeError("KeyboardInterrupt", "", "KeyboardInterrupt\n")
        return CodeError(type(error).__name__, one_line(error), short_traceback(self.shell, error))

    # On the main thread

    def _start(self, run: _Run, outputs: Outputs) -> None:
        """Run synchronous code to its end, or start a task on the main thread's event loop."""
        run.has_started = True
        transformed, failure = self._transformed(run.code)
        cell = self._run_cell(run, outputs, transformed, failure)
        loop = _loop()
        if not self.shell.should_run_async(
            run.code, transformed_cell=transformed, preprocessing_exc_tuple=failure
        ):
            with _as_running(loop):
                run.done.set_result(_drive(cell))
            interrupts.pass_on()
            return
        task = loop.create_task(cell)
        run.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        task.add_done_callback(lambda task: _settle_by(run, task))
        if not loop.is_running():
            with _as_running(None):
                loop.run_until_complete(asyncio.wait({task}))

    async def _run_cell(
        self, run: _Run, outputs: Outputs, transformed: str, failure: Any
    ) -> object:
        shell, interrupts_before = self.shell, interrupts.by_person

        def tell(_etype: type[BaseException], error: BaseException) -> None:
            told = self._code_error(run, error)
            run.recording.add(Output("error", told.traceback, told.name))
            run.recording.live.text(told.traceback)

        with ExitStack() as stack:
            stack.enter_context(interrupts.running(lambda: self._cancel(run)))
            if self._program is not None:
                stack.enter_context(self._program.running())
            stack.enter_context(outputs.recorded(run.recording))
            stack.enter_context(undisturbed(shell, tell, can_ask=run.can_ask))
            stack.enter_context(bound_in_builtins(_skills()))
            try:
                result = await shell.run_cell_async(
                    run.code,
                    store_history=False,
                    transformed_cell=transformed,
                    preprocessing_exc_tuple=failure,
                )
            finally:
                run.was_interrupted = interrupts.by_person > interrupts_before
                shell.events.trigger("post_execute")
            shell.events.trigger("post_run_cell", result)
        return result

    def _cancel(self, run: _Run) -> None:
        run.was_cancelled = True
        run.cancel()

    def _transformed(self, code: str) -> tuple[str, Any]:
        try:
            return self.shell.transform_cell(code), None
        except Exception:
            return code, sys.exc_info()  # as the shell itself does: it reports the error


interrupts.runner = Namespace._run_cell.__code__


def _loop() -> asyncio.AbstractEventLoop:
    """The main thread's loop; where that is blocked by a wait or absent, one of our own."""
    return _side_loop() if main_thread.blocked else asyncio.get_running_loop()


@cache
def _side_loop() -> asyncio.AbstractEventLoop:
    """Kept for the whole process, so that a task that one run starts goes on in the next."""
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


def _drive(cell: Any) -> object:
    """Run a coroutine that never waits to its end."""
    try:
        cell.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("synchronous code waited for something")


@contextmanager
def _as_running(loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Have `loop` be this thread's running loop, although another one is and stands still."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)


def _settle(run: _Run, job: concurrent.futures.Future[None]) -> None:
    """A job that failed, or never began, ends the run; one that succeeded has seen to it."""
    if run.done.done():
        return
    if job.cancelled():
        run.done.cancel()
        run.done.set_running_or_notify_cancel()
    elif error := job.exception():
        run.done.set_exception(error)


def _settle_by(run: _Run, task: asyncio.Task[Any]) -> None:
    if task.cancelled():
        run.done.set_exception(KeyboardInterrupt())
    elif error := task.exception():
        run.done.set_exception(error)
    else:
        run.done.set_result(task.result())
    interrupts.pass_on()


def _skills() -> Mapping[str, object]:
    import agentskills  # heavy only in what its functions import

    return {name: getattr(agentskills, name) for name in agentskills.__all__}


def _refusal(running: _Run) -> Execution:
    seconds = time.monotonic() - running.submitted_at
    text = (
        f"Nothing was run: earlier code still runs after {seconds:.0f} s and does not react to "
        "interrupts. Wait for it, or ask the user to restart the kernel."
    )
    return Execution(error=CodeError("StillRunning", text), refused=True)


def _ended_early(run: _Run, how: str, error: CodeError | None) -> CodeError:
    text = f"The code {how}."
    if not run.has_started:
        text += " It had not started, since the main thread was busy; nothing was run."
    elif not run.done.done():
        text += (
            " It does not react to interrupts and still runs, so nothing else can be run. "
            "Restarting the kernel may be the only way to end it."
        )
    name = "TimeoutError" if how.startswith("timed out") else "KeyboardInterrupt"
    return CodeError(name, text, error.traceback if error else "")


def _line(output: Output) -> str:
    is_whole = output.kind == "stream" or output.text.endswith("\n") or not output.text
    return output.text if is_whole else f"{output.text}\n"
