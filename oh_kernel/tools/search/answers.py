"""Where do glob and grep look, and in which words do they answer?"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentskills.editing import printable

MAX_FILES = 100
MAX_CHARS = 30_000
"""Characters of an answer."""
TIMEOUT_S = 30.0
NEAR_MISS_S = 3.0
"""How long to look for what was left out, once nothing was found."""
TRUNCATED = (
    f"[Results truncated to first {MAX_FILES} files. Consider using a more specific pattern.]"
)


def search_path(workspace: Path, path: str | None) -> str:
    """The absolute path that a model means: relative to the workspace, with `~` expanded."""
    named = os.path.expanduser(path or "")  # noqa: PTH111 - leaves ~nobody as it is
    return os.path.abspath(workspace / named)  # noqa: PTH100 - keeps links as they are named


def is_folder(path: str) -> bool:
    """Whether there is a folder; no path is too long or too odd to be asked about."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for some


def is_file(path: str) -> bool:
    """Whether there is a file, no pipe and no device."""
    return os.path.isfile(path)  # noqa: PTH113 - the same


def shown(path: str) -> str:
    """A path on one line, fit for JSON."""
    return printable(path).replace("\n", "\\n").replace("\r", "\\r")


def listing(heading: str, lines: Iterable[str], notes: Sequence[str]) -> str:
    """An answer that lists something."""
    return "\n".join((heading, *lines)) + "".join(f"\n\n{note}" for note in notes)


def shortfalls(
    files: Sequence[str], unreadable: Sequence[str], *, is_complete: bool, timeout_s: float
) -> list[str]:
    """Why an answer is not whole: too many files, too little time, paths that cannot be read."""
    notes = [TRUNCATED] if len(files) > MAX_FILES else []
    if not is_complete:
        notes.append(
            f"[The search was stopped after {timeout_s:g} s. These are the files found until then; "
            "search a smaller folder for the rest.]"
        )
    if unreadable:
        notes.append(f"[{len(unreadable)} path(s) could not be read: {_some(unreadable)}]")
    return notes


def near_miss(paths: Sequence[str], how: str) -> str:
    """That there is something where nobody looked."""
    return f"[{len(paths)} file(s) {how} would match: {_some(paths)}]"


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(shown(path) for path in paths[:3]) + more
