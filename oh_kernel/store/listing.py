"""Which conversations have this status and title, in which order, and which page of them?"""

import sqlite3
from dataclasses import dataclass
from typing import Literal

from oh_kernel.errors import InvalidQuery
from oh_kernel.store.conversations import COLUMNS, ConversationInfo, info_of

ConversationOrder = Literal["CREATED_AT", "CREATED_AT_DESC", "UPDATED_AT", "UPDATED_AT_DESC"]
"""The names of the agent-server API."""

_FITS = "(:status IS NULL OR status = :status) AND (:title IS NULL OR oh_holds(title, :title))"


@dataclass(frozen=True)
class ConversationPage:
    """Some of the conversations asked for, and where the next page begins, if there is one."""

    items: tuple[ConversationInfo, ...]
    next_page: str | None = None


def search(
    connection: sqlite3.Connection,
    status: str | None,
    title: str | None,
    order: ConversationOrder,
    page: str | None,
    limit: int,
) -> ConversationPage:
    """A page of the conversations; the next one begins at a place in the order, not at a row.

    A conversation that is used meanwhile moves in an order by use, and is then met once, twice or
    not at all; the others are each met once.
    """
    column = "created_at" if order.startswith("CREATED") else "updated_at"
    direction, beyond = ("DESC", "<=") if order.endswith("_DESC") else ("ASC", ">=")
    place = _place(page) if page is not None else None
    from_there = f" AND ({column}, number) {beyond} (:value, :number)" if place else ""
    value, number = place or ("", 0)
    rows = _prepared(connection).execute(
        f"SELECT number, {column}, {COLUMNS} FROM conversations WHERE {_FITS}{from_there}"
        f" ORDER BY {column} {direction}, number {direction} LIMIT :limit",
        {
            "status": status,
            "title": None if title is None else title.casefold(),
            "value": value,
            "number": number,
            "limit": limit + 1,
        },
    )
    found = rows.fetchall()
    following = f"{found[limit][1]}~{found[limit][0]}" if len(found) > limit else None
    return ConversationPage(tuple(info_of(row[2:]) for row in found[:limit]), following)


def count(connection: sqlite3.Connection, status: str | None, title: str | None) -> int:
    """How many conversations have this status and title."""
    folded = None if title is None else title.casefold()
    row = _prepared(connection).execute(
        f"SELECT count(*) FROM conversations WHERE {_FITS}", {"status": status, "title": folded}
    )
    return int(row.fetchone()[0])


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    # SQLite's own LIKE knows the case of ASCII letters only.
    connection.create_function(
        "oh_holds", 2, lambda text, part: part in text.casefold(), deterministic=True
    )
    return connection


def _place(page: str) -> tuple[str, int]:
    value, _, number = page.rpartition("~")
    if not value or not number.isdecimal():
        raise InvalidQuery(
            f"No page of the conversations begins at {page!r}.",
            remedy="Give the next_page of the page before, or none for the first.",
        )
    return value, int(number)
