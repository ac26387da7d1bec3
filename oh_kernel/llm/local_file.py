"""Which file holds a local model, and is it the one that was meant?

A path to a GGUF file is taken as it is. A known name stands for one published file, known by its
sha256: it is looked for in this user's caches, else fetched, and never used when the sum differs.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from oh_kernel.errors import ModelNotConfigured
from oh_kernel.installing import ours, pip_install
from oh_kernel.settings import cache_folder

_BLOCK_BYTES = 8 * 1024 * 1024
_GGUF = b"GGUF"


class Published(NamedTuple):
    """A model as its makers publish it on the Hugging Face hub."""

    repository: str
    file: str
    sha256: str


KNOWN = {
    "qwen2.5-coder-1.5b-instruct": Published(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def file_of(name: str) -> Path:
    """The GGUF file for `name`, fetched if it has to be: minutes, so not on a thread that serves.

    Raises ModelNotConfigured for a name that is neither a file nor known, and for a wrong file.
    """
    known = KNOWN.get(name.lower())
    if known is None:
        return _given(name)
    found = next((file for file in _places(known) if file.is_file()), None) or _fetched(known)
    _check(found, known)
    return found


def models_folder() -> Path:
    """Where files of models may be put for `local:NAME` to find them."""
    return cache_folder() / "models"


def _given(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise ModelNotConfigured(
            f"local:{name} is neither a file nor a known model.",
            remedy=f"Give the path of a GGUF file, or one of: {', '.join(KNOWN)}.",
        )
    with path.open("rb") as file:
        if file.read(len(_GGUF)) != _GGUF:
            raise ModelNotConfigured(
                f"{path} is not a GGUF file.", remedy="Give the path of a model in that format."
            )
    return path.resolve()


def _places(known: Published) -> list[Path]:
    """Where it may be already: in our folder, in the hub's cache."""
    places = [models_folder() / known.file]
    try:
        from huggingface_hub import try_to_load_from_cache  # an extra, and slow to import
    except ImportError:
        return places
    cached = try_to_load_from_cache(known.repository, known.file)
    return [*places, Path(cached)] if isinstance(cached, str) else places


def _fetched(known: Published) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise ModelNotConfigured(
            f"{known.file} is not on this machine, and what would fetch it is not installed.",
            remedy=f"Run: {pip_install(f'{ours()}[local]')}",
        ) from error
    try:
        return Path(hf_hub_download(known.repository, known.file))
    except Exception as error:  # the hub's, the HTTP library's, the disk's
        raise ModelNotConfigured(
            f"{known.file} could not be fetched from the Hugging Face hub: {_first_line(error)}",
            remedy=f"Fetch it from {known.repository} by hand and put it into {models_folder()}.",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _check(path: Path, known: Published) -> None:
    """Raise unless the file's sum is the known one; the sum is taken once for each file."""
    if _remembered(path) == known.sha256:
        return
    found = _sha256(path)
    if found != known.sha256:
        raise ModelNotConfigured(
            f"{path} is not the file that its makers published: its sha256 is {found}.",
            remedy="Delete it; it is fetched again when it is next asked for.",
        )
    _remember(path, found)


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            total.update(block)
    return total.hexdigest()


def _notes() -> Path:
    return models_folder() / "checked.json"


def _state_of(path: Path) -> list[int]:
    """What changes when a file is written anew."""
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _remembered(path: Path) -> str | None:
    """The sum that was taken of the file as it is now."""
    try:
        note = json.loads(_notes().read_text("utf-8"))[str(path.resolve())]
        return str(note["sha256"]) if note["state"] == _state_of(path) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _remember(path: Path, sha256: str) -> None:
    note = {str(path.resolve()): {"sha256": sha256, "state": _state_of(path)}}
    _notes().parent.mkdir(parents=True, exist_ok=True)
    _notes().write_text(json.dumps(note), "utf-8")
