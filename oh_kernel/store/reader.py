"""How is the log read: by id, in order, page by page, and by what is wanted?"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from oh_kernel.errors import InvalidQuery
from oh_kernel.events import Event, event_from_json
from oh_kernel.store import conversations, listing
from oh_kernel.store.conversations import ConversationInfo
from oh_kernel.store.damage import RepairReport
from oh_kernel.store.database import Database
from oh_kernel.store.hits import Hit
from oh_kernel.store.listing import ConversationOrder, ConversationPage
from oh_kernel.store.queries import (
    MAX_PAGE,
    EventOrder,
    EventPage,
    Moment,
    Wanted,
    check_limit,
    check_order,
)
from oh_kernel.store.rows import Stretch, index_of, read_by_id, read_page, read_wanted
from oh_kernel.store.schema import INDEX_MASK
from oh_kernel.store.words import Words

WORDS = ".words"  # at the end of the name of the file of texts
STRETCH = 2000  # events looked at in one go; whoever appends waits no longer than for these


class EventReader:
    """The reading half of the event store. Any thread may call any method."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

    @property
    def repair_report(self) -> RepairReport | None:
        """What was found damaged or lost since this store was opened; None when all is well."""
        return self._database.report

    def get(self, conversation_id: str, ids: Sequence[str]) -> list[Event | None]:
        """The events with these ids, in this order; None for one that is not stored."""
        texts = self.get_json(conversation_id, ids)
        return [event_from_json(text) if text is not None else None for text in texts]

    def get_json(self, conversation_id: str, ids: Sequence[str]) -> list[str | None]:
        """The JSON text of the events with these ids, never parsed; None where there is none."""

        def work(connection: sqlite3.Connection) -> list[str | None]:
            number = conversations.number_of(connection, conversation_id)
            return read_by_id(connection, number, ids) if number else [None] * len(ids)

        return self._database.read(work)

    def search(
        self,
        conversation_id: str,
        *,
        kind: str | None = None,
        source: str | None = None,
        body: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        order: EventOrder = "TIMESTAMP",
        page: str | None = None,
        limit: int = MAX_PAGE,
    ) -> EventPage:
        """A page of the events that all of this fits; `page` is the id that the last one gave.

        `kind` is a class's name, alone or with its module; `body` is text that is said in the
        event, in any case; `since` is included, `until` is not. The order is that of the log,
        which is that of time. Raises InvalidQuery.
        """
        check_limit(limit)
        check_order(order, get_args(EventOrder))
        wanted = Wanted.of(kind, source, body, since, until)
        start = None if page is None else self._index_of(conversation_id, page)
        backwards = order == "TIMESTAMP_DESC"
        found: list[tuple[str, str]] = []
        for event_id, text in self._matching(conversation_id, wanted, start, backwards, limit + 1):
            if len(found) == limit:
                return EventPage(tuple(text for _, text in found), event_id)
            found.append((event_id, text))
        return EventPage(tuple(text for _, text in found))

    def count(
        self,
        conversation_id: str,
        *,
        kind: str | None = None,
        source: str | None = None,
        body: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> int:
        """How many events `search` would find, over all pages."""
        wanted = Wanted.of(kind, source, body, since, until)
        if wanted.is_everything:
            info = self.conversation(conversation_id)
            return info.events if info else 0
        return sum(1 for _ in self._matching(conversation_id, wanted, None, False, STRETCH))

    def iterate(self, conversation_id: str, start: int = 0) -> Iterator[Event]:
        """The events from index `start` on, in order; those appended meanwhile come too."""
        for text in self.iterate_json(conversation_id, start):
            yield event_from_json(text)

    def iterate_json(self, conversation_id: str, start: int = 0) -> Iterator[str]:
        """The JSON text of the events from `start` on, never parsed."""
        for _, text in self.iterate_numbered(conversation_id, start):
            yield text

    def iterate_numbered(
        self, conversation_id: str, start: int = 0, stop: int = INDEX_MASK
    ) -> Iterator[tuple[int, str]]:
        """Index and JSON text of the events from `start` up to before `stop`.

        Indices are consecutive but for events that damage took. Each page of them is read by
        itself, so a slow reader holds nobody up.
        """

        def work(connection: sqlite3.Connection) -> list[tuple[int, str]]:
            number = conversations.number_of(connection, conversation_id)
            return read_page(connection, number, start, stop) if number else []

        while page := self._database.read(work):
            yield from page
            start = page[-1][0] + 1

    def find(self, words: Sequence[str], limit: int = 20) -> list[Hit]:
        """The newest events of all conversations that say all of these words, in any case.

        Found is any text, also within a word. The first search of a long log takes seconds.
        """
        return self._words().find(words, limit)

    def conversations(
        self, limit: int = 20, offset: int = 0, *, notebook: str | None = None
    ) -> list[ConversationInfo]:
        """The conversations used last, newest first; on request those of one notebook."""
        return self._database.read(lambda c: conversations.newest(c, limit, offset, notebook))

    def conversation(self, conversation_id: str) -> ConversationInfo | None:
        """What is known of one conversation; None when it is not stored."""
        return self._database.read(lambda c: conversations.one(c, conversation_id))

    def last_timestamp(self, conversation_id: str) -> str:
        """The latest timestamp among its events; "" when it has none."""
        info = self.conversation(conversation_id)
        return info.last_timestamp if info else ""

    def search_conversations(
        self,
        *,
        status: str | None = None,
        title: str | None = None,
        order: ConversationOrder = "CREATED_AT_DESC",
        page: str | None = None,
        limit: int = MAX_PAGE,
    ) -> ConversationPage:
        """A page of the conversations with this status whose title holds `title`, in any case.

        `page` is the word that the last one gave. Raises InvalidQuery.
        """
        check_limit(limit)
        check_order(order, get_args(ConversationOrder))
        return self._database.read(lambda c: listing.search(c, status, title, order, page, limit))

    def count_conversations(self, *, status: str | None = None, title: str | None = None) -> int:
        """How many conversations `search_conversations` would find."""
        return self._database.read(lambda c: listing.count(c, status, title))

    def outputs_of(self, conversation_id: str) -> Path:
        """The folder beside the database for outputs of this conversation too long for an event."""
        name = hashlib.sha256(conversation_id.encode()).hexdigest()[:32]
        return self.path.parent / "outputs" / name

    def size_bytes(self) -> int:
        """What the store takes on the disk, its journals and texts for searching included."""
        files = (
            self.path.with_name(self.path.name + end) for end in ("", "-wal", "-journal", WORDS)
        )
        return sum(file.stat().st_size for file in files if file.exists())

    def _words(self) -> Words:
        path = self.path.with_name(self.path.name + WORDS)
        return Words(self._database, None if self._database.read_only else path)

    def _index_of(self, conversation_id: str, event_id: str) -> int:
        def work(connection: sqlite3.Connection) -> int | None:
            number = conversations.number_of(connection, conversation_id)
            return index_of(connection, number, event_id) if number else None

        index = self._database.read(work)
        if index is None:
            raise InvalidQuery(
                f"No page of conversation {conversation_id} begins with {event_id!r}.",
                remedy="Give the next_page of the page before, or none for the first.",
            )
        return index

    def _matching(
        self, conversation_id: str, wanted: Wanted, start: int | None, backwards: bool, some: int
    ) -> Iterator[tuple[str, str]]:
        """Id and JSON of what is wanted, from `start` on; read by the stretch, `some` at most."""
        end = self._database.read(lambda c: conversations.next_index(c, conversation_id))
        at = start if start is not None else (end - 1 if backwards else 0)
        width = some if wanted.is_everything else STRETCH
        while 0 <= at < end:
            low, high = (max(at - width + 1, 0), at + 1) if backwards else (at, at + width)
            stretch = Stretch(conversation_id, low, high, backwards)
            for event_id, text in self._read_wanted(stretch, wanted):
                if wanted.has_body(text):
                    yield event_id, text
            at = low - 1 if backwards else high

    def _read_wanted(self, stretch: Stretch, wanted: Wanted) -> list[tuple[str, str]]:
        return self._database.read(lambda c: read_wanted(c, stretch, wanted))
