"""How is a notebook edited while people have it open (jupyter-collaboration)?

As one more client of the shared document: what others type meanwhile is kept, they see the edit at
once, and the server saves the file as it saves theirs.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import quote

from oh_kernel.tools.notebook_changes import (
    Change,
    Cleared,
    Deleted,
    Inserted,
    Moved,
    NewSource,
    Replaced,
    shared_ends,
    source_of,
)
from oh_kernel.tools.open_notebooks import NoAnswer, Room

if TYPE_CHECKING:
    from pycrdt import Map, Text
    from tornado.websocket import WebSocketClientConnection

TIMEOUT_S = 15.0
_MAX_MESSAGE_BYTES = 1024 * 1024 * 1024  # as the server's own limit


class CannotShare(Exception):
    """This Python lacks what the shared document is made of."""


class LiveNotebook:
    """The shared document of an open notebook, as far as it has reached us. On the agent thread."""

    def __init__(self, socket: "WebSocketClientConnection") -> None:
        from jupyter_ydoc import YNotebook  # an extra; loads a compiled library

        self._socket = socket
        self._document = YNotebook()

    @property
    def value(self) -> dict[str, Any]:
        """What the document says now, in the form of a file's JSON."""
        notebook: dict[str, Any] = self._document.get()
        return notebook

    async def synchronize(self) -> None:
        """Have everything that the server has; it has all of ours then, too."""
        from pycrdt import create_sync_message

        await self._send(create_sync_message(self._document.ydoc))
        async with asyncio.timeout(TIMEOUT_S):
            while not await self._received_all():
                continue

    async def change(self, changes: Sequence[Change]) -> None:
        """Make changes in the document, and wait until the server has them."""
        from pycrdt import create_update_message

        ydoc = self._document.ydoc
        before = ydoc.get_state()
        with ydoc.transaction():
            for change in changes:
                self._make(change)
        await self._send(create_update_message(ydoc.get_update(before)))
        await self.synchronize()

    async def _send(self, message: bytes) -> None:
        from tornado.websocket import WebSocketClosedError

        try:
            await self._socket.write_message(message, binary=True)
        except WebSocketClosedError as error:
            raise NoAnswer("the connection to the open document was closed") from error

    async def _received_all(self) -> bool:
        """Take one message; whether it was the answer to our own state."""
        from pycrdt import YMessageType, YSyncMessageType, handle_sync_message

        message = await self._socket.read_message()
        if message is None:
            raise NoAnswer("the server closed the connection to the open document")
        if not isinstance(message, bytes) or message[0] != YMessageType.SYNC:
            return False
        reply = handle_sync_message(message[1:], self._document.ydoc)
        if reply is not None:
            await self._send(reply)
        return message[1] == YSyncMessageType.SYNC_STEP2

    def _make(self, change: Change) -> None:
        cells = self._document.ycells
        match change:
            case NewSource(index, source):
                _retype(cells[index]["source"], source)
            case Cleared(index):
                _clear(cells[index])
            case Replaced(index, cell):
                cells[index] = self._cell(cell)
            case Inserted(index, cell):
                cells.insert(index, self._cell(cell))
            case Deleted(index):
                del cells[index]
            case Moved(index, to):
                moved = self._document.get_cell(index)
                del cells[index]
                cells.insert(to, self._cell(moved))
            case _:
                assert_never(change)

    def _cell(self, cell: Any) -> "Map[Any]":
        made: Map[Any] = self._document.create_ycell({**cell, "source": source_of(cell)})
        return made


@asynccontextmanager
async def live_notebook(room: Room) -> AsyncIterator[LiveNotebook]:
    """Join the room of an open notebook, for as long as the block lasts.

    Raises CannotShare without the libraries for it, NoAnswer when the server does not let us in.
    """
    try:
        import jupyter_ydoc  # noqa: F401 - the extra `collaboration`
    except ImportError as error:
        raise CannotShare from error
    socket = await _joined(room)
    try:
        notebook = LiveNotebook(socket)
        await notebook.synchronize()
        yield notebook
    except TimeoutError as error:
        raise NoAnswer(f"{room.server.name} did not share the open document") from error
    finally:
        socket.close()


async def _joined(room: Room) -> "WebSocketClientConnection":
    from tornado.httpclient import HTTPClientError, HTTPRequest  # a part of every kernel
    from tornado.websocket import websocket_connect

    server = room.server
    host = f"[{server.host}]" if ":" in server.host else server.host
    request = HTTPRequest(
        f"{'wss' if server.is_secure else 'ws'}://{host}:{server.port}{server.base_url}"
        f"api/collaboration/room/{room.room_id}?sessionId={quote(room.session_id)}",
        headers=server.headers,
        validate_cert=False,  # certificates are made out to other names than loopback
        connect_timeout=TIMEOUT_S,
    )
    try:
        return await websocket_connect(request, max_message_size=_MAX_MESSAGE_BYTES)
    except (OSError, HTTPClientError) as error:
        raise NoAnswer(f"{server.name} did not open the document ({error})") from error


def _retype(text: "Text", new: str) -> None:
    """Replace what differs only, so that cursors elsewhere in the cell stay where they are."""
    old = str(text)
    begin, end = shared_ends(old, new)
    start = len(old[:begin].encode())  # places in a shared text are counted in bytes
    stop = len(old[: len(old) - end].encode())
    if start < stop:
        del text[start:stop]
    if added := new[begin : len(new) - end]:
        text.insert(start, added)


def _clear(cell: "Map[Any]") -> None:
    if "outputs" in cell:
        cell["outputs"].clear()
    cell["execution_count"] = None
