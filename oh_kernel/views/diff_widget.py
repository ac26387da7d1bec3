"""How does a person decide about edits and commands by a click?

Importing this module loads anywidget (some 0.2 s); only do so when there is somebody to click.
"""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets

from oh_kernel.views.diff import Diff, all_rows, render_diff
from oh_kernel.views.escape import escape, printable
from oh_kernel.views.linediff import headline
from oh_kernel.views.rendered import Rendered, inline_code, joined
from oh_kernel.views.style import CALL, SUMMARY, TOKEN_COLOURS

State = Literal["waiting", "applied", "accepted", "rejected", "failed", "closed"]
OnDecision = Callable[[str, bool, str], None]

WORDS: dict[State, str] = {
    "waiting": "waiting for you",
    "applied": "applied",
    "accepted": "accepted",
    "rejected": "rejected",
    "failed": "could not be done",
    "closed": "not decided",
}
_OPEN: tuple[State, ...] = ("waiting", "applied")
_MAX_REASON_CHARS = 2_000
_MAX_NAMES = 4
_HERE = Path(__file__).parent

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Item:
    """An edit (with its diffs) or a question (with lines and code) and how it stands."""

    title: str
    headline: str
    diffs: Sequence[Diff]
    lines: Sequence[str]
    code: str
    state: State
    words: str


class DiffWidget(anywidget.AnyWidget):
    """All edits and questions of one turn, each with two buttons while it is open.

    Made and changed on the agent or the main thread. Clicks arrive on whatever thread serves the
    comm; the callback is called there and must only hand the decision over. `model_id` is the id
    of the comm.
    """

    _esm = (_HERE / "diff.js").read_text(encoding="utf-8")
    _css = (_HERE / "diff.css").read_text(encoding="utf-8") + "".join(
        f".oh-{letter} {{ color: {colour}; }}\n" for letter, colour in TOKEN_COLOURS.items()
    )
    # JSON in strings, with <, > and & escaped: state is saved into notebooks and from there into
    # pages, where it must not be able to end a script element.
    items = traitlets.Unicode("[]").tag(sync=True)
    states = traitlets.Unicode("{}").tag(sync=True)

    def __init__(self, on_decision: OnDecision | None = None) -> None:
        self._lock = threading.Lock()  # guards the three below
        self._items: dict[str, _Item] = {}
        self._callbacks: list[OnDecision] = [on_decision] if on_decision else []
        self._decided: set[str] = set()
        super().__init__()
        self.on_msg(self._receive)

    def on_decision(self, callback: OnDecision) -> None:
        """Have `callback(item_id, accepted, reason)` called for each decision, once an item."""
        with self._lock:
            self._callbacks.append(callback)

    def add_edit(self, item_id: str, diffs: Sequence[Diff], state: State) -> None:
        """Show an edit: "waiting" before it is written, "applied" when it can be taken back.

        An edit of several files is decided about as one.
        """
        title = _title([diff.path for diff in diffs])
        item = _Item(title, headline(diffs), diffs, (), "", state, WORDS[state])
        self._add(item_id, item)

    def add_question(
        self, item_id: str, title: str, *, lines: Sequence[str] = (), code: str = ""
    ) -> None:
        """Ask about a command or code; `title` completes "Approve ..."."""
        item = _Item(title, "", (), lines, code, "waiting", WORDS["waiting"])
        self._add(item_id, item)

    def set_state(self, item_id: str, state: State, words: str = "") -> None:
        """Say how an item stands now; an open state makes it clickable again."""
        with self._lock:
            changed = replace(self._items[item_id], state=state, words=words or WORDS[state])
            self._items[item_id] = changed
            if state in _OPEN:
                self._decided.discard(item_id)
        self._send_states()

    def close_open(self) -> None:
        """Take the buttons away: what is applied counts as accepted, what waits as not decided."""
        with self._lock:
            for item_id, item in self._items.items():
                if item.state in _OPEN:
                    state: State = "accepted" if item.state == "applied" else "closed"
                    words = "kept" if item.state == "applied" else WORDS[state]
                    self._items[item_id] = replace(item, state=state, words=words)
        self._send_states()

    @property
    def open_items(self) -> list[str]:
        """The ids that still have buttons."""
        with self._lock:
            return [item_id for item_id, item in self._items.items() if item.state in _OPEN]

    def live_bundle(self) -> dict[str, Any]:
        """The widget with its static twins, for display while the turn runs."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"application/vnd.jupyter.widget-view+json": view, **self.static().bundle()}

    def static(self, *, with_diffs: bool = True) -> Rendered:
        """All items without buttons, to replace the widget when the turn has ended."""
        with self._lock:
            items = list(self._items.values())
        return joined([_static_item(item, with_diffs=with_diffs) for item in items])

    def _add(self, item_id: str, item: _Item) -> None:
        with self._lock:
            if item_id in self._items:
                raise ValueError(f"the item {item_id!r} is already shown")
            self._items[item_id] = item
            items = [_wire(known, each) for known, each in self._items.items()]
        self._send_states()  # first, so that every item the front end draws has a state
        self.items = _safe_json(items)

    def _send_states(self) -> None:
        with self._lock:
            states = {
                item_id: {"state": item.state, "words": printable(item.words)}
                for item_id, item in self._items.items()
            }
        self.states = _safe_json(states)

    def _receive(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        item_id, accepted = content.get("id"), content.get("accepted")
        if content.get("type") != "decide" or not isinstance(accepted, bool):
            logger.warning("a message of the front end was not understood: %.200r", content)
            return
        with self._lock:
            item = self._items.get(item_id) if isinstance(item_id, str) else None
            if item is None or item.state not in _OPEN or item_id in self._decided:
                return  # a second click, or one that crossed the end of the turn
            self._decided.add(str(item_id))
            callbacks = list(self._callbacks)
        reason = str(content.get("reason") or "").strip()[:_MAX_REASON_CHARS]
        for callback in callbacks:
            callback(str(item_id), accepted, reason)


def _title(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _wire(item_id: str, item: _Item) -> dict[str, Any]:
    rows = all_rows(item.diffs) if item.diffs else []
    return {
        "id": item_id,
        "kind": "edit" if item.diffs else "question",
        "title": printable(item.title),
        "headline": item.headline,
        "lines": [printable(line) for line in item.lines],
        "code": printable(item.code),
        "rows": [[row.kind, row.sign, row.old, row.new, row.spans] for row in rows],
    }


def _safe_json(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _static_item(item: _Item, *, with_diffs: bool) -> Rendered:
    words = printable(" · ".join(part for part in (item.headline, item.words) if part))
    title = printable(item.title)
    head = Rendered(
        html=f'<div style="{SUMMARY}"><b>{escape(title)}</b> {escape(words)}</div>',
        markdown=f"{inline_code(title)} {words}",
        text=f"{title}: {words}",
    )
    both = joined([head, *(render_diff(diff) for diff in item.diffs if with_diffs)])
    return Rendered(f'<div style="{CALL}">{both.html}</div>', both.markdown, both.text)
