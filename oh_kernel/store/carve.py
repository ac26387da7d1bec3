"""Which rows can still be read from a damaged SQLite file, page by page?

SQLite gives up at the first bad page above a row. Here every leaf page of a table is read for
itself, in the database file and in each frame of its WAL, with no need for the pages that point to
it. Rows come out in file order, some more than once (older frames): the reader checks and sorts
them.

Format: https://www.sqlite.org/fileformat2.html (sections 1.6 b-tree pages, 2.1 records, 4 the WAL).
"""

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_MAGIC = b"SQLite format 3\0"
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER, _FRAME_HEADER = 32, 24
_LEAF_TABLE = 0x0D
_INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8)

Value = int | float | bytes | None


class Row(NamedTuple):
    """A row as it stands in the file: texts and blobs are bytes, the row number comes apart."""

    number: int
    values: tuple[Value, ...]


class Pages:
    """The pages of a database and of its WAL, as they lie on the disk.

    Closing the file drops the locks that this process's SQLite connections hold on it, so it stays
    open until nobody needs them any more. Read with pread, not mapped: a bad sector or a file that
    another process shortens would kill a process that had it mapped.
    """

    def __init__(self, database: Path | None, wal: Path, page_sizes: Sequence[int]) -> None:
        self._file = _File(database)
        self._wal = _File(wal)
        self._frames: list[tuple[int, int, bytes]] = []
        self._newest: dict[int, int] = {}
        self.page_size = self._read_page_size() or self._likeliest(page_sizes)
        self._frames = list(self._read_frames())
        salt = self._wal.read(16, 8)
        self._newest = {number: at for number, at, mark in self._frames if mark == salt}

    def rows(self) -> Iterator[Row]:
        """Every row of every table's leaf page that can be decoded."""
        for number in range(2, self._file.size // self.page_size + 1):
            yield from self._rows_of(self._page_in_file(number))
        for _, at, _ in self._frames:
            yield from self._rows_of(self._wal.read(at, self.page_size))

    def user_version(self) -> int:
        """The schema version in the header; 0 when there is no header."""
        header = self._file.read(0, 100)
        return int.from_bytes(header[60:64], "big") if header.startswith(_MAGIC) else 0

    def _read_page_size(self) -> int:
        header = self._file.read(0, 18)
        if header.startswith(_MAGIC):
            size = int.from_bytes(header[16:18], "big")
            return 65536 if size == 1 else size if _is_page_size(size) else 0
        header = self._wal.read(0, 12)
        if int.from_bytes(header[:4], "big") in _WAL_MAGIC:
            size = int.from_bytes(header[8:12], "big")
            return size if _is_page_size(size) else 0
        return 0

    def _likeliest(self, sizes: Sequence[int]) -> int:
        """The size with which most rows can be read, where no header tells it."""
        counts = {}
        for self.page_size in sizes:
            counts[self.page_size] = sum(1 for _ in self.rows())
        return max(sizes, key=lambda size: counts[size])

    def _read_frames(self) -> Iterator[tuple[int, int, bytes]]:
        """Page number, place of the page and salt of each whole frame.

        Checksums are left alone: rows have their own, and one bad frame would hide all after it.
        """
        step = _FRAME_HEADER + self.page_size
        for start in range(_WAL_HEADER, self._wal.size - step + 1, step):
            header = self._wal.read(start, _FRAME_HEADER)
            yield int.from_bytes(header[:4], "big"), start + _FRAME_HEADER, header[8:16]

    def _page_in_file(self, number: int) -> bytes:
        return self._file.read((number - 1) * self.page_size, self.page_size)

    def _page(self, number: int, *, newest: bool) -> bytes:
        if newest and number in self._newest:
            return self._wal.read(self._newest[number], self.page_size)
        return self._page_in_file(number)

    def _rows_of(self, page: bytes) -> Iterator[Row]:
        if len(page) < self.page_size or page[0] != _LEAF_TABLE:
            return
        count = min(int.from_bytes(page[3:5], "big"), (self.page_size - 8) // 2)
        for place in range(8, 8 + 2 * count, 2):
            start = int.from_bytes(page[place : place + 2], "big")
            # Where a long row goes on may be known twice, before and after the last checkpoint.
            for newest in (True, False):
                try:
                    row, whole = self._row_at(page, start, newest=newest)
                except (ValueError, IndexError, OverflowError, struct.error):
                    continue
                yield row
                if whole:
                    break

    def _row_at(self, page: bytes, start: int, *, newest: bool) -> tuple[Row, bool]:
        length, start = _varint(page, start)
        number, start = _varint(page, start)
        local = self._local_size(length)
        payload = page[start : start + local]
        if local < length:
            overflow = int.from_bytes(page[start + local : start + local + 4], "big")
            payload += self._overflow(overflow, length - local, newest=newest)
        if len(payload) != length:
            raise ValueError("the row runs past the end of its page")
        return Row(number, _decode(payload)), local == length

    def _local_size(self, length: int) -> int:
        usable = self.page_size
        if length <= usable - 35:
            return length
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        return local if local <= usable - 35 else least

    def _overflow(self, number: int, missing: int, *, newest: bool) -> bytes:
        parts: list[bytes] = []
        while missing > 0:
            page = self._page(number, newest=newest) if number > 1 else b""
            if len(page) < self.page_size:
                raise ValueError("a long row goes on in a page that is not there")
            parts.append(page[4 : 4 + missing])
            missing -= len(parts[-1])
            number = int.from_bytes(page[:4], "big")
        return b"".join(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._wal.close()


class _File:
    def __init__(self, path: Path | None) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if path and path.exists() else -1
        self.size = os.fstat(self._fd).st_size if self._fd >= 0 else 0

    def read(self, at: int, size: int) -> bytes:
        if self._fd < 0:
            return b""
        try:
            return os.pread(self._fd, size, at)
        except OSError:
            return b""  # a bad sector: what lies there is lost, the rest is not

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_page_size(size: int) -> bool:
    return 512 <= size <= 65536 and size & (size - 1) == 0


def _varint(data: bytes, start: int) -> tuple[int, int]:
    value = 0
    for place in range(start, start + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[start + 8], start + 9


def _decode(payload: bytes) -> tuple[Value, ...]:
    head, place = _varint(payload, 0)
    at, values = head, []
    while place < head:
        serial, place = _varint(payload, place)
        value, at = _value(payload, serial, at)
        values.append(value)
    if at != len(payload):
        raise ValueError("the row's header does not fit its length")
    return tuple(values)


def _value(payload: bytes, serial: int, at: int) -> tuple[Value, int]:
    if serial >= 12:
        end = at + (serial - 12) // 2
        return payload[at:end], end
    if serial in (8, 9):
        return serial - 8, at
    if serial == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if serial > 9:
        raise ValueError("reserved serial type")
    end = at + _INTEGER_SIZES[serial]
    return (int.from_bytes(payload[at:end], "big", signed=True) if serial else None), end
