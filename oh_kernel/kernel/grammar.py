"""What does the text of an `%openhands` line or cell ask for: a prompt, a command, or help?

Flags stand first and are quoted as in a shell. What follows is a command only when all of it fits
that command's grammar; otherwise it is the prompt, unchanged. The body of a cell is never parsed.
"""

import re
import shlex
from dataclasses import dataclass, field
from difflib import get_close_matches
from keyword import iskeyword

from oh_kernel.errors import SettingsError
from oh_kernel.kernel.commands import COMMANDS_BY_NAME, FLAGS_BY_NAME, Flag
from oh_kernel.options import BY_NAME, OPTIONS

_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+(?=\s|$)""", re.DOTALL)
_FLAG = re.compile(r"(--[A-Za-z][\w-]*|-[A-Za-z]|--)(=.*)?", re.DOTALL)
_ASSIGNMENT = re.compile(r"([\w-]+)(\s*)=(\s*)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Ask:
    """A prompt, with what its flags say."""

    prompt: str
    new: bool = False
    overrides: dict[str, object] = field(default_factory=dict)
    bind: str | None = None


@dataclass(frozen=True)
class Do:
    """A command; `argument` is an id, a number or a name, `value` what `config` sets."""

    command: str
    argument: str | None = None
    value: str | None = None


def parse(line: str, body: str | None = None) -> Ask | Do:
    """What to do. `line` follows the magic's name; `body` is None for `%openhands`.

    Raises SettingsError, in one line with the nearest valid word, for what cannot be meant.

    >>> parse("history 5")
    Do(command='history', argument='5', value=None)
    >>> parse("history of the file").prompt
    'history of the file'
    """
    flags, text, forced = _flags(line)
    if "-h" in flags or "--help" in flags:
        return Do("help")
    text = text.rstrip()
    has_body = body is not None and bool(body.strip())
    if not forced and not flags and (command := _command(text)):
        _refuse_body(command, has_body)
        return command
    if has_body and body is not None:
        return _ask(flags, f"{text}\n{body}" if text else body)
    if not text and not flags:
        return Do("help")
    if not forced and not flags:
        _refuse_near_command(text)
    return _ask(flags, text)


def _flags(line: str) -> tuple[dict[str, str], str, bool]:
    """The flags that begin the line, the rest of it, and whether `--` stood between."""
    found: dict[str, str] = {}
    place = 0
    while True:
        place = _SPACE.match(line, place).end()  # type: ignore[union-attr] # matches always
        name, value, end = _flag_at(line, place)
        if name is None:
            return found, line[place:], False
        if name == "--":
            return found, line[end:].lstrip(), True
        flag = _known(name)
        if value is None and flag.placeholder:
            value, end = _value_at(line, end, flag)
        elif value is not None and not flag.placeholder:
            raise SettingsError(f"{name} takes no value.", remedy=f"Write {name} alone.")
        found[name] = value or ""
        place = end


def _flag_at(line: str, place: int) -> tuple[str | None, str | None, int]:
    """The flag that begins at `place` with its `=value`, or no name when none does."""
    token = _TOKEN.match(line, place)
    parts = _FLAG.fullmatch(token.group()) if token else None
    if parts is None and (unclosed := re.compile(r"--[A-Za-z][\w-]*=").match(line, place)):
        raise SettingsError(f"A quote after {unclosed.group()} is not closed.")
    if token is None or parts is None:
        return None, None, place
    value = None if parts[2] is None else _unquoted(parts[2][1:])
    return parts[1], value, token.end()


def _value_at(line: str, place: int, flag: Flag) -> tuple[str, int]:
    start = _SPACE.match(line, place).end()  # type: ignore[union-attr] # matches always
    token = _TOKEN.match(line, start)
    if token is None and line[start:]:
        raise SettingsError(f"A quote after {flag.name} is not closed.")
    if token is None or _FLAG.fullmatch(token.group()):
        raise SettingsError(
            f"{flag.name} needs a value.", remedy=f"Write {flag.name} {flag.placeholder}."
        )
    return _unquoted(token.group()), token.end()


def _unquoted(token: str) -> str:
    return "".join(shlex.split(token))


def _known(name: str) -> Flag:
    if flag := FLAGS_BY_NAME.get(name):
        return flag
    option = BY_NAME.get(name[2:].replace("-", "_"))
    if option and option.secret:
        raise SettingsError(
            "A key is never typed into a cell.", remedy="Use %openhands login, which asks for it."
        )
    if option:
        raise SettingsError(
            f"{name} cannot be set for one prompt.",
            remedy=f"Use %openhands config {option.name}=VALUE.",
        )
    near = get_close_matches(name.lower(), FLAGS_BY_NAME, n=1)
    remedy = f"Did you mean {near[0]}?" if near else "See %openhands -h."
    raise SettingsError(f"There is no flag {name}.", remedy=remedy)


def _command(text: str) -> Do | None:
    """The command that the whole text is, if it is one."""
    word, _, rest = text.partition(" ")
    command = COMMANDS_BY_NAME.get(word)
    rest = rest.strip()
    if command is None:
        return None
    if rest in ("-h", "--help"):
        return Do("help")
    if not re.fullmatch(command.pattern, rest, re.DOTALL):
        return None
    return _assignment(rest) if word == "config" and "=" in rest else Do(word, rest or None)


def _assignment(rest: str) -> Do | None:
    """`NAME=VALUE` with one value. Spaces around `=` only after the name of a setting: `config x =
    5 has no effect, why?` is a prompt.
    """
    parts = _ASSIGNMENT.fullmatch(rest)
    if parts is None:
        return None
    name, before, after, value = parts.groups()
    known = name.replace("-", "_") in BY_NAME
    whole = _TOKEN.fullmatch(value) is not None
    listed = known and BY_NAME[name.replace("-", "_")].type is list
    if (whole and (known or not (before or after))) or listed:
        return Do("config", name, _unquoted(value) if whole else value)
    if known and not value:
        raise SettingsError(f"config {name}= has no value.", remedy=f"Write config {name}=VALUE.")
    return None


def _refuse_body(command: Do, has_body: bool) -> None:
    if not has_body:
        return
    if command.command == "new":
        remedy = "Write %%openhands --new for a prompt in a new conversation."
    else:
        remedy = "Put the command into a cell of its own, or -- before it to make it prompt."
    raise SettingsError(f"`{command.command}` is a command, but a prompt follows.", remedy=remedy)


def _refuse_near_command(text: str) -> None:
    """A single word that is almost a command would otherwise be sent to the model."""
    near = get_close_matches(text.lower(), COMMANDS_BY_NAME, n=1, cutoff=0.75)
    if near and len(text.split()) == 1:
        raise SettingsError(
            f"There is no command {text!r}.",
            remedy=f"Did you mean {near[0]}? To send it as a prompt: %openhands -- {text}",
        )


def _ask(flags: dict[str, str], prompt: str) -> Ask:
    if not prompt:
        raise SettingsError(
            "There is no prompt.",
            remedy="Write it after the flags or below them; %openhands -h shows how.",
        )
    if "--new" in flags and "--continue" in flags:
        raise SettingsError("--new and --continue exclude each other.", remedy="Drop one of them.")
    overrides: dict[str, object] = {
        option.name: flags[option.flag] for option in OPTIONS if option.flag in flags
    }
    return Ask(prompt, "--new" in flags, overrides, _variable(flags.get("-o")))


def _variable(name: str | None) -> str | None:
    if name is not None and (not name.isidentifier() or iskeyword(name)):
        raise SettingsError(
            f"-o {name!r} cannot be a variable.", remedy="Give a name such as -o answer."
        )
    return name
