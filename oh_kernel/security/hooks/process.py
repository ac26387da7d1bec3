"""How is a hook's command run so that it can neither hang, flood nor outlive us?"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

MAX_BYTES = 256_000
"""Of each stream; the rest is read and dropped, so that the command does not wait for a reader."""
# How long a command may take to end in good order once it is told to.
_TERM_GRACE_S = 1.0
# How long its output may still be on the way when it has ended; a stranger may hold the pipe open.
_OUTPUT_GRACE_S = 0.5


@dataclass(frozen=True)
class Ended:
    """How a command ended. `exit_code` is None when its time was over."""

    exit_code: int | None
    stdout: str
    stderr: str


class _Watched(asyncio.SubprocessProtocol):
    """Collects what a process writes, up to a limit, and notes when it ends."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self._kept = {1: bytearray(), 2: bytearray()}
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data[: MAX_BYTES - len(kept)]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()

    def text(self, fd: int) -> str:
        return self._kept[fd].decode("utf-8", "replace")


async def run_command(
    command: str, stdin: str, *, folder: Path, env: Mapping[str, str], timeout_s: float
) -> Ended:
    """Run `command` in a shell with `stdin`, to its end or to the end of its time.

    Its whole process group is gone on return, however that comes about: what it started in the
    background, too. Raises OSError when it cannot be started.
    """
    loop = asyncio.get_running_loop()
    transport, watched = await loop.subprocess_shell(
        _Watched, command, cwd=folder, env=dict(env), start_new_session=True
    )
    in_time = False
    try:
        _feed(transport, stdin)
        in_time = await _wait(watched.exited, timeout_s)
        if in_time:
            await _wait(watched.drained, _OUTPUT_GRACE_S)
    finally:
        await _end_group(transport, watched)
    code = transport.get_returncode() if in_time else None
    return Ended(code, watched.text(1), watched.text(2))


def _feed(transport: asyncio.SubprocessTransport, text: str) -> None:
    """Hand `text` over; a command that does not read it ends like any other."""
    pipe = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
    pipe.write(text.encode("utf-8", "replace"))
    pipe.write_eof()


async def _end_group(transport: asyncio.SubprocessTransport, watched: _Watched) -> None:
    """Ask the group to end, then make it; being cancelled leaves out the asking."""
    pid = transport.get_pid()
    try:
        if not watched.exited.is_set():
            _signal(pid, signal.SIGTERM)
            await _wait(watched.exited, _TERM_GRACE_S)
        _signal(pid, signal.SIGKILL)
        await _wait(watched.drained, _OUTPUT_GRACE_S)
    finally:
        _signal(pid, signal.SIGKILL)
        transport.close()


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
        os.killpg(pid, number)


async def _wait(event: asyncio.Event, limit_s: float) -> bool:
    """Whether it came in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await event.wait()
    return event.is_set()
