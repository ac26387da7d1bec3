"""Where are the keys that `login` was given? In the keyring where there is one, else a file."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from oh_kernel.errors import SettingsError
from oh_kernel.providers import how_to_login

SERVICE = "oh-kernel"


def stored_key(provider: str, folder: Path) -> str | None:
    """The key that was stored for `provider`, or None."""
    in_file = _read(folder / "credentials").get(provider)
    if in_file:
        return in_file
    keyring = _keyring()
    return keyring.get_password(SERVICE, provider) if keyring else None


def store_key(provider: str, key: str, folder: Path) -> str:
    """Keep `key` for `provider`; returns where it is now, in words."""
    keyring = _keyring()
    if keyring:
        keyring.set_password(SERVICE, provider, key)
        return "the keyring"
    path = folder / "credentials"
    _write(path, _read(path) | {provider: key})
    return str(path)


def forget_key(provider: str, folder: Path) -> None:
    """Keep no key for `provider` any more, wherever it was."""
    path = folder / "credentials"
    keys = _read(path)
    if keys.pop(provider, None):
        _write(path, keys)
    keyring = _keyring()
    if keyring and keyring.get_password(SERVICE, provider):
        keyring.delete_password(SERVICE, provider)


def _read(path: Path) -> dict[str, str]:
    try:
        mode = path.stat().st_mode
        if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o077:
            raise SettingsError(
                f"{path} can be read by others (mode {mode & 0o777:03o}).",
                remedy=f"Run: chmod 600 '{path}'",
            )
        return {name: str(key) for name, key in tomllib.loads(path.read_text("utf-8")).items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}.",
            remedy="It is to be a file of your own; take away what is there.",
        ) from error
    except ValueError as error:  # not TOML, or not UTF-8; neither quotes a key
        raise SettingsError(
            f"{path} is damaged: {error}.",
            remedy=f"Delete it and give the keys again: {how_to_login()}.",
        ) from error


def _write(path: Path, keys: dict[str, str]) -> None:
    """Written beside and renamed: it is never half there, nor for a moment readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{_quoted(name)} = {_quoted(key)}\n" for name, key in keys.items())
    beside.replace(path)


def _quoted(text: str) -> str:
    """A TOML basic string. Control characters cannot be part of a key."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise SettingsError(
            "The key holds a control character.", remedy="Copy the key again, without line breaks."
        )
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _keyring() -> Any:
    """The keyring library when it is installed (extra `keyring`) and has somewhere to write."""
    try:
        import keyring
    except ImportError:
        return None
    return keyring if keyring.get_keyring().priority >= 1 else None
