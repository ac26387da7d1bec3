"""The tool with which a model runs commands in a bash that lives on from call to call.

A command that is silent for long, or over its timeout, keeps running: the next calls read on, type
to it or send it keys.
"""

import asyncio
import functools
import getpass
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import Field

from oh_kernel.errors import SessionError
from oh_kernel.events import Action, Observation, TextContent, ToolAnnotations
from oh_kernel.events.base import Wire
from oh_kernel.events.content import Content, joined_text
from oh_kernel.loop import on_agent_thread, run_blocking
from oh_kernel.sessions.bash import BashSession, Outcome
from oh_kernel.sessions.masking import Forms
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.terminal_answers import (
    GOING_ON,
    LOST,
    MAX_CHARS,
    NEW_SHELL,
    NO_SHELL,
    RESET,
    TYPED_IN_PART,
    shortened,
)
from oh_kernel.tools.terminal_keys import control_letter, key_bytes
from oh_kernel.tools.terminal_refusals import (
    no_command,
    several_statements,
    too_patient,
    without_end,
)

NO_CHANGE_TIMEOUT_S = 30.0
# After a key there is an answer soon or none at all.
_KEY_TIMEOUT_S = 2.0
_INTERRUPT_GRACE_S = 1.0
# As bash wants names of variables; what is not one cannot be exported.
_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*")


class SecretsSource(Protocol):
    """Secrets by the names of the variables that carry them; a dictionary is one.

    It is asked anew for each command.
    """

    def __iter__(self) -> Iterator[str]:
        """The names."""

    def __getitem__(self, name: str, /) -> str:
        """The value of one."""


@runtime_checkable
class FetchedSecrets(SecretsSource, Protocol):
    """Secrets of which some have to be looked up when a command names them."""

    async def fetch(self, names: frozenset[str]) -> list[str]:
        """Have the values of these; what is to be told of those that cannot be had."""

    @property
    def forms(self) -> Forms:
        """All that is to be hidden."""


class TerminalAction(Action):
    """A command, or input for the one that is running."""

    command: str = Field(
        description="One command; join several with && or ;. Empty: read on from the command that "
        "is still running. With is_input: what to type, or a key: C-c, C-d, C-z (any C-x), ENTER, "
        "TAB, ESC, UP, DOWN, LEFT, RIGHT, HOME, END, PGUP, PGDN, BS.",
    )
    is_input: bool = Field(
        default=False, description="Type `command` (and Enter) into the running command."
    )
    timeout: float | None = Field(
        default=None,
        ge=0,
        description="Seconds after which to return even if output keeps coming; replaces the 30 s "
        "limit on silence. Set it for long silent commands.",
    )
    reset: bool = Field(
        default=False,
        description="Kill the shell and all it started, then run `command`, if any, in a new one.",
    )


class CmdOutputMetadata(Wire):
    """Facts about the shell after a command. `exit_code` is -1 while the command runs."""

    exit_code: int = -1
    pid: int = -1
    username: str | None = None
    hostname: str | None = None
    working_dir: str | None = None
    py_interpreter_path: str | None = None
    prefix: str = ""
    suffix: str = ""


class TerminalObservation(Observation):
    """What a command printed. `timeout` says that it was still running then."""

    command: str | None
    exit_code: int | None = None
    timeout: bool = False
    metadata: CmdOutputMetadata = Field(default_factory=CmdOutputMetadata)
    full_output_save_dir: str | None = None

    @property
    def text(self) -> str:
        """The output with the remarks about it; that a command has ended is not one of them."""
        meta = self.metadata
        return meta.prefix + super().text + (meta.suffix if meta.exit_code == -1 else "")

    def for_model(self) -> list[Content]:
        """The text, then where the shell is and how the command ended."""
        meta = self.metadata
        facts = [
            f"[Current working directory: {meta.working_dir}]" if meta.working_dir else "",
            f"[Python interpreter: {meta.py_interpreter_path}]" if meta.py_interpreter_path else "",
            f"[Command finished with exit code {meta.exit_code}]" if meta.exit_code != -1 else "",
        ]
        return [TextContent(text="\n".join(filter(None, [self.text, *facts])))]


