"""Who may write a conversation?

One process at a time. On one machine a file lock decides, which the operating system frees when the
process dies. From another machine a lock cannot always be trusted, so there the writer's heartbeat
decides: `HEARTBEAT_S` apart while it lives, given up after `TAKE_OVER_S`. The writer's row in the
database never decides anything on one machine; it gives the refusal its words.
"""

import sqlite3
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, NoReturn, Self

from oh_kernel.errors import ConversationInUse
from oh_kernel.events import utc_now
from oh_kernel.store.conversations import make
from oh_kernel.store.damage import unusable
from oh_kernel.store.database import Database
from oh_kernel.store.lockfile import LockFile, Mark
from oh_kernel.store.process import Writer
from oh_kernel.store.rows import EventRow

HEARTBEAT_S = 10.0
TAKE_OVER_S = 45.0


# A file that was removed under a running writer does not know what was counted before.
_REGISTER = """
UPDATE conversations SET
    writer_token = :token, writer = :writer, writer_beat = :now,
    lost = lost + max(0, :known - next_index), next_index = max(next_index, :known)
WHERE id = :id RETURNING number, next_index
"""
_TAKE_INDEX = """
UPDATE conversations SET
    next_index = next_index + 1, bytes = bytes + :size, updated_at = :now, writer_beat = :beat,
    last_timestamp = max(last_timestamp, :timestamp)
WHERE number = :number AND writer_token = :token
RETURNING next_index - 1
"""
_FILL = """
UPDATE conversations SET
    next_index = :next, lost = :lost, bytes = :size, created_at = :first, last_timestamp = :last
WHERE number = :number
"""


class Claim(NamedTuple):
    """What the database says about a conversation's writer."""

    writer: Writer | None
    beat_age_s: float

    def is_live_elsewhere(self) -> bool:
        """Whether another machine writes it and was heard of lately."""
        if self.writer is None or not self.writer.is_elsewhere():
            return False
        return abs(self.beat_age_s) < TAKE_OVER_S

    def is_stale_elsewhere(self) -> bool:
        """Whether another machine had it and has been silent too long."""
        return (
            self.writer is not None and self.writer.is_elsewhere() and not self.is_live_elsewhere()
        )


