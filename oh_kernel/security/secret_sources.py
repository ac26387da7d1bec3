"""Where does the value of a secret come from?"""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator

from oh_kernel.errors import SettingsError
from oh_kernel.events.base import Wire
from oh_kernel.settings import environment_variable

TIMEOUT_S = 10.0
MAX_BYTES = 65_536


class LookupFailed(Exception):
    """A value could not be had; the text says why, without it or what was sent for it."""


class StaticSecret(Wire):
    """A value that is known. It is never written anywhere."""

    kind: Literal["StaticSecret"] = "StaticSecret"
    description: str | None = None
    value: SecretStr | None = Field(default=None, exclude=True)

    @property
    def origin(self) -> str:
        return "given" if self.value else "missing: not kept over the restart"


class LookupSecret(Wire):
    """A value that a GET of `url` answers with, asked for when a command needs it."""

    kind: Literal["LookupSecret"] = "LookupSecret"
    description: str | None = None
    url: str
    headers: dict[str, str] = Field(default_factory=dict, exclude=True)

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if not re.match(r"https?://[^/@\s]+(?:/|\Z|\?)", url):
            raise ValueError("an http or https address without a password in it is needed")
        return url

    @property
    def origin(self) -> str:
        return f"looked up at {self.url.partition('?')[0]}"


class EnvironmentSecret(Wire):
    """The value of a variable of this process's environment."""

    kind: Literal["EnvironmentSecret"] = "EnvironmentSecret"
    description: str | None = None
    variable: str

    @property
    def value(self) -> str | None:
        return environment_variable(self.variable)

    @property
    def origin(self) -> str:
        return f"the environment: {self.variable}"


@dataclass(frozen=True)
class CalledSecret:
    """A value that a function of the program returns; called on a thread of its own."""

    call: Callable[[], str]
    description: str | None = None

    @property
    def origin(self) -> str:
        return "a function of the program"


SecretSource = StaticSecret | LookupSecret | EnvironmentSecret | CalledSecret
SecretValue = str | SecretStr | SecretSource | Callable[[], str]
"""What a secret may be given as."""


def source_of(value: SecretValue) -> SecretSource:
    """The source that is meant by `value`."""
    match value:
        case str() | SecretStr():
            return StaticSecret(value=SecretStr(value) if isinstance(value, str) else value)
        case StaticSecret() | LookupSecret() | EnvironmentSecret() | CalledSecret():
            return value
    return CalledSecret(value)


def recorded(source: SecretSource) -> dict[str, Any]:
    """What is stored of a source: never a value, nor the headers that are sent for it."""
    if isinstance(source, CalledSecret):
        return recorded(StaticSecret(description=source.description))
    return source.model_dump(exclude_none=True)


def restored(data: dict[str, Any]) -> SecretSource:
    """The source that was stored as `data`, as far as it can be had again."""
    kinds = {one.__name__: one for one in (LookupSecret, EnvironmentSecret)}
    return kinds.get(data.get("kind", ""), StaticSecret).model_validate(data)


async def looked_up(source: SecretSource) -> str:
    """The value of a source; raises LookupFailed."""
    match source:
        case StaticSecret(value=None):
            raise LookupFailed("its value was not kept over the restart")
        case StaticSecret(value=value):
            return value.get_secret_value() if value else ""
        case EnvironmentSecret(variable=variable):
            return _found(source.value, f"{variable} is not set")
        case LookupSecret():
            return _found(await asyncio.to_thread(_fetched, source), "the answer is empty")
        case CalledSecret(call=call):
            return _found(await asyncio.to_thread(_called, call), "the function returned nothing")


def _found(value: str | None, why_not: str) -> str:
    if not value:
        raise LookupFailed(why_not)
    if "\0" in value:
        raise LookupFailed("its value holds a NUL character, which no variable can")
    return value


def _called(call: Callable[[], str]) -> str:
    try:
        return call()
    except Exception as error:  # a function of the user; its text may hold anything
        raise LookupFailed(f"the function raised {type(error).__name__}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The headers are secrets: they go to the address that was given and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetched(source: LookupSecret) -> str:
    request = urllib.request.Request(source.url, headers=source.headers)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise LookupFailed(f"HTTP {error.code}") from None
    except (OSError, ValueError) as error:
        raise LookupFailed(type(error).__name__) from None
    if len(body) > MAX_BYTES:
        raise LookupFailed(f"the answer has more than {MAX_BYTES} bytes")
    return body.decode("utf-8", "replace").rstrip("\r\n")


def require_name(name: str) -> None:
    """Raise SettingsError unless a command can have a secret of this name as a variable."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise SettingsError(
            f"{name!r} cannot be the name of a secret.",
            remedy="It becomes a variable of the shell: letters, digits and _, no digit first.",
        )
    if name in _OF_THE_SHELL or name.startswith(("BASH", "LD_", "DYLD_", "PYTHON")):
        raise SettingsError(
            f"{name} is a variable that the shell and its programs need themselves.",
            remedy=f"Choose another name, such as MY_{name}.",
        )


_OF_THE_SHELL = frozenset(
    {
        *("PATH", "HOME", "SHELL", "USER", "PWD", "OLDPWD", "IFS", "ENV", "TERM", "LANG", "LC_ALL"),
        *("TMPDIR", "EDITOR", "PAGER", "UID", "EUID", "PPID", "PS0", "PS1", "PS2", "PS3", "PS4"),
        *("PROMPT_COMMAND", "SHELLOPTS", "SHLVL", "_"),
    }
)
