"""Whose hooks run? A person's own always; a folder's, which may have come from anywhere, only as
they were when the person said that they trust them.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from oh_kernel.errors import SettingsError
from oh_kernel.security.hooks.config import HookConfig, read_hooks

PLACE = Path(".openhands") / "hooks.json"
_RECORD = "trusted_hooks.json"
HOW_TO_TRUST = (
    "Read {path}, then have them run with %openhands trust (in a terminal: trust_hooks=yes)."
)


@dataclass(frozen=True)
class FoundHooks:
    """The hooks that run, and what a person has to be told about others."""

    config: HookConfig
    remarks: tuple[str, ...] = ()


def find_hooks(workspace: Path, config_folder: Path, *, trust: bool = False) -> FoundHooks:
    """The hooks of this user and of the folder `workspace`; `trust` takes the folder's unseen.

    Raises SettingsError for a file that cannot be used, and for one that is not any more what the
    person trusted: a guard that was relied on does not go away unnoticed.
    """
    own = own_hooks(config_folder)
    path = workspace / PLACE
    content = None if path in own_places(config_folder) else _content(path)
    trusted = _trusted(config_folder).get(str(path))
    if content is None:
        gone = f"The hooks that you trusted in {path} are gone, so they do not run."
        return FoundHooks(own, (gone,) if trusted and not trust else ())
    if trust or trusted == _fingerprint(content):
        return FoundHooks(own + read_hooks(path, content))
    how = HOW_TO_TRUST.format(path=path)
    if trusted:
        raise SettingsError(f"{path} was changed since you trusted its hooks.", remedy=how)
    asked = "; ".join(read_hooks(path, content).in_words())
    if not asked:
        return FoundHooks(own)
    words = f"This folder brings hooks that you have not trusted, so they do not run: {asked}. "
    return FoundHooks(own, (words + how,))


def trust_hooks(workspace: Path, config_folder: Path) -> str:
    """Trust the folder's hooks as they are now, or no longer wait for those that are gone; returns
    what a person is told.
    """
    path = workspace / PLACE
    record = _trusted(config_folder)
    content = _content(path)
    if content is None:
        record.pop(str(path), None)
        _write(config_folder, record)
        return f"There are no hooks in {path}."
    asked = list(read_hooks(path, content).in_words())
    _write(config_folder, record | {str(path): _fingerprint(content)})
    lines = [f"From now on these run, until {path} is changed:", *(f"  {one}" for one in asked)]
    return "\n".join(lines)


def own_hooks(config_folder: Path) -> HookConfig:
    """The hooks that this user has for every folder."""
    config = HookConfig()
    for path in own_places(config_folder):
        if (content := _content(path)) is not None:
            config += read_hooks(path, content)
    return config


def own_places(config_folder: Path) -> tuple[Path, Path]:
    """Where a user's own hooks may lie."""
    return Path.home().resolve() / PLACE, config_folder / PLACE.name


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}.",
            remedy="It is to be a file; mend it or take it away, so that no hook is left out.",
        ) from error


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _trusted(config_folder: Path) -> dict[str, str]:
    """The fingerprint of each file that is trusted, by its path."""
    path = config_folder / _RECORD
    content = _content(path)
    try:
        record = json.loads(content) if content else {}
        return {str(name): str(mark) for name, mark in record.items()}
    except (ValueError, AttributeError) as error:
        raise SettingsError(
            f"{path} is damaged: {error}.", remedy="Delete it, and trust your folders again."
        ) from error


def _write(config_folder: Path, record: dict[str, str]) -> None:
    """Written beside and renamed, so that it is never half there."""
    config_folder.mkdir(parents=True, exist_ok=True)
    path = config_folder / _RECORD
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.write_text(json.dumps(record, indent=1, sort_keys=True), "utf-8")
    beside.replace(path)
