"""How is the database file opened, shared with other processes, and replaced when damaged?

`Database.read` and `Database.write` run a function on the one connection. Both notice three things
and try again: another process holds the file (for a bounded time), the file was replaced by another
process's repair (its inode changed), and the file is damaged (it is repaired first).

Damage is looked for where it is cheap. A small file is checked whole at opening, a larger one only
after an unclean end (its WAL was left behind), and a very large one never: what a check would find
shows at the first read of the bad page, because SQLite refuses the page or the row's checksum does
not fit, and then it is repaired just the same.
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from oh_kernel.errors import StoreError
from oh_kernel.store import schema
from oh_kernel.store.damage import (
    DamagedRow,
    RepairReport,
    is_busy,
    is_damage,
    is_moved,
    require_binary,
    unusable,
)
from oh_kernel.store.filesystem import JournalMode, journal_mode_for, make_private
from oh_kernel.store.lockfile import Mark
from oh_kernel.store.losses import marks_ahead, record_losses, was_emptied
from oh_kernel.store.repair import (
    finish_swap,
    repair,
    repair_is_waiting,
    repair_lock,
    unsaved_events,
)

BUSY_TRY_MS = 25
BUSY_LIMIT_S = 20.0
MAX_REPAIRS = 3
CHECKPOINT_PAGES = 1000  # 16 MB; each checkpoint waits for the disk twice
JOURNAL_KEPT_BYTES = 16 << 20
CHECK_ALWAYS_BYTES = 8 << 20
CHECK_AFTER_CRASH_BYTES = 64 << 20

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class _FileReplaced(sqlite3.OperationalError):
    """The path leads to another file than the one that is open."""


class Database:
    """One connection to one file. Any thread may call it; `lock` guards every attribute."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        journal: JournalMode | None = None,
        on_reopen: Work[None] | None = None,
    ) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.report: RepairReport | None = None
        self.store_id = ""
        self.read_only = read_only
        self._journal = journal
        self._on_reopen = on_reopen
        self._pid = os.getpid()
        self._closed = False
        self._repairs_left = MAX_REPAIRS
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)
        self._patiently(self._connected)

    def read(self, work: Work[T]) -> T:
        """What `work` returns; it must not write. It may be called more than once."""
        return self._patiently(lambda: self._look(work))

    def write(self, work: Work[T], *, full_sync: bool = False) -> T:
        """What `work` returns, committed. It may be called more than once, so it changes nothing
        but the database."""
        return self._patiently(lambda: self._transact(work, full_sync))

    async def write_async(self, work: Work[T], *, full_sync: bool = False) -> T:
        """`write` for an event loop: a try is short, the waits between tries are awaited.

        A commit that waits for the disk (`full_sync`) is handed to a thread.
        """
        pauses = _pauses(self.path)
        while True:
            with contextlib.suppress(_Busy):
                if full_sync:
                    return await asyncio.to_thread(self._try, lambda: self._transact(work, True))
                return self._try(lambda: self._transact(work, False))
            await asyncio.sleep(next(pauses))

    def run_outside_transaction(self, statement: str) -> None:
        """Run a statement that SQLite allows only outside a transaction (VACUUM, a checkpoint)."""
        self._patiently(lambda: self._connected().execute(statement).fetchall())

    def account_for(self, mark: Mark | None) -> None:
        """Count the events as lost that this mark tells of and the database does not hold."""
        if mark is None or mark.store_id != self.store_id:
            return
        lost = self.write(lambda connection: record_losses(connection, [mark]))
        if lost:
            self._add_to_report(RepairReport(lost=lost))

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self.lock:
            self._closed = True
            self._drop_connection()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    def _patiently(self, attempt: Callable[[], T]) -> T:
        pauses = _pauses(self.path)
        while True:
            with contextlib.suppress(_Busy):
                return self._try(attempt)
            time.sleep(next(pauses))

    def _try(self, attempt: Callable[[], T]) -> T:
        with self.lock:
            try:
                return attempt()
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                self._recover_from(error)
                raise _Busy from error
            except OSError as error:
                raise unusable(self.path, error) from error

    def _recover_from(self, error: Exception) -> None:
        """Make the next try possible, or raise an error if trying again cannot help."""
        if isinstance(error, _FileReplaced) or is_moved(error):
            self._drop_connection()
        elif is_damage(error):
            self._repair(error)
        elif isinstance(error, sqlite3.OperationalError) and not is_busy(error):
            raise unusable(self.path, error) from error
        elif not is_busy(error):
            raise error

    def _repair(self, error: Exception) -> None:
        if self.read_only or self._repairs_left == 0:
            raise StoreError(
                f"The event log {self.path} is damaged: {error}.",
                remedy="Open it for writing to have it repaired; if it was, check the disk.",
            ) from error
        require_binary(self.path)
        self._repairs_left -= 1
        with repair_lock(self.path):
            if self._was_repaired_elsewhere():
                self._drop_connection()
                return
            try:
                found = repair(self.path, self._connection)
            except (OSError, sqlite3.Error) as failure:  # the disk is full, or fails
                self._drop_connection()
                raise unusable(self.path, failure) from error
            self._connection = None
            self._add_to_report(found)

    def _was_repaired_elsewhere(self) -> bool:
        if self._connection is None:
            return not was_emptied(self.path)
        return _identity(self.path) != self._identity

    def _look(self, work: Work[T]) -> T:
        connection = self._connected()
        self._require_same_file()
        return work(connection)

    def _transact(self, work: Work[T], full_sync: bool) -> T:
        connection = self._connected()
        if full_sync:
            connection.execute("PRAGMA synchronous = FULL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._require_same_file()
            result = work(connection)
            connection.execute("COMMIT")
            return result
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if full_sync:
                connection.execute("PRAGMA synchronous = NORMAL")

    def _connected(self) -> sqlite3.Connection:
        if self._closed or os.getpid() != self._pid:
            raise StoreError(
                f"The event log {self.path} is not open in this process.",
                remedy="Open it here; a store does not outlive its close() nor a fork.",
            )
        return self._connection or self._open()

    def _require_same_file(self) -> None:
        # A write asks inside its transaction: a repair holds the write lock until the swap is done.
        if _identity(self.path) != self._identity:
            raise _FileReplaced("the database file was replaced")

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        # A forked child must not touch the connection: closing it would drop the parent's locks.
        if connection and os.getpid() == self._pid:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        crashed = False
        if not self.read_only:
            crashed = self._prepare_file()
        # Asked before opening: a file replaced in between is then opened twice, never overlooked.
        self._identity = _identity(self.path)
        self._connection = connection = self._connect()
        try:
            if self.read_only:
                schema.require_readable(connection)
            else:
                self._prepare(connection, crashed)
        except BaseException as error:
            # A repair wants the connection, to keep others from writing meanwhile.
            if not is_damage(error):
                self._drop_connection()
            raise
        return connection

    def _prepare_file(self) -> bool:
        """Make the file, finish a repair that was cut short; whether the last end was unclean."""
        if repair_is_waiting(self.path):
            with repair_lock(self.path):
                finish_swap(self.path)
        if was_emptied(self.path):
            # SQLite would take the empty file for a new one and delete the WAL beside it.
            raise DamagedRow("the file is empty, although events were stored in it")
        make_private(self.path)
        return _size(self.path.with_name(f"{self.path.name}-wal")) > 0

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self.read_only else "rw"
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TRY_MS / 1000,
        )

    def _prepare(self, connection: sqlite3.Connection, crashed: bool) -> None:
        schema.read_version(connection)  # before anything is written to a file of somebody else
        journal = self._journal or journal_mode_for(self.path.parent)
        connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_KEPT_BYTES}")
        connection.execute("PRAGMA synchronous = NORMAL")
        # What is deleted is overwritten: it is private, and a repair must not find it again.
        connection.execute("PRAGMA secure_delete = ON")
        if schema.migrate(connection):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if not schema.is_intact(connection):
            raise DamagedRow("the declaration of a table was changed")
        self._check(connection, crashed)
        self.store_id = schema.store_id(connection)
        self._look_for_losses(connection)
        if self._on_reopen:
            self._on_reopen(connection)

    def _check(self, connection: sqlite3.Connection, crashed: bool) -> None:
        if _size(self.path) > (CHECK_AFTER_CRASH_BYTES if crashed else CHECK_ALWAYS_BYTES):
            return
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise DamagedRow(str(answer))

    def _look_for_losses(self, connection: sqlite3.Connection) -> None:
        ahead = marks_ahead(connection, self.path, self.store_id)
        if not ahead:
            return
        if unsaved_events(self.path, connection):
            raise DamagedRow("the write-ahead log has a bad frame")
        self._add_to_report(RepairReport(lost=record_losses(connection, ahead)))

    def _add_to_report(self, found: RepairReport) -> None:
        self.report = self.report.add(found) if self.report else found


class _Busy(Exception):
    """Another try may succeed."""


def _pauses(path: Path) -> Iterator[float]:
    """How long to wait after each failed try; in the end StoreError."""
    deadline = time.monotonic() + BUSY_LIMIT_S
    pause_s = 0.001
    while time.monotonic() < deadline:
        yield pause_s
        pause_s = min(pause_s * 2, 0.1)
    raise StoreError(
        f"The event log {path} was held by another process for {BUSY_LIMIT_S:.0f} s.",
        remedy="Find the process that holds it (a backup, an open sqlite3 shell) and try again.",
    )


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
