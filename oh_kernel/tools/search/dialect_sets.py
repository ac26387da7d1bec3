"""How is a set in brackets, such as `[^\\w-]`, read the same way by Python and by Rust?

What Rust would take for an operation on sets is written so that it means itself, as in Python.
"""

import re
from typing import NamedTuple

from oh_kernel.tools.search.dialect_characters import (
    LINE_BREAK,
    SHORTHAND,
    STRAY,
    Cursor,
    InvalidRegex,
    written,
)

_POSIX_CLASS = re.compile(r"\[:(\w+):\]")
_POSIX = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\x09\x0b\x0c ",
    "blank": r"\x09 ",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "A-Fa-f0-9",
    "word": "A-Za-z0-9_",
    "cntrl": r"\x00-\x09\x0b-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
}


class Written(NamedTuple):
    """Something in the words of Python, of Python for text with stray bytes, and of Rust."""

    python: str
    strict: str
    rust: str


class _Member(NamedTuple):
    python: str
    rust: str
    is_wide: bool
    """Whether it could match what ends a line, but for what `_whole` does about it."""


def read_set(cursor: Cursor) -> Written | None:
    """The set that begins here; None, and nothing taken, when it has no end."""
    start = cursor.at
    cursor.take()
    negated = cursor.next() == "^"
    cursor.take(negated)
    first = cursor.at
    members: list[_Member] = []
    while cursor.next() != "]" or cursor.at == first:
        if cursor.is_at_end():
            cursor.at = start
            return None
        members.append(_member(cursor))
    cursor.take()
    return _whole([member for member in members if member.python], negated)


def _member(cursor: Cursor) -> _Member:
    found = cursor.match(_POSIX_CLASS)
    if found and found[1] in _POSIX:
        cursor.take(len(found[0]))
        return _Member(_POSIX[found[1]], _POSIX[found[1]], False)
    start = cursor.at
    low = _single(cursor)
    if cursor.next() == "-" and cursor.next(1) not in ("", "]"):
        cursor.take()
        return _range(low, _single(cursor), start)
    if len(low) > 1:
        shorthand = SHORTHAND[low[1]]
        return _Member(low, shorthand.rust, shorthand.is_wide)
    text = "" if low == LINE_BREAK else written(low, in_set=True)  # no line has one
    return _Member(text, text, False)


def _single(cursor: Cursor) -> str:
    r"""The character that stands here in a set, or a shorthand such as `\w`."""
    if cursor.next() != "\\":
        return cursor.take()
    following = cursor.next(1)
    if following == "b":
        cursor.take(2)
        return "\b"
    character = cursor.take_escaped()
    if character is not None:
        return character
    if following in SHORTHAND:
        return cursor.take(2)
    raise InvalidRegex(f"bad escape \\{following} at position {cursor.at}")


def _range(low: str, high: str, start: int) -> _Member:
    if len(low) > 1 or len(high) > 1 or high < low:
        raise InvalidRegex(f"bad character range {low}-{high} at position {start}")
    text = f"{written(low, in_set=True)}-{written(high, in_set=True)}"
    return _Member(text, text, low <= LINE_BREAK <= high)


def _whole(members: list[_Member], negated: bool) -> Written:
    """The set, which matches nothing that ends a line, and in strict text no stray byte."""
    python = "".join(member.python for member in members)
    rust = "".join(member.rust for member in members)
    if negated:
        return Written(rf"[^\r\n{python}]", rf"[^\r\n{STRAY}{python}]", rf"[^\r\n{rust}]")
    if not members:
        raise InvalidRegex("a line break cannot match, since every line is searched by itself")
    if any(member.is_wide for member in members):
        return Written(
            rf"(?:(?![\r\n])[{python}])",
            rf"(?:(?![\r\n{STRAY}])[{python}])",
            rf"[{rust}--\r]",
        )
    return Written(f"[{python}]", f"[{python}]", f"[{rust}]")