class Lease:
    """The right to write one conversation, from `EventStore.lease` or the first append.

    The database's lock guards every attribute; any thread may call the methods.
    """

    def __init__(self, database: Database, conversation_id: str, lock: LockFile, label: str):
        self.conversation_id = conversation_id
        self.writer = Writer.this_process(uuid.uuid4().hex, label)
        self.number = 0
        self.next_index = 0
        self.released = False
        self._database = database
        self._lock = lock

    def beat(self) -> None:
        """Say that the writer lives; the owner's loop calls this every `HEARTBEAT_S` seconds.

        Raises ConversationInUse when another machine took the conversation over meanwhile.
        """
        self._database.write(self._confirm)

    async def beat_async(self) -> None:
        """`beat` for an event loop."""
        await self._database.write_async(self._confirm)

    def release(self) -> None:
        """Give the conversation back; once more is harmless."""
        with self._database.lock:
            if self.released:
                return
            self.released = True
            try:
                self._database.write(self._unregister)
            finally:
                self.drop()

    def register(self, connection: sqlite3.Connection) -> None:
        """Write the writer's row, and learn the conversation's number and next index."""
        make(connection, self.conversation_id)
        [(self.number, self.next_index)] = connection.execute(
            _REGISTER,
            {
                "token": self.writer.token,
                "writer": self.writer.to_json(),
                "now": time.time(),
                "known": self.next_index,
                "id": self.conversation_id,
            },
        ).fetchall()

    def take_index(self, connection: sqlite3.Connection, row: EventRow) -> int:
        """Count an event in and give its index; ConversationInUse if the lease went to another."""
        taken = connection.execute(
            _TAKE_INDEX,
            {
                "size": row.size,
                "now": utc_now(),
                "beat": time.time(),
                "timestamp": row.timestamp,
                "number": self.number,
                "token": self.writer.token,
            },
        ).fetchall()
        if not taken:
            self._refuse(connection)
        return int(taken[0][0])

    def fill(
        self, connection: sqlite3.Connection, rows: list[tuple[int, EventRow]], next_index: int
    ) -> None:
        """Write the events of a conversation that has none yet, each under its index."""
        for index, row in rows:
            row.insert(connection, self.conversation_id, self.number, index)
        times = [row.timestamp for _, row in rows]
        connection.execute(
            _FILL,
            {
                "next": next_index,
                "lost": next_index - len(rows),
                "size": sum(row.size for _, row in rows),
                "first": min(times, default=utc_now()),
                "last": max(times, default=""),
                "number": self.number,
            },
        )

    def keep_mark(self, store_id: str) -> None:
        """Write the whole mark into the lock file."""
        self._lock.write_mark(Mark(self.next_index, store_id, self.conversation_id))

    def advance(self, next_index: int) -> None:
        """Note that the event before `next_index` is committed; a late call changes nothing."""
        if next_index > self.next_index:
            self.next_index = next_index
            self._lock.write_next_index(next_index)

    def forget_mark(self) -> None:
        """Have the mark tell of no events, before they are deleted."""
        self._lock.write_next_index(0)

    def drop(self) -> None:
        """Give the file lock back."""
        self._lock.close()

    def forget(self) -> None:
        """Delete the lock file, once the conversation is deleted."""
        self.released = True
        self._lock.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _unregister(self, connection: sqlite3.Connection) -> None:
        """Take the writer's row away, if it is still this one."""
        connection.execute(
            "UPDATE conversations SET writer_token = NULL, writer = NULL, writer_beat = NULL"
            " WHERE number = ? AND writer_token = ?",
            (self.number, self.writer.token),
        )

    def _confirm(self, connection: sqlite3.Connection) -> None:
        """Renew the heartbeat, or raise ConversationInUse if the lease went to another."""
        beat = connection.execute(
            "UPDATE conversations SET writer_beat = ? WHERE number = ? AND writer_token = ?",
            (time.time(), self.number, self.writer.token),
        )
        if not beat.rowcount:
            self._refuse(connection)

    def _refuse(self, connection: sqlite3.Connection) -> NoReturn:
        raise in_use(self.conversation_id, read_claim(connection, self.conversation_id))


def read_claim(connection: sqlite3.Connection, conversation_id: str) -> Claim:
    """What the conversation's row says of its writer; nobody when there is no such row."""
    row = connection.execute(
        "SELECT writer, writer_beat FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    writer, beat = row or (None, None)
    return Claim(Writer.from_json(writer), time.time() - (beat or 0.0))


def take_lock(path: Path, conversation_id: str, claim: Claim) -> LockFile:
    """The lock of a conversation, or ConversationInUse, which names the one who has it."""
    try:
        lock = _lock(path, conversation_id, claim)
    except OSError as error:
        raise unusable(path, error) from error
    if claim.is_live_elsewhere() or _alive_without_locks(claim, lock):
        lock.close()
        raise in_use(conversation_id, claim)
    return lock


def in_use(conversation_id: str, claim: Claim) -> ConversationInUse:
    """The refusal, naming the owner and what to do."""
    owner = f"{claim.writer}" if claim.writer else "another process"
    remedy = "Close it there (shut that kernel down) or start a new one with `%openhands new`."
    if claim.is_live_elsewhere():
        remedy += f" If that machine is gone, try again in {TAKE_OVER_S:.0f} s."
    return ConversationInUse(
        f"Conversation {conversation_id} is in use by {owner}; it can be read but not continued.",
        remedy=remedy,
    )


def _lock(path: Path, conversation_id: str, claim: Claim) -> LockFile:
    try:
        return LockFile(path)
    except BlockingIOError:
        if not claim.is_stale_elsewhere():
            raise in_use(conversation_id, claim) from None
    # The lock of a machine that is gone. A new file is free of it.
    path.unlink(missing_ok=True)
    return LockFile(path)


def _alive_without_locks(claim: Claim, lock: LockFile) -> bool:
    if lock.locked or claim.writer is None or claim.writer.is_elsewhere():
        return False
    return claim.writer.is_alive()
