"""What does `%openhands history` show: the stored conversations, or where in them a text stands?"""

import re

from oh_kernel.kernel.notes import Table
from oh_kernel.store import EventStore
from oh_kernel.views.found import Found

HITS = 20

_WORD = re.compile(r"\"([^\"]+)\"|'([^']+)'|(\S+)")


def listed(store: EventStore, limit: int) -> Table:
    """The conversations used last, newest first, and the size of the store."""
    rows = [
        (
            info.id,
            _minute(info.updated_at),
            info.title,
            info.status,
            f"{info.events} ({info.events_lost} lost)" if info.events_lost else info.events,
            f"{info.size_bytes / 1000:.1f}",
        )
        for info in store.conversations(limit=limit)
    ]
    headings = ("id", "last used (UTC)", "about", "status", "events", "KB")
    caption = f"The store has {store.size_bytes() / 1e6:.1f} MB: {store.path}"
    return Table(headings, rows, caption)


def found(store: EventStore, text: str) -> Table | str:
    """Where the words of `text` stand, newest first; a phrase in quotes counts as one word."""
    words = ["".join(groups) for groups in _WORD.findall(text)]
    hits = store.find(words, HITS + 1)
    if not hits:
        return f"No stored conversation says {' and '.join(words)}."
    rows = [
        (hit.conversation_id, _minute(hit.timestamp), hit.title, hit.turn, Found(hit.snippet))
        for hit in hits[:HITS]
    ]
    more = f"The newest {HITS} places; more words find fewer. " if len(hits) > HITS else ""
    caption = f"{more}Go on with one of them: %openhands resume ID"
    return Table(("id", "when (UTC)", "about", "turn", "found"), rows, caption)


def _minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")
