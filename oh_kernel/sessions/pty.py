"""How is a program kept on a pseudo-terminal of its own, and ended with all that it started?"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oh_kernel.errors import SessionError
from oh_kernel.sessions.screen import COLUMNS, ROWS

_READ_BYTES = 65_536
_HANGUP_GRACE_S = 0.5
_REAP_S = 1.0
_POLL_S = 0.005
_STREAM_READ = "0x400"
LINE_MAX_BYTES = 4095
"""What Linux keeps of a line for a program that reads lines; it drops the rest of it."""
_SHELLS = ("bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "fish")
_WITH_VALUE = ("--rcfile", "--init-file", "-o", "+o", "-O", "+O")


class PtyProcess:
    """A child process that leads a session with its own terminal.

    Belongs to the event loop on which it is made; all methods are called there. `on_bytes` gets
    what it prints, `on_end` is called once when the terminal closes.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._spawned = _spawn(argv, cwd, env)
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self.pid: int = self._spawned.pid
        self._fd: int = self._spawned.child_fd
        self._reading = True
        self._gone = False
        os.set_blocking(self._fd, False)
        self._attributes = _line_mode(termios.tcgetattr(self._fd))
        self._loop.add_reader(self._fd, self._read)

    @property
    def exit_status(self) -> int | None:
        """As a shell would report it (128 + signal); None while the process lives."""
        if not self._gone and (_surely_lives(self.pid) or self._spawned.isalive()):
            return None
        signal_number = self._spawned.signalstatus
        return int(self._spawned.exitstatus if signal_number is None else 128 + signal_number)

    @property
    def foreground_group(self) -> int:
        """The process group that has the terminal; 0 when there is none."""
        try:
            return os.tcgetpgrp(self._fd)
        except OSError:
            return 0

    @property
    def foreground(self) -> tuple[int, object]:
        """The foreground group, and something that differs once its leader runs another program."""
        group = self.foreground_group
        try:
            return group, image_of(group)
        except _psutil().Error:  # the leader has ended
            return group, None

    @property
    def waits_for_line(self) -> bool | None:
        """Whether the process itself reads lines of the terminal; None where that cannot be seen.

        Only what C libraries read through a stream asks for so much at once: a shell at its prompt
        does, its `read`, `select` and `mapfile` do not.
        """
        try:
            fields = Path(f"/proc/{self.pid}/syscall").read_text().split()
        except OSError:
            return None
        return len(fields) > 3 and (fields[1], fields[3]) == ("0x0", _STREAM_READ)

    def set_line_mode(self) -> None:
        """Undo what programs did to the terminal: whole lines, no echo, C-c is a signal."""
        if termios.tcgetattr(self._fd) != self._attributes:  # setting them is slow
            termios.tcsetattr(self._fd, termios.TCSANOW, self._attributes)

    async def write(self, data: bytes, deadline_s: float = 2.0) -> int:
        """Type `data`; how much of it was taken before the deadline."""
        end = self._loop.time() + deadline_s
        sent = 0
        while sent < len(data):
            try:
                sent += os.write(self._fd, data[sent:])
            except BlockingIOError:
                if self._loop.time() >= end:
                    break
                await asyncio.sleep(_POLL_S)
            except OSError:  # the other side is gone; the reader sees that too
                break
        return sent

    def dropped(self, data: bytes) -> int:
        """How many bytes of `data` no program will see, were it typed now."""
        if not termios.tcgetattr(self._fd)[3] & termios.ICANON:
            return 0
        return sum(max(0, len(line) - LINE_MAX_BYTES) for line in re.split(rb"[\r\n]", data))

    async def interrupt(self) -> None:
        """C-c for the foreground job, or its signal where C-c is read as a plain character."""
        if termios.tcgetattr(self._fd)[3] & termios.ISIG:
            await self.write(b"\x03")
        elif group := self.foreground_group:
            _signal_group(group, signal.SIGINT)

    def wake(self) -> None:
        """Have the process go on if it was stopped."""
        if _state(self.pid) == _psutil().STATUS_STOPPED:
            _signal(self.pid, signal.SIGCONT)

    async def wait_for_exit(self) -> int:
        """The exit status of a process whose terminal is closed; it is killed if it lingers."""
        end = self._loop.time() + _REAP_S
        while self.exit_status is None and self._loop.time() < end:
            await asyncio.sleep(_POLL_S)
        if self.exit_status is None:
            os.kill(self.pid, signal.SIGKILL)
        while (status := self.exit_status) is None:
            await asyncio.sleep(_POLL_S)
        return status

    async def end(self) -> None:
        """Hang up, wait a little, then kill whatever is left of the session."""
        if self._gone:
            return
        members = self._members()
        for pid in members:
            _signal(pid, signal.SIGHUP)
            _signal(pid, signal.SIGCONT)  # a stopped job gets the hang-up only when it goes on
        end = self._loop.time() + _HANGUP_GRACE_S
        while any(map(_lives, members)) and self._loop.time() < end:
            await asyncio.sleep(_POLL_S)
        self.kill()

    def kill(self) -> None:
        """Kill the session at once and give back the terminal."""
        if self._gone:
            return
        for pid in self._members():
            _signal(pid, signal.SIGKILL)
        self._stop_reading()
        self._spawned.close(force=True)
        self._gone = True

    def _members(self) -> set[int]:
        """What is left of the session; nothing once its number belongs to another process."""
        if self.exit_status is not None and _state(self.pid):
            return set()
        return _session(self.pid)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody holds the other side any more
            data = b""
        if data:
            self._on_bytes(data)
        else:
            self._stop_reading()
            self._on_end()

    def _stop_reading(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._fd)
            self._reading = False


