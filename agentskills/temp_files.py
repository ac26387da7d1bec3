"""How is content written whole, and on the disk, before a file's name leads to it?

On Linux the content is first written to a file without a name, so that a process that is killed
leaves nothing behind in the folder.
"""

import contextlib
import errno
import os
import secrets
from pathlib import Path

# What a file system says that knows no files without a name.
_ALWAYS_NAMED = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS}
_NO_HARD_LINKS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}


def write_temp(folder: Path, data: bytes, mode: int) -> Path:
    """A new file in `folder` that holds `data`, flushed to the disk."""
    temp = folder / f".agentskills-{secrets.token_hex(6)}.tmp"
    if not _written_nameless(temp, data, mode):
        _write_named(temp, data, mode)
    return temp


def write_new(target: Path, data: bytes, mode: int) -> None:
    """Write a file, never replacing one that came into being meanwhile (FileExistsError)."""
    if not _written_nameless(target, data, mode):
        _give_name(write_temp(target.parent, data, mode), target)


def overwrite(handle: int, data: bytes) -> None:
    """Have an open file hold `data` and nothing else, flushed to the disk."""
    view, written = memoryview(data), 0
    while written < len(data):
        written += os.pwrite(handle, view[written:], written)
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make a new name durable; not every file system can, and the content is safe already."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _written_nameless(target: Path, data: bytes, mode: int) -> bool:
    """Write first and name afterwards; False where that cannot be done."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    try:
        handle = os.open(target.parent, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _ALWAYS_NAMED:
            return False
        raise
    try:
        overwrite(handle, data)
        return _named(handle, target)
    finally:
        os.close(handle)


def _named(handle: int, target: Path) -> bool:
    folder = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Its place in /proc is a link, to be followed; that Python does only between folders' fds.
        os.link(f"/proc/self/fd/{handle}", target.name, dst_dir_fd=folder, follow_symlinks=True)
    except FileExistsError:
        raise
    except OSError:  # no /proc in this sandbox, or no links on this file system
        return False
    finally:
        os.close(folder)
    return True


def _give_name(temp: Path, target: Path) -> None:
    try:
        os.link(temp, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        temp.rename(target)
    finally:
        temp.unlink(missing_ok=True)


def _write_named(temp: Path, data: bytes, mode: int) -> None:
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            overwrite(handle, data)
        finally:
            os.close(handle)
    except BaseException:  # also an interrupt: no litter in the user's folder
        temp.unlink(missing_ok=True)
        raise
