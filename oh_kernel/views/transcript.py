"""How does a person see a turn while it runs?

One live area is redrawn in place, at most ten times a second, and never stands still for more than
a second. When the turn ends, however it ends, the area is replaced by its static form.
"""

import asyncio
import logging
import threading
import time
import uuid
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from oh_kernel.conversation.log import Passing
from oh_kernel.events import Event
from oh_kernel.loop import spawn
from oh_kernel.views.blocks import NOTHING
from oh_kernel.views.calls import Call
from oh_kernel.views.live import LiveTurn
from oh_kernel.views.rendered import Rendered
from oh_kernel.views.static import MAX_SAVED_CHARS, fitting, footer, framed
from oh_kernel.views.status import status_line
from oh_kernel.views.turn import Block, Notice, Turn

UPDATE_INTERVAL_S = 0.1
HEARTBEAT_S = 1.0
# Every update sends the whole area, so a long turn is shown in several areas, one after the other.
_LIVE_CHARS = 48_000
_AREA_BLOCKS = 24
# What an area may always show, however much was shown before it.
_LEAST_CHARS = 8_000

logger = logging.getLogger(__name__)


class Publish(Protocol):
    """Shows a bundle of MIME data, or with `update` replaces what has this display id."""

    def __call__(self, data: dict[str, str], *, display_id: str, update: bool) -> None: ...


@dataclass(frozen=True)
class _Area:
    """An area that has ended: where it stands, which blocks it shows, how long it may be."""

    display_id: str
    first: int
    stop: int
    max_chars: int


class Transcript:
    """The live view of one turn; a listener of its conversation.

    `event` and `delta` come on the agent thread, `begin`, `segment` and `close` on any. One lock
    guards everything here, and `publish` is called while it is held, so updates cannot overtake
    each other; `publish` must neither block nor call back.
    """

    def __init__(
        self,
        publish: Publish,
        *,
        workspace: PurePath | None = None,
        open_edits: bool = True,
        max_saved_chars: int = MAX_SAVED_CHARS,
        display_id: str = "",
    ) -> None:
        """`display_id` is of a display that the transcript takes the place of."""
        self._publish = publish
        self._open_edits = open_edits
        self._room = max_saved_chars
        self._lock = threading.RLock()
        self._live = LiveTurn(turn=Turn(workspace=workspace))
        self._started = time.monotonic()
        self._display_id = display_id  # of the live area; "" while there is none
        self._split = False  # the live area is to end as soon as it can
        self._first_block = 0  # where the live area begins in the turn's blocks
        self._listing: _Area | None = None  # the ended area whose list of tasks stands open
        self._drawn_at = 0.0
        self._changed = False
        self._closed = False
        self._ticker: Future[None] | None = None

    def begin(self, activity: str = "starting") -> None:
        """Show a status line at once, and from now on keep it moving."""
        with self._lock:
            self._live.begin(activity)
            self._draw()
            if self._ticker is None and not self._closed:
                self._ticker = spawn(self._tick())

    def event(self, event: Event) -> None:
        """An event was stored."""
        with self._lock:
            if self._closed:
                return
            self._live.event(event)
            self._fold_list()
            self._split = self._split or self._is_long()
            self._settle()
            self._mark_changed()

    def notice(self, text: str) -> None:
        """Say something about the conversation itself, in one line."""
        with self._lock:
            self._live.turn.blocks.append(Notice(text))
            self._mark_changed()

    def delta(self, delta: Passing) -> None:
        """A piece of something that is on its way."""
        with self._lock:
            if not self._closed:
                self._live.delta(delta)
                self._mark_changed()

    def segment(self) -> None:
        """Make the live area static; what comes next opens a new one below.

        For output that the kernel shows by itself, such as a plot: it then stands in its place. An
        area with a running call stays live until the call has ended, above that output.
        """
        with self._lock:
            self._split = True
            self._settle()

    def close(self) -> None:
        """Show the final state: all areas static, with a footer. Does nothing a second time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._ticker is not None:
                self._ticker.cancel()
            self._live.end()
            foot = footer(self._live.turn, time.monotonic() - self._started)
            self._finalise(max(self._room, _LEAST_CHARS), foot)

    @property
    def answer(self) -> str:
        """The final answer, as far as there is one."""
        with self._lock:
            return self._live.turn.answer

    async def _tick(self) -> None:
        """Redraws what has changed, and moves the clock when nothing has."""
        while True:
            await asyncio.sleep(UPDATE_INTERVAL_S)
            with self._lock:
                if self._closed:
                    return
                age_s = time.monotonic() - self._drawn_at
                if self._changed or age_s >= HEARTBEAT_S:
                    self._redraw()

    def _redraw(self) -> None:
        try:
            self._draw()
        except Exception:  # a front end that went away must not end the clock
            logger.exception("the transcript could not be redrawn")

    def _mark_changed(self) -> None:
        self._changed = True
        if time.monotonic() - self._drawn_at >= UPDATE_INTERVAL_S:
            self._draw()

    def _draw(self) -> None:
        blocks = self._live.blocks(self._first_block)
        content = fitting(blocks, max_chars=_LIVE_CHARS, open_edits=self._open_edits)
        self._show(framed(content, status_line(self._live.status_line)))

    def _settle(self) -> None:
        """Ends the live area if that was asked for and none of its calls is running."""
        turn = self._live.turn
        if self._split and not turn.open_calls:
            self._split = False
            if self._display_id or len(turn.blocks) > self._first_block:
                # Half of the room is left for what comes after.
                self._finalise(max(self._room // 2, _LEAST_CHARS), NOTHING)

    def _finalise(self, max_chars: int, foot: Rendered) -> None:
        blocks = self._live.turn.blocks
        content = framed(fitting(blocks[self._first_block :], max_chars=max_chars), foot)
        self._room -= len(content)
        self._show(content)
        if any(map(_is_open_list, blocks[self._first_block :])):
            self._listing = _Area(self._display_id, self._first_block, len(blocks), max_chars)
        self._first_block = len(blocks)
        self._display_id = ""

    def _fold_list(self) -> None:
        """Shows an ended area anew when its list of tasks is no longer the last."""
        area = self._listing
        if area is None:
            return
        blocks = self._live.turn.blocks[area.first : area.stop]
        if not any(map(_is_open_list, blocks)):
            self._listing = None
            content = framed(fitting(blocks, max_chars=area.max_chars))
            self._publish(content.bundle(), display_id=area.display_id, update=True)

    def _show(self, rendered: Rendered) -> None:
        update = bool(self._display_id)
        self._display_id = self._display_id or uuid.uuid4().hex
        self._drawn_at = time.monotonic()
        self._changed = False
        self._publish(rendered.bundle(), display_id=self._display_id, update=update)

    def _is_long(self) -> bool:
        return len(self._live.turn.blocks) - self._first_block >= _AREA_BLOCKS


def _is_open_list(block: Block) -> bool:
    return isinstance(block, Call) and block.shows_tasks and not block.superseded
