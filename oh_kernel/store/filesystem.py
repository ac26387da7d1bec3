"""Where may the database lie, and which SQLite journal suits that file system?

WAL needs memory shared by all who open the file, which network file systems cannot give between
hosts. SQLite does not notice and says "wal" all the same, so the type of the mount decides here.
"""

import re
from pathlib import Path
from typing import Literal

JournalMode = Literal["wal", "delete"]

PROC_MOUNTS = Path("/proc/mounts")
NETWORK_TYPES = frozenset(
    [
        *("9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse", "gfs", "gfs2"),
        *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2"),
        *("smb2", "smb3", "smbfs", "vboxsf", "virtiofs"),
    ]
)


def journal_mode_for(folder: Path, mounts: Path = PROC_MOUNTS) -> JournalMode:
    """The rollback journal on network (and all FUSE) mounts, WAL on local ones.

    Systems without `/proc/mounts` offer no portable question for the type and count as local.
    """
    kind = filesystem_type(folder, mounts)
    remote = kind in NETWORK_TYPES or kind.startswith("fuse.")
    return "delete" if remote else "wal"


def filesystem_type(folder: Path, mounts: Path = PROC_MOUNTS) -> str:
    """The type that the mount table gives for the mount holding `folder`; "" if there is none."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    where, best, kind = folder.resolve(), -1, ""
    for line in lines:
        _, mount_point, mount_type, *_ = (*line.split(" "), "", "", "")
        point = Path(_unescape(mount_point))
        # Later lines lie over earlier ones at the same place, hence >=.
        if mount_point and where.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), mount_type
    return kind


def make_private(path: Path) -> None:
    """Make `path` an existing file that only its owner reads, in a folder only its owner enters.

    A folder or file that was there before keeps its rights: they are its owner's choice.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)
