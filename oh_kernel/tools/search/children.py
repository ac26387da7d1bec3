"""How is a process run that must not outlive its time, its caller or its use?"""

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """What a process wrote, and how it ended."""

    output: bytes
    errors: bytes
    status: int | None
    """None when its time was up: the output is what was there until then."""


async def run_child(command: Sequence[str], *, given: bytes = b"", timeout_s: float) -> Ended:
    """Run a program in a session of its own, so that it ends with all that it started.

    It is killed when the time is up, and when the caller is cancelled.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, cwd="/"
    )
    output, errors = bytearray(), bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(
                _feed(process.stdin, given),
                _collect(process.stdout, output),
                _collect(process.stderr, errors),
            )
            status: int | None = await process.wait()
    except TimeoutError:
        status = None
    finally:
        _kill(process)
        await process.wait()
    return Ended(bytes(output), bytes(errors), status)


async def _feed(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    assert stream is not None
    try:
        stream.write(given)
        await stream.drain()
    except (BrokenPipeError, ConnectionResetError):
        return  # it has ended already, and its status says why
    finally:
        stream.close()


async def _collect(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    assert stream is not None
    while data := await stream.read(1 << 16):
        into += data


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
