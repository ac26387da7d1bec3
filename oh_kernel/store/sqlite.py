"""Where do events last? In one SQLite file, one commit an event."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oh_kernel.errors import ConversationInUse, StoreError
from oh_kernel.events import Event
from oh_kernel.events.text import without_lone_surrogates
from oh_kernel.store import conversations
from oh_kernel.store.conversations import PruneReport
from oh_kernel.store.database import Database
from oh_kernel.store.edits import StoredEdits
from oh_kernel.store.filesystem import JournalMode
from oh_kernel.store.lease import Lease, read_claim, take_lock
from oh_kernel.store.lockfile import lock_path, read_mark
from oh_kernel.store.reader import EventReader
from oh_kernel.store.rows import EventRow

# Frames of the log still hold what was deleted; a repair would find it there.
_FORGET_OLD_FRAMES = "PRAGMA wal_checkpoint(TRUNCATE)"


class EventStore(EventReader):
    """The event log of all conversations. Any thread may call any method.

    An append takes the conversation's lease, which this store then holds until it is released or
    the store is closed; reading needs none.
    """

    def __init__(
        self, path: Path, *, read_only: bool, label: str, journal: JournalMode | None
    ) -> None:
        self._label = label
        self._leases: dict[str, Lease] = {}
        # No cycle of references: a store that is dropped frees its conversations at once.
        this = weakref.ref(self)

        def register_leases(connection: sqlite3.Connection) -> None:
            if store := this():
                store._register_leases(connection)

        super().__init__(
            Database(path, read_only=read_only, journal=journal, on_reopen=register_leases)
        )
        self._lock = self._database.lock

    @classmethod
    def open(
        cls,
        file: str | Path,
        *,
        read_only: bool = False,
        label: str = "",
        journal: JournalMode | None = None,
    ) -> Self:
        """The store in this file, which is made if it is not there and repaired if damaged.

        `label` names this writer (its notebook) to others that want the same conversation. The
        journal is chosen by file system unless given.
        """
        # Links are followed: locks lie beside the file itself, whatever names lead to it.
        path = Path(os.path.realpath(Path(file).expanduser()))
        return cls(path, read_only=read_only, label=label, journal=journal)

    def append(self, conversation_id: str, event: Event, *, full_sync: bool = False) -> int:
        """Store an event, durably against a kill of the process; gives its index.

        With `full_sync` it has reached the disk as well, for the last event of a turn. Raises
        DuplicateEvent, ConversationInUse.
        """
        row = EventRow.of(event)
        lease = self.lease(conversation_id)
        index = self._database.write(
            lambda connection: self._insert(connection, lease, row), full_sync=full_sync
        )
        return self._committed(lease, index)

    async def append_async(
        self, conversation_id: str, event: Event, *, full_sync: bool = False
    ) -> int:
        """`append` for an event loop: while another process holds the file, the loop goes on.

        Cancelled while it waits for the disk, the event may be stored all the same; a second
        append then raises DuplicateEvent.
        """
        row = EventRow.of(event)
        lease = self._leases.get(conversation_id)
        if lease is None or lease.released:
            lease = await asyncio.to_thread(self.lease, conversation_id)
        index = await self._database.write_async(
            lambda connection: self._insert(connection, lease, row), full_sync=full_sync
        )
        return self._committed(lease, index)

    def append_all(self, conversation_id: str, events: Iterable[Event]) -> None:
        """`append` for many events in one commit, which has reached the disk: all or none."""
        rows = [EventRow.of(event) for event in events]
        lease = self.lease(conversation_id)
        indices = self._database.write(
            lambda connection: [self._insert(connection, lease, row) for row in rows],
            full_sync=True,
        )
        if indices:
            self._committed(lease, indices[-1])

    def restore(
        self,
        conversation_id: str,
        events: Sequence[tuple[int, Event]],
        next_index: int,
        *,
        columns: dict[str, str | None],
        meta: dict[str, Any],
    ) -> None:
        """Make a conversation of events with their indices, in one commit: all or none.

        Indices below `next_index` without an event count as lost. `columns` and `meta` are what
        `set_meta` takes. Raises StoreError if the conversation exists.
        """
        if (info := self.conversation(conversation_id)) and info.events + info.events_lost:
            raise StoreError(
                f"Conversation {conversation_id} is stored already.",
                remedy=f"Go on with it, or delete it first: %openhands delete {conversation_id}",
            )
        rows = [(index, EventRow.of(event)) for index, event in events]
        columns, meta = without_lone_surrogates(columns), without_lone_surrogates(meta)
        lease = self.lease(conversation_id)

        def work(connection: sqlite3.Connection) -> None:
            lease.fill(connection, rows, next_index)
            conversations.set_meta(connection, conversation_id, columns, meta)

        try:
            self._database.write(work, full_sync=True)
        except BaseException:
            self._delete(conversation_id)
            raise
        with self._lock:
            lease.advance(next_index)
        lease.release()

    def lease(self, conversation_id: str, *, label: str | None = None) -> Lease:
        """The right to write this conversation, held by this store until it is released.

        Raises ConversationInUse, at once, naming the process that has it.
        """
        with self._lock:
            held = self._leases.get(conversation_id)
            if held and not held.released:
                return held
            claim = self._database.read(lambda c: read_claim(c, conversation_id))
            path = lock_path(self.path, conversation_id)
            lock = take_lock(path, conversation_id, claim)
            lease = Lease(
                self._database, conversation_id, lock, self._label if label is None else label
            )
            try:
                self._database.account_for(read_mark(path))
                self._database.write(lease.register)
            except BaseException:
                lease.drop()
                raise
            lease.keep_mark(self._database.store_id)
            self._leases[conversation_id] = lease
            return lease

    def set_meta(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        workspace: str | None = None,
        notebook: str | None = None,
        status: str | None = None,
        model: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Set what is given and keep the rest; `meta` is merged, a key with None is deleted."""
        columns = {
            "title": title,
            "workspace": workspace,
            "notebook": notebook,
            "status": status,
            "model": model,
        }
        # A folder's name or a word of the command line may hold bytes that are no UTF-8.
        columns, meta = without_lone_surrogates(columns), without_lone_surrogates(meta)
        self._database.write(lambda c: conversations.set_meta(c, conversation_id, columns, meta))

    def edits_of(self, conversation_id: str) -> StoredEdits:
        """The edits of files in this conversation that can be undone."""
        return StoredEdits(self._database, conversation_id)

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation; raises ConversationInUse while another process writes it."""
        self._delete(conversation_id)
        self._sweep()

    def prune(
        self,
        *,
        older_than_days: float | None = None,
        keep: int | None = None,
        max_bytes: int | None = None,
    ) -> PruneReport:
        """Delete the conversations beyond any of these limits, oldest first, and free the space.

        A conversation that some process has leased, this store included, is left alone.
        """
        before = self.size_bytes()
        everything = self.conversations(limit=-1)
        deleted: list[str] = []
        used: list[str] = []
        for name in conversations.outdated(everything, older_than_days, keep, max_bytes):
            try:
                self._delete(name, spare_own=True)
                deleted.append(name)
            except ConversationInUse:
                used.append(name)
        if deleted:
            self._sweep()
            self._database.run_outside_transaction("VACUUM")
            self._database.run_outside_transaction(_FORGET_OLD_FRAMES)
        return PruneReport(tuple(deleted), tuple(used), before, self.size_bytes())

    def close(self) -> None:
        """Release every lease and close the file; closing twice is harmless."""
        with self._lock, contextlib.ExitStack() as last:
            last.callback(self._database.close)
            for lease in list(self._leases.values()):
                last.callback(lease.release)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _insert(self, connection: sqlite3.Connection, lease: Lease, row: EventRow) -> int:
        index = lease.take_index(connection, row)
        row.insert(connection, lease.conversation_id, lease.number, index)
        return index

    def _committed(self, lease: Lease, index: int) -> int:
        with self._lock:
            lease.advance(index + 1)
        return index

    def _register_leases(self, connection: sqlite3.Connection) -> None:
        held = [lease for lease in self._leases.values() if not lease.released]
        for lease in held:
            lease.register(connection)
            lease.keep_mark(self._database.store_id)

    def _delete(self, conversation_id: str, *, spare_own: bool = False) -> None:
        if not self.conversation(conversation_id):
            return
        with self._lock:
            held = self._leases.get(conversation_id)
            if spare_own and held and not held.released:
                raise ConversationInUse(f"Conversation {conversation_id} is in use here.")
            lease = self.lease(conversation_id)
            lease.forget_mark()
            self._database.write(lambda c: conversations.delete(c, conversation_id))
            del self._leases[conversation_id]
            lease.forget()
        shutil.rmtree(self.outputs_of(conversation_id), ignore_errors=True)

    def _sweep(self) -> None:
        self._words().forget()
        self._database.write(conversations.sweep)
        self._database.run_outside_transaction(_FORGET_OLD_FRAMES)
