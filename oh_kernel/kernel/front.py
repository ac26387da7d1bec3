"""What stands behind `%openhands` and `%%openhands` before the agent itself is imported?

The kernel must start as fast as a plain one, so this module imports nothing heavy; the first cell
for the agent imports the rest, on the agent's thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
from collections.abc import Callable, Coroutine
from typing import Any

from IPython.core.magic import no_var_expand

from oh_kernel.errors import OpenHandsError
from oh_kernel.imports import libraries_unshadowed
from oh_kernel.kernel.bridge import Bridge
from oh_kernel.kernel.commands import usage
from oh_kernel.kernel.completion import add_completion
from oh_kernel.kernel.config import add_options
from oh_kernel.kernel.transform import MAGIC, CellTransform
from oh_kernel.loop import run_blocking, spawn

# Awaited on the agent loop: line, body (None for a line magic), shell -> the value of the cell.
RunCell = Callable[[str, str | None, Any], Coroutine[Any, Any, object]]


def install(shell: Any, bridge: Bridge | None = None, run_cell: RunCell | None = None) -> Front:
    """Give `shell` the magics; a second call gives the first one's answer."""
    existing = getattr(shell, MAGIC, None)
    if isinstance(existing, Front):
        return existing
    front = Front(shell, bridge or Bridge(shell), run_cell)
    setattr(shell, MAGIC, front)
    shell.input_transformers_cleanup.insert(0, CellTransform(front.is_awaited))
    shell.events.register("pre_run_cell", front.cell_begins)
    shell.events.register("post_run_cell", front.cell_ends)
    shell.register_magic_function(front.line_magic, "line", MAGIC)
    shell.register_magic_function(front.cell_magic, "cell", MAGIC)
    add_options(shell)
    add_completion(shell)
    if "skills" not in shell.user_ns:
        shell.push({"skills": _Skills()}, interactive=False)
    return front


class Front:
    """The agent's entry in one shell. Its methods run on the main thread."""

    def __init__(self, shell: Any, bridge: Bridge, run_cell: RunCell | None = None) -> None:
        self.shell = shell
        self.bridge = bridge
        self.run_cell = run_cell
        self._cell = ""
        self._running = 0  # cells: more than one when a magic runs a cell of its own

    def is_awaited(self) -> bool:
        """Whether a cell of the agent's can be a top-level await: only a kernel's loop runs on.

        What a magic such as `%%time` has transformed while it runs is no cell of its own.
        """
        return self.bridge.serves_main and bool(self.shell.autoawait) and not self._running

    def cell_begins(self, info: Any) -> None:
        """Keep the running cell as typed, before IPython completed its last line."""
        self._cell = info.raw_cell
        self._running += 1

    def cell_ends(self, _result: Any) -> None:
        """IPython tells of an empty cell's end only."""
        self._running = max(0, self._running - 1)

    async def run(self, line: str, body: str | None) -> object:
        """Run a cell while the main loop goes on."""
        work = spawn(self._start(line, self._as_typed(body), whole_cell=True))
        with self.bridge.turn(stop=work.cancel):
            try:
                return await asyncio.wrap_future(work)
            except asyncio.CancelledError:
                raise _Stopped from None

    def run_blocking(self, line: str, body: str | None) -> object:
        """Run a cell where nothing can be awaited; the agent's Python still gets to run on main."""
        work = spawn(self._start(line, self._as_typed(body)))
        with self.bridge.turn(stop=work.cancel):
            try:
                return run_blocking(_result_of(work))
            except concurrent.futures.CancelledError:
                raise _Stopped from None

    @no_var_expand
    def line_magic(self, line: str) -> object:
        """Ask the agent: %openhands [TASK], or a command of it such as `%openhands status`."""
        return self.run_blocking(line, None)

    @no_var_expand
    def cell_magic(self, line: str, cell: str) -> object:
        """Give the agent a task: %%openhands [FLAGS], with the task in the lines below."""
        return self.run_blocking(line, cell)

    async def _start(self, line: str, body: str | None, *, whole_cell: bool = False) -> object:
        try:
            if self.run_cell is None:
                with libraries_unshadowed():
                    if whole_cell and self.bridge.redraws:
                        self._announce(line, body)
                    module = importlib.import_module("oh_kernel.kernel.magics")
                self.run_cell = module.run_cell
            return await self.run_cell(line, body, self.shell)
        finally:
            self.bridge.withdraw_status()

    def _announce(self, line: str, body: str | None) -> None:
        """Show a status line now: importing the agent takes longer than a person waits unsure."""
        # Only now: a kernel that starts pays for neither.
        from oh_kernel.kernel.grammar import Ask, parse
        from oh_kernel.views.status import starting_line

        try:
            is_task = isinstance(parse(line, body), Ask)
        except OpenHandsError:
            return  # will be told by whoever parses it for good
        if is_task:
            self.bridge.announce(starting_line().bundle())

    def _as_typed(self, body: str | None) -> str | None:
        """IPython ends every cell with a newline; take it off where nobody typed one."""
        if body is None or self._cell.endswith("\n"):
            return body
        return body.removesuffix("\n")


# What `%openhands?` shows.
Front.line_magic.__doc__ = Front.cell_magic.__doc__ = usage()


class _Stopped(KeyboardInterrupt):
    """A person stopped the agent. Shown in one line: where in our code that was helps nobody."""

    def _render_traceback_(self) -> list[str]:
        return ["KeyboardInterrupt"]


# The name that goes to front ends, which know this one.
_Stopped.__name__ = "KeyboardInterrupt"


async def _result_of(work: concurrent.futures.Future[object]) -> object:
    return await asyncio.wrap_future(work)


class _Skills:
    """`skills` in the user's namespace: the agent's helper functions, imported when touched."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module("agentskills"), name)

    def __dir__(self) -> list[str]:
        return list(importlib.import_module("agentskills").__all__)

    def __repr__(self) -> str:
        return f"<agent skills: {', '.join(dir(self))}>"
