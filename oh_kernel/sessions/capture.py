"""How is an output of any length kept: its beginning and end in memory, all of it in a file?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

HEAD_MAX_CHARS = 1_000_000
TAIL_MAX_CHARS = 1_000_000
# A program that prints for ever must not fill the disk.
FILE_MAX_CHARS = 256_000_000


class Capture:
    """Text that is added piece by piece. Past the memory limits it goes to a file as well.

    `new_file` names the file when it is needed. A file that cannot be written (a full disk) is
    given up and removed; `problem` then says why, and what is in memory stays.
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
        self.problem = ""

    def add(self, text: str) -> None:
        """Append `text`."""
        if self.total_chars + len(text) > self._head_max + self._tail_max:
            self._open_file()  # now, while nothing is lost
        self._write(text[: max(0, self._file_max - self.total_chars)])
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

    def save(self) -> Path | None:
        """The file with the complete output; None when it could not be written."""
        self._open_file()
        self.close()
        return self.path

    def close(self) -> None:
        """Close the file, if there is one. Nothing may be added afterwards."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._give_up(error)
            self._file = None

    def _add_to_tail(self, text: str) -> None:
        self._tail.append(text[-self._tail_max :])
        self._tail_chars += len(self._tail[-1])
        while self._tail_chars - len(self._tail[0]) >= self._tail_max:
            self._tail_chars -= len(self._tail.popleft())

    def _open_file(self) -> None:
        if self.path is not None or self.problem:
            return
        try:
            self.path = self._new_file()
            self._file = self.path.open("w", encoding="utf-8", errors="replace", newline="")
        except OSError as error:
            self._give_up(error)
        self._write(self.text)

    def _write(self, text: str) -> None:
        if self._file is None or not text:
            return
        try:
            self._file.write(text)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.problem = error.strerror or str(error)
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what was not written yet is tried again, in vain
                file.close()
        path, self.path = self.path, None
        if path is not None:
            with suppress(OSError):
                path.unlink()
