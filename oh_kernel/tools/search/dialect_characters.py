"""What does an escape in a regular expression stand for, in Python's words and in Rust's?"""

import re
from typing import NamedTuple

LINE_BREAK = "\n"
STRAY = r"\udc80-\udcff"
"""How bytes that are no UTF-8 read; no expression matches them."""
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBERED = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(0[0-7]{0,2}|[0-3][0-7]{2}))"
)
_NAMED = re.compile(r"\\N\{([^}]*)\}")
_META = frozenset("\\.+*?()|[]{}^$")
_SET_META = frozenset("\\[]^-&~|")


class InvalidRegex(ValueError):
    """The expression cannot be used; the message says why."""


class Shorthand(NamedTuple):
    """A set of characters with a name, such as `\\w`, without what ends a line."""

    python: str
    """On its own; `{}` is where stray bytes are left out."""
    rust: str
    """As a member of a set: what Python means by it."""
    is_wide: bool
    """Whether Python's own could match what ends a line."""


SHORTHAND = {
    "d": Shorthand(r"\d", r"\d", False),
    "D": Shorthand(r"[^\d\r\n{}]", r"[^\d\r]", True),
    "w": Shorthand(r"\w", r"\p{L}\p{N}_", False),
    "W": Shorthand(r"[^\w\r\n{}]", r"[^\p{L}\p{N}_\r]", True),
    "s": Shorthand(r"[^\S\r\n]", r"[\s\x1c-\x1f--\r]", True),
    "S": Shorthand(r"[^\s{}]", r"[^\s\x1c-\x1f]", True),
}


class Cursor:
    """A place in a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def is_at_end(self) -> bool:
        """Whether all is read."""
        return self.at >= len(self.pattern)

    def next(self, offset: int = 0) -> str:
        """The character here, or further on; empty behind the end."""
        return self.pattern[self.at + offset : self.at + offset + 1]

    def take(self, count: int = 1) -> str:
        """The next characters, and go on behind them."""
        self.at += count
        return self.pattern[self.at - count : self.at]

    def match(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        """Whether `regex` matches here."""
        return regex.match(self.pattern, self.at)

    def is_at_number(self) -> bool:
        """Whether an escape here is the number of a character, rather than of a group."""
        return self.match(_NUMBERED) is not None

    def take_escaped(self) -> str | None:
        """The character that an escape here stands for; None when it is another kind of escape."""
        if found := self.match(_NUMBERED):
            self.take(len(found[0]))
            return _numbered(found)
        if found := self.match(_NAMED):
            self.take(len(found[0]))
            return _named(found)
        following = self.next(1)
        if following in _CONTROL:
            self.take(2)
            return _CONTROL[following]
        if following and not (following.isascii() and following.isalnum()):
            return self.take(2)[1]
        return None


def written(character: str, *, in_set: bool = False) -> str:
    """A character that means itself, as both engines write it."""
    if character in (_SET_META if in_set else _META):
        return "\\" + character
    if character < " " or character == "\x7f":
        return f"\\x{ord(character):02x}"
    return character


def _numbered(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    number = int(hexadecimal, 16) if hexadecimal else int(found[4], 8)
    if number > 0x10FFFF:
        raise InvalidRegex(f"bad escape {found[0]} at position {found.start()}")
    return chr(number)


def _named(found: re.Match[str]) -> str:
    import unicodedata  # its tables, for an escape that nearly nobody uses

    try:
        return unicodedata.lookup(found[1])
    except KeyError:
        problem = f"undefined character name {found[1]!r} at position {found.start()}"
        raise InvalidRegex(problem) from None
