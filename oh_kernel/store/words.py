"""Where in all conversations does a text stand?

A file of its own beside the log (`FILE.words`) holds what was said in each event and an index of
that. It is made by the first search and brought up to date by each one, so that appending costs
nothing and a search never holds up a writer. It can be thrown away at any time, and is when it is
damaged or belongs to another log.

The index (FTS5, by three characters) only says where to look; each place found is then read. What
it does not have yet is read too: short words, a SQLite without FTS5, and texts that came since,
since indexing takes far longer than reading and each search does only a part of it.
"""

import contextlib
import sqlite3
import time
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from oh_kernel.errors import StoreError
from oh_kernel.events.text import clip
from oh_kernel.store.damage import DamagedRow, is_damage
from oh_kernel.store.database import BUSY_LIMIT_S, Database, Work
from oh_kernel.store.filesystem import make_private
from oh_kernel.store.hits import Hit, fold, snippet, spans_of
from oh_kernel.store.queries import Wanted
from oh_kernel.store.rows import Stretch, read_wanted, sortable
from oh_kernel.store.spoken import Spoken, spoken

VERSION = 1  # of this file's format; another one is made anew
MAX_CHARS = 4000  # of an event's text; what stands in the middle of a longer one is not found
INDEXING_S = 0.5  # for one search
GRAM, MAX_GRAMS = 3, 60
SOME = 500  # texts between two looks at the clock
STRETCH = 1000
EVERYTHING = Wanted()

T = TypeVar("T")

_ABOUT = "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value)"
_TABLES = (
    # Up to which event each conversation was taken over, and how many turns it had there.
    "CREATE TABLE IF NOT EXISTS taken"
    " (conversation INTEGER PRIMARY KEY, next INTEGER NOT NULL, turn INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS texts (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " conversation INTEGER NOT NULL, turn INTEGER NOT NULL, timestamp TEXT NOT NULL,"
    " text TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS texts_conversation ON texts (conversation)",
)
_INDEX = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS grams"
    " USING fts5 (text, content='', tokenize='trigram', detail=none)"
)
_ADD_TEXT = "INSERT INTO texts (conversation, turn, timestamp, text) VALUES (?, ?, ?, ?)"
_TAKEN = "INSERT OR REPLACE INTO taken VALUES (?, ?, ?)"
_ADD_GRAMS = "INSERT INTO grams (rowid, text) VALUES (?, ?)"
_DROP_GRAMS = "INSERT INTO grams (grams, rowid, text) VALUES ('delete', ?, ?)"
_CANDIDATES = """
SELECT number FROM texts WHERE number IN
    (SELECT number FROM texts WHERE number > ?
     UNION ALL SELECT rowid FROM grams WHERE grams MATCH ?)
ORDER BY timestamp DESC, number DESC
"""
_ALL = "SELECT number FROM texts ORDER BY timestamp DESC, number DESC"


class _Conversation(NamedTuple):
    id: str
    title: str
    next_index: int


class Words:
    """The texts of one log; without a path they are kept in memory, for one search.

    Used by one thread at a time; several processes may use one file.
    """

    def __init__(self, log: Database, path: Path | None, *, index: bool = True) -> None:
        self._log = log
        self._path = path
        self.has_index = index  # False: this SQLite cannot make one, or it is not wanted

    def find(self, words: Sequence[str], limit: int) -> list[Hit]:
        """The newest events that say all of these words, in any case."""
        wanted = [fold(word) for word in words if word]
        return self._with_file(lambda c: self._find(c, wanted, limit)) if wanted else []

    def forget(self) -> None:
        """Delete what the log does not hold any more, so that nothing of it is left in the file."""
        if self._path and self._path.exists():
            self._with_file(lambda c: _drop_all_but(c, _conversations(self._log)))

    def _with_file(self, work: Work[T]) -> T:
        try:
            try:
                return self._transact(work)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._throw_away()
                return self._transact(work)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The texts for searching, {self._path}, cannot be used: {error}.",
                remedy="Free some space on the disk, or delete that file: it is made anew.",
            ) from error

    def _transact(self, work: Work[T]) -> T:
        if self._path:
            make_private(self._path)
        connection = sqlite3.connect(
            self._path or ":memory:", isolation_level=None, timeout=BUSY_LIMIT_S
        )
        with contextlib.closing(connection):
            # What is deleted is overwritten. A file that a crash spoils is made anew.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            self._prepare(connection)
            result = work(connection)
            connection.execute("COMMIT")
            return result

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute(_ABOUT)
        made_for = f"{VERSION} {self._log.store_id}"
        if _about(connection, "made_for") not in (None, made_for):
            raise DamagedRow("it belongs to another log or release")
        _set_about(connection, "made_for", made_for)
        for statement in _TABLES:
            connection.execute(statement)
        self.has_index = self.has_index and _make_index(connection)
        if not self.has_index and _indexed(connection):
            raise DamagedRow("its index was made by another SQLite and cannot be read")

    def _throw_away(self) -> None:
        if self._path:
            self._path.unlink(missing_ok=True)
            self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)

    def _find(self, connection: sqlite3.Connection, words: list[str], limit: int) -> list[Hit]:
        known = _conversations(self._log)
        _drop_all_but(connection, known)
        taken = {row[0]: row[1:] for row in connection.execute("SELECT * FROM taken").fetchall()}
        for number, conversation in known.items():
            start, turn = taken.get(number, (0, 0))
            if start < conversation.next_index:
                self._take(connection, number, conversation, start, turn)
        if self.has_index:
            _index_some(connection)
        return list(islice(_hits(connection, words, known, self.has_index), limit))

    def _take(
        self,
        connection: sqlite3.Connection,
        number: int,
        conversation: _Conversation,
        begin: int,
        turn: int,
    ) -> None:
        """Take over the texts of the events from `begin` on; `turn` is the last one before."""
        end = conversation.next_index  # what is appended meanwhile is left for the next time
        for start in range(begin, end, STRETCH):
            for said in self._spoken(Stretch(conversation.id, start, min(start + STRETCH, end))):
                turn += said.begins_turn
                if said.text:
                    text = clip(said.text, MAX_CHARS, " … ")
                    connection.execute(_ADD_TEXT, (number, turn, sortable(said.timestamp), text))
        connection.execute(_TAKEN, (number, conversation.next_index, turn))

    def _spoken(self, stretch: Stretch) -> Iterator[Spoken]:
        rows = self._log.read(lambda c: read_wanted(c, stretch, EVERYTHING))
        return (spoken(text) for _, text in rows)


