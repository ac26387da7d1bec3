"""How does one bash live on from command to command, whatever the commands do to it?

One `BashSession` has one shell on its own terminal. A command is handed over as a file and ends
with a record (see `bash_protocol`), so exit code and folder are bash's own words. A command that is
not done when its time is over keeps running: it can be followed, typed to and interrupted.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oh_kernel.errors import SessionError, ShellDied
from oh_kernel.sessions.bash_protocol import (
    RC,
    REARM,
    SETUP,
    TOO_OLD_STATUS,
    Files,
    Handover,
    Record,
    RecordScanner,
    command_line,
    files_for,
    replace_line,
    setup_line,
    shell_command,
)
from oh_kernel.sessions.capture import Capture
from oh_kernel.sessions.pty import PtyProcess, image_of, name_of
from oh_kernel.sessions.python_first import PythonFirst
from oh_kernel.sessions.screen import Screen

OWN_KEYS = ("SESSION_API_KEY", "OPENHANDS_API_KEY", "LLM_API_KEY")

_FOREVER = math.inf
_LOOK_S = 0.1
# How long a shell that ought to be at its prompt may be silent before it is set up again.
_PROMPT_LOST_S = 0.3
# How long a C-c may take to end what it struck, before it is asked whether it missed.
_STRUCK_S = 0.2
_SYNC_S = 0.1
_SYNC_TRIES = 20

Ending = Literal["finished", "quiet", "timeout", "died"]


@dataclass(frozen=True)
class Outcome:
    """What came of a command so far.

    `ending` says why it was looked at now: it is done, nothing new came for a while, its time is
    over, or the shell itself ended. `text` is the output since the last outcome, from `capture`.
    `shell_replaced`: a new shell had to be started, before the command or after it.
    """

    ending: Ending
    command: str
    text: str
    capture: Capture
    exit_code: int | None
    shell_replaced: bool = False


class BashSession:
    """A bash, started at the first command. Every method is called on one event loop."""

    def __init__(
        self,
        folder: str | Path,
        *,
        env: Mapping[str, str] | None = None,
        interpreter: str = sys.executable,
        handover: Handover | None = None,
        output_folder: Path | None = None,
        bash: str = "bash",
        start_s: float = 10.0,
    ) -> None:
        self.folder = Path(folder)
        self._env = env
        self._python = PythonFirst(interpreter)
        self._handover: Handover = handover or ("memory" if sys.platform == "linux" else "file")
        self._output_folder = output_folder
        self._own_output: tempfile.TemporaryDirectory[str] | None = None
        self._bash = bash
        self._start_s = start_s
        self._files: Files | None = None
        self._pty: PtyProcess | None = None
        self._record: Record | None = None
        self._command = ""
        self._ended: asyncio.Future[Record | None] | None = None
        self._screen = Screen()
        self._capture = Capture(self._new_output_file)
        self._on_output: Callable[[str], None] | None = None
        self._last_output = 0.0
        self._marks = 0
        self._awaited_mark = ""
        self._synced: asyncio.Future[None] | None = None
        self._prompt = b""
        self._typed = False
        self._interrupted = False
        self._discarding = False
        self._shell_replaced = False
        self._forget: list[str] = []

    # What can be asked

    @property
    def running(self) -> bool:
        """Whether a command has been started and has not ended."""
        return self._ended is not None and not self._ended.done()

    @property
    def pid(self) -> int | None:
        """The shell's process id; None before the first command."""
        return self._pty.pid if self._pty else None

    @property
    def cwd(self) -> str:
        """Where the shell was after the last command that ended."""
        return self._record.cwd if self._record else str(self.folder)

    @property
    def python(self) -> str | None:
        """The interpreter that `python` meant after the last command that ended."""
        return self._python.found_on(self._record.path) if self._record else None

    @property
    def last_background_pid(self) -> int:
        """The process id of the last background job; -1 if there was none."""
        return self._record.last_background_pid if self._record else -1

    # What can be done

    async def run(
        self,
        command: str,
        *,
        quiet_s: float | None = None,
        timeout_s: float | None = None,
        on_output: Callable[[str], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Start `command` and follow it; `env` is exported for this command alone."""
        if self.running:
            raise SessionError(f"The shell is still busy with {self._command!r}.")
        await self._be_ready()
        await self._send(command, env or {})
        return await self.follow(quiet_s=quiet_s, timeout_s=timeout_s, on_output=on_output)

    async def follow(
        self,
        *,
        quiet_s: float | None = None,
        timeout_s: float | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> Outcome:
        """Wait until the command ends, says nothing for `quiet_s`, or `timeout_s` have passed."""
        assert self._ended is not None, "nothing was started"
        now = asyncio.get_running_loop().time
        self._last_output = now()
        deadline = _FOREVER if timeout_s is None else now() + timeout_s
        quiet_s = _FOREVER if quiet_s is None else quiet_s
        self._on_output = on_output
        try:
            while not self._ended.done():
                if (left := deadline - now()) <= 0:
                    return self._outcome("timeout")
                if (patience := self._last_output + quiet_s - now()) <= 0:
                    return self._outcome("quiet")
                await asyncio.wait({self._ended}, timeout=min(left, patience, _LOOK_S))
                await self._look_after_shell()
        finally:
            self._on_output = None
        record = self._ended.result()
        return self._outcome("finished", record) if record else await self._died()

    async def type(self, data: bytes) -> int:
        """Send `data` to the running command as if typed; how much of it was taken."""
        assert self._pty is not None, "nothing was started"
        self._typed = True
        self._interrupted = self._interrupted or any(key in data for key in b"\x03\x1c")
        return await self._pty.write(data)

    async def interrupt(self, grace_s: float = 1.0) -> Outcome:
        """C-c for the running command; what came of it within `grace_s`."""
        assert self._pty is not None, "nothing was started"
        self._typed = self._interrupted = True
        if self._ended is not None and self.running:
            struck = self._pty.foreground
            await self._pty.interrupt()
            await asyncio.wait({self._ended}, timeout=min(_STRUCK_S, grace_s))
            # It may have struck the shell while that started a program, which then runs on.
            if self.running and self._pty.foreground != struck:
                await self._pty.interrupt()
        return await self.follow(timeout_s=grace_s)

    async def restart(self) -> None:
        """End the shell with everything it started, and start a new one."""
        await self._end_shell()
        await self._start()

    async def close(self) -> None:
        """End the shell with everything it started. The session can be used again."""
        await self._end_shell()
        self._remove_files()

    def kill(self) -> None:
        """What `close` does, at once and without a chance for programs to put things in order."""
        if self._pty is not None:
            self._pty.kill()
        self._forget_shell()
        self._remove_files()

    # The shell

    async def _be_ready(self) -> None:
        if self._pty is None:
            await self._start()
        elif self._pty.exit_status is not None or not await self._at_prompt():
            await self.restart()
            self._shell_replaced = True

    async def _start(self) -> None:
        if not self.folder.is_dir():
            raise SessionError(
                f"The shell's folder {self.folder} does not exist.", remedy="Create it first."
            )
        # A ~/.bashrc that ends the shell, replaces it or waits for somebody is left out.
        for with_bashrc in (True, False):
            try:
                if await self._try_start(with_bashrc):
                    return
            except asyncio.CancelledError:
                self.kill()
                raise
        raise ShellDied(
            f"{self._bash} in {self.folder} did not come to its prompt within {self._start_s:g} s.",
            remedy="Try it in a terminal.",
        )

    async def _try_start(self, with_bashrc: bool) -> bool:
        token = secrets.token_hex(8)
        self._files = files_for(self._handover)
        token_path = self._files.put("token", f"{token}\n".encode())
        self._setup_path, self._rearm_path = (
            self._files.put(name, text.replace("@TOKEN@", token_path).encode())
            for name, text in (("setup", SETUP), ("rearm", REARM))
        )
        rc = RC.replace("@BASHRC@", "yes" if with_bashrc else "")
        rc = rc.replace("@SETUP@", self._setup_path).replace("@TOO_OLD@", str(TOO_OLD_STATUS))
        rc = rc.replace("'@BIN@'", shlex.quote(":".join(self._python.folders())))
        self._rc_path = self._files.put("rc", rc.encode())
        self._scanner = RecordScanner(token.encode())
        self._ended = asyncio.get_running_loop().create_future()
        self._discarding = True
        self._pty = PtyProcess(
            shell_command(self._bash, self._rc_path),
            cwd=self.folder,
            env=_environment(self._env),
            on_bytes=self._read,
            on_end=self._end,
        )
        await asyncio.wait({self._ended}, timeout=self._start_s)
        if self._ended.done() and self._ended.result():
            self._image = image_of(self._pty.pid)
            return True
        status = self._pty.exit_status
        await self._end_shell()
        if status == TOO_OLD_STATUS:
            raise SessionError(
                f"{self._bash} is too old: version 4.4 is needed.",
                remedy="Install a newer one and put it first on PATH.",
            )
        return False

    async def _end_shell(self) -> None:
        if self._pty is not None:
            await self._pty.end()
        self._forget_shell()

    def _forget_shell(self) -> None:
        if self._files is not None:
            self._files.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        self._files = self._pty = self._record = self._ended = None
        self._capture.close()
        self._capture = Capture(self._new_output_file)
        self._screen = Screen()
        self._typed = self._interrupted = False
        self._synced = None
        self._prompt = b""
        self._forget = []

    async def _at_prompt(self) -> bool:
        """Make sure that no record is on its way, after keys that may have brought one."""
        if not self._typed:
            return True
        assert self._pty is not None
        self._pty.set_line_mode()
        for _ in range(_SYNC_TRIES):
            synced = self._synced = asyncio.get_running_loop().create_future()
            await self._pty.write(setup_line(self._setup_path, self._next_mark()))
            await asyncio.wait({synced}, timeout=_SYNC_S)
            if synced.done():
                self._typed = self._interrupted = False
                return True
        self._synced = None
        return False

    def _next_mark(self) -> str:
        self._marks += 1
        self._awaited_mark = str(self._marks)
        return self._awaited_mark

    async def _send(self, command: str, env: Mapping[str, str]) -> None:
        assert self._pty is not None
        assert self._files is not None
        self._command = command
        self._forget = list(env)
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
        text = (exports + command).encode("utf-8", "replace") + b"\n"
        self._command_path = self._files.put("command", text)
        self._ended = asyncio.get_running_loop().create_future()
        self._pty.set_line_mode()
        await self._pty.write(command_line(self._command_path, self._rearm_path, self._forget))

    async def _look_after_shell(self) -> None:
        """Notice a shell that has died, and one at its prompt that no longer prints records."""
        assert self._pty is not None
        assert self._ended is not None
        if self._ended.done():
            return
        if self._pty.exit_status is not None:  # a background job may hold the terminal open
            self._end()
            return
        silent_s = asyncio.get_running_loop().time() - self._last_output
        if silent_s < _PROMPT_LOST_S or self._pty.foreground_group != self._pty.pid:
            return
        self._pty.wake()  # `kill -STOP $$` or `suspend`: nobody else could
        image, name = image_of(self._pty.pid), name_of(self._pty.pid)
        if image != self._image and name == Path(self._bash).name:  # `exec bash`
            self._image = image
            self._screen.take_line()  # its prompt, and what follows is the echo of our line
            self._discarding = True
            await self._pty.write(replace_line(self._bash, self._rc_path))
        elif self._interrupted:  # C-c struck after PROMPT_COMMAND was changed
            self._interrupted = False
            self._typed = True
            await self._pty.write(setup_line(self._setup_path, self._next_mark()))

    # What it prints

    def _read(self, data: bytes) -> None:
        for piece in self._scanner.feed(data):
            if isinstance(piece, Record):
                self._take_record(piece)
            elif not self._discarding:
                self._take_output(self._without_prompt(piece))

    def _take_output(self, data: bytes) -> None:
        if not data:
            return
        self._last_output = asyncio.get_running_loop().time()
        settled, live = self._screen.feed(data)
        self._capture.add(settled)
        if self._on_output is not None and live:
            self._on_output(live)

    def _take_record(self, record: Record) -> None:
        self._prompt = record.prompt.replace(b"\n", b"\r\n")
        if self._synced is not None:
            if record.mark == self._awaited_mark:
                self._synced.set_result(None)
                self._synced = None
        elif self.running and record.mark in ("", self._awaited_mark):
            assert self._ended is not None
            self._discarding = False
            self._record = record
            self._ended.set_result(record)

    def _without_prompt(self, data: bytes) -> bytes:
        """`data` less the prompt that follows a record (PS1 may be read-only)."""
        prompt, self._prompt = self._prompt, b""
        if len(data) < len(prompt) and prompt.startswith(data):
            self._prompt = prompt[len(data) :]
            return b""
        return data.removeprefix(prompt)

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    # What came of it

    async def _died(self) -> Outcome:
        assert self._pty is not None
        status = await self._pty.wait_for_exit()
        outcome = self._outcome("died", exit_code=status)
        await self.restart()
        return outcome

    def _outcome(
        self, ending: Ending, record: Record | None = None, exit_code: int | None = None
    ) -> Outcome:
        over = ending in ("finished", "died")
        self._capture.add(self._screen.flush() if over else self._screen.take_line())
        capture, self._capture = self._capture, Capture(self._new_output_file)
        capture.close()
        replaced, self._shell_replaced = self._shell_replaced or ending == "died", False
        return Outcome(
            ending=ending,
            command=self._command,
            text=self._readable(capture.text),
            capture=capture,
            exit_code=record.exit_code if record else exit_code,
            shell_replaced=replaced,
        )

    def _readable(self, text: str) -> str:
        """`text` as if the command had been typed: without the file it was handed over in."""
        path = self._command_path
        return text.replace(f"+ . {path}\n", "").replace(f"{path}: ", "")

    def _new_output_file(self) -> Path:
        if self._output_folder is None and self._own_output is None:
            self._own_output = tempfile.TemporaryDirectory(prefix="oh-output-")
        folder = self._output_folder or Path(self._own_output.name if self._own_output else "")
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="terminal_output_", suffix=".txt", dir=folder)
        os.close(handle)
        return Path(name)

    def _remove_files(self) -> None:
        self._python.close()
        if self._own_output is not None:
            self._own_output.cleanup()
            self._own_output = None


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """The shell's environment: `env` (default: this process's own) without our keys."""
    source = os.environ if env is None else env
    kept = {name: value for name, value in source.items() if name not in OWN_KEYS}
    kept["AI_AGENT"] = kept.get("AI_AGENT") or "openhands"
    # A dumb terminal: there is no screen, and most programs then leave out what only moves about.
    return kept | {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat"}
