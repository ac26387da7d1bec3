"""How are cells changed in the text of a notebook file while every other byte stays as it was?

New parts are written as Jupyter writes them (sorted keys, sources as lists of lines, characters as
themselves), in the indentation and with the line ends that stand around them in this file.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, assert_never

from oh_kernel.tools.notebook_changes import (
    Change,
    Cleared,
    Deleted,
    Inserted,
    Moved,
    NewSource,
    Replaced,
    like,
    shared_ends,
)
from oh_kernel.tools.notebook_json import (
    Element,
    Member,
    Outline,
    gap_before,
    outline,
    spans_of_list,
)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_LINE = re.compile(r"(\r\n|\n|\r)[ \t]*\Z")
_MARK = "\ufeff"


@dataclass(frozen=True)
class Splice:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class NotebookText:
    """The text of a notebook file, without its byte order mark if it has one."""

    text: str
    has_mark: bool = False

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """UTF-8 as a text; UnicodeDecodeError for anything else, which Jupyter cannot read."""
        text = data.decode("utf-8")
        return cls(text.removeprefix(_MARK), text.startswith(_MARK))

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return ((_MARK if self.has_mark else "") + self.text).encode("utf-8")

    @cached_property
    def outline(self) -> Outline:
        """Where its parts are; json.JSONDecodeError when it is no JSON object."""
        return outline(self.text)

    def with_changes(self, changes: Sequence[Change]) -> Self:
        """The text after these changes, of which at most one inserts, deletes or moves."""
        splices = [splice for change in changes for splice in self._splices(change)]
        pieces, at = [], 0
        for splice in sorted(splices, key=lambda one: (one.start, one.end)):
            pieces += [self.text[at : splice.start], splice.new]
            at = splice.end
        pieces.append(self.text[at:])
        return type(self)("".join(pieces), self.has_mark)

    def _splices(self, change: Change) -> list[Splice]:
        cells = self.outline.cells
        match change:
            case NewSource(index, source):
                return [self._new_source(cells[index], source)]
            case Cleared(index):
                return self._cleared(cells[index])
            case Replaced(index, cell):
                one = cells[index]
                written = self._written(cell, gap_before(self.text, one.start))
                return [Splice(one.start, one.end, written)]
            case Inserted(index, cell):
                return [self._inserted(index, self._written(cell, self._cell_gap))]
            case Deleted(index):
                return [self._deleted(index)]
            case Moved(index, to):
                one = cells[index]
                before = to + 1 if to > index else to
                inserted = self._inserted(before, self.text[one.start : one.end])
                return [self._deleted(index), inserted]
            case _:
                assert_never(change)

    # Parts of a cell

    def _new_source(self, cell: Element, source: str) -> Splice:
        old = cell.members["source"]
        new = like(old.value, source)
        if isinstance(new, str):
            return Splice(old.start, old.end, json_text(new))
        if not (new and old.value):
            return Splice(old.start, old.end, self._new_list(old, new))
        return self._changed_lines(old, new)

    def _new_list(self, old: Member, lines: list[str]) -> str:
        """A list of lines in the place of an empty one, or an empty one."""
        if not lines:
            return "[]"
        outer = _line(gap_before(self.text, old.key))
        inner = outer + self._unit if outer else ""
        between = inner or self._inline_gap
        return "[" + inner + ("," + between).join(map(json_text, lines)) + outer + "]"

    def _changed_lines(self, old: Member, lines: list[str]) -> Splice:
        """The lines that differ, between those that both lists begin and end with."""
        spans = spans_of_list(self.text, old.start)
        begin, end = shared_ends(old.value, lines)
        spelt = {one: self.text[a:b] for one, (a, b) in zip(old.value, spans, strict=True)}
        new = [spelt.get(line) or json_text(line) for line in lines[begin : len(lines) - end]]
        gap = self._gap_of_lines(spans)
        written = ("," + gap).join(new)
        if begin == len(spans) - end:  # nothing goes
            if begin:
                at = spans[begin - 1][1]
                return Splice(at, at, f",{gap}{written}" if new else "")
            return Splice(spans[0][0], spans[0][0], f"{written},{gap}")
        last = spans[len(spans) - end - 1][1]
        if new:
            return Splice(spans[begin][0], last, written)
        if begin:
            return Splice(spans[begin - 1][1], last, "")
        return Splice(spans[0][0], spans[len(spans) - end][0], "")

    def _gap_of_lines(self, spans: Sequence[tuple[int, int]]) -> str:
        """What stands between the comma behind a line and the next line."""
        if len(spans) > 1:
            return gap_before(self.text, spans[1][0])
        gap = gap_before(self.text, spans[0][0])
        return gap if _line(gap) else self._inline_gap

    def _cleared(self, cell: Element) -> list[Splice]:
        """The outputs and the count, where they are not empty already."""
        empty = {"outputs": "[]", "execution_count": "null"}
        return [
            Splice(member.start, member.end, new)
            for name, new in empty.items()
            if (member := cell.members.get(name)) and member.value not in ([], None)
        ]

    # The list of cells

    def _inserted(self, index: int, written: str) -> Splice:
        """A cell in front of that at `index`, or behind the last."""
        cells = self.outline.cells
        if index < len(cells):
            at = cells[index].start
            return Splice(at, at, f"{written},{self._gap_between}")
        if cells:
            at = cells[-1].end
            return Splice(at, at, f",{self._gap_between}{written}")
        whole = self.outline.members["cells"]
        closing = gap_before(self.text, whole.key) if _line(self._cell_gap) else ""
        return Splice(whole.start, whole.end, f"[{self._cell_gap}{written}{closing}]")

    def _deleted(self, index: int) -> Splice:
        cells = self.outline.cells
        if len(cells) == 1:
            whole = self.outline.members["cells"]
            return Splice(whole.start, whole.end, "[]")
        if index == len(cells) - 1:
            return Splice(cells[index - 1].end, cells[index].end, "")
        return Splice(cells[index].start, cells[index + 1].start, "")

    # The layout of this file

    @cached_property
    def _cell_gap(self) -> str:
        """What stands before a cell, such as a line end and two blanks."""
        if self.outline.cells:
            return gap_before(self.text, self.outline.cells[0].start)
        gap = gap_before(self.text, self.outline.members["cells"].key)
        return _line(gap) + self._unit if _line(gap) else ""

    @cached_property
    def _gap_between(self) -> str:
        """What stands between the comma behind a cell and the next cell."""
        cells = self.outline.cells
        if len(cells) > 1:
            return gap_before(self.text, cells[1].start)
        return self._cell_gap if _line(self._cell_gap) else self._inline_gap

    @cached_property
    def _unit(self) -> str:
        """By how much a level is indented."""
        return _indent(gap_before(self.text, self._first_key))

    @cached_property
    def _first_key(self) -> int:
        return min(member.key for member in self.outline.members.values())

    @cached_property
    def _colon(self) -> str:
        """What stands between a key and its value."""
        first = min(self.outline.members.values(), key=lambda member: member.key)
        return ":" if self.text[first.start - 1] == ":" else ": "

    @property
    def _inline_gap(self) -> str:
        return " " if self._colon == ": " else ""

    def _written(self, cell: Any, gap: str) -> str:
        """A cell as Jupyter writes it, laid out like the other cells, to stand behind `gap`."""
        sibling = next((one for one in self.outline.cells if one.members), None)
        inner = gap
        if sibling is not None:
            inner = gap_before(self.text, min(member.key for member in sibling.members.values()))
        if not _line(inner):
            return json_text(cell, separators=("," + self._inline_gap, self._colon), sort_keys=True)
        unit = self._unit
        if _line(gap) and sibling is not None:
            unit = _indent(inner).removeprefix(_indent(gap)) or unit
        line = _line(gap) or _line(inner).removesuffix(unit)
        written = json_text(cell, indent=unit, separators=(",", self._colon), sort_keys=True)
        return written.replace("\n", line)


def json_text(value: object, **layout: Any) -> str:
    """JSON with characters as themselves, but for halves of pairs, which no file can hold."""
    text = json.dumps(value, ensure_ascii=False, **layout)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _line(gap: str) -> str:
    """The last line end of a gap and the indentation behind it; empty if no line ends there."""
    match = _LAST_LINE.search(gap)
    return match[0] if match else ""


def _indent(gap: str) -> str:
    return _line(gap).lstrip("\r\n")
