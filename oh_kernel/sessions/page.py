"""What stands in the rows and columns of a screen, and what of it has not been told yet?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Told(NamedTuple):
    """A row as text; `wraps`: its line goes on in the next row."""

    text: str
    wraps: bool


@dataclass(slots=True)
class Row:
    """The cells of a row: a character each, with what combines with it; a wide one fills two."""

    cells: list[str]
    wraps: bool = False

    def told(self) -> Told:
        text = "".join(self.cells)
        return Told(text if self.wraps else text.rstrip(), self.wraps)


class Page:
    """A screen of cells with a cursor.

    `keeps`: rows that leave it at its top come back from `take_left`.
    """

    def __init__(self, height: int, width: int, *, keeps: bool) -> None:
        self._keeps = keeps
        self.height = height
        self.width = width
        self.row = self.column = 0
        self.top, self.bottom = 0, height - 1  # of the part that scrolls
        self._rows = [self._blank() for _ in range(height)]
        self._told: list[Told] = []
        self._left: list[Told] = []

    # Writing

    def put(self, text: str) -> None:
        """Write `text`, which has no control characters, and move on."""
        if text.isascii():
            while text:
                self._wrap_if_full()
                piece = text[: self.width - self.column]
                self._set(list(piece))
                text = text[len(piece) :]
        else:
            for char in text:
                self._put_char(char)

    def feed_line(self) -> None:
        """Go down; at the bottom of the part that scrolls, the rest goes up."""
        if self.row == self.bottom:
            self.scroll_up(1)
        elif self.row < self.height - 1:
            self.row += 1

    def feed_line_back(self) -> None:
        """Go up; at the top of the part that scrolls, the rest goes down."""
        if self.row == self.top:
            self.insert_rows(self.top, 1)
        elif self.row > 0:
            self.row -= 1

    def move_to(self, row: int, column: int) -> None:
        """Put the cursor there, or as near as there is a place."""
        self.row = min(max(row, 0), self.height - 1)
        self.column = min(max(column, 0), self.width - 1)

    def _wrap_if_full(self) -> None:
        if self.column >= self.width:
            self._rows[self.row].wraps = True
            self.column = 0
            self.feed_line()

    def _put_char(self, char: str) -> None:
        from wcwidth import wcwidth  # tables of all of Unicode

        width = wcwidth(char)
        if width <= 0:  # it combines with what is before it
            cells = self._rows[self.row].cells
            at = min(self.column, self.width) - 1
            while at > 0 and not cells[at]:
                at -= 1
            if at >= 0:
                cells[at] += char
            return
        if self.column + width > self.width:
            self.column = self.width
        self._wrap_if_full()
        self._set([char, ""][:width])

    def _set(self, new: list[str]) -> None:
        cells, end = self._rows[self.row].cells, self.column + len(new)
        if not cells[self.column] and self.column:
            cells[self.column - 1] = " "  # half of a wide character is none
        if end < self.width and not cells[end]:
            cells[end] = " "
        cells[self.column : end] = new
        self.column = end

    # Erasing and shifting

    def erase(self, row: int, start: int, end: int) -> None:
        """Blank the cells from `start` to before `end`."""
        end = min(end, self.width)
        if start < end:
            self._rows[row].cells[start:end] = [" "] * (end - start)
        if end == self.width:
            self._rows[row].wraps = False

    def erase_rows(self, start: int, end: int) -> None:
        """Blank the rows from `start` to before `end`."""
        for row in range(start, end):
            self._rows[row] = self._blank()

    def insert(self, count: int) -> None:
        """Shift the rest of the row to the right by `count` cells."""
        cells = self._rows[self.row].cells
        cells[self.column : self.column] = [" "] * min(count, self.width)
        del cells[self.width :]

    def delete(self, count: int) -> None:
        """Shift the rest of the row to the left by `count` cells."""
        cells = self._rows[self.row].cells
        del cells[self.column : self.column + count]
        cells += [" "] * (self.width - len(cells))

    def scroll_up(self, count: int) -> None:
        """Move the part that scrolls up."""
        for row in self.delete_rows(self.top, count):
            if self._keeps and self.top == 0:
                self._leave(row.told())

    def delete_rows(self, top: int, count: int) -> list[Row]:
        """Take `count` rows away, from `top` on; those below move up."""
        end = min(top + count, self.bottom + 1)
        gone = self._rows[top:end]
        del self._rows[top:end]
        at = self.bottom + 1 - len(gone)
        self._rows[at:at] = [self._blank() for _ in gone]
        return gone

    def insert_rows(self, top: int, count: int) -> None:
        """Put `count` blank rows in at `top`; those below move down."""
        count = min(count, self.bottom - top + 1)
        if count > 0:
            del self._rows[self.bottom + 1 - count : self.bottom + 1]
            self._rows[top:top] = [self._blank() for _ in range(count)]

    # Telling

    def take_left(self) -> str:
        """The rows that have left at the top since the last time."""
        left, self._left = self._left, []
        return "".join(_lines(left))

    def take(self) -> str:
        """The rows from the first on that differs from what was told before."""
        rows = self._told_rows()
        same = 0
        while same < min(len(rows), len(self._told)) and rows[same] == self._told[same]:
            same += 1
        self._told = rows
        return self._as_text(rows[same:])

    def take_all(self) -> str:
        """All rows, unless nothing has changed since they were told."""
        rows = self._told_rows()
        while rows and not rows[-1].text:
            rows.pop()
        if rows == self._told:
            return ""
        self._told = rows
        return "".join(_lines(rows))

    @property
    def at_end(self) -> bool:
        """Whether the cursor is behind the last character, and nothing was told yet."""
        if self._told or (self.top, self.bottom) != (0, self.height - 1):
            return False
        rows = self._told_rows()
        cells = self._rows[self.row].cells
        used = next((at for at in range(self.width, 0, -1) if cells[at - 1] != " "), 0)
        return len(rows) <= self.row + 1 and self.column == used

    def _told_rows(self) -> list[Told]:
        """The rows down to the last that has text, or to the one above the cursor."""
        rows = [row.told() for row in self._rows]
        while rows and not rows[-1].text and len(rows) > self.row:
            rows.pop()
        return rows

    def _as_text(self, rows: list[Told]) -> str:
        text = "".join(_lines(rows))
        below = self.row >= len(self._told)  # the cursor is on a line of its own
        return text if below else text.removesuffix("\n")

    def _leave(self, row: Told) -> None:
        if self._told and self._told.pop(0) == row:
            return
        self._left.append(row)

    def _blank(self) -> Row:
        return Row([" "] * self.width)


def _lines(rows: list[Told]) -> Iterator[str]:
    return (row.text if row.wraps else row.text + "\n" for row in rows)
