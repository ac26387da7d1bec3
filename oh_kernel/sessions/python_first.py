"""What must stand first on a PATH so that `python` is one particular interpreter?"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path


class PythonFirst:
    """Folders that make `python`, `pip` and the other scripts those of `interpreter`.

    An interpreter that was started as `python3.12`, or whose folder has no `python` (Debian), gets
    a small script of that name, so that `sys.executable` is the same wherever Python runs.
    """

    def __init__(self, interpreter: str) -> None:
        self.interpreter = Path(interpreter)
        self._path = ""
        self._found: str | None = None
        self._scripts: tempfile.TemporaryDirectory[str] | None = None

    def folders(self) -> list[str]:
        """The folders, in order. The script is written at the first call."""
        own = str(self.interpreter.parent)
        if self.interpreter.name == "python":
            return [own]
        if self._scripts is None:
            self._scripts = tempfile.TemporaryDirectory(prefix="oh-python-")
            script = Path(self._scripts.name, "python")
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(self.interpreter))} "$@"\n')
            script.chmod(0o755)
        return [self._scripts.name, own]

    def found_on(self, path: str) -> str | None:
        """The interpreter that `python` starts with this PATH."""
        found = self._first_on(path) or (shutil.which("python", path=path) if path else None)
        if found and self._scripts and Path(found).parent == Path(self._scripts.name):
            return str(self.interpreter)
        return found

    def _first_on(self, path: str) -> str | None:
        """What `which` would find, in far less time, where it is in the first folder of all."""
        if path == self._path and self._found and os.access(self._found, os.X_OK):
            return self._found
        found = shutil.which("python", path=path.partition(":")[0]) if path else None
        self._path, self._found = path, found
        return found

    def close(self) -> None:
        """Remove the script."""
        if self._scripts is not None:
            self._scripts.cleanup()
            self._scripts = None
