"""How do bytes get from and to a file so that a reader never finds half of them?

A file is written beside itself, flushed to the disk and renamed into place. Where a rename would
break something that the file is (one of several hard links, somebody else's) or is not possible
(the folder is not ours, a bind mount), it is written in place, and a journal keeps what it held
until that is done. Symbolic links are followed and stay links.
"""

import errno
import os
import stat
from contextlib import AbstractContextManager, nullcontext
from io import FileIO
from pathlib import Path

from agentskills.errors import (
    CannotRead,
    CannotWrite,
    FileChanged,
    FileExists,
    FileMissing,
    FileTooLarge,
    IsAFolder,
    NotARegularFile,
)
from agentskills.journal import Journal
from agentskills.temp_files import overwrite, sync_folder, write_new, write_temp

MAX_FILE_BYTES = 10 * 1024 * 1024
_PIECE_BYTES = 256 * 1024

# A rename that fails so may still leave the file itself writable; a full disk (ENOSPC) does not.
_NO_RENAME = {errno.EPERM, errno.EACCES, errno.EBUSY, errno.EXDEV}


def resolved(path: str | os.PathLike[str]) -> Path:
    """Where the path leads once every link in it is followed; the end need not exist."""
    try:
        return Path(os.path.realpath(path))
    except (ValueError, OSError) as error:  # a NUL in the path; a working folder that is gone
        raise CannotRead(path, error) from error


def expanded(path: str) -> str:
    """The path with the home folder in the place of `~`; `~nobody` is left as it is."""
    try:
        return os.path.expanduser(path)  # noqa: PTH111 - Path.expanduser raises for ~nobody
    except ValueError:  # a NUL, or half a character
        return path


def read_bytes(path: str | os.PathLike[str], *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The content of a regular file of at most `max_bytes`."""
    _size_of_regular_file(path)
    try:
        # Not blocking: some of the kernel's files (/proc/kmsg) are "regular" and wait for news.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with FileIO(handle) as file:
            # Asked again of the open file: the name may lead elsewhere by now.
            size = _regular_size(path, os.fstat(handle))
            data = b"" if size > max_bytes else _read_at_most(file, max_bytes + 1, size + 1)
    except OSError as error:
        raise CannotRead(path, error) from error
    # Files that the kernel makes up say that their size is 0.
    if (size := max(size, len(data))) > max_bytes:
        raise FileTooLarge(path, size, max_bytes)
    return data


def replace_bytes(
    path: str | os.PathLike[str], data: bytes, *, was: bytes, journal: Journal | None = None
) -> None:
    """Write over a file that holds `was`; FileChanged when it holds something else.

    With a `journal`, a process that dies while it writes in place leaves what puts that right.
    """
    target = resolved(path)
    _require_content(target, was)
    try:
        _require_writable(target)
        if not _renamed_into_place(target, data):
            _write_in_place(target, data, was, journal)
    except OSError as error:
        raise CannotWrite(path, error) from error


def create_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that is not there yet, with the mode that the umask gives."""
    target = resolved(path)
    try:
        if os.path.lexists(target):
            raise FileExists(path)
        _require_folder(target.parent)
        write_new(target, data, 0o666)
        sync_folder(target.parent)
    except FileExistsError as error:
        raise FileExists(path) from error
    except OSError as error:
        raise CannotWrite(path, error) from error


def remove_file(path: str | os.PathLike[str], *, was: bytes) -> None:
    """Remove a file that holds `was`; FileChanged when it holds something else."""
    target = resolved(path)
    _require_content(target, was)
    try:
        target.unlink()
        sync_folder(target.parent)
    except OSError as error:
        raise CannotWrite(path, error) from error


def _size_of_regular_file(path: str | os.PathLike[str]) -> int:
    # Asked before opening: opening a pipe would wait for its other end.
    try:
        status = Path(path).stat()
    except FileNotFoundError as error:
        raise FileMissing(path) from error
    except (OSError, ValueError) as error:
        raise CannotRead(path, error) from error
    return _regular_size(path, status)


def _regular_size(path: str | os.PathLike[str], status: os.stat_result) -> int:
    if stat.S_ISDIR(status.st_mode):
        raise IsAFolder(path)
    if not stat.S_ISREG(status.st_mode):
        raise NotARegularFile(path)
    return status.st_size


def _read_at_most(file: FileIO, max_bytes: int, likely_bytes: int) -> bytes:
    pieces: list[bytes] = []
    while max_bytes > 0:
        piece = file.read(min(max_bytes, _PIECE_BYTES if pieces else likely_bytes))
        if piece is None:
            raise BlockingIOError(errno.EAGAIN, "reading it would wait for news", file.name)
        if not piece:
            break
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)  # a single piece is not copied


def _require_content(target: Path, was: bytes) -> None:
    if _size_of_regular_file(target) != len(was) or read_bytes(target, max_bytes=len(was)) != was:
        raise FileChanged(target)


def _require_writable(target: Path) -> None:
    # A rename needs no right on the file itself, but a read-only file was made so by somebody.
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _require_folder(folder: Path) -> None:
    if not stat.S_ISDIR(folder.stat().st_mode):  # raises by itself when there is nothing
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def _renamed_into_place(target: Path, data: bytes) -> bool:
    """Put a new file in the place of `target`; False when only writing in place can do."""
    status = target.stat()
    if status.st_nlink > 1:
        return False
    try:
        temp = write_temp(target.parent, data, stat.S_IMODE(status.st_mode) & 0o600)
    except PermissionError:
        return False
    try:
        if not _copy_attributes(target, temp, status):
            temp.unlink()
            return False
        temp.replace(target)
    except OSError as error:
        temp.unlink(missing_ok=True)
        if error.errno in _NO_RENAME:
            return False
        raise
    sync_folder(target.parent)
    return True


def _copy_attributes(source: Path, temp: Path, status: os.stat_result) -> bool:
    """Have `temp` belong to whom and allow what `source` does; False when that cannot be."""
    made = temp.stat()
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.chown(temp, status.st_uid, status.st_gid)
        except PermissionError:  # only root may give files away
            return False
    # After chown, which takes the set-user-id bit away.
    temp.chmod(stat.S_IMODE(status.st_mode))
    if not hasattr(os, "listxattr"):  # Linux only; access lists are among them
        return True
    return all(_has_attribute(source, temp, name) for name in os.listxattr(source))


def _has_attribute(source: Path, temp: Path, name: str) -> bool:
    value = os.getxattr(source, name)
    try:
        os.setxattr(temp, name, value)
    except OSError:
        # Some belong to the system, which gives each new file the same or its own.
        return not name.startswith(("user.", "system.posix_acl"))
    return True


def _write_in_place(target: Path, data: bytes, was: bytes, journal: Journal | None) -> None:
    with target.open("r+b", buffering=0) as file, _kept(journal, target, was, data):
        try:
            overwrite(file.fileno(), data)
        except OSError:
            overwrite(file.fileno(), was)
            raise


def _kept(
    journal: Journal | None, target: Path, old: bytes, new: bytes
) -> AbstractContextManager[None]:
    return nullcontext() if journal is None else journal.keeping(target, old, new)
