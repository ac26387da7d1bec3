"""How is a notebook run so that a person in a terminal can follow it?"""

import re
import sys
from pathlib import Path
from typing import Any, Self, TextIO

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from oh_kernel.commands.redrawn import Screen


class Playback(NotebookClient):
    """Runs a notebook and prints sources and outputs as they come."""

    screen: Screen

    @classmethod
    def of(
        cls, notebook: Any, *, kernels: Path, folder: Path, stream: TextIO | None = None
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
        client.screen = Screen(stream or sys.stdout)
        return client

    async def async_execute_cell(
        self, cell: Any, cell_index: int, *arguments: Any, **options: Any
    ) -> Any:
        """Show the cell, run it, and show the end of what was still being drawn."""
        self.screen.add(_source(cell))
        try:
            return await super().async_execute_cell(cell, cell_index, *arguments, **options)
        finally:
            self.screen.finish()

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Show what the kernel sends while the cell runs."""
        content = msg["content"]
        match msg["msg_type"]:
            case "stream":
                self.screen.add(content["text"])
            case "error":
                self.screen.add(_plain("\n".join(content["traceback"])) + "\n")
            case "execute_result":
                self.screen.add("\n" + _text(content) + "\n")
            case "display_data" | "update_display_data":
                display_id = content.get("transient", {}).get("display_id")
                self.screen.draw(_text(content), display_id)
        return super().process_message(msg, cell, cell_index)


def _text(content: dict[str, Any]) -> str:
    data = content["data"]
    return "[a picture]" if "image/png" in data else str(data.get("text/plain", ""))


def _plain(text: str) -> str:
    """`text` without the colours that IPython gives a traceback."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _source(cell: Any) -> str:
    if cell.cell_type == "markdown":
        return f"\n{cell.source}\n"
    first, *others = cell.source.splitlines()
    return "\n".join([f"\n>>> {first}", *(f"... {line}" for line in others)]) + "\n\n"