def _conversations(log: Database) -> dict[int, _Conversation]:
    """The conversations of the log by their numbers."""
    query = "SELECT number, id, title, next_index FROM conversations"
    return {
        row[0]: _Conversation(*row[1:]) for row in log.read(lambda c: c.execute(query).fetchall())
    }


def _hits(
    connection: sqlite3.Connection,
    words: list[str],
    known: dict[int, _Conversation],
    has_index: bool,
) -> Iterator[Hit]:
    for (number,) in _candidates(connection, words, has_index):
        conversation, turn, timestamp, text = connection.execute(
            "SELECT conversation, turn, timestamp, text FROM texts WHERE number = ?", (number,)
        ).fetchone()
        if spans := spans_of(text, words):
            about = known[conversation]
            yield Hit(about.id, about.title, timestamp, turn, snippet(text, spans))


def _candidates(
    connection: sqlite3.Connection, words: list[str], has_index: bool
) -> list[tuple[int]]:
    """The texts that may hold the words, newest first."""
    grams = sorted({word[at : at + GRAM] for word in words for at in range(len(word) - GRAM + 1)})
    if not grams or not has_index:
        return connection.execute(_ALL).fetchall()
    # Each gram is a quoted string, so that nothing in it is syntax.
    query = " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams[:MAX_GRAMS])
    return connection.execute(_CANDIDATES, (_indexed(connection), query)).fetchall()


def _index_some(connection: sqlite3.Connection) -> None:
    """Go on with the index for a while; what it does not have yet is read instead."""
    deadline = time.monotonic() + INDEXING_S
    done = _indexed(connection)
    while time.monotonic() < deadline:
        rows = connection.execute(
            "SELECT number, text FROM texts WHERE number > ? ORDER BY number LIMIT ?", (done, SOME)
        ).fetchall()
        if not rows:
            break
        connection.executemany(_ADD_GRAMS, ((number, fold(text)) for number, text in rows))
        done = rows[-1][0]
    _set_about(connection, "indexed", done)


def _drop_all_but(connection: sqlite3.Connection, known: Container[int]) -> None:
    """Delete the texts of conversations that are not among these, and their part of the index."""
    rows = connection.execute("SELECT conversation FROM taken").fetchall()
    gone = [number for (number,) in rows if number not in known]
    if not gone:
        return
    done = _indexed(connection)
    for conversation in gone:
        _drop_grams(connection, conversation, done)
        connection.execute("DELETE FROM texts WHERE conversation = ?", (conversation,))
        connection.execute("DELETE FROM taken WHERE conversation = ?", (conversation,))
    if done:
        # Until it is written anew, the index holds what was deleted from it.
        connection.execute("INSERT INTO grams (grams) VALUES ('optimize')")


def _drop_grams(connection: sqlite3.Connection, conversation: int, done: int) -> None:
    texts = connection.execute(
        "SELECT number, text FROM texts WHERE conversation = ? AND number <= ?",
        (conversation, done),
    ).fetchall()
    if texts:
        connection.executemany(_DROP_GRAMS, ((number, fold(text)) for number, text in texts))


def _make_index(connection: sqlite3.Connection) -> bool:
    """Whether there is one then."""
    try:
        connection.execute(_INDEX)
        connection.execute("SELECT rowid FROM grams LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _indexed(connection: sqlite3.Connection) -> int:
    """The number of the last text in the index."""
    return int(_about(connection, "indexed") or 0)


def _about(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _set_about(connection: sqlite3.Connection, key: str, value: object) -> None:
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))
