"""The test's side of the processes in which the conversations of stories live."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0


@dataclass
class Reply:
    """What a process said to a command. `error` is the name of the error it was refused with."""

    ok: bool
    value: Any = None
    error: str = ""
    text: str = ""
    remedy: str | None = None
    status: str = ""
    waiting: list[str] = field(default_factory=list)


class Gone(Exception):
    """The process is dead."""


class Child:
    """A process in which one conversation at a time lives. Used by one thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(0.05)
        self._buffer = b""
        self._count = 0
        self._replies: dict[int, Reply] = {}
        self.stored: list[str] = []
        self.news: Counter[str] = Counter()  # by its kind; under "" all of it
        self.asked: list[str] | None = None
        self.pid = 0
        self.is_gone = False
        self.until(lambda: self.pid > 0)

    def tell(self, do: str, **given: Any) -> int:
        """Have it do something; the number of the command."""
        self._count += 1
        try:
            line = json.dumps({"n": self._count, "do": do, **given}).encode() + b"\n"
            self._connection.sendall(line)
        except OSError as error:
            raise Gone from error
        return self._count

    def ask(self, do: str, **given: Any) -> Reply:
        """Have it do something, and wait for the reply."""
        return self.reply(self.tell(do, **given))

    def reply(self, number: int) -> Reply:
        """The reply to the command with this number."""
        self.until(lambda: number in self._replies)
        return self._replies[number]

    def has_replied(self, number: int) -> bool:
        """Whether the reply to this command has come."""
        return number in self._replies

    def until(self, holds: Callable[[], bool]) -> None:
        """Take what it says until this holds; `Gone` when it will not any more."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if self.is_gone:
                raise Gone
            assert time.monotonic() < deadline, "the process does not answer"
            self._take()

    def listen(self, seconds: float) -> None:
        """Take what it says for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_gone:
            self._take(max(0.0005, deadline - time.monotonic()))

    def kill(self) -> None:
        """Kill it, and take what it said until then."""
        os.kill(self.pid, signal.SIGKILL)
        self._listen_to_the_end()

    def leave(self) -> None:
        """Have it end by itself."""
        self._connection.shutdown(socket.SHUT_WR)
        self._listen_to_the_end()

    def _listen_to_the_end(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not self.is_gone:
            assert time.monotonic() < deadline, "the process does not end"
            self._take()
        self._connection.close()

    def _take(self, timeout_s: float = 0.05) -> None:
        self._connection.settimeout(timeout_s)
        try:
            more = self._connection.recv(1 << 16)
        except TimeoutError:
            return
        except ConnectionError:
            more = b""
        self.is_gone = not more
        *lines, self._buffer = (self._buffer + more).split(b"\n")
        for line in lines:
            self._heard(json.loads(line))

    def _heard(self, said: dict[str, Any]) -> None:
        match said:
            case {"n": int(number), **reply}:
                self._replies[number] = Reply(**reply)
            case {"news": str(kind), **more}:
                self.stored += [more["stored"]] if "stored" in more else []
                self.news.update((kind, ""))
            case {"asked": list(call_ids)}:
                self.asked = call_ids
            case {"pid": int(pid)}:
                self.pid = pid


class Nursery:
    """Starts the processes; any thread may ask for one."""

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        self._control = mine
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.live.story_child"]
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs, cwd=ROOT)

    def child(self, story: str, folder: Path) -> Child:
        """A new process, whose home is this folder; its complaints go to `stderr` there."""
        mine, theirs = socket.socketpair()
        given = json.dumps({"story": story, "folder": str(folder)}).encode()
        with theirs, self._lock:
            socket.send_fds(self._control, [given], [theirs.fileno()])
        return Child(mine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.wait(DEADLINE_S)


def check_nothing_left(story: str) -> None:
    """No process of the story runs any more, or does so for longer than a moment."""
    deadline = time.monotonic() + DEADLINE_S
    while left := list(_processes_of(story)):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)


def _processes_of(story: str) -> list[str]:
    found = []
    for process in psutil.process_iter(["environ", "cmdline"]):
        if (process.info["environ"] or {}).get("OH_STORY") == story:
            found.append(f"{process.pid} {process.info['cmdline']}")
    return found
