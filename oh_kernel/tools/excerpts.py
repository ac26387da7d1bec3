"""How does a model see a file or a folder within a number of characters?

Lines are numbered before anything is left out, so that every number shown is right.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentskills.editing import printable
from oh_kernel.tools.base import clip

LINES_LEFT_OUT = (
    "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to "
    "you. You should retry this tool after you have searched inside the file with `grep -n` in "
    "order to find the line numbers of what you are looking for.</NOTE>\n"
)
ENTRIES_LEFT_OUT = (
    "<response clipped><NOTE>Due to the max output limit, only part of this directory has been "
    "shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>"
)
# Room for what says how much of a line, or which lines, are not shown.
_REMARK = 100
_SHORTEST_CUT = 400
_SHORTEST_ROW = len("     1\t\n")


@dataclass(frozen=True)
class Focus:
    """The place that must be seen when its line is too long to be shown whole."""

    line_number: int
    column: int


def numbered(
    lines: Sequence[str], first: int, max_chars: int, *, focus: Focus | None = None
) -> str:
    """Lines with their numbers, as `cat -n` prints them, in at most `max_chars` characters.

    What does not fit goes: first the far parts of very long lines, then lines in the middle.
    """
    indices = range(len(lines))
    top, bottom = _ends(lines, max_chars // _SHORTEST_ROW + 1)

    def row(index: int, longest: int | None = None) -> str:
        line = top[index] if index < len(top) else bottom[index - len(lines)]
        number, line = first + index, printable(line)
        column = focus.column if focus and focus.line_number == number else 0
        return f"{number:6}\t{line if longest is None else _shortened(line, longest, column)}\n"

    rows = _fitting(map(row, indices), max_chars)
    if len(rows) == len(lines):
        return "".join(rows)
    longest = max(_SHORTEST_CUT, max_chars // len(lines) - _REMARK)
    rows = _fitting((row(index, longest) for index in indices), max_chars)
    if len(rows) == len(lines):
        return "".join(rows)
    room = (max_chars - len(LINES_LEFT_OUT) - _REMARK) // 2
    head = _fitting((row(index, longest) for index in indices), room)
    tail = _fitting((row(index, longest) for index in indices[::-1]), room)
    left_out = f"Lines {first + len(head)} to {first + len(lines) - len(tail) - 1} are not shown.\n"
    return "".join([*head, LINES_LEFT_OUT, left_out, *tail[::-1]])


def folder_listing(path: Path, max_chars: int) -> str:
    """The files and folders below `path`, two levels deep, without hidden ones."""
    shown = "\n".join(sorted([_spelled(path), *_entries(path, levels=2)]))
    text = (
        f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden "
        f"items:\n{shown}"
    )
    hidden = sum(entry.name.startswith(".") for entry in os.scandir(path))
    if hidden:
        text += (
            f"\n\n{hidden} hidden files/directories in this directory are excluded. "
            f"You can use 'ls -la {path}' to see them."
        )
    return clip(printable(text), max_chars, ENTRIES_LEFT_OUT)


def _ends(lines: Sequence[str], most: int) -> tuple[Sequence[str], Sequence[str]]:
    """The lines that can be among those shown: many more need not be made."""
    if len(lines) <= 2 * most:
        return lines[:], ()
    return lines[:most], lines[-most:]


def _fitting(rows: Iterable[str], room: int) -> list[str]:
    """The first rows, as many as fit; no more of them are made than needed."""
    fitting = []
    for row in rows:
        room -= len(row)
        if room < 0:
            break
        fitting.append(row)
    return fitting


def _shortened(line: str, longest: int, column: int) -> str:
    """The part of a line around a column, saying how much of it is not shown."""
    if len(line) <= longest:
        return line
    start = max(0, min(column - longest // 2, len(line) - longest))
    end = start + longest
    before = f"[line cut: {start} characters] " if start else ""
    after = f" [line cut: {len(line) - end} characters]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def _entries(folder: Path, levels: int) -> list[str]:
    """Every visible entry as a path; a link to a folder is named but not entered."""
    found = []
    for entry in os.scandir(folder):
        if entry.name.startswith("."):
            continue
        found.append(_spelled(Path(entry.path)))
        if levels > 1 and entry.is_dir(follow_symlinks=False):
            with suppress(OSError):  # not ours to enter, or gone by now: the others still count
                found += _entries(Path(entry.path), levels - 1)
    return found


def _spelled(path: Path) -> str:
    # os.path, because Path.is_dir raises for what may not be looked at.
    return f"{path}/" if os.path.isdir(path) else str(path)  # noqa: PTH112
