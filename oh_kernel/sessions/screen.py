"""What would a person read of the raw bytes that programs send to a terminal?

There is no grid of rows and columns: long lines stay whole. What moves the cursor within one line
(backspace, erase) is followed, and what comes after a carriage return replaces the line, so that a
progress bar is read as its last frame, without the rest of a longer one. Colours, titles, queries
and every other escape sequence are dropped.
"""

from __future__ import annotations

import codecs
import re

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
_NOISE = bytes({*range(0x20), 0x7F} - set(b"\a\b\t\n\r\x1b"))
_NEWLINE = re.compile(r"\r+\n")
_MOVING = "\r\b" + _ERASE_TO_END + _ERASE_LINE
_MOVES = re.compile(f"([{_MOVING}])")
_UNFINISHED_MAX_CHARS = 65_536
_LINE_MAX_CHARS = 65_536


class Decoder:
    """Turns bytes, in pieces cut anywhere, into text with only `\\n`, `\\t`, `\\r` and `\\b` left.

    Invalid UTF-8 becomes U+FFFD. A sequence that a piece ends within waits for the next piece.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        """The text that is certain once `data` has come in."""
        text = self._held + self._utf8.decode(data.translate(None, _NOISE))
        text, self._held = _split_unfinished(text)
        return _plain(text)

    def flush(self) -> str:
        """What was waiting for its rest, which did not come."""
        text = self._held + self._utf8.decode(b"", final=True)
        self._held = ""
        return _plain(text)


class Screen:
    """The readable text of a stream: whole lines as they end, the unfinished one on request."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._line = ""
        self._column = 0
        self._returned = False

    def feed(self, data: bytes) -> tuple[str, str]:
        """(lines that ended, the same news for a live view, which follows `\\r` itself)."""
        text = self._decoder.feed(data)
        return self._write(text), text.replace(_ERASE_TO_END, "").replace(_ERASE_LINE, "")

    def take_line(self) -> str:
        """The unfinished line, which is thereby read: its rest comes as text of its own."""
        line, self._line, self._column, self._returned = self._line, "", 0, False
        return line

    def flush(self) -> str:
        """Everything that is left, at the end of a program's output."""
        return self._write(self._decoder.flush()) + self.take_line()

    def _write(self, text: str) -> str:
        if self._column == len(self._line) and not any(move in text for move in _MOVING):
            ended, newline, rest = text.rpartition("\n")
            ended = self.take_line() + ended + newline if newline else ""
            return ended + self._type(rest)
        *lines, last = text.split("\n")
        ended = "".join(self._move(line) + self.take_line() + "\n" for line in lines)
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
            self.take_line()
        end = self._column + len(text)
        self._line = self._line[: self._column] + text + self._line[end:]
        self._column = end
        # A line without an end must not fill the memory; its beginning is settled.
        return self.take_line() if len(self._line) > _LINE_MAX_CHARS else ""


def readable(data: bytes) -> str:
    """The readable text of a whole output.

    >>> readable(b"get 10%\\rget 99%\\r\\n\\x1b[31mred\\x1b[0m")
    'get 99%\\nred'
    """
    screen = Screen()
    return screen.feed(data)[0] + screen.flush()


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
    text = text.replace("\a", "").replace("\r\n", "\n")
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
