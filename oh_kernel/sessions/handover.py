"""How does a text reach bash, which sources it, whatever stands in it and however long it is?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal, Protocol

Handover = Literal["memory", "file"]


class Files(Protocol):
    """Where texts for bash lie: each under a path that bash can source."""

    def put(self, name: str, text: bytes) -> str:
        """Store `text`, in place of what had this name; the path to read it from."""

    def close(self) -> None:
        """Remove everything."""


class MemoryFiles:
    """Anonymous files in memory, read through /proc (Linux)."""

    def __init__(self) -> None:
        self._fds: dict[str, int] = {}
        self._lengths: dict[str, int] = {}

    def put(self, name: str, text: bytes) -> str:
        fd = self._fds.get(name)
        if fd is None:
            fd = self._fds[name] = os.memfd_create(f"oh-{name}")
        os.pwrite(fd, text, 0)
        if len(text) < self._lengths.get(name, 0):  # rarely true, and slow
            os.ftruncate(fd, len(text))
        self._lengths[name] = len(text)
        return f"/proc/{os.getpid()}/fd/{fd}"

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])


class TempFiles:
    """Files in a private folder; each text in a fresh one: rewriting can take milliseconds."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oh-bash-")
        self._last: dict[str, Path] = {}
        self._count = 0

    def put(self, name: str, text: bytes) -> str:
        if name in self._last:
            self._last.pop(name).unlink(missing_ok=True)
        self._count += 1
        path = self._last[name] = Path(self._folder.name, f"{name}-{self._count}")
        path.write_bytes(text)
        return str(path)

    def close(self) -> None:
        self._folder.cleanup()


def files_for(handover: Handover) -> Files:
    """The way to hand texts over."""
    return MemoryFiles() if handover == "memory" else TempFiles()
