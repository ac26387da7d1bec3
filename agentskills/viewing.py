"""How does a person or a model look at a file through a window of lines?"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from agentskills.editing import FileText, printable, read_file
from agentskills.errors import EditingError, LineOutOfRange

WINDOW = 100
"""Lines shown at once."""

P = ParamSpec("P")


@dataclass
class OpenFile:
    """The file that `goto_line`, `scroll_*` and `search_file` mean when none is named."""

    path: Path | None = None
    line: int = 1


current = OpenFile()


def prints_errors(skill: Callable[P, None]) -> Callable[P, None]:
    """A skill that prints one line instead of raising when a file cannot be read or changed."""

    @functools.wraps(skill)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            skill(*args, **kwargs)
        except EditingError as error:
            print(f"ERROR: {error}")

    return wrapped


@prints_errors
def open_file(path: str, line_number: int = 1, context_lines: int = WINDOW) -> None:
    """Open a file and show the lines (100 at most) around a line number."""
    file = read_file(path)
    _require_line(file, line_number)
    current.path, current.line = Path(path).absolute(), line_number
    start, end = _around(line_number, len(file.lines), max(1, min(context_lines, WINDOW)))
    print_window(file, start, end)
    if end < len(file.lines):
        print(f"[Use `scroll_down` to view the next {WINDOW} lines of the file!]")


@prints_errors
def goto_line(line_number: int) -> None:
    """Show the lines around a line number of the open file."""
    file = _read_open_file()
    _require_line(file, line_number)
    current.line = line_number
    show_around(file, line_number)


@prints_errors
def scroll_down() -> None:
    """Show the next 100 lines of the open file."""
    _scroll(WINDOW)


@prints_errors
def scroll_up() -> None:
    """Show the previous 100 lines of the open file."""
    _scroll(-WINDOW)


def show_around(file: FileText, line_number: int, *, note: str = "") -> None:
    """Print the window around a line; `note` goes into the header."""
    print_window(file, *_around(line_number, len(file.lines), WINDOW), note=note)


def print_window(file: FileText, start: int, end: int, *, note: str = "") -> None:
    """Print the lines `start` to `end`, and what is above and below them."""
    total = len(file.lines)
    print(f"[File: {file.path.absolute()} ({total} lines total{note})]")
    print(f"({start - 1} more lines above)" if start > 1 else "(this is the beginning of the file)")
    for number, line in enumerate(file.lines[start - 1 : end], start):
        print(f"{number}|{printable(line)}")
    print(f"({total - end} more lines below)" if end < total else "(this is the end of the file)")


def _scroll(lines: int) -> None:
    file = _read_open_file()
    total = len(file.lines)
    current.line = max(1, min(current.line + lines, total))
    start, end = current.line, min(total, current.line + WINDOW - 1)
    print_window(file, max(1, end - WINDOW + 1) if end == total else start, end)


def _around(line_number: int, total: int, size: int) -> tuple[int, int]:
    """First and last line of a window with the line in its middle, moved to be full at the ends."""
    half = max(1, size // 2)
    start, end = max(1, line_number - half), min(total, line_number + half)
    if start == 1:
        end = min(total, size)
    if end == total:
        start = max(1, end - size + 1)
    return start, end


def _require_line(file: FileText, line_number: int) -> None:
    last = max(1, len(file.lines))
    if not 1 <= line_number <= last:
        raise LineOutOfRange(line_number, 1, last)


def _read_open_file() -> FileText:
    if current.path is None:
        raise EditingError("No file open. Use the open_file function first.")
    return read_file(current.path)
