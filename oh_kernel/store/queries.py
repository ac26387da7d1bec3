"""What can the log be asked for: which events, in which order, which page?

Orders have the names of the agent-server API. A page begins at an event, by its id, so
it stays the same page while events are appended.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from oh_kernel.errors import InvalidQuery
from oh_kernel.events import Event, event_from_json
from oh_kernel.store.spoken import spoken_text

MAX_PAGE = 100

EventOrder = Literal["TIMESTAMP", "TIMESTAMP_DESC"]

Moment = datetime | str


@dataclass(frozen=True)
class EventPage:
    """Some of the events asked for, as JSON, and where the next page begins, if there is one."""

    items: tuple[str, ...]
    next_page: str | None = None

    @property
    def events(self) -> list[Event]:
        """The same as events."""
        return [event_from_json(text) for text in self.items]


class Wanted(NamedTuple):
    """Which events are asked for: all that are not excluded by something given."""

    kind: str = ""
    source: str = ""
    since: str = ""
    until: str = ""
    body: str = ""

    @classmethod
    def of(
        cls,
        kind: str | None,
        source: str | None,
        body: str | None,
        since: Moment | None,
        until: Moment | None,
    ) -> "Wanted":
        """`kind` is a name or a dotted path that ends in it; times without a zone are UTC."""
        name = (kind or "").rpartition(".")[2]
        first, end = (utc_text(moment) if moment else "" for moment in (since, until))
        return cls(name, source or "", first, end, (body or "").casefold())

    @property
    def is_everything(self) -> bool:
        """Whether nothing is excluded."""
        return not any(self)

    @property
    def where(self) -> str:
        """What SQL can decide, as a condition on `events`; `parameters` belong to it."""
        parts = [text for text, value in zip(_CONDITIONS, self, strict=False) if value]
        return "".join(f" AND {part}" for part in parts)

    @property
    def parameters(self) -> list[str]:
        """The values that `where` asks for."""
        return [value for value in self[: len(_CONDITIONS)] if value]

    def has_body(self, text: str) -> bool:
        """Whether the event with this JSON says what is looked for, in whatever case."""
        if not self.body or self._is_surely_not_in(text):
            return not self.body
        return self.body in spoken_text(text).casefold()

    def _is_surely_not_in(self, text: str) -> bool:
        """Whether the JSON can be left unparsed: what is looked for stands nowhere in it, and no
        spelling in JSON could hide it."""
        return bool(
            _PLAIN.fullmatch(self.body) and "\\u" not in text and self.body not in text.casefold()
        )


_PLAIN = re.compile(r"[ !#-.0-\[\]-~]*")  # ASCII, but for ", / and \, which JSON may escape
_CONDITIONS = ("kind = ?", "source = ?", "timestamp >= ?", "timestamp < ?")


def utc_text(moment: Moment) -> str:
    """The moment as timestamps are stored: UTC, `YYYY-MM-DDTHH:MM:SS.ffffff`.

    >>> utc_text("2026-01-01T01:30:00+01:00")
    '2026-01-01T00:30:00.000000'
    """
    try:
        time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        time = time.astimezone(UTC) if time.tzinfo else time
    except (ValueError, OverflowError) as error:
        raise InvalidQuery(
            f"{moment!r} is no time.",
            remedy="Write it as 2026-01-31T12:00:00 (UTC) or with +01:00.",
        ) from error
    return time.replace(tzinfo=None).isoformat(timespec="microseconds")


def check_limit(limit: int) -> None:
    """Raise unless a page may have so many items."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(
            f"A page has 1 to {MAX_PAGE} items, not {limit}.",
            remedy="Ask for fewer and follow next_page.",
        )


def check_order(order: str, known: Sequence[str]) -> None:
    """Raise unless there is such an order."""
    if order not in known:
        raise InvalidQuery(f"There is no order {order!r}.", remedy=f"Use {', '.join(known)}.")
