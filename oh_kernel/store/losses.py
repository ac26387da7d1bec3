"""Which events are gone without a trace in the database, and known only by the lock files' marks?

SQLite takes a write-ahead log that was cut or removed for a shorter history and says nothing. The
mark of each conversation remembers the next index. Checked are the conversations used last, and
all of them when there are more lock files than conversations.
"""

import sqlite3
from pathlib import Path

from oh_kernel.events import utc_now
from oh_kernel.store.lockfile import Mark, count_lock_files, lock_path, read_mark, read_marks

RECENT = 20


def was_emptied(path: Path) -> bool:
    """Whether the file is empty or missing while its WAL, or marks of its events, are still there.

    A missing file with marks alone is a log that somebody removed, and begins anew.
    """
    exists = path.exists()
    if exists and path.stat().st_size:
        return False
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        return True
    return exists and any(mark.next_index for mark in read_marks(path).values())


def marks_ahead(connection: sqlite3.Connection, path: Path, store_id: str) -> list[Mark]:
    """The marks that tell of more events than the database holds."""
    ahead = (mark for mark in _marks_to_check(connection, path) if mark.store_id == store_id)
    # A living writer commits first and marks then, so a row read after its mark is never behind it.
    return [mark for mark in ahead if mark.next_index > _next_index(connection, mark)]


def record_losses(connection: sqlite3.Connection, ahead: list[Mark]) -> dict[str, int]:
    """Move each conversation on to its mark; gives how many events each one lost."""
    lost: dict[str, int] = {}
    for mark in ahead:
        missing = mark.next_index - _next_index(connection, mark)
        if missing > 0:
            lost[mark.conversation_id] = missing
            move_on(connection, mark)
    return lost


def move_on(connection: sqlite3.Connection, mark: Mark) -> None:
    """Have the conversation (made if need be) go on at the mark; what is skipped counts as lost."""
    now = utc_now()
    connection.execute(
        "INSERT INTO conversations (id, created_at, updated_at, next_index, lost)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
        " SET lost = lost + max(0, excluded.next_index - next_index),"
        " next_index = max(next_index, excluded.next_index)",
        (mark.conversation_id, now, now, mark.next_index, mark.next_index),
    )


def _marks_to_check(connection: sqlite3.Connection, path: Path) -> list[Mark]:
    known = connection.execute("SELECT count(*) FROM conversations").fetchone()[0]
    if count_lock_files(path) > known:
        return list(read_marks(path).values())
    recent = connection.execute(
        "SELECT id FROM conversations ORDER BY updated_at DESC LIMIT ?", (RECENT,)
    )
    marks = (read_mark(lock_path(path, name)) for (name,) in recent.fetchall())
    return [mark for mark in marks if mark]


def _next_index(connection: sqlite3.Connection, mark: Mark) -> int:
    row = connection.execute(
        "SELECT next_index FROM conversations WHERE id = ?", (mark.conversation_id,)
    ).fetchone()
    return int(row[0]) if row else 0
