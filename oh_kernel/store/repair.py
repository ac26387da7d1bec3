"""How is a damaged database replaced by a new one that holds every row still readable?

The rows are carved into a new file beside it. When that is complete and synced it gets the name
`FILE.repaired-STAMP`; from then on the swap can only go forward, also after a crash in the middle:
the damaged file with its journals becomes `FILE.damaged-STAMP`, the new one takes its place.
Nothing is deleted and no event gets another index.
"""

import contextlib
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

from oh_kernel.errors import StoreError
from oh_kernel.store import blobs, schema
from oh_kernel.store.carve import Pages, Row
from oh_kernel.store.damage import RepairReport
from oh_kernel.store.lockfile import LockFile, read_marks
from oh_kernel.store.losses import move_on
from oh_kernel.store.rows import checksum

LOCK_WAIT_S = 30.0
PAGE_SIZES = (schema.PAGE_SIZE, *schema.OLDER_PAGE_SIZES)
_JOURNALS = ("-wal", "-shm", "-journal")
_REPAIRED, _DAMAGED = ".repaired-", ".damaged-"

_EVENT_ROW = f"INSERT OR REPLACE INTO events VALUES ({', '.join('?' * schema.EVENT_COLUMNS)})"
_BLOB_ROW = "INSERT OR IGNORE INTO blobs (hash, text) VALUES (?, CAST(? AS TEXT))"
_CONVERSATION_ROW = (
    f"INSERT INTO conversations VALUES ({', '.join('?' * schema.CONVERSATION_COLUMNS)})"
)
_KEEP_NEWER = """
ON CONFLICT (number) DO UPDATE SET
    (updated_at, last_timestamp, next_index, lost, title, workspace, notebook, status, model, meta,
     writer_token, writer, writer_beat) =
    (excluded.updated_at, excluded.last_timestamp, excluded.next_index, excluded.lost,
     excluded.title, excluded.workspace, excluded.notebook, excluded.status, excluded.model,
     excluded.meta, excluded.writer_token, excluded.writer, excluded.writer_beat)
WHERE (excluded.next_index, excluded.updated_at) > (next_index, updated_at)
ON CONFLICT DO NOTHING
"""
# A conversation whose own row is gone is made again from what its events say.
_ADOPT_EVENTS = """
INSERT OR IGNORE INTO conversations (number, id, created_at, updated_at)
SELECT seq >> 32, conversation, min(timestamp), max(timestamp) FROM events
WHERE seq >> 32 NOT IN (SELECT number FROM conversations) GROUP BY seq >> 32
"""
_COUNT_AGAIN = """
UPDATE conversations SET
    next_index = max(next_index, 1 + coalesce((SELECT max(seq) & 0xffffffff FROM events
        WHERE seq BETWEEN number << 32 AND number << 32 | 0xffffffff), -1)),
    bytes = coalesce((SELECT sum(length(CAST(text AS BLOB))) FROM events
        WHERE seq BETWEEN number << 32 AND number << 32 | 0xffffffff), 0),
    last_timestamp = max(last_timestamp, coalesce((SELECT max(timestamp) FROM events
        WHERE seq BETWEEN number << 32 AND number << 32 | 0xffffffff), ''))
"""
_COUNT_LOST = """
UPDATE conversations SET lost = next_index - (SELECT count(*) FROM events
    WHERE seq BETWEEN number << 32 AND number << 32 | 0xffffffff)
RETURNING id, lost
"""


@contextlib.contextmanager
def repair_lock(path: Path) -> Iterator[None]:
    """Let one process at a time repair this database; waits for another that does."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            lock = LockFile(path.parent / "locks" / f"{path.name}.repairing")
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"Another process has been repairing {path} for {LOCK_WAIT_S:.0f} s.",
                    remedy="Wait for it to end and try again.",
                ) from None
            time.sleep(0.05)
    try:
        yield
    finally:
        lock.close()


def repair(path: Path, connection: sqlite3.Connection | None) -> RepairReport:
    """Replace the database; the caller holds the repair lock and opens the file again.

    `connection` (closed here) keeps other writers out meanwhile, if the damage lets it.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    fresh = path.with_name(f"{path.name}.repairing")
    fresh.unlink(missing_ok=True)
    with Pages(path, _beside(path, "-wal"), PAGE_SIZES) as pages:
        schema.refuse_newer(pages.user_version())
        if connection:
            with contextlib.suppress(sqlite3.DatabaseError):
                connection.execute("BEGIN IMMEDIATE")
        report = _salvage(pages, path, fresh)
        fresh.rename(path.with_name(path.name + _REPAIRED + stamp))
        report.put_aside = finish_swap(path)
        if connection:
            connection.close()
    return report


