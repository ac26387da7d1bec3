"""How does an event become rows, and rows the event's JSON again, byte for byte?"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self
from zlib import crc32

from oh_kernel.errors import DuplicateEvent, InvalidQuery
from oh_kernel.events import Event
from oh_kernel.store.blobs import cut, join, pieces_from_json, pieces_to_json
from oh_kernel.store.blobs import digest as digest_of
from oh_kernel.store.damage import DamagedRow
from oh_kernel.store.queries import Wanted, utc_text
from oh_kernel.store.schema import INDEX_BITS, INDEX_MASK

PAGE_ROWS = 200

_COLUMNS = "seq, crc, pieces, CAST(text AS BLOB)"
_BY_ID = f"""
SELECT events.id, {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN events
ON events.id = wanted.value AND seq >> 32 = ?
"""
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, CAST(? AS TEXT))"
_INSERT_BLOB = "INSERT OR IGNORE INTO blobs (hash, text) VALUES (?, CAST(? AS TEXT))"


class EventRow(NamedTuple):
    """An event, ready to be inserted: worked out before the transaction begins."""

    id: str
    kind: str
    source: str
    timestamp: str
    text: bytes
    pieces: str | None
    blobs: dict[bytes, bytes]
    size: int

    @classmethod
    def of(cls, event: Event) -> Self:
        """The row of an event. A lone surrogate, which UTF-8 cannot hold, becomes a JSON escape."""
        whole = event.to_json().encode("utf-8", "backslashreplace")
        text, pieces, blobs = cut(whole)
        return cls(
            event.id,
            event.kind,
            event.source,
            sortable(event.timestamp),
            text,
            pieces_to_json(pieces),
            blobs,
            len(whole),
        )

    def insert(
        self, connection: sqlite3.Connection, conversation_id: str, number: int, index: int
    ) -> None:
        """Write the event under this index; raises DuplicateEvent if its id is taken."""
        connection.executemany(_INSERT_BLOB, self.blobs.items())
        values = (
            number << INDEX_BITS | index,
            conversation_id,
            self.id,
            self.kind,
            self.source,
            self.timestamp,
            checksum(self.text, (self.pieces or "").encode()),
            self.pieces,
            self.text,
        )
        try:
            connection.execute(_INSERT, values)
        except sqlite3.IntegrityError:
            taken = index_of(connection, number, self.id)
            if taken is None:
                raise
            raise DuplicateEvent(
                f"Event {self.id} is already stored in conversation {conversation_id}"
                f" at index {taken}.",
                remedy="Each event is appended once; a copy needs an id of its own.",
            ) from None


def sortable(timestamp: str) -> str:
    """A timestamp as ours are written, so that it can be compared; one that is no time stays.

    The event itself keeps what it came with. A time without a zone is taken for UTC.
    """
    if len(timestamp) == 26 and timestamp[19] == ".":
        return timestamp
    try:
        return utc_text(timestamp)
    except InvalidQuery:
        return timestamp


def checksum(text: bytes, pieces: bytes) -> int:
    """What tells whether a row is as it was written."""
    return crc32(pieces, crc32(text))


def index_of(connection: sqlite3.Connection, number: int, event_id: str) -> int | None:
    """The index of an event in the conversation with this number."""
    row = connection.execute(
        "SELECT seq FROM events WHERE id = ? AND seq >> 32 = ?", (event_id, number)
    ).fetchone()
    return row[0] & INDEX_MASK if row else None


class Stretch(NamedTuple):
    """Some consecutive events of a conversation: those from `start` up to before `stop`."""

    conversation_id: str
    start: int
    stop: int
    backwards: bool = False


def read_page(
    connection: sqlite3.Connection, number: int, start: int, stop: int
) -> list[tuple[int, str]]:
    """Index and JSON of the first events from `start` up to before `stop`, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM events WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?",
        (number << INDEX_BITS | start, number << INDEX_BITS | stop, PAGE_ROWS),
    )
    return list(_whole(connection, rows.fetchall()))


def read_wanted(
    connection: sqlite3.Connection, stretch: Stretch, wanted: Wanted
) -> list[tuple[str, str]]:
    """Id and JSON of the events of a stretch that SQL finds wanted, in its order."""
    direction = "DESC" if stretch.backwards else "ASC"
    rows = connection.execute(
        f"SELECT id, {_COLUMNS} FROM events JOIN"
        " (SELECT number << 32 AS base FROM conversations WHERE id = ?)"
        f" WHERE seq >= base + ? AND seq < base + ?{wanted.where} ORDER BY seq {direction}",
        (stretch.conversation_id, stretch.start, stretch.stop, *wanted.parameters),
    ).fetchall()
    texts = _whole(connection, [row[1:] for row in rows])
    return [(row[0], text) for row, (_, text) in zip(rows, texts, strict=True)]


def read_by_id(connection: sqlite3.Connection, number: int, ids: Sequence[str]) -> list[str | None]:
    """The JSON of each event asked for; None where there is no such event."""
    rows = connection.execute(_BY_ID, (json.dumps(list(set(ids))), number)).fetchall()
    texts = _whole(connection, [row[1:] for row in rows])
    found = {row[0]: text for row, (_, text) in zip(rows, texts, strict=True)}
    return [found.get(event_id) for event_id in ids]


def _whole(
    connection: sqlite3.Connection, rows: Iterable[tuple[int, int, str | None, bytes]]
) -> Iterator[tuple[int, str]]:
    texts: dict[bytes, bytes] = {}

    def find(digest: bytes) -> bytes:
        if digest not in texts:
            texts[digest] = _blob(connection, digest)
        return texts[digest]

    for seq, crc, pieces, text in rows:
        # Written out for speed: most events have no pieces, and a log has many events.
        if (checksum(text, pieces.encode()) if pieces else crc32(text)) != crc:
            raise DamagedRow(f"the checksum of event {seq & INDEX_MASK} does not fit")
        whole = join(text, pieces_from_json(pieces), find) if pieces else text
        yield seq & INDEX_MASK, whole.decode()


def _blob(connection: sqlite3.Connection, digest: bytes) -> bytes:
    row = connection.execute(
        "SELECT CAST(text AS BLOB) FROM blobs WHERE hash = ?", (digest,)
    ).fetchone()
    if row is None:
        return b""  # lost in damage that was repaired; the event stands without this text
    if digest_of(row[0]) != digest:
        raise DamagedRow("the checksum of a text does not fit")
    return bytes(row[0])
