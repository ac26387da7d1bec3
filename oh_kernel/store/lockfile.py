"""How does the operating system hold a conversation for one process, and free it at its death?

One small file a conversation, locked with flock. It also keeps the mark: the index that the next
event will get, written after each commit. When a damaged database has lost its newest events the
mark still tells how many there were, so that no index is given twice.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}
_DIGITS = 20
_open_files: "weakref.WeakSet[LockFile]" = weakref.WeakSet()


class Mark(NamedTuple):
    """What a lock file tells: the next index, and of which conversation in which store."""

    next_index: int
    store_id: str
    conversation_id: str


class LockFile:
    """An open, locked file. Raises BlockingIOError at once when another holds the lock.

    `locked` is False on a file system without locks; then only the writer's row can decide.
    """

    def __init__(self, path: Path) -> None:
        _forget_in_children()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._fd, self.locked = _open_locked(path)
        _open_files.add(self)

    def write_mark(self, mark: Mark) -> None:
        """Write the whole mark, when the lease begins."""
        lines = f"{mark.next_index:0{_DIGITS}d}\n{mark.store_id}\n{mark.conversation_id}\n"
        os.pwrite(self._fd, lines.encode(), 0)

    def write_next_index(self, next_index: int) -> None:
        """Write the number alone: one system call after each commit, never synced."""
        # The event is committed: a full disk, or a lease given up meanwhile, must not deny that.
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, b"%0*d" % (_DIGITS, next_index), 0)

    def close(self) -> None:
        """Give the lock back; closing twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Delete the file while it is still locked, then give the lock back."""
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()


def lock_path(database: Path, conversation_id: str) -> Path:
    """Where the lock of a conversation lies: in a `locks` folder beside the database."""
    name = quote(conversation_id, safe="")
    if len(name) > 120:
        name = hashlib.sha256(conversation_id.encode()).hexdigest()
    return database.parent / "locks" / f"{database.name}.{name}.lock"


def count_lock_files(database: Path) -> int:
    """How many conversations of this database have a lock file."""
    return sum(1 for _ in _lock_files(database))


def read_marks(database: Path) -> dict[str, Mark]:
    """Every mark kept for this database, by conversation."""
    marks = (read_mark(path) for path in _lock_files(database))
    return {mark.conversation_id: mark for mark in marks if mark}


def read_mark(path: Path) -> Mark | None:
    """The mark in one lock file; None when it says nothing."""
    try:
        number, store_id, conversation_id = path.read_bytes().decode().splitlines()[:3]
        return Mark(int(number), store_id, conversation_id)
    except (OSError, ValueError):
        return None


def _lock_files(database: Path) -> Iterator[Path]:
    prefix = database.name + "."
    with contextlib.suppress(FileNotFoundError), os.scandir(database.parent / "locks") as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(".lock"):
                yield Path(entry.path)


def _open_locked(path: Path) -> tuple[int, bool]:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            locked = _flock(fd)
            if _is_at(path, fd):
                return fd, locked
        except BaseException:
            os.close(fd)
            raise
        # Its last holder removed it between our open and our lock: lock the one that is there now.
        os.close(fd)


def _flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


@cache
def _forget_in_children() -> None:
    """Close the lock files in forked children, once for the process.

    A worker that the user's code forks would else keep the lock after this process was killed.
    """

    def close_all() -> None:
        for lock in list(_open_files):
            lock.close()

    os.register_at_fork(after_in_child=close_all)
