"""How does the database look inside, and which versions of it can be read?

An event's row number packs two numbers: the conversation's and the event's index in it. A
conversation is then one stretch of the table, in order, with no further index to keep up to date.
Every row of `events` also names its conversation, so that it can be put back when the row of the
conversation itself is lost (see repair).
"""

import sqlite3
import uuid
from collections.abc import Sequence
from functools import cache

from oh_kernel.errors import StoreError, StoreVersionError

APPLICATION_ID = 0x4F484B31  # "OHK1"
# Events are about 1 KB: of a small page much stays empty, as a row is not divided.
PAGE_SIZE = 16384
OLDER_PAGE_SIZES = (4096,)  # of files made by earlier releases
INDEX_BITS = 32
INDEX_MASK = (1 << INDEX_BITS) - 1

_VERSION_1 = """
CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_timestamp TEXT NOT NULL DEFAULT '',
    next_index INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,        -- indices below next_index that hold no event
    bytes INTEGER NOT NULL DEFAULT 0,       -- of the JSON of its events
    title TEXT NOT NULL DEFAULT '',
    workspace TEXT NOT NULL DEFAULT '',
    notebook TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    meta TEXT NOT NULL DEFAULT '{}',
    writer_token TEXT,                      -- the lease, see lease
    writer TEXT,
    writer_beat REAL
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,                -- conversation number << 32 | index
    conversation TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    crc INTEGER NOT NULL,                   -- of text and pieces
    pieces TEXT,                            -- what was cut out of text, see blobs
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX events_id ON events (id, seq >> 32);
CREATE TABLE blobs (number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, text TEXT NOT NULL);
"""

_VERSION_2 = """
CREATE TABLE edits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    path BLOB NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,        -- 0 until the file is known to be written
    before BLOB,                            -- digests of the file's content; NULL is no file
    after BLOB,
    start INTEGER NOT NULL,                 -- what was replaced, and by what
    removed BLOB NOT NULL,
    added BLOB NOT NULL,
    mode INTEGER
);
CREATE INDEX edits_path ON edits (conversation, path, number);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1, _VERSION_2)
"""Step n leads from version n to n + 1; an empty file is version 0."""

# The numbers of columns tell the tables' rows apart when a damaged file is searched page by page.
STORE_COLUMNS = 2
BLOB_COLUMNS = 3
EVENT_COLUMNS = 9
CONVERSATION_COLUMNS = 17


_DECLARATIONS = "SELECT type, name, sql FROM sqlite_schema"


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> bool:
    """Bring the database to the newest version; all of it or nothing. Gives whether it was older.

    Raises StoreVersionError for a newer file, StoreError for a database of another program.
    """
    if read_version(connection, len(steps)) == len(steps):
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again now that no other process can be doing the same.
        version = read_version(connection, len(steps))
        for script in steps[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        if version == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("INSERT INTO store VALUES ('id', ?)", (uuid.uuid4().hex,))
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
        return True
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Version, application and number of declarations, all of one moment.

    Read one by one, a file that another process has just made would look like half of each.
    """
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN")
    try:
        # First, since it is what begins the reading.
        [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [application] = connection.execute("PRAGMA application_id").fetchone()
        return int(version), int(application), int(tables)
    finally:
        if own and connection.in_transaction:
            connection.execute("ROLLBACK")


def read_version(connection: sqlite3.Connection, known: int = len(MIGRATIONS)) -> int:
    """The version of the file; raises for a newer one and for a database of another program."""
    version, application, tables = _identity(connection)
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError(
            "The file chosen for the event log is a database of another program.",
            remedy="Set OPENHANDS_STORE_PATH to a file of its own.",
        )
    refuse_newer(version, known)
    return version


def require_readable(connection: sqlite3.Connection) -> None:
    """Raise unless the database has exactly the version of this release, which alone it can read
    without writing."""
    version = read_version(connection, len(MIGRATIONS))
    if version < len(MIGRATIONS):
        raise StoreVersionError(
            f"The event log has version {version}; this release reads version {len(MIGRATIONS)}.",
            remedy="Open it for writing once, which brings it up to date.",
        )


def is_intact(connection: sqlite3.Connection) -> bool:
    """Whether every table and index is still declared as this release declares it.

    One changed byte there makes another table that SQLite opens without complaint.
    """
    return set(_expected()) <= set(connection.execute(_DECLARATIONS).fetchall())


def refuse_newer(version: int, known: int = len(MIGRATIONS)) -> None:
    """Raise StoreVersionError if a file of this version was written by a newer release."""
    if version > known:
        raise StoreVersionError(
            f"The event log has version {version}; this release reads up to version {known}.",
            remedy="Update oh-kernel, or set OPENHANDS_STORE_PATH to another file.",
        )


def store_id(connection: sqlite3.Connection) -> str:
    """The random name this file was given when it was made."""
    row = connection.execute("SELECT value FROM store WHERE key = 'id'").fetchone()
    return str(row[0]) if row else ""


@cache
def _expected() -> list[tuple[str, str, str | None]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(connection)
        return connection.execute(_DECLARATIONS).fetchall()
    finally:
        connection.close()


def _statements(script: str) -> list[str]:
    return [part for part in script.split(";\n") if part.strip()]
