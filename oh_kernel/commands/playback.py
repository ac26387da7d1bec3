"""How is a notebook run so that a person in a terminal can follow it?"""

import re
import sys
from pathlib import Path
from typing import Any, Self, TextIO

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

# The last lines of a view that is being drawn still change: a status, a half-written sentence.
UNSETTLED_LINES = 4


class Playback(NotebookClient):
    """Runs a notebook and prints sources and outputs as they come."""

    screen: TextIO

    @classmethod
    def of(
        cls, notebook: Any, *, kernels: Path, folder: Path, screen: TextIO | None = None
    ) -> Self:
        """For `notebook` in `folder`, with the kernelspecs in `kernels` and no others."""
        specs = KernelSpecManager(kernel_dirs=[str(kernels)])
        manager = AsyncKernelManager(
            kernel_name=notebook.metadata.kernelspec.name, kernel_spec_manager=specs
        )
        client = cls(
            notebook,
            km=manager,
            resources={"metadata": {"path": str(folder)}},
            timeout=None,
            # ipykernel warns at each start that local connections are not encrypted.
            extra_arguments=["--log-level=ERROR"],
        )
        client.screen = screen or sys.stdout
        client._views = {}
        return client

    _views: dict[str, "_View"]

    async def async_execute_cell(
        self, cell: Any, cell_index: int, *arguments: Any, **options: Any
    ) -> Any:
        """Show the cell, run it, and show the end of what was still being drawn."""
        self._print(_source(cell))
        try:
            return await super().async_execute_cell(cell, cell_index, *arguments, **options)
        finally:
            for view in self._views.values():
                self._print(view.rest())
            self._views.clear()

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Show what the kernel sends while the cell runs."""
        content = msg["content"]
        match msg["msg_type"]:
            case "stream":
                self._print(content["text"])
            case "error":
                self._print(plain("\n".join(content["traceback"])) + "\n")
            case "execute_result":
                self._print(content["data"].get("text/plain", "") + "\n")
            case "display_data" | "update_display_data":
                self._show(content)
        return super().process_message(msg, cell, cell_index)

    def _show(self, content: dict[str, Any]) -> None:
        text = content["data"].get("text/plain", "")
        display_id = content.get("transient", {}).get("display_id")
        if display_id is None:
            self._print(text + "\n")
            return
        view = self._views.setdefault(display_id, _View())
        self._print(view.settled(text))

    def _print(self, text: str) -> None:
        self.screen.write(text)
        self.screen.flush()


class _View:
    """A display that is redrawn as a whole: what of it was printed, and what is new."""

    def __init__(self) -> None:
        self._printed: list[str] = []
        self._lines: list[str] = []

    def settled(self, text: str) -> str:
        """The new lines that will not change any more, as far as one can tell."""
        self._lines = text.splitlines()
        return self._new(self._lines[: max(0, len(self._lines) - UNSETTLED_LINES)])

    def rest(self) -> str:
        """The lines that were held back."""
        return self._new(self._lines)

    def _new(self, lines: list[str]) -> str:
        if lines[: len(self._printed)] != self._printed:
            lines = _after(lines, self._printed)
        else:
            lines = lines[len(self._printed) :]
        self._printed += lines
        return "".join(line + "\n" for line in lines)


def plain(text: str) -> str:
    """`text` without the colours that IPython gives a traceback."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _after(lines: list[str], printed: list[str]) -> list[str]:
    """What is not among the lines printed already, where these were drawn anew in another form."""
    seen = set(printed)
    return [line for line in lines if line.strip() and line not in seen]


def _source(cell: Any) -> str:
    if cell.cell_type == "markdown":
        return f"\n{cell.source}\n"
    first, *others = cell.source.splitlines()
    return "\n".join([f"\n>>> {first}", *(f"... {line}" for line in others)]) + "\n\n"