def repair_is_waiting(path: Path) -> bool:
    """Whether a repair was completed but its result not yet put in place."""
    return any(path.parent.glob(f"{escape(path.name)}{_REPAIRED}*"))


def finish_swap(path: Path) -> Path | None:
    """Put a completed repair, if there is one, in place; gives the damaged file's new name."""
    waiting = sorted(path.parent.glob(f"{escape(path.name)}{_REPAIRED}*"))
    if not waiting:
        return None
    repaired = waiting[-1]
    aside = path.with_name(repaired.name.replace(_REPAIRED, _DAMAGED))
    for suffix in (*_JOURNALS, ""):
        with contextlib.suppress(FileNotFoundError):
            _beside(path, suffix).rename(_beside(aside, suffix))
    repaired.rename(path)
    _sync_folder(path.parent)
    return aside


def unsaved_events(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the WAL still holds events that SQLite did not take from it: those after a bad frame.

    Asked only when events are known to be missing, and before anything is written.
    """
    with Pages(None, _beside(path, "-wal"), PAGE_SIZES) as pages:
        seqs = {row.number for row in pages.rows() if _is_event(row)}
    known = "SELECT 1 FROM events WHERE seq = ?"
    return any(connection.execute(known, (seq,)).fetchone() is None for seq in seqs)


def _salvage(pages: Pages, path: Path, fresh: Path) -> RepairReport:
    fresh.touch(mode=0o600)
    connection = sqlite3.connect(fresh, isolation_level=None)
    try:
        connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
        connection.execute("PRAGMA synchronous = FULL")
        schema.migrate(connection)
        connection.execute("BEGIN")
        connection.execute("UPDATE store SET value = '' WHERE key = 'id'")
        before = dict(_insert_rows(connection, pages))
        connection.execute(_ADOPT_EVENTS)
        _apply_marks(connection, path)
        connection.execute(_COUNT_AGAIN)
        now = dict(connection.execute(_COUNT_LOST).fetchall())
        count = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        connection.execute("COMMIT")
    finally:
        connection.close()
    lost = {name: n - before.get(name, 0) for name, n in now.items() if n > before.get(name, 0)}
    return RepairReport(conversations=len(now), events_saved=count, lost=lost)


def _insert_rows(connection: sqlite3.Connection, pages: Pages) -> list[tuple[str, int]]:
    for row in pages.rows():
        # A row that only looks like one of ours breaks a constraint or cannot be decoded.
        with contextlib.suppress(sqlite3.IntegrityError, UnicodeDecodeError):
            _insert_row(connection, row)
    return connection.execute("SELECT id, lost FROM conversations").fetchall()


def _insert_row(connection: sqlite3.Connection, row: Row) -> None:
    match len(row.values):
        case schema.EVENT_COLUMNS if _is_event(row):
            connection.execute(_EVENT_ROW, (row.number, *_decoded(row)))
        case schema.CONVERSATION_COLUMNS:
            connection.execute(_CONVERSATION_ROW + _KEEP_NEWER, (row.number, *_decoded(row)))
        case schema.BLOB_COLUMNS if _is_blob(row):
            connection.execute(_BLOB_ROW, row.values[1:])
        case schema.STORE_COLUMNS if row.values[0] == b"id":
            connection.execute("UPDATE store SET value = ? WHERE key = 'id'", _decoded(row))


def _decoded(row: Row) -> list[int | float | str | None]:
    return [value.decode() if isinstance(value, bytes) else value for value in row.values[1:]]


def _is_event(row: Row) -> bool:
    if len(row.values) != schema.EVENT_COLUMNS:
        return False
    crc, pieces, text = row.values[6:]
    if not isinstance(text, bytes) or not isinstance(pieces, bytes | None):
        return False
    return checksum(text, pieces or b"") == crc


def _is_blob(row: Row) -> bool:
    _, digest, text = row.values
    return isinstance(text, bytes) and blobs.digest(text) == digest


def _apply_marks(connection: sqlite3.Connection, path: Path) -> None:
    """Give each conversation the next index its lock file remembers, if that is of this store."""
    marks = read_marks(path).values()
    store_id = schema.store_id(connection)
    if not store_id:
        # Its row is gone, or the whole file is empty: the marks were made for this very file.
        store_id = next((mark.store_id for mark in marks), uuid.uuid4().hex)
        connection.execute("UPDATE store SET value = ? WHERE key = 'id'", (store_id,))
    for mark in marks:
        if mark.store_id == store_id and mark.next_index:
            move_on(connection, mark)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
