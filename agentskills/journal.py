"""How is a file put right whose writing in place was cut short?

Before a file is written in place, an entry with its old and its new content is flushed to a folder
of entries; it goes when the file is written. An entry that is left, and that no living process
holds locked, tells of a process that died: if the file is a mixture of both contents, it gets the
old one back. What somebody else has written since is left alone.
"""

import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agentskills.errors import CannotRead
from agentskills.temp_files import overwrite, sync_folder

_SUFFIX = ".unfinished"
_BLOCK = 512


@dataclass(frozen=True)
class Entry:
    """The file that is written, and what it holds before and after."""

    target: Path
    old: bytes
    new: bytes

    def to_bytes(self) -> bytes:
        head = {"path": str(self.target), "old": len(self.old), "new": len(self.new)}
        return b"%s\n%s%s" % (json.dumps(head).encode(), self.old, self.new)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | None:
        """None for what is no whole entry."""
        line, _, contents = data.partition(b"\n")
        try:
            head = json.loads(line)
            path, old, new = Path(head["path"]), int(head["old"]), int(head["new"])
        except (ValueError, TypeError, KeyError):
            return None
        return cls(path, contents[:old], contents[old:]) if len(contents) == old + new else None

    def is_half_written(self, content: bytes) -> bool:
        """Whether the content is neither old nor new, and each of its bytes is of one of them."""
        if content in (self.old, self.new):
            return False
        shortest, longest = sorted((len(self.old), len(self.new)))
        return shortest <= len(content) <= longest and all(
            _is_mixture(*(data[at : at + _BLOCK] for data in (content, self.old, self.new)))
            for at in range(0, len(content), _BLOCK)
        )


class Journal:
    """Entries in one folder, which is made when the first is needed.

    Where that folder cannot be made, or written, the `spare` ones are tried.
    """

    def __init__(self, folder: Path, *spare: Path) -> None:
        self._folders = (folder, *spare)

    @contextmanager
    def keeping(self, target: Path, old: bytes, new: bytes) -> Iterator[None]:
        """Keep what the file holds while it is written; OSError when that is not possible.

        When the writing fails the entry stays, unless the file is whole.
        """
        entry = Entry(target, old, new)
        path, handle = self._write(entry)
        try:
            try:
                yield
            except OSError:
                if not entry.is_half_written(target.read_bytes()):
                    path.unlink()
                raise
            path.unlink()
        finally:
            os.close(handle)

    def put_right(self, target: Path) -> bool:
        """Whether this file was found half written, and now has its old content again."""
        return target in [self._settle(folder / _name(target)) for folder in self._folders]

    def put_all_right(self, folders: Sequence[Path]) -> list[Path]:
        """The files below `folders` that were found half written; now they are as before."""
        mended: list[Path | None] = []
        for path in self._entries():
            with suppress(CannotRead, OSError):  # told when that file is wanted
                entry = Entry.from_bytes(path.read_bytes())
                if entry and any(entry.target.is_relative_to(folder) for folder in folders):
                    mended.append(self._settle(path))
        return [target for target in mended if target]

    def _entries(self) -> list[Path]:
        found: list[Path] = []
        for folder in self._folders:
            with suppress(OSError):
                found += sorted(folder.glob(f"*{_SUFFIX}"))
        return found

    def _write(self, entry: Entry) -> tuple[Path, int]:
        """The entry's file, locked until the process closes it or dies."""
        for folder in self._folders:
            try:
                return _write_entry(folder, entry)
            except OSError:
                if folder == self._folders[-1]:
                    raise
        raise AssertionError("there is a last folder")

    def _settle(self, path: Path) -> Path | None:
        """Put the file of an entry right and remove the entry; the file, if it was half written."""
        try:
            _require_private(path.parent)
            file = path.open("r+b", buffering=0)
        except OSError:  # there is none, or it is not ours
            return None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # its writer lives
                return None
            if os.fstat(file.fileno()).st_nlink == 0:  # settled by another process meanwhile
                return None
            entry = Entry.from_bytes(file.readall())
            is_mended = entry is not None and _mend(entry)
            path.unlink()
            return entry.target if entry and is_mended else None


def _mend(entry: Entry) -> bool:
    try:
        with entry.target.open("r+b", buffering=0) as file:
            if not entry.is_half_written(file.readall()):
                return False
            overwrite(file.fileno(), entry.old)
            return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CannotRead(entry.target, error) from error


def _write_entry(folder: Path, entry: Entry) -> tuple[Path, int]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_private(folder)
    path, temp = folder / _name(entry.target), folder / f"{secrets.token_hex(8)}.tmp"
    handle = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        overwrite(handle, entry.to_bytes())
        os.link(temp, path)  # fails where another process is writing the same file
        sync_folder(folder)
        return path, handle
    except BaseException:
        os.close(handle)
        raise
    finally:
        temp.unlink()


def _require_private(folder: Path) -> None:
    """Entries are written back into files: nobody else may put any there."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to somebody else")


def _name(target: Path) -> str:
    return hashlib.sha256(os.fsencode(target)).hexdigest()[:40] + _SUFFIX


def _is_mixture(content: bytes, old: bytes, new: bytes) -> bool:
    """Whether each byte is the old or the new one, or 0, which a lost write may leave."""
    if content in (old[: len(content)], new[: len(content)]) or not any(content):
        return True
    old, new = old.ljust(len(content), b"\0"), new.ljust(len(content), b"\0")
    return all(byte in (a, b, 0) for byte, a, b in zip(content, old, new, strict=False))
