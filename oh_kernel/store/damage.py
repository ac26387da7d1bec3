"""When does an error of SQLite mean a damaged file, and what is the user told of a repair?"""

import sqlite3
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from oh_kernel.errors import StoreError

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_NOT_UTF8 = "Could not decode to UTF-8"


class DamagedRow(sqlite3.DatabaseError):
    """A row came back, but not as it was written: its checksum does not fit."""


@dataclass
class RepairReport:
    """What a damaged event log still gave. The damaged file is kept under `put_aside`."""

    put_aside: Path | None = None
    conversations: int = 0
    events_saved: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def events_lost(self) -> int:
        """How many events are known to be gone, over all conversations."""
        return sum(self.lost.values())

    def add(self, later: "RepairReport") -> "RepairReport":
        """This and what was found later, as one report."""
        lost = dict(self.lost)
        for conversation_id, count in later.lost.items():
            lost[conversation_id] = lost.get(conversation_id, 0) + count
        newest = later if later.put_aside else self
        return RepairReport(newest.put_aside, newest.conversations, newest.events_saved, lost)

    def __str__(self) -> str:
        parts = []
        if self.put_aside:
            parts.append(
                f"The event log was damaged: {self.events_saved} events of {self.conversations}"
                f" conversations were saved into a new file. The old one is kept as"
                f" {self.put_aside}."
            )
        for conversation_id, count in self.lost.items():
            parts.append(f"{count} events of conversation {conversation_id} are lost.")
        return " ".join(parts) or "Nothing was lost."


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the file and a later try may succeed."""
    return _code(error) in _BUSY


def is_damage(error: BaseException) -> bool:
    """Whether the file, not the request, is at fault.

    Text that is not UTF-8 was not written by us; SQLite's own messages quote it, too.
    """
    if isinstance(error, sqlite3.OperationalError) and _NOT_UTF8 in str(error):
        return True  # raised by Python's module, without a code
    return isinstance(error, DamagedRow | UnicodeDecodeError) or _code(error) in _DAMAGED


def is_moved(error: BaseException) -> bool:
    """Whether SQLite found that the file no longer has its name."""
    return bool(getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED)


def require_binary(path: Path) -> None:
    """Raise if the file holds no zero byte, as every page of a database does: it is a text file,
    and to repair it would put it out of its owner's way.
    """
    try:
        with path.open("rb") as file:
            first = file.read(65_536)
            pieces = chain([first], iter(partial(file.read, 65_536), b""))
            if not first or any(b"\0" in piece for piece in pieces):
                return
    except FileNotFoundError:
        return  # it can only be made anew
    except OSError as error:
        raise unusable(path, error) from error
    raise StoreError(
        f"{path} is no event log but a text file; it was left as it is.",
        remedy="Set OPENHANDS_STORE_PATH to a file of its own.",
    )


def unusable(path: Path, error: Exception) -> StoreError:
    """What the user is told when neither waiting nor a repair can help."""
    return StoreError(
        f"The event log {path} cannot be used: {error}.",
        remedy="Check the disk and the rights of its folder, or set OPENHANDS_STORE_PATH.",
    )


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
