"""Where do the edits of a conversation's files last, so that they can be undone after a restart?

A row holds the bytes that an edit replaced, not the file (see `agentskills.edit_history`). Damage
to the database may take these rows; then an old edit cannot be undone, and no event is lost.
"""

import os
import sqlite3
from pathlib import Path

from agentskills.edit_history import DEPTH, Edit, Kept
from oh_kernel.store.database import Database

_COLUMNS = "number, done, before, after, start, removed, added, mode"
_INSERT = (
    "INSERT INTO edits (conversation, path, before, after, start, removed, added, mode)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_LAST = f"""
SELECT {_COLUMNS} FROM edits WHERE conversation = ? AND path = ? ORDER BY number DESC LIMIT 1
"""
_FORGET_OLDEST = """
DELETE FROM edits WHERE conversation = :conversation AND path = :path AND number <= (
    SELECT number FROM edits WHERE conversation = :conversation AND path = :path
    ORDER BY number DESC LIMIT 1 OFFSET :depth)
"""


class StoredEdits:
    """The history of edits of one conversation. Any thread may call it."""

    def __init__(self, database: Database, conversation_id: str) -> None:
        self._database = database
        self._conversation = conversation_id

    def add(self, path: Path, edit: Edit) -> int:
        """Keep an edit that is about to be made; it has reached the disk then."""
        values = (edit.before, edit.after, edit.start, edit.removed, edit.added, edit.mode)

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(_INSERT, (self._conversation, os.fsencode(path), *values))
            return row.lastrowid or 0

        return self._database.write(work, full_sync=True)

    def confirm(self, path: Path, number: int) -> None:
        """The edit was made. The oldest beyond DEPTH are forgotten."""
        which = {"conversation": self._conversation, "path": os.fsencode(path), "depth": DEPTH}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE edits SET done = 1 WHERE number = ?", (number,))
            connection.execute(_FORGET_OLDEST, which)

        self._database.write(work)

    def drop(self, path: Path, number: int) -> None:
        """Forget an edit that was not made or was taken back."""
        self._database.write(
            lambda c: c.execute("DELETE FROM edits WHERE number = ?", (number,)).rowcount
        )

    def last(self, path: Path) -> Kept | None:
        """The newest edit of a file."""
        which = (self._conversation, os.fsencode(path))
        row = self._database.read(lambda c: c.execute(_LAST, which).fetchone())
        if row is None:
            return None
        number, done, *edit = row
        return Kept(number, Edit(*edit), bool(done))


def delete(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Forget the edits of a conversation."""
    connection.execute("DELETE FROM edits WHERE conversation = ?", (conversation_id,))
