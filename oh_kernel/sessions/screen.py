"""What would a person read of the raw bytes that programs send to a terminal?

Long lines stay whole. What moves the cursor within one line (backspace, erase) is followed, and
what comes after a carriage return replaces the line, so that a progress bar is read as its last
frame, without the rest of a longer one. Colours, titles, queries and other escape sequences are
dropped. Once a program moves between lines, there is a grid of rows and columns (see `grid`) until
it writes on as if there were none.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from oh_kernel.sessions.grid import Grid

ROWS, COLUMNS = 50, 120

# Programs' own NULs and SOHs are dropped first, so these two can stand for "erase in line".
_ERASE_TO_END = "\x00"
_ERASE_LINE = "\x01"

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])"  # CSI: colours, cursor, erase, queries
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\|(?=\n))"  # OSC: titles, links; never past its line
    r"|[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    r"|[ -/]*[0-OQ-WYZ\\`-~]"  # the short ones
    r")"
)
# Control bytes that mean nothing here. They are never part of a UTF-8 sequence; BEL ends titles.
_NOISE = bytes({*range(0x20), 0x7F} - set(b"\a\b\t\n\r\x0e\x0f\x1b"))
# What makes a grid necessary: going to another line or far to the right, editing lines, a screen of
# its own. Not among them is what line mode does as well, such as going back to the first column.
_ADDRESSING = re.compile(
    r"\x1b(?:\[(?:[\d;]*[ABCEFHLMPSTX`@bdfr]|[023]?J|(?:0*[2-9]|0*1\d)\d*G|\?(?:47|1047|1049)h)|[78M]|[()]0)"
)
_NEWLINE = re.compile(r"\r+\n")
_MOVING = "\r\b" + _ERASE_TO_END + _ERASE_LINE
_MOVES = re.compile(f"([{_MOVING}])")
_UNFINISHED_MAX_CHARS = 65_536
_LINE_MAX_CHARS = 65_536
# How many characters of the lines that ended may still be gone back to; up to twice as many wait.
_WINDOW_CHARS = 16_384


class Decoder:
    """Turns bytes, in pieces cut anywhere, into text with whole escape sequences.

    Invalid UTF-8 becomes U+FFFD. A sequence that a piece ends within waits for the next piece.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        """The text that is certain once `data` has come in."""
        text = self._held + self._utf8.decode(data.translate(None, _NOISE))
        text, self._held = _split_unfinished(text)
        return text

    def flush(self) -> str:
        """What was waiting for its rest, which did not come."""
        text = self._held + self._utf8.decode(b"", final=True)
        self._held = ""
        return text


class Said(NamedTuple):
    """`text` can no longer change; `news` is for a live view, which follows `\\r` itself."""

    text: str
    news: str


