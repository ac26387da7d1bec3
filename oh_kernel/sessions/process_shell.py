"""What stands for the notebook in a process that has none: an IPython shell and its program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

_made_here: InteractiveShell | None = None


def process_shell() -> tuple[Any, bool]:
    """This process's shell, and whether it was made here."""
    global _made_here  # a shell is one for a process, whoever made it
    if InteractiveShell.initialized():
        shell = InteractiveShell.instance()
        return shell, shell is _made_here
    from traitlets.config import Config  # IPython has imported it

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance(config=config)
    sys.modules["__main__"] = main
    _made_here = shell
    # As a kernel does: figures become displays instead of windows.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    return shell, True


class Program:
    """What code of that shell takes for its process: working folder, import path, `__main__`.

    The process has them only while the code runs. Used on the main thread.
    """

    def __init__(self, shell: Any, folder: Path) -> None:
        self._shell = shell
        self._folder = folder

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be that program in this block; where the code changes the folder, it stays for later."""
        folder, main, had_folder = Path.cwd(), sys.modules["__main__"], "" in sys.path
        os.chdir(self._folder)
        if not had_folder:
            sys.path.insert(0, "")
        sys.modules["__main__"] = self._shell.user_module
        try:
            yield
        finally:
            self._folder = Path.cwd()
            os.chdir(folder)
            sys.modules["__main__"] = main
            if not had_folder and "" in sys.path:
                sys.path.remove("")
