"""What can become of the cells of a notebook, whether it lies in a file or is open in Jupyter?

A change names cells by their index before it. Who carries it out knows the form of what it
changes: the text of a file (`notebook_text`) or a shared document (`live_notebook`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class NewSource:
    """The source of a cell becomes another; whatever else the cell holds stays."""

    index: int
    source: str


@dataclass(frozen=True)
class Cleared:
    """A code cell loses its outputs and its execution count."""

    index: int


@dataclass(frozen=True)
class Replaced:
    """A cell becomes another one, as when its type changes."""

    index: int
    cell: Cell


@dataclass(frozen=True)
class Inserted:
    """A new cell gets this index; the cell that had it, and those below, move down."""

    index: int
    cell: Cell


@dataclass(frozen=True)
class Deleted:
    """A cell is gone."""

    index: int


@dataclass(frozen=True)
class Moved:
    """A cell gets another index; all others keep their order."""

    index: int
    to: int


Change = NewSource | Cleared | Replaced | Inserted | Deleted | Moved


def applied(cells: Sequence[Cell], changes: Sequence[Change]) -> list[Cell]:
    """The cells after these changes, of which at most one inserts, deletes or moves."""
    result = [dict(cell) for cell in cells]
    for change in changes:
        match change:
            case NewSource(index, source):
                result[index]["source"] = like(result[index].get("source"), source)
            case Cleared(index):
                result[index].update(outputs=[], execution_count=None)
            case Replaced(index, cell):
                result[index] = dict(cell)
            case Inserted(index, cell):
                result.insert(index, dict(cell))
            case Deleted(index):
                del result[index]
            case Moved(index, to):
                result.insert(to, result.pop(index))
    return list(result)


def source_of(cell: Cell) -> str:
    """The source as one text; files hold it as a list of lines or as one string.

    A damaged cell, where it may be anything else, has an empty one.
    """
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(map(str, source))
    return source if isinstance(source, str) else ""


def lines_of(source: str) -> list[str]:
    """The source as Jupyter writes it: lines that keep their ends, split where Jupyter splits."""
    return source.splitlines(keepends=True)


def like(old: object, source: str) -> str | list[str]:
    """A source in the form that the old one has, a list of lines or one string."""
    return source if isinstance(old, str) else lines_of(source)


def shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines (or characters) both begin with, and how many of the rest both end with.

    >>> shared_ends("abcd", "abXcd"), shared_ends(["a"], ["a", "a"])
    ((2, 2), (1, 0))
    """
    most = min(len(old), len(new))
    begin = next((n for n in range(most) if old[n] != new[n]), most)
    most -= begin
    end = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return begin, end
