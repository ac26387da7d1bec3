"""What hides a library, when a file of the user's folder has its name?

The folder of a notebook is on `sys.path`, before the installed libraries. A file `openai.py` there
is imported in place of the library, now or long ago, and the failure that follows names neither.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from oh_kernel.errors import ShadowedLibrary


@contextmanager
def libraries_unshadowed() -> Iterator[None]:
    """Imports in this block, on this thread, raise ShadowedLibrary where a user's file interferes.

    Put it around the first import of a heavy library. Imports of other threads are left alone: the
    user may well mean the file.
    """
    finder = _Guard(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    except ShadowedLibrary:
        raise
    except Exception as error:
        hiding = _imported_instead_of_libraries()
        if not hiding:
            raise
        raise _shadowed(*hiding[0]) from error
    finally:
        sys.meta_path.remove(finder)


class _Guard(MetaPathFinder):
    """Finds nothing itself; refuses a name that both the user's folder and the libraries have."""

    def __init__(self, thread_id: int) -> None:
        self._thread_id = thread_id

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and threading.get_ident() == self._thread_id:
            own = _own_file(fullname)
            if own is not None and _is_library(fullname):
                raise _shadowed(fullname, own)
        return None


def _own_file(name: str) -> Path | None:
    folder = _working_folder()
    spec = PathFinder.find_spec(name, [str(folder)]) if folder is not None else None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _is_library(name: str) -> bool:
    here = _working_folder()
    elsewhere = [entry for entry in sys.path if entry and Path(entry).resolve() != here]
    spec = PathFinder.find_spec(name, elsewhere)
    return spec is not None and spec.origin is not None


def _imported_instead_of_libraries() -> list[tuple[str, Path]]:
    """Modules that the user's folder has given already, under the name of a library."""
    found: list[tuple[str, Path]] = []
    here = _working_folder()
    if here is None:
        return found
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or name == "__main__" or not file:
            continue
        is_own = Path(file).parent == here or Path(file) == here / name / "__init__.py"
        if is_own and _is_library(name):
            found.append((name, Path(file)))
    return found


def _working_folder() -> Path | None:
    """None if it was removed: then nothing in it hides anything."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _shadowed(name: str, file: Path) -> ShadowedLibrary:
    return ShadowedLibrary(
        f"{file} hides the library {name!r}, which the agent needs.",
        remedy="Rename the file and restart the kernel.",
    )