class Screen:
    """The readable text of a stream: what is settled as it comes, and the rest on request."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._window = ""  # lines that ended and may still be gone back to
        self._line = ""
        self._column = 0
        self._returned = False
        self._grid: Grid | None = None
        self._shown = ""  # of what the grid began with

    def feed(self, data: bytes) -> Said:
        """What `data` settled, and the news in it."""
        text = self._decoder.feed(data)
        if self._grid is not None:
            return self._draw(text)
        drawn = _ADDRESSING.search(text) if "\x1b" in text else None
        if drawn is None:
            return self._write_on(_plain(text))
        before = self._write_on(_plain(text[: drawn.start()]))
        after = self._draw(text[drawn.start() :])
        return Said(before.text + after.text, before.news + after.news)

    def take(self) -> Said:
        """What is not settled, and is thereby read: what follows comes as text of its own."""
        if self._grid is not None:
            told = self._grid.take()
            return Said(told, self._unshown(told))
        window, self._window = self._window, ""
        return Said(window + self._end_line(), "")

    def flush(self) -> Said:
        """Everything that is left, at the end of a program's output."""
        rest = self._decoder.flush()
        last = self._draw(rest) if self._grid is not None else self._write_on(_plain(rest))
        left = self.take()
        self._grid, self._shown = None, ""
        return Said(last.text + left.text, last.news + left.news)

    # On a grid

    def _draw(self, text: str) -> Said:
        """Draw `text`; back to lines once it might as well have been written in lines."""
        grid = self._grid = self._grid or self._new_grid()
        told = grid.write(text)
        news = self._unshown(told)
        if grid.is_plain:
            left = grid.take()
            news += self._unshown(left)
            *lines, self._line = left.split("\n")
            self._window = "".join(line + "\n" for line in lines)
            self._column, self._returned = len(self._line), False
            self._grid, self._shown = None, ""
        return Said(told, news)

    def _new_grid(self) -> Grid:
        from oh_kernel.sessions.grid import Grid  # rarely needed

        grid = Grid(ROWS, COLUMNS)
        self._shown = self._window + self._line
        grid.write(self._shown.replace("\n", "\r\n"))
        grid.write(f"\r\x1b[{self._column}C" if self._column < len(self._line) else "")
        self._window = ""
        self._end_line()
        return grid

    def _unshown(self, told: str) -> str:
        """`told` without the lines at its beginning that a live view has had."""
        if not told:
            return ""
        shown, self._shown = self._shown, ""
        at = 0
        for line in shown.splitlines(keepends=True):
            if not told.startswith(line, at):
                break
            at += len(line)
        return told[at:]

    # In lines

    def _write_on(self, plain: str) -> Said:
        settled = self._settle(self._write(plain))
        return Said(settled, plain.replace(_ERASE_TO_END, "").replace(_ERASE_LINE, ""))

    def _settle(self, ended: str) -> str:
        """Of the lines that have ended, those that nothing will go back to."""
        lines = self._window + ended
        cut = 0
        if len(lines) > 2 * _WINDOW_CHARS:
            cut = lines.find("\n", len(lines) - _WINDOW_CHARS) + 1 or len(lines)
        self._window = lines[cut:]
        return lines[:cut]

    def _end_line(self) -> str:
        line, self._line, self._column, self._returned = self._line, "", 0, False
        return line

    def _write(self, text: str) -> str:
        if self._column == len(self._line) and not any(move in text for move in _MOVING):
            ended, newline, rest = text.rpartition("\n")
            ended = self._end_line() + ended + newline if newline else ""
            return ended + self._type(rest)
        *lines, last = text.split("\n")
        ended = "".join(self._move(line) + self._end_line() + "\n" for line in lines)
        return ended + self._move(last)

    def _move(self, text: str) -> str:
        overflow = ""
        for part in _MOVES.split(text):
            if part == "\r":
                self._column, self._returned = 0, True
            elif part == "\b":
                self._column = max(0, self._column - 1)
            elif part == _ERASE_TO_END:
                self._line = self._line[: self._column]
            elif part == _ERASE_LINE:
                self._line, self._column = "", 0
            else:
                overflow += self._type(part)
        return overflow

    def _type(self, text: str) -> str:
        if self._returned and text:
            self._end_line()
        end = self._column + len(text)
        self._line = self._line[: self._column] + text + self._line[end:]
        self._column = end
        # A line without an end must not fill the memory; its beginning is settled.
        return self._end_line() if len(self._line) > _LINE_MAX_CHARS else ""


def readable(data: bytes) -> str:
    """The readable text of a whole output.

    >>> readable(b"get 10%\\rget 99%\\r\\n\\x1b[31mred\\x1b[0m")
    'get 99%\\nred'
    """
    screen = Screen()
    return screen.feed(data).text + screen.flush().text


def _split_unfinished(text: str) -> tuple[str, str]:
    start = text.rfind("\x1b", max(0, len(text) - _UNFINISHED_MAX_CHARS))
    # The terminator of a string sequence begins with ESC too: its opening one is what counts.
    opening = text.rfind("\x1b", max(0, len(text) - _UNFINISHED_MAX_CHARS), max(start, 0))
    for at in (opening, start):
        if at >= 0 and not _ESCAPE.match(text, at):
            return text[:at], text[at:]
    if text.endswith("\r"):
        body = text.rstrip("\r")
        return body, text[len(body) :]
    return text, ""


def _plain(text: str) -> str:
    if "\x1b" in text:
        # An ESC that begins nothing (bytes of a binary file) is dropped by itself.
        text = _ESCAPE.sub(_meaning, text).replace("\x1b", "")
    text = text.replace("\a", "").replace("\x0e", "").replace("\x0f", "").replace("\r\n", "\n")
    return _NEWLINE.sub("\n", text) if "\r\n" in text else text


def _meaning(escape: re.Match[str]) -> str:
    args = escape["args"] or ""
    match escape["final"]:
        case "K":
            return {"1": "", "2": _ERASE_LINE}.get(args, _ERASE_TO_END)
        case "G":
            return "\r" if args in ("", "0", "1") else ""
        case "D":
            return "\b" * min(int(args or 1), 1000) if args.isdigit() or not args else ""
        case _:
            return ""
