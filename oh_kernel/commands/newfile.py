"""How is a file written so that it is there whole or not at all, and in nobody's place?"""

import os
from pathlib import Path


def write_new(path: Path, text: str, force: bool = False) -> None:
    """Write a file; raises FileExistsError if there is one, unless it may be replaced (`force`)."""
    if path.exists() and not path.is_file():
        path.write_text(text, "utf-8")  # /dev/stdout, a pipe
        return
    if path.exists() and not force:
        raise FileExistsError(path)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_text(text, "utf-8")
        _put_in_place(partial, path, force)
    finally:
        partial.unlink(missing_ok=True)


def _put_in_place(partial: Path, path: Path, force: bool) -> None:
    if not force:
        # Unlike a rename, a link replaces nothing that came meanwhile. Not every disk has links.
        try:
            os.link(partial, path)
            return
        except FileExistsError:
            raise
        except OSError:
            if path.exists():
                raise FileExistsError(path) from None
    partial.replace(path)
