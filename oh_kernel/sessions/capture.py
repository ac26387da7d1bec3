"""How is an output of any length kept: its beginning and end in memory, all of it in a file?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

HEAD_MAX_CHARS = 1_000_000
TAIL_MAX_CHARS = 1_000_000
# A program that prints for ever must not fill the disk.
FILE_MAX_CHARS = 256_000_000


class Capture:
    """Text that is added piece by piece. Past the memory limits it goes to a file as well.

    `new_file` names the file when it is needed.
    """

    def __init__(
        self,
        new_file: Callable[[], Path],
        *,
        head_max_chars: int = HEAD_MAX_CHARS,
        tail_max_chars: int = TAIL_MAX_CHARS,
        file_max_chars: int = FILE_MAX_CHARS,
    ) -> None:
        self._new_file = new_file
        self._head_max = head_max_chars
        self._tail_max = tail_max_chars
        self._file_max = file_max_chars
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._file: TextIO | None = None
        self.total_chars = 0
        self.path: Path | None = None

    def add(self, text: str) -> None:
        """Append `text`."""
        if self._file is None and self.total_chars + len(text) > self._head_max + self._tail_max:
            self._open_file()  # now, while nothing is lost
        self._add_to_file(text)
        room = self._head_max - self._head_chars
        if room > 0:
            self._head.append(text[:room])
            self._head_chars += len(self._head[-1])
        if rest := text[max(room, 0) :]:
            self._add_to_tail(rest)
        self.total_chars += len(text)

    @property
    def text(self) -> str:
        """What is in memory: everything, or the beginning and the end."""
        return "".join(self._head) + "".join(self._tail)

    @property
    def saved_chars(self) -> int:
        """How much of the output the file holds or would hold."""
        return min(self.total_chars, self._file_max)

    def save(self) -> Path:
        """The file with the complete output."""
        if self._file is None and self.path is None:
            self._open_file()
        self.close()
        assert self.path is not None
        return self.path

    def close(self) -> None:
        """Close the file, if there is one. Nothing may be added afterwards."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add_to_tail(self, text: str) -> None:
        self._tail.append(text[-self._tail_max :])
        self._tail_chars += len(self._tail[-1])
        while self._tail_chars - len(self._tail[0]) >= self._tail_max:
            self._tail_chars -= len(self._tail.popleft())

    def _open_file(self) -> None:
        self.path = self._new_file()
        self._file = self.path.open("w", encoding="utf-8", errors="replace", newline="")
        self._file.write(self.text)

    def _add_to_file(self, text: str) -> None:
        if self._file is not None and (room := self._file_max - self.total_chars) > 0:
            self._file.write(text[:room])
