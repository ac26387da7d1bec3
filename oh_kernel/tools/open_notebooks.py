"""Is a notebook open in a running Jupyter server, and can edits be made in the open document?

Running servers are found by the files that they leave in the user's own runtime folder. Only those
that listen on loopback are asked, with their token, which goes nowhere else.
"""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from agentskills.disk import resolved

TIMEOUT_S = 3.0
_MAX_ANSWER_BYTES = 10 * 1024 * 1024
# What a server that listens everywhere, or on loopback, is reached by.
_REACHED_BY = {
    "": "127.0.0.1",
    "*": "127.0.0.1",
    "0.0.0.0": "127.0.0.1",
    "::": "::1",
    "localhost": "localhost",
    "127.0.0.1": "127.0.0.1",
    "::1": "::1",
}


class NoAnswer(Exception):
    """A server did not answer, or not to us."""


@dataclass(frozen=True)
class Server:
    """A running server that listens on loopback."""

    host: str
    port: int
    base_url: str
    root: Path
    is_secure: bool
    token: str = field(repr=False)

    @property
    def name(self) -> str:
        """How a person knows it; without the token."""
        return f"{self.host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """What lets a request in."""
        return {"Authorization": f"token {self.token}"} if self.token else {}

    def api_path(self, path: Path) -> str | None:
        """What the server calls a file: its path below the server's root folder."""
        target, root = resolved(path), resolved(self.root)
        return target.relative_to(root).as_posix() if target.is_relative_to(root) else None

    def ask(self, method: str, api: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """Status and JSON of an answer; NoAnswer when none comes in time or it refuses us."""
        connection = self._connection()
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"{self.base_url}api/{api}", content, self.headers)
            response = connection.getresponse()
            text = response.read(_MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"{self.name} did not answer ({type(error).__name__})") from error
        finally:
            connection.close()
        if response.status in (302, 401, 403):
            raise NoAnswer(f"{self.name} asks for a login")
        return response.status, _parsed(text)

    def _connection(self) -> http.client.HTTPConnection:
        if not self.is_secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        # Certificates are made out to other names than loopback.
        context = ssl._create_unverified_context()
        return http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_S, context=context)


@dataclass(frozen=True)
class Room:
    """Where the clients of an open document meet (jupyter-collaboration)."""

    server: Server
    api_path: str
    file_id: str
    session_id: str

    @property
    def room_id(self) -> str:
        """Its name in addresses, where the server does not expect the colons to be quoted."""
        return f"json:notebook:{quote(self.file_id)}"


@dataclass(frozen=True)
class Whereabouts:
    """Whether a notebook is open, and where. `room` is None where its document is not shared."""

    is_open: bool = False
    server: str = ""
    room: Room | None = None
    is_known: bool = False
    """Whether a server that has the file in its folder has answered."""
    unasked: tuple[str, ...] = ()
    """Why servers that have the file in their folder could not be asked."""


def runtime_folder() -> Path:
    """Where Jupyter's servers leave word of themselves."""
    from jupyter_core.paths import jupyter_runtime_dir  # only needed where files are looked up

    return Path(jupyter_runtime_dir())


def running_servers(folder: Path) -> Iterator[Server]:
    """The servers of this user that run and listen on loopback."""
    for file in sorted(folder.glob("jpserver-*.json")):
        try:
            server = _server(json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # being written, or of another kind
        if server is not None:
            yield server


def find_open(path: Path, folder: Path) -> Whereabouts:
    """Where the notebook is open, asking every running server; takes a few milliseconds each."""
    is_known, unasked = False, []
    for server in running_servers(folder):
        is_below = server.api_path(path) is not None
        try:
            found = _asked(server, path)
        except NoAnswer as error:
            unasked += [str(error)] if is_below else []
            continue
        if found is not None:
            return found
        is_known = is_known or is_below
    return Whereabouts(is_known=is_known, unasked=tuple(unasked))


def _asked(server: Server, path: Path) -> Whereabouts | None:
    _, sessions = server.ask("GET", "sessions")
    has_session = any(_is_of(session, server.root, path) for session in sessions or [])
    room = _room(server, path)
    if has_session or (room and _is_inhabited(room)):
        return Whereabouts(True, server.name, room, is_known=True)
    return None


def _is_of(session: Any, root: Path, path: Path) -> bool:
    name = session.get("path") if isinstance(session, dict) else None
    return isinstance(name, str) and resolved(root / name.lstrip("/")) == resolved(path)


def _room(server: Server, path: Path) -> Room | None:
    """The room of a document; None without jupyter-collaboration in the server."""
    api_path = server.api_path(path)
    if api_path is None:
        return None
    body = {"format": "json", "type": "notebook"}
    status, answer = server.ask("PUT", f"collaboration/session/{quote(api_path)}", body)
    if status not in (200, 201) or not isinstance(answer, dict):
        return None
    return Room(server, api_path, str(answer["fileId"]), str(answer["sessionId"]))


def _is_inhabited(room: Room) -> bool:
    """Whether somebody is, or was a moment ago, in the room.

    The server does not say so, and joining a room makes it. But only a room that is there can be
    forked, and forks are easily removed.
    """
    api = "collaboration/fork"
    body = {"synchronize": False, "title": "", "description": ""}
    status, answer = room.server.ask("PUT", f"{api}/{room.room_id}", body)
    if status != 201 or not isinstance(answer, dict):
        return False
    room.server.ask("DELETE", f"{api}/{quote(str(answer['fork_roomid']))}?merge=false")
    return True


def _server(info: Mapping[str, Any]) -> Server | None:
    host = _REACHED_BY.get(str(info.get("hostname")))
    if host is None or info.get("sock") or not psutil.pid_exists(int(info["pid"])):
        return None
    return Server(
        host=host,
        port=int(info["port"]),
        base_url=str(info["base_url"]),
        root=Path(info.get("root_dir") or info["notebook_dir"]),
        is_secure=bool(info.get("secure")),
        token=str(info.get("token") or ""),
    )


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # a page for people
