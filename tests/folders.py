"""Folders of small files for tests, and eyes that may not see everything."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


def make_files(folder: Path, *names: str, text: str = "") -> None:
    """Files with these relative paths, all with the same text."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike `tmp_path`."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    """With the rights of no particular user: root could read everything."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
