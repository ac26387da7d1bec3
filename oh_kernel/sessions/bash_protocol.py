"""How does bash tell that a command has ended, and how is it told what to run?

Bash prints a *record* from PROMPT_COMMAND, so it comes after a C-c and a syntax error too. Its
fields stand between control bytes that a random token follows: a folder's name may hold any byte
but not the token, and that lives in a file, so output that shows the shell's functions and
variables does not show it.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Handover = Literal["memory", "file"]

_BEGIN, _SEPARATOR, _END = b"\x1e", b"\x1d", b"\x1f"
_RECORD_MAX_BYTES = 262_144

# Sourced by the rc file, and again when a record is missed. The functions
# have to work under `set -u`, `set -x`, traps, `exec >file` and read-only variables: hence the
# builtins, which only fail where an assignment would end the line.
SETUP = r"""
__oh_prompt() {
  local e=$? j='\j' n=0 t= p=${PS1-}
  while builtin read -t 0 && (( n++ < 100 )); do
    IFS= builtin read -r -n 4096 -t 0.01 t
  done </dev/tty
  IFS= builtin read -r t <'@TOKEN@'
  builtin printf "\036$t%s\035$t%s\035$t%s\035$t%s\035$t%s\035$t%s\035$t%s\037$t" "$e" "${j@P}" \
    "${!:-}" "${__oh_mark-}" "${PWD-}" "${PATH-}" "${p@P}" >/dev/tty
  builtin unset -v __oh_mark
}
__oh_rearm() {
  local e=$1
  builtin set +e
  builtin shift
  builtin unset -v TMOUT PROMPT_COMMAND "$@"
  builtin printf -v PROMPT_COMMAND %s '@PROMPT@'
  builtin export -n PROMPT_COMMAND
  builtin printf -v PS1 %s ''
  builtin printf -v PS2 %s ''
  [[ $PROMPT_COMMAND == '@PROMPT@' ]] || { (builtin exit "$e"); @PROMPT@; }
  builtin return "$e"
}
""".replace("@PROMPT@", "{ __oh_prompt; } >/dev/null 2>&1")

# Defines the functions anew: a command may have unset them all.
REARM = SETUP + '__oh_rearm "$@"\n'

RC = r"""
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404 )); then exit @TOO_OLD@; fi
if [[ -n '@BASHRC@' && -f ~/.bashrc ]]; then . ~/.bashrc; fi
{
  . '@SETUP@'
  builtin set +o history +H
  builtin unalias rm cp mv ln
  builtin export PAGER=cat GIT_PAGER=cat MANPAGER=cat
} >/dev/null 2>&1
if [[ $PATH != '@BIN@':* ]]; then PATH='@BIN@':$PATH; hash -r; fi
{ __oh_rearm 0; } >/dev/null 2>&1
"""
TOO_OLD_STATUS = 97


@dataclass(frozen=True)
class Record:
    """What bash says when it is ready for the next command."""

    exit_code: int
    jobs: int
    last_background_pid: int
    mark: str
    cwd: str
    path: str
    prompt: bytes


class RecordScanner:
    """Splits what the terminal sends into output and records."""

    def __init__(self, token: bytes) -> None:
        self._begin, self._separator, self._end = (
            byte + token for byte in (_BEGIN, _SEPARATOR, _END)
        )
        self._held = b""

    def feed(self, data: bytes) -> Iterator[bytes | Record]:
        """Output and records, in order; what may be the beginning of a record is held back."""
        data = self._held + data
        self._held = b""
        while data:
            start = _find_begin(data, self._begin)
            if start > 0:
                yield data[:start]
            data = data[start:]
            if len(data) < len(self._begin):
                break
            if (end := data.find(self._end)) < 0:
                if len(data) > _RECORD_MAX_BYTES:
                    yield data
                    data = b""
                break
            yield _parse(data[len(self._begin) : end].split(self._separator))
            data = data[end + len(self._end) :]
        self._held = data


def command_line(path: str, rearm_path: str, forget: list[str]) -> bytes:
    """The line that has bash run the file at `path`, then unset the variables in `forget`."""
    # C-u first: it takes back a piece of a line that a program left unread.
    arguments = " ".join(["$?", *forget])
    return f"\x15 . {path}; {{ . {rearm_path} {arguments}; }} >/dev/null 2>&1\n".encode()


def setup_line(path: str, mark: str) -> bytes:
    """The line that sets the functions up again and has the next record carry `mark`."""
    words = f"__oh_e=$?; . {path}; __oh_mark={mark}; __oh_rearm $__oh_e __oh_e"
    return f"\x15 {{ {words}; }} >/dev/null 2>&1\n".encode()


def shell_command(bash: str, rc_path: str) -> list[str]:
    """The program that is the shell."""
    return [bash, "--noprofile", "--rcfile", rc_path, "--noediting", "-i"]


def replace_line(bash: str, rc_path: str) -> bytes:
    """The line that turns a bash at its prompt, of whatever kind, into one of ours."""
    return f"\x15 exec {shlex.join(shell_command(bash, rc_path))}\n".encode()


class Files(Protocol):
    """Where texts for bash lie: each under a path that bash can source."""

    def put(self, name: str, text: bytes) -> str:
        """Store `text`, in place of what had this name; the path to read it from."""

    def close(self) -> None:
        """Remove everything."""


class MemoryFiles:
    """Anonymous files in memory, read through /proc (Linux)."""

    def __init__(self) -> None:
        self._fds: dict[str, int] = {}

    def put(self, name: str, text: bytes) -> str:
        fd = self._fds.get(name)
        if fd is None:
            fd = self._fds[name] = os.memfd_create(f"oh-{name}")
        os.ftruncate(fd, 0)
        os.pwrite(fd, text, 0)
        return f"/proc/{os.getpid()}/fd/{fd}"

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])


class TempFiles:
    """Files in a private folder; each text in a fresh one: rewriting can take milliseconds."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="oh-bash-")
        self._last: dict[str, Path] = {}
        self._count = 0

    def put(self, name: str, text: bytes) -> str:
        if name in self._last:
            self._last.pop(name).unlink(missing_ok=True)
        self._count += 1
        path = self._last[name] = Path(self._folder.name, f"{name}-{self._count}")
        path.write_bytes(text)
        return str(path)

    def close(self) -> None:
        self._folder.cleanup()


def files_for(handover: Handover) -> Files:
    """The way to hand texts over."""
    return MemoryFiles() if handover == "memory" else TempFiles()


def _find_begin(data: bytes, begin: bytes) -> int:
    """Where `begin` starts in `data`, at its end possibly cut; the length if nowhere."""
    start = data.find(begin)
    if start >= 0:
        return start
    last = data.rfind(_BEGIN, max(0, len(data) - len(begin) + 1))
    return last if last >= 0 and begin.startswith(data[last:]) else len(data)


def _parse(fields: list[bytes]) -> Record:
    exit_code, jobs, pid, mark, cwd, path = (
        field.replace(b"\r\n", b"\n").decode("utf-8", "replace") for field in fields[:6]
    )
    return Record(
        exit_code=_number(exit_code),
        jobs=_number(jobs),
        last_background_pid=_number(pid),
        mark=mark,
        cwd=cwd,
        path=path,
        prompt=fields[6],
    )


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d+", text) else -1
