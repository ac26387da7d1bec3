"""How does bash tell that a command has ended, and how is it told what to run?

Bash prints a *record* from PROMPT_COMMAND, so it comes after a C-c and a syntax error too. Its
fields stand between control bytes that a random token follows: a folder's name may hold any byte
but not the token, and neither does output that shows the shell's functions and variables.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_BEGIN, _SEPARATOR, _END = b"\x1e", b"\x1d", b"\x1f"
_RECORD_MAX_BYTES = 262_144

# What bash runs when it is about to read a command.
_PROMPT = '{ __oh_prompt "$?"; } >/dev/null 2>&1'
# A prompt that prints nothing. An empty one would tell a ~/.bashrc that is sourced later that there
# is nobody to prompt: many begin with `[ -z "$PS1" ] && return`.
_PS1 = r"\[\]"

# Sourced by the rc file, and again when a record is missed. The functions have to work under
# `set -u`, `set -x`, traps, aliases, `exec >file` and read-only variables: hence the builtins,
# which only fail where an assignment would end the line. Each command pays for what is slow here:
# 255 is bash's own descriptor of its terminal, which is opened anew only when somebody closed it.
# With vi or emacs set, bash leaves PROMPT_COMMAND to readline, though that does not read the line.
_SETUP = r"""
__oh_prompt() {
  \builtin read -t 0 -u 255 && __oh_drain
  __oh_tell "$@" >&255 || __oh_tell "$@" >/dev/tty || \builtin return
  __oh_status= __oh_mark=
}
__oh_tell() {
  \builtin printf @RECORD@ "${__oh_status:-$1}" "${2-}" "${!:-}" "${__oh_mark-}" "${PWD-}" \
    "${PATH-}" "${PS1+"${PS1@P}"}"
}
__oh_drain() {
  \builtin local rest n=0
  while \builtin read -t 0 && (( n++ < 100 )); do
    IFS= \builtin read -r -n 4096 -t 0.01 rest
  done </dev/tty
}
__oh_rearm() {
  [[ $# == 0 && ${PROMPT_COMMAND-} == @PROMPT@ && $- != *e* && ! -o vi && ! -o emacs &&
    ${PS1-} == @PS1@ && -z ${PROMPT_COMMAND@a}${PS2-}${TMOUT-} ]] && \builtin return "$__oh_status"
  \builtin local "e=$__oh_status"
  \builtin set +e +o vi +o emacs
  \builtin unset -v TMOUT PROMPT_COMMAND "$@"
  \builtin printf -v PROMPT_COMMAND %s @PROMPT@
  \builtin export -n PROMPT_COMMAND
  \builtin printf -v PS1 %s @PS1@
  \builtin printf -v PS2 %s ''
  [[ $PROMPT_COMMAND == @PROMPT@ ]] || __oh_prompt "$e" foreign
  \builtin return "$e"
}
"""

_RC = r"""
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404 )); then exit @TOO_OLD@; fi
if [[ -n '@BASHRC@' && -f ~/.bashrc ]]; then . ~/.bashrc; fi
{
  . @SETUP@
  builtin set +o history +H
  builtin unalias rm cp mv ln
  builtin export PAGER=cat GIT_PAGER=cat MANPAGER=cat
} >/dev/null 2>&1
if [[ $PATH != @BIN@:* ]]; then PATH=@BIN@:$PATH; hash -r; fi
{ __oh_status=0; __oh_rearm; } >/dev/null 2>&1
"""
TOO_OLD_STATUS = 97


@dataclass(frozen=True)
class Record:
    """What bash says when it is ready for the next command.

    `foreign_prompt`: somebody else's PROMPT_COMMAND, made read-only, runs after it.
    """

    exit_code: int
    foreign_prompt: bool
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
            yield _parse(data[len(self._begin) : end], self._separator)
            data = data[end + len(self._end) :]
        self._held = data


def setup_text(token: str) -> bytes:
    """The functions that every shell of ours has."""
    # Escaped, the token is nowhere in what bash shows of its functions (`set`, `declare -f`).
    escaped = "".join(f"\\{ord(char):03o}" for char in token)
    record = rf"\036{escaped}%s" + rf"\035{escaped}%s" * 6 + rf"\037{escaped}"
    text = _SETUP.replace("@PROMPT@", shlex.quote(_PROMPT)).replace("@PS1@", shlex.quote(_PS1))
    return text.replace("@RECORD@", shlex.quote(record)).encode()


def rc_text(setup_path: str, first_on_path: list[str], *, with_bashrc: bool) -> bytes:
    """What the shell runs when it starts."""
    text = _RC.replace("@BASHRC@", "yes" if with_bashrc else "")
    text = text.replace("@SETUP@", shlex.quote(setup_path)).replace(
        "@TOO_OLD@", str(TOO_OLD_STATUS)
    )
    return text.replace("@BIN@", shlex.quote(":".join(first_on_path))).encode()


def command_line(path: str, forget: list[str]) -> str:
    """The line that has bash run the file at `path`, then unset the variables in `forget`."""
    words = " ".join(["__oh_rearm", *forget])
    return f" . {shlex.quote(path)}; {{ __oh_status=$?; {words}; }} >/dev/null 2>&1"


def setup_line(path: str, mark: str) -> str:
    """The line that sets the functions up again and has the next record carry `mark`."""
    return f" {{ {_setup_words(path, mark)}; }} >/dev/null 2>&1"


def healing_line(path: str, mark: str) -> str:
    """`setup_line` for a shell in which builtins were redefined or disabled.

    In POSIX mode no function can stand before the special builtins, `unset` among them.
    """
    back = "POSIXLY_CORRECT=1; \\unset -f builtin enable; \\unset -v POSIXLY_CORRECT"
    enable = "\\enable builtin export local printf read return set unset"
    status = "__oh_status=${__oh_status:-$?}"
    return f" {{ {status}; {back}; {enable}; {_setup_words(path, mark)}; }} >/dev/null 2>&1"


def _setup_words(path: str, mark: str) -> str:
    status = "__oh_status=${__oh_status:-$?}"
    return f"{status}; . {shlex.quote(path)}; __oh_mark={mark}; __oh_rearm"


def typed(line: str) -> bytes:
    """`line` as it is typed: C-u first takes back a piece that a program left unread."""
    return f"\x15{line}\n".encode()


def without_machinery(text: str, line: str, path: str) -> str:
    """`text` as if the command had been typed: no word of the `line` that ran the file `path`.

    Such words come of `set -v` and `set -x`, and name the file in the messages of bash.
    """
    for words in (f"{line}\n", f"{_PROMPT}\n", f"+ . {path}\n", f"{path}: ") if text else ():
        text = text.replace(words, "")
    return text


def shell_command(bash: str, rc_path: str) -> list[str]:
    """The program that is the shell."""
    return [bash, "--noprofile", "--rcfile", rc_path, "--noediting", "-i"]


def replace_line(bash: str, rc_path: str) -> str:
    """The line that turns a shell at its prompt, of whatever kind, into one of ours."""
    return f" exec {shlex.join(shell_command(bash, rc_path))}"


def _find_begin(data: bytes, begin: bytes) -> int:
    """Where `begin` starts in `data`, at its end possibly cut; the length if nowhere."""
    start = data.find(begin)
    if start >= 0:
        return start
    last = data.rfind(_BEGIN, max(0, len(data) - len(begin) + 1))
    return last if last >= 0 and begin.startswith(data[last:]) else len(data)


@functools.lru_cache(maxsize=8)  # one often says what the last one said
def _parse(record: bytes, separator: bytes) -> Record:
    fields = record.split(separator)
    exit_code, foreign, pid, mark, cwd, path = (
        field.replace(b"\r\n", b"\n").decode("utf-8", "replace") for field in fields[:6]
    )
    return Record(
        exit_code=_number(exit_code),
        foreign_prompt=bool(foreign),
        last_background_pid=_number(pid),
        mark=mark,
        cwd=cwd,
        path=path,
        prompt=fields[6],
    )


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d+", text) else -1