class TerminalExecutor(ToolExecutor[TerminalAction, TerminalObservation]):
    """Drives one bash in the workspace, started at the first command.

    A command that outlives its call is reported on until it has ended.
    """

    def __init__(
        self,
        workspace: str | Path,
        *,
        no_change_timeout_s: float = NO_CHANGE_TIMEOUT_S,
        output_folder: Path | None = None,
        secrets: SecretsSource | None = None,
        one_statement: bool = True,
        idle_cap_s: float = 0,
    ) -> None:
        """`one_statement`: refuse several statements on lines of their own, as contracted.

        `secrets` are exported for the commands that name them, and hidden in every output.
        `idle_cap_s`: after how long without an answer the machine is taken away; 0 is never.
        """
        super().__init__(workspace)
        self._one_statement = one_statement
        self._idle_cap_s = idle_cap_s
        self._no_change_timeout_s = no_change_timeout_s
        self._secrets = secrets
        self._session = BashSession(self.workspace, output_folder=output_folder)
        self._end_untold = False
        # A conversation holds back calls by what they name; those made by hand come here at once.
        self._turn = asyncio.Lock()

    async def run(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        """Run, read on, type or reset, as `action` asks."""
        if refusal := await self._refusal(action):
            return _error(refusal, action.command)
        async with self._turn:
            return await self._in_turn(action, context)

    async def _in_turn(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        try:
            return await self._carry_out(action, context)
        except SessionError as error:
            return _error(str(error), action.command)
        except asyncio.CancelledError:
            if not self._session.running:
                raise
            return await self._interrupted()

    def resources(self, action: TerminalAction) -> tuple[str, ...]:
        """There is one shell, whatever runs in it."""
        return ("terminal:session",)

    def close(self) -> None:
        """End the shell with everything it started."""
        if on_agent_thread():
            self._session.kill()
        else:
            run_blocking(self._session.close())

    async def _refusal(self, action: TerminalAction) -> str:
        """Why `action` is not carried out; empty when it is."""
        if "\0" in action.command:
            return "The command contains a NUL character, which no command can; nothing was run."
        if action.reset and action.is_input:
            return "Cannot use reset=True with is_input=True"
        if action.is_input or not action.command.strip():
            return ""
        return (
            no_command(action.command)
            or too_patient(action.timeout, self._idle_cap_s)
            or (several_statements(action.command) if self._one_statement else "")
            or await without_end(action.command)
        )

    # What an action may ask for

    async def _carry_out(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        if action.reset:
            return await self._reset(action, context)
        if not (action.command if action.is_input else action.command.strip()):
            return await self._read_on(action, context)
        if action.is_input:
            return await self._type(action, context)
        if self._session.running:
            return await self._refuse_while_busy(action)
        return await self._execute(action, context)

    async def _reset(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        await self._session.restart()
        self._end_untold = False
        if not action.command.strip():
            meta = self._metadata(0)
            return TerminalObservation.from_text(
                RESET, command="[RESET]", exit_code=0, metadata=meta
            )
        answer = await self._execute(action, context)
        text = f"{RESET}\n\n{joined_text(answer.content)}"
        return answer.model_copy(
            update={"content": [TextContent(text=text)], "command": f"[RESET] {action.command}"}
        )

    async def _execute(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        prefix = await self._last_words()
        env, failures = await self._secrets_for(action.command)
        prefix += "".join(f"[{failure}]\n" for failure in failures)
        outcome = await self._session.run(
            action.command,
            quiet_s=self._patience_s(action),
            timeout_s=action.timeout,
            on_output=context.show,
            env=env,
        )
        if outcome.replaced and outcome.ending not in ("died", "lost"):
            prefix += f"[{outcome.replaced} {self._new_shell()}]\n"
        return self._observe(outcome, action, prefix=prefix)

    async def _secrets_for(self, command: str) -> tuple[dict[str, str], list[str]]:
        """The variables that `command` names as a whole word, and which of them cannot be had.

        From now on all are hidden.
        """
        if self._secrets is None:
            return {}, []
        named, failures = frozenset(_NAME.findall(command)), []
        if isinstance(self._secrets, FetchedSecrets):
            failures = await self._secrets.fetch(named)
            self._session.hide(self._secrets.forms)
        known = {name: self._secrets[name] for name in self._secrets}
        if not isinstance(self._secrets, FetchedSecrets):
            self._session.hide(known.values())
        return {name: value for name, value in known.items() if name in named}, failures

    async def _read_on(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        if not self._session.running and not self._end_untold:
            return _error("No previous running command to retrieve logs from.", action.command)
        return self._observe(await self._follow(action, context), action)

    async def _type(self, action: TerminalAction, context: ToolContext) -> TerminalObservation:
        if not self._session.running:
            prefix = await self._last_words()
            return _error(f"{prefix}No previous running command to interact with.", None)
        data = key_bytes(action.command)
        taken = await self._session.type(data)
        letter = control_letter(action.command)
        note = f" CTRL+{letter} was sent." if letter else ""
        prefix = TYPED_IN_PART.format(taken, len(data)) if taken < len(data) else ""
        outcome = await self._follow(action, context)
        return self._observe(outcome, action, prefix=prefix, note=note)

    async def _refuse_while_busy(self, action: TerminalAction) -> TerminalObservation:
        outcome = await self._session.follow(timeout_s=0)
        suffix = (
            f'\n[Your command "{action.command}" is NOT executed. The previous command is still '
            "running - You CANNOT send new commands until the previous command is completed. By "
            "setting `is_input` to `true`, you can interact with the current process: "
            f"{GOING_ON}]"
        )
        if outcome.ending != "timeout":  # it has ended this very moment
            self._end_untold = False
            suffix = f'\n[Your command "{action.command}" is NOT executed: send it again.]'
        prefix = "[Below is the output of the previous command.]\n"
        return self._answer(outcome, prefix=prefix, suffix=suffix, is_error=True)

    async def _interrupted(self) -> TerminalObservation:
        outcome = await self._session.interrupt(_INTERRUPT_GRACE_S)
        self._end_untold = outcome.ending == "timeout"
        what = f"it ended with exit code {outcome.exit_code}"
        if self._end_untold:
            what = "C-c was sent, but it is still running"
        note = f"[The command was interrupted by the user: {what}.]"
        return self._answer(outcome, note=note, is_error=True)

    async def _follow(self, action: TerminalAction, context: ToolContext) -> Outcome:
        return await self._session.follow(
            quiet_s=self._patience_s(action), timeout_s=action.timeout, on_output=context.show
        )

    def _patience_s(self, action: TerminalAction) -> float | None:
        if action.timeout is not None:
            return None
        if action.is_input and control_letter(action.command):
            return min(_KEY_TIMEOUT_S, self._no_change_timeout_s)
        return self._no_change_timeout_s

    # What is said about it

    async def _last_words(self) -> str:
        """What is still to be told of a command that went on after its call and has ended."""
        if not self._end_untold:
            return ""
        self._end_untold = False
        outcome = await self._session.follow()
        end = f"[The previous command has ended with exit code {outcome.exit_code}"
        output = clip(outcome.text.rstrip("\n"), MAX_CHARS // 10)
        return f"{end}; its last output:]\n{output}\n[End of it.]\n" if output else f"{end}.]\n"

    def _observe(
        self, outcome: Outcome, action: TerminalAction, *, prefix: str = "", note: str = ""
    ) -> TerminalObservation:
        self._end_untold = outcome.ending in ("quiet", "timeout")
        match outcome.ending:
            case "quiet":
                end = f"has no new output after {self._patience_s(action):g} seconds. {GOING_ON}"
            case "timeout":
                end = f"timed out after {action.timeout:g} seconds. {GOING_ON}"
            case "finished" | "died":
                end = f"completed with exit code {outcome.exit_code}."
            case "lost":
                end = LOST
        return self._answer(outcome, prefix=prefix, suffix=f"\n[The command {end}{note}]")

    def _answer(
        self,
        outcome: Outcome,
        *,
        prefix: str = "",
        suffix: str = "",
        note: str = "",
        is_error: bool = False,
    ) -> TerminalObservation:
        exit_code = -1 if outcome.exit_code is None else outcome.exit_code
        if outcome.ending in ("died", "lost"):
            note = f"[{outcome.replaced} {self._new_shell()}]\n{note}"
        prefix = "".join(f"[{remark}]\n" for remark in outcome.remarks) + prefix
        text, saved = shortened(outcome)
        return TerminalObservation.from_text(
            "\n".join(filter(None, [text, note.rstrip()])),
            is_error=is_error,
            command=outcome.command,
            exit_code=exit_code,
            timeout=outcome.ending in ("quiet", "timeout"),
            metadata=self._metadata(exit_code, prefix=prefix, suffix=suffix),
            full_output_save_dir=str(saved.parent) if saved else None,
        )

    def _new_shell(self) -> str:
        started = self._session.pid is not None
        return NEW_SHELL.format(folder=self._session.folder) if started else NO_SHELL

    def _metadata(self, exit_code: int, *, prefix: str = "", suffix: str = "") -> CmdOutputMetadata:
        session = self._session
        return _metadata(
            exit_code, session.last_background_pid, session.cwd, session.python, prefix, suffix
        )


class TerminalTool(Tool):
    """The terminal, as a model calls it."""

    name = "terminal"
    prose = (
        "Run a command in a persistent bash: directory, variables and background jobs stay from "
        "call to call, and `python` and `pip` are the notebook's own. "
        f"A command with no new output for {NO_CHANGE_TIMEOUT_S:g} s returns with exit code -1 and "
        "keeps running; then read on, answer it or stop it. Start servers with `&` and send their "
        f"output to a file. Output over {MAX_CHARS:,} characters is cut in its middle and saved to "
        "a file whole. "
        "There is no screen: pagers are off, and editors such as vi are of no use."
    )
    action = TerminalAction
    observation = TerminalObservation
    executor = TerminalExecutor
    hints = ToolAnnotations()


def _error(text: str, command: str | None) -> TerminalObservation:
    return TerminalObservation.from_text(text, is_error=True, command=command)


@functools.lru_cache(maxsize=16)  # most commands end like the one before
def _metadata(
    exit_code: int, pid: int, folder: str, python: str | None, prefix: str, suffix: str
) -> CmdOutputMetadata:
    user, host = _whoami()
    return CmdOutputMetadata(
        exit_code=exit_code,
        pid=pid,
        username=user,
        hostname=host,
        working_dir=folder,
        py_interpreter_path=python,
        prefix=prefix,
        suffix=suffix,
    )


@functools.cache
def _whoami() -> tuple[str | None, str]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        user = None
    return user, socket.gethostname()
