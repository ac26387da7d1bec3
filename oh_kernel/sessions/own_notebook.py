"""Which notebook does this kernel serve, and how does a new cell get into it without writing it?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oh_kernel.loop import main_thread

# The main thread is free while an agent works, or takes work in between.
_MAIN_THREAD_S = 10.0
_NEXT_INPUT = "set_next_input"


class OwnNotebook:
    """The notebook whose cells `shell` runs. `named` is what Jupyter's server calls its file."""

    def __init__(self, shell: Any, named: Path | None = None) -> None:
        self._shell = shell
        self._named = named

    @property
    def path(self) -> Path | None:
        """Its file, as far as the front end has said; None if it has not."""
        told = self._shell.user_ns.get("__vsc_ipynb_file__")  # Visual Studio Code's way
        return Path(told) if isinstance(told, str) else self._named

    async def add_cell_below(self, source: str) -> bool:
        """Have a new cell stand below the running one when that ends; False if none will.

        Front ends take one such cell, so a further source in the same run is joined to the first.
        """
        if getattr(self._shell, "payload_manager", None) is None:
            return False  # a terminal: its next input is the user's own
        work = main_thread.submit(self._add(source))
        try:
            async with asyncio.timeout(_MAIN_THREAD_S):
                await asyncio.wrap_future(work)
        except TimeoutError:  # it will not be done later, either
            return False
        return True

    def _add(self, source: str) -> Callable[[], None]:
        def add() -> None:
            waiting = [
                payload["text"]
                for payload in self._shell.payload_manager.read_payload()
                if payload.get("source") == _NEXT_INPUT and not payload.get("replace")
            ]
            self._shell.set_next_input("\n\n".join([*waiting, source]))

        return add
