"""How does one bash live on from command to command, whatever the commands do to it?

One `BashSession` has one shell on its own terminal. A command is handed over as a file and ends
with a record (see `bash_protocol`), so exit code and folder are bash's own words. A command that is
not done when its time is over keeps running: it can be followed, typed to and interrupted.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from oh_kernel.errors import SessionError, ShellDied
from oh_kernel.sessions.bash_protocol import (
    TOO_OLD_STATUS,
    Record,
    RecordScanner,
    command_line,
    healing_line,
    rc_text,
    replace_line,
    setup_line,
    setup_text,
    shell_command,
    typed,
    without_machinery,
)
from oh_kernel.sessions.capture import Capture
from oh_kernel.sessions.handover import Files, Handover, files_for
from oh_kernel.sessions.masking import Forms
from oh_kernel.sessions.pty import PtyProcess, image_of, is_plain_shell
from oh_kernel.sessions.python_first import PythonFirst
from oh_kernel.sessions.shell_environment import shell_environment
from oh_kernel.sessions.shell_output import ShellOutput

_FOREVER = math.inf
_LOOK_S = 0.1
# How long a shell that ought to be at its prompt may be silent before it is set up again, how
# often that is tried, and with which try its builtins are brought back.
_PROMPT_LOST_S = 0.3
_HEALING_S = 0.2
_HEALING_TRIES = 3
_HEALING_BUILTINS = 2
# How long a C-c may take to end what it struck, before it is asked whether it missed.
_STRUCK_S = 0.2
_SYNC_S = 0.1
_SYNC_TRIES = 20
_SLOW_BASHRC_S = 1.0

Ending = Literal["finished", "quiet", "timeout", "died", "lost"]


@dataclass(frozen=True)
class Outcome:
    """What came of a command so far.

    `ending` says why it was looked at now: it is done, nothing new came for a while, its time is
    over, the shell itself ended, or the shell no longer says when commands end and was replaced.
    `text` is the output since the last outcome, from `capture`. `replaced`: why a new shell had to
    be started, before the command or after it. `remarks`: what else a user should know.
    """

    ending: Ending
    command: str
    text: str
    capture: Capture
    exit_code: int | None
    replaced: str = ""
    remarks: tuple[str, ...] = ()


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
        self._bash = bash
        self._start_s = start_s
        self._files: Files | None = None
        self._pty: PtyProcess | None = None
        self._record: Record | None = None
        self._command = ""
        self._ended: asyncio.Future[Record | None] | None = None
        self._bell: asyncio.Future[None] | None = None
        self._output = ShellOutput(output_folder)
        self._on_output: Callable[[str], None] | None = None
        self._last_output = 0.0
        self._marks = 0
        self._awaited_mark = ""
        self._synced: asyncio.Future[None] | None = None
        self._prompt = b""
        self._typed = False
        self._interrupted = False
        self._closing = False
        self._discarding = False
        self._suspected = False
        self._healed_at = 0.0
        self._healings = 0
        self._replaced = ""
        self._remarks: list[str] = []

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
        ended = self._ended
        assert ended is not None, "nothing was started"
        now = asyncio.get_running_loop().time
        self._last_output = now()
        deadline = _FOREVER if timeout_s is None else now() + timeout_s
        quiet_s = _FOREVER if quiet_s is None else quiet_s
        self._on_output = on_output
        try:
            while not ended.done():
                if (left := deadline - now()) <= 0:
                    return self._outcome("timeout")
                if (patience := self._last_output + quiet_s - now()) <= 0:
                    return self._outcome("quiet")
                await self._until_end(min(left, patience, _LOOK_S))
                if not ended.done():
                    await self._look_after_shell()
            record = ended.result()
            return self._outcome("finished", record) if record else await self._died()
        finally:
            self._on_output = None

    async def _until_end(self, timeout_s: float) -> None:
        """What `asyncio.wait` does, in a third of its time and one turn of the loop less."""
        loop = asyncio.get_running_loop()
        self._bell = loop.create_future()
        timer = loop.call_later(timeout_s, self._ring)
        try:
            await self._bell
        finally:
            timer.cancel()

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    async def type(self, data: bytes) -> int:
        """Send `data` to the running command as if typed; how much of it was taken."""
        assert self._pty is not None, "nothing was started"
        self._typed = True
        self._interrupted = self._interrupted or any(key in data for key in b"\x03\x1c")
        dropped = self._pty.dropped(data)
        return await self._pty.write(data) - dropped

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

    def hide(self, values: Iterable[str] | Forms) -> None:
        """Have these secrets hidden in all output, also in that saved to files."""
        self._output.hide(values)

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
        elif (status := self._pty.exit_status) is not None:
            await self._replace(f"The shell had ended with {_in_words(status)}.")
        elif not await self._at_prompt():
            await self._replace("The shell no longer took commands.")

    async def _replace(self, why: str) -> None:
        await self.restart()
        self._replaced = why

    async def _start(self) -> None:
        if not self.folder.is_dir():
            raise SessionError(
                f"The shell's folder {self.folder} does not exist.", remedy="Create it first."
            )
        started = asyncio.get_running_loop().time()
        # A ~/.bashrc that ends the shell, replaces it or waits for somebody is left out.
        for with_bashrc in (True, False):
            try:
                if await self._try_start(with_bashrc):
                    took_s = asyncio.get_running_loop().time() - started
                    self._remark_on_bashrc(with_bashrc, took_s)
                    return
            except OSError as error:
                self.kill()
                raise SessionError(f"No shell could be started: {error}.") from error
            except asyncio.CancelledError:
                self.kill()
                raise
        raise ShellDied(
            f"{self._bash} in {self.folder} did not come to its prompt within {self._start_s:g} s.",
            remedy="Try it in a terminal.",
        )

    async def _try_start(self, with_bashrc: bool) -> bool:
        token = secrets.token_hex(6)
        files = self._files = files_for(self._handover)
        self._setup_path = files.put("setup", setup_text(token))
        first = self._python.folders()
        rc = rc_text(self._setup_path, first, with_bashrc=with_bashrc)
        self._rc_path = files.put("rc", rc)
        self._scanner = RecordScanner(token.encode())
        self._ended = asyncio.get_running_loop().create_future()
        self._discarding = True
        self._pty = PtyProcess(
            shell_command(self._bash, self._rc_path),
            cwd=self.folder,
            env=shell_environment(self._env),
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

    def _remark_on_bashrc(self, was_read: bool, took_s: float) -> None:
        if not was_read:
            self._remarks.append(
                "~/.bashrc was left out: it ends the shell, or does not come to its end within "
                f"{self._start_s:g} s."
            )
        elif took_s > _SLOW_BASHRC_S:
            self._remarks.append(f"~/.bashrc took {took_s:.1f} s.")

    async def _end_shell(self) -> None:
        if self._pty is not None:
            self._closing = True
            await self._pty.end()
        self._forget_shell()

    def _forget_shell(self) -> None:
        if self._files is not None:
            self._files.close()
        self._end()
        self._files = self._pty = self._record = self._ended = None
        self._output.forget()
        self._typed = self._interrupted = self._closing = False
        self._synced = None
        self._prompt = b""

    async def _at_prompt(self) -> bool:
        """Make sure that no record is on its way, after keys that may have brought one."""
        if not self._typed:
            return True
        assert self._pty is not None
        self._pty.set_line_mode()
        for _ in range(_SYNC_TRIES):
            synced = self._synced = asyncio.get_running_loop().create_future()
            await self._pty.write(typed(setup_line(self._setup_path, self._next_mark())))
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
        self._healings = 0
        self._suspected = False
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
        text = (exports + command).encode("utf-8", "replace") + b"\n"
        try:
            self._command_path = self._files.put("command", text)
        except OSError as error:
            raise SessionError(f"The command could not be handed over: {error}.") from error
        self._line = command_line(self._command_path, list(env))
        self._ended = asyncio.get_running_loop().create_future()
        self._pty.set_line_mode()
        await self._pty.write(typed(self._line))

    async def _look_after_shell(self) -> None:
        """Notice a shell that has died, and one at its prompt that no longer prints records."""
        assert self._pty is not None
        if self._pty.exit_status is not None:  # a background job may hold the terminal open
            self._end()
            return
        now = asyncio.get_running_loop().time()
        suspected, self._suspected = self._suspected, False
        silent_s = now - self._last_output
        if silent_s < _PROMPT_LOST_S or now - self._healed_at < _HEALING_S:
            return
        self._pty.wake()  # `kill -STOP $$` or `suspend`: nobody else could
        if self._pty.foreground_group != self._pty.pid:
            return
        image = image_of(self._pty.pid)
        if image != self._image:
            if is_plain_shell(self._pty.pid):  # `exec bash`
                self._image = image
                await self._take_over()
        elif self._is_mute():
            # At the first look, what it has said may not have been read yet.
            self._suspected = True
            if suspected:
                self._healed_at = now
                await self._heal()

    async def _take_over(self) -> None:
        """Turn the shell that took the place of ours into one of ours."""
        assert self._pty is not None
        self._output.drop_line()  # its prompt, and what follows is the echo of our line
        self._discarding = True
        await self._pty.write(typed(replace_line(self._bash, self._rc_path)))

    def _is_mute(self) -> bool:
        """Whether the shell is at its prompt, though it has not said so."""
        assert self._pty is not None
        waits = self._pty.waits_for_line
        # Where nobody can see what it waits for: C-c may have struck PROMPT_COMMAND.
        return self._interrupted if waits is None else waits

    async def _heal(self) -> None:
        """Have the shell say that it is at its prompt, or else give it up."""
        assert self._pty is not None
        self._healings += 1
        if self._healings > _HEALING_TRIES:
            self._end()
            return
        self._typed = self._discarding = True
        self._interrupted = False
        line = healing_line if self._healings >= _HEALING_BUILTINS else setup_line
        await self._pty.write(typed(line(self._setup_path, self._next_mark())))

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
        live = self._output.feed(data)
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
            self._remark_on_prompt(record)
            self._record = record
            self._ended.set_result(record)
            self._ring()

    def _remark_on_prompt(self, record: Record) -> None:
        if record.foreign_prompt and not (self._record and self._record.foreign_prompt):
            self._remarks.append(
                "PROMPT_COMMAND is read-only now: what it prints will be in the outputs that "
                "follow. A new shell (reset=true) is without it."
            )

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
            self._ring()

    # What came of it

    async def _died(self) -> Outcome:
        if self._pty is None or self._closing:  # by another call, so nobody wants a new one
            raise SessionError("The shell was closed while the command was running.")
        if self._healings > _HEALING_TRIES and self._pty.exit_status is None:
            outcome = self._outcome("lost", replaced="The shell no longer says when commands end.")
        else:
            status = await self._pty.wait_for_exit()
            why = f"The shell ended with {_in_words(status)}."
            outcome = self._outcome("died", exit_code=status, replaced=why)
        try:
            await self.restart()
        except SessionError as error:  # its folder may be gone; the next command tries again
            return replace(outcome, remarks=(*outcome.remarks, str(error)))
        return outcome

    def _outcome(
        self,
        ending: Ending,
        record: Record | None = None,
        *,
        exit_code: int | None = None,
        replaced: str = "",
    ) -> Outcome:
        over = ending not in ("quiet", "timeout")
        capture = self._output.take(over=over)
        if self._on_output is not None and (rest := self._output.last_news()):
            self._on_output(rest)
        replaced, self._replaced = replaced or self._replaced, ""
        remarks, self._remarks = tuple(self._remarks), []
        return Outcome(
            ending=ending,
            command=self._command,
            text=without_machinery(capture.text, self._line, self._command_path),
            capture=capture,
            exit_code=record.exit_code if record else exit_code,
            replaced=replaced,
            remarks=remarks,
        )

    def _remove_files(self) -> None:
        self._python.close()
        self._output.close()


def _in_words(status: int) -> str:
    """An exit status, with the name of the signal that it stands for."""
    try:
        return f"exit code {status} ({signal.Signals(status - 128).name})"
    except ValueError:
        return f"exit code {status}"