def _surely_lives(child: int) -> bool:
    """One quick question, where the system knows it; it leaves the child's end to be collected."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:  # it was collected
        return False


def image_of(pid: int) -> object:
    """Something that differs once `pid` has replaced itself by another program (exec)."""
    try:
        return Path(f"/proc/{pid}/auxv").read_bytes()  # holds addresses drawn anew at each exec
    except OSError:
        return _psutil().Process(pid).cmdline()


def is_plain_shell(pid: int) -> bool:
    """Whether `pid` runs a shell that takes its commands from the terminal, not from a script."""
    psutil = _psutil()
    try:
        name, *arguments = psutil.Process(pid).cmdline() or [""]
    except psutil.Error:
        return False
    return Path(name.lstrip("-")).name in _SHELLS and _only_options(arguments)


def _only_options(arguments: Sequence[str]) -> bool:
    rest = iter(arguments)
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif not re.fullmatch(r"--.*|[-+][^c]*", argument):  # a script, or commands (-c)
            return False
    return True


def _spawn(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Any:
    import pexpect  # 60 ms, and not needed until a shell is

    try:
        spawned = pexpect.spawn(
            argv[0],
            list(argv[1:]),
            cwd=str(cwd),
            env=dict(env),
            echo=False,
            dimensions=(ROWS, COLUMNS),
            preexec_fn=_default_signals,
        )
    except (pexpect.ExceptionPexpect, OSError) as error:
        raise SessionError(
            f"{argv[0]} could not be started in {cwd}: {error}.",
            remedy="Check that it is installed and that the folder exists.",
        ) from error
    # Its pauses would hold up the event loop.
    spawned.ptyproc.delayafterclose = spawned.ptyproc.delayafterterminate = 0.01
    spawned.delayafterclose = spawned.delayafterterminate = 0.01
    return spawned


def _default_signals() -> None:
    # Python ignores SIGPIPE, a kernel in the background may ignore SIGINT; children inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _line_mode(attributes: list[Any]) -> list[Any]:
    attributes[0] &= ~termios.IXON  # C-s must not freeze the output
    attributes[3] &= ~termios.ECHO
    attributes[3] |= termios.ICANON | termios.ISIG
    return attributes


def _psutil() -> Any:
    import psutil  # only when processes are looked for

    return psutil


def _session(leader: int) -> set[int]:
    """The processes of the session that `leader` leads, with descendants that left it."""
    psutil = _psutil()
    members = {pid for pid in psutil.pids() if _session_of(pid) == leader}
    for pid in tuple(members):
        try:
            members |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
        except psutil.Error:
            continue  # it has just ended
    return members


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _lives(pid: int) -> bool:
    return _state(pid) not in ("", _psutil().STATUS_ZOMBIE)


def _state(pid: int) -> str:
    """What the process is doing, in psutil's words; empty when it has ended."""
    psutil = _psutil()
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return ""


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # it has ended, or has become another user's (sudo)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return
