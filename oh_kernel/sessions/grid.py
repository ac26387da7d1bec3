"""What is on the screen after a program has moved about on it (top, watch, curses, progress)?

Knows what the terminal descriptions of xterm, screen, vt100 and the Linux console use, colours and
other looks aside.
"""

from __future__ import annotations

import re

from oh_kernel.sessions.page import Page

# What is drawn with letters after ESC ( 0.
_LINES = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_TAB = 8
_MANY = 9999

_TOKEN = re.compile(
    r"\x1b\[(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b(?P<slot>[()])(?P<charset>.)"
    r"|\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]+[0-~])"
    r"|\x1b(?P<short>[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)


class Grid:
    """A screen that follows every movement. Text comes as `Decoder` leaves it, escapes included."""

    def __init__(self, height: int, width: int) -> None:
        self._main = Page(height, width, keeps=True)
        self._page = self._main
        self._saved = (0, 0)
        self._charsets = {"(": "B", ")": "B"}
        self._shifted = False
        self._last = ""
        self._flushed: list[str] = []

    @property
    def is_plain(self) -> bool:
        """Whether the screen holds only text that was written from its top to the cursor."""
        return self._page is self._main and self._charsets["("] == "B" and self._main.at_end

    def write(self, text: str) -> str:
        """Draw `text`; what has left the screen at its top, or with a screen of its own."""
        for token in _TOKEN.finditer(text):
            match token.lastgroup:
                case "text":
                    self._put(token["text"])
                case "final":
                    self._sequence(token["args"], token["final"])
                case "control":
                    self._control(token["control"])
                case "charset":
                    self._charsets[token["slot"]] = token["charset"]
                case "short":
                    self._short(token["short"])
        flushed, self._flushed = "".join(self._flushed), []
        return flushed + self._main.take_left()

    def take(self) -> str:
        """What is on the screen and was not told; a program's own screen is told whole."""
        return self._page.take() if self._page is self._main else self._page.take_all()

    # What a program sends

    def _put(self, text: str) -> None:
        if self._charsets[")" if self._shifted else "("] == "0":
            text = text.translate(_LINES)
        self._last = text[-1]
        self._page.put(text)

    def _control(self, char: str) -> None:
        page = self._page
        match char:
            case "\n" | "\v" | "\f":
                page.feed_line()
            case "\r":
                page.column = 0
            case "\b":
                page.move_to(page.row, page.column - 1)
            case "\t":
                page.move_to(page.row, (page.column // _TAB + 1) * _TAB)
            case "\x0e" | "\x0f":
                self._shifted = char == "\x0e"

    def _short(self, char: str) -> None:
        page = self._page
        match char:
            case "7":
                self._saved = (page.row, page.column)
            case "8":
                page.move_to(*self._saved)
            case "D":
                page.feed_line()
            case "E":
                page.column = 0
                page.feed_line()
            case "M":
                page.feed_line_back()
            case "c":
                page.erase_rows(0, page.height)
                page.move_to(0, 0)

    def _sequence(self, args: str, final: str) -> None:
        if args.startswith("?"):
            if final in "hl":
                self._set_modes(args[1:].split(";"), on=final == "h")
        elif re.fullmatch(r"[\d;]*", args):
            first, second, *_ = [min(int(arg or 0), _MANY) for arg in args.split(";")] + [0]
            self._move(final, first or 1, second or 1)
            self._edit(final, first)
            self._shift(final, first or 1)
            if final == "r":
                self._set_margins(first or 1, second)

    def _move(self, final: str, first: int, second: int) -> None:
        page = self._page
        row, column = page.row, min(page.column, page.width - 1)
        match final:
            case "A":
                page.move_to(row - first, column)
            case "B":
                page.move_to(row + first, column)
            case "C":
                page.move_to(row, column + first)
            case "D":
                page.move_to(row, column - first)
            case "E":
                page.move_to(row + first, 0)
            case "F":
                page.move_to(row - first, 0)
            case "G" | "`":
                page.move_to(row, first - 1)
            case "d":
                page.move_to(first - 1, column)
            case "H" | "f":
                page.move_to(first - 1, second - 1)
            case "s":
                self._short("7")
            case "u":
                self._short("8")

    def _edit(self, final: str, how: int) -> None:
        match final:
            case "J":
                self._erase_page(how)
            case "K":
                self._erase_line(how)

    def _shift(self, final: str, count: int) -> None:
        page = self._page
        match final:
            case "L":
                page.insert_rows(page.row, count)
            case "M":
                page.delete_rows(page.row, count)
            case "S":
                page.scroll_up(count)
            case "T":
                page.insert_rows(page.top, count)
            case "@":
                page.insert(count)
            case "P":
                page.delete(count)
            case "X":
                page.erase(page.row, page.column, page.column + count)
            case "b":
                page.put(self._last * count)

    def _set_modes(self, modes: list[str], *, on: bool) -> None:
        if {"47", "1047", "1049"}.isdisjoint(modes) or on == (self._page is not self._main):
            return
        # Both the screen that is left and the one that disappears are told.
        if told := self.take():
            self._flushed += [self._main.take_left(), told.removesuffix("\n"), "\n"]
        if on:
            self._saved = (self._main.row, self._main.column)
            self._page = Page(self._main.height, self._main.width, keeps=False)
        else:
            self._page = self._main
            self._main.move_to(*self._saved)

    def _erase_line(self, how: int) -> None:
        page = self._page
        start = page.column if how == 0 else 0
        end = page.column + 1 if how == 1 else page.width
        page.erase(page.row, start, end)

    def _erase_page(self, how: int) -> None:
        page = self._page
        match how:
            case 0:
                self._erase_line(0)
                page.erase_rows(page.row + 1, page.height)
            case 1:
                self._erase_line(1)
                page.erase_rows(0, page.row)
            case 2:
                page.erase_rows(0, page.height)

    def _set_margins(self, first: int, last: int) -> None:
        page = self._page
        top, bottom = first - 1, (last or page.height) - 1
        if 0 <= top < bottom < page.height:
            page.top, page.bottom = top, bottom
            page.move_to(0, 0)
