"""Which conversations are stored, how large are they, and which may go?"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from oh_kernel.events import utc_now
from oh_kernel.store import edits
from oh_kernel.store.blobs import pieces_from_json
from oh_kernel.store.schema import INDEX_BITS

SETTABLE = ("title", "workspace", "notebook", "status", "model")

COLUMNS = (
    "id, created_at, updated_at, last_timestamp, next_index - lost, lost, bytes,"
    " title, workspace, notebook, status, model, meta"
)


@dataclass(frozen=True)
class ConversationInfo:
    """What the list of conversations tells about one. `size_bytes` is that of its events' JSON."""

    id: str
    created_at: str
    updated_at: str
    last_timestamp: str
    events: int
    events_lost: int
    size_bytes: int
    title: str
    workspace: str
    notebook: str
    status: str
    model: str
    meta: dict[str, Any]


@dataclass(frozen=True)
class PruneReport:
    """What a prune took away, and which conversations it left because they are being written."""

    deleted: tuple[str, ...]
    in_use: tuple[str, ...]
    bytes_before: int
    bytes_after: int


def make(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Make the conversation's row unless it is there."""
    now = utc_now()
    connection.execute(
        "INSERT INTO conversations (id, created_at, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        (conversation_id, now, now),
    )


def number_of(connection: sqlite3.Connection, conversation_id: str) -> int | None:
    """The number by which events name their conversation; None when it is not stored."""
    row = connection.execute(
        "SELECT number FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    return int(row[0]) if row else None


def next_index(connection: sqlite3.Connection, conversation_id: str) -> int:
    """The index that the conversation's next event gets; 0 when it is not stored."""
    row = connection.execute(
        "SELECT next_index FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    return int(row[0]) if row else 0


def one(connection: sqlite3.Connection, conversation_id: str) -> ConversationInfo | None:
    """What is known of one conversation; None when it is not stored."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    return info_of(row) if row else None


def info_of(row: tuple[Any, ...]) -> ConversationInfo:
    """What the columns COLUMNS of a row tell."""
    return ConversationInfo(*(*row[:-1], json.loads(row[-1])))


def newest(
    connection: sqlite3.Connection, limit: int, offset: int, notebook: str | None
) -> list[ConversationInfo]:
    """The conversations used last, newest first, of one notebook or of all.

    There is no index by time: each append would have to write it, and looking through 10,000 rows
    takes a few milliseconds.
    """
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE number IN (SELECT number FROM conversations"
        " WHERE :notebook IS NULL OR notebook = :notebook"
        " ORDER BY updated_at DESC, number DESC LIMIT :limit OFFSET :offset)"
        " ORDER BY updated_at DESC, number DESC",
        {"notebook": notebook, "limit": limit, "offset": offset},
    )
    return [info_of(row) for row in rows.fetchall()]


def set_meta(
    connection: sqlite3.Connection,
    conversation_id: str,
    columns: dict[str, str | None],
    meta: dict[str, Any] | None,
) -> None:
    """Change the named columns (None leaves one as it is) and merge `meta`; None deletes a key."""
    make(connection, conversation_id)
    for name in SETTABLE:
        if (value := columns.get(name)) is not None:
            connection.execute(
                f"UPDATE conversations SET {name} = ? WHERE id = ?", (value, conversation_id)
            )
    connection.execute(
        "UPDATE conversations SET updated_at = ?, meta = json_patch(meta, ?) WHERE id = ?",
        (utc_now(), json.dumps(meta or {}), conversation_id),
    )


def delete(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Delete a conversation, its events and edits. Texts that only it used go with `sweep`."""
    edits.delete(connection, conversation_id)
    number = number_of(connection, conversation_id)
    if number is None:
        return
    connection.execute(
        "DELETE FROM events WHERE seq >= ? AND seq < ?",
        (number << INDEX_BITS, (number + 1) << INDEX_BITS),
    )
    connection.execute("DELETE FROM conversations WHERE number = ?", (number,))


def sweep(connection: sqlite3.Connection) -> None:
    """Delete the texts that no event refers to, found by looking: a kept count could drift."""
    used = {
        piece.hash
        for (pieces,) in connection.execute("SELECT pieces FROM events WHERE pieces IS NOT NULL")
        for piece in pieces_from_json(pieces)
    }
    stored = connection.execute("SELECT number, hash FROM blobs").fetchall()
    unused = [(number,) for number, digest in stored if digest not in used]
    connection.executemany("DELETE FROM blobs WHERE number = ?", unused)


def outdated(
    infos: Iterable[ConversationInfo],
    older_than_days: float | None,
    keep: int | None,
    max_bytes: int | None,
) -> list[str]:
    """Which of these (newest first) a prune deletes: each limit that is given takes its share."""
    now = datetime.now(UTC)
    oldest = (
        (now - timedelta(days=older_than_days)).strftime("%Y-%m-%dT%H:%M:%S.%f")
        if (older_than_days is not None)
        else ""
    )
    total, gone = 0, []
    for place, info in enumerate(infos):
        total += info.size_bytes
        too_many = keep is not None and place >= keep
        too_large = max_bytes is not None and total > max_bytes
        if too_many or too_large or info.updated_at < oldest:
            gone.append(info.id)
    return gone
