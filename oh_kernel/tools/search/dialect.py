r"""How is a regular expression read the same way by Python's `re` and by ripgrep?

The dialect is Python's, for text, applied to each line without its ending; POSIX classes such as
`[[:alpha:]]` are understood too. An expression is rewritten so that both engines agree on it, or
marked as one that only Python can run (look-around, references back, possessive repetition):

    >>> read(r"\w+\s*(?=x)").rust is None
    True
    >>> read(r"end$").rust
    'end(?:\\r?$)'

Known to differ still: `\b` beside combining marks, and the dotless i of Turkish without its case.
"""

import re
from dataclasses import dataclass

from oh_kernel.tools.search.dialect_characters import (
    LINE_BREAK,
    SHORTHAND,
    STRAY,
    Cursor,
    InvalidRegex,
    written,
)
from oh_kernel.tools.search.dialect_sets import Written, read_set

_BACKREFERENCE = re.compile(r"\\[1-9][0-9]?|\(\?P=\w+\)")
_REPETITION = re.compile(r"(?:[*+?]|\{(?!\})(\d*)(,?)(\d*)\})([?+]?)")
_GROUP = re.compile(r"\((?:\?(?:P<\w+>|:))?(?!\?)")
_FLAGS = re.compile(r"\(\?([aiLmsux]*)(-[imsx]+)?([:)])")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_ONLY_PYTHON = re.compile(r"\(\?(?:<?[=!]|>|\(\w+\))")
# What Python warns of because it may mean an operation on sets one day; that would reach the user.
_MAY_WARN = re.compile(r"\[[^\]]*\[|--|&&|~~|\|\|")
_ANY = Written(r"[^\r\n]", rf"[^\r\n{STRAY}]", r"[^\r\n]")
_LINE_END = r"(?:\r?$)"


@dataclass(frozen=True)
class Expression:
    """A regular expression for both engines."""

    python: str
    strict: str
    """The same for text with bytes that are no UTF-8: nothing matches those."""
    rust: str | None
    """None when ripgrep has no words for it."""
    literal: str
    """Something that stands in every match, in lower case; may be empty."""

    def compiled(self, *, case_sensitive: bool, strict: bool = False) -> re.Pattern[str]:
        """Python's pattern for whole texts of several lines."""
        flags = re.MULTILINE if case_sensitive else re.MULTILINE | re.IGNORECASE
        return re.compile(self.strict if strict else self.python, flags)


def read(pattern: str) -> Expression:
    """The expression; InvalidRegex when Python's `re` would not have it."""
    try:
        expression = _Reader(pattern).expression()
        expression.compiled(case_sensitive=False, strict=True)
        expression.compiled(case_sensitive=False)
    except re.error as error:
        raise InvalidRegex(_complaint(pattern) or str(error)) from error
    except (OverflowError, RecursionError) as error:
        raise InvalidRegex(str(error)) from error
    return expression


def _complaint(pattern: str) -> str:
    """What `re` has against the pattern as it was given: its positions are in that."""
    if _MAY_WARN.search(pattern):
        return ""
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""


class _Reader:
    """Goes through a pattern once and writes it down for each engine."""

    def __init__(self, pattern: str) -> None:
        self._cursor = Cursor(pattern)
        self._pieces = [Written("", "", "")]
        self._for_rust = True
        self._verbose = False
        self._literals = _Literals()

    def expression(self) -> Expression:
        while not self._cursor.is_at_end():
            self._one()
        python, strict, rust = ("".join(words) for words in zip(*self._pieces, strict=True))
        return Expression(
            python, strict, rust if self._for_rust else None, self._literals.longest()
        )

    def _one(self) -> None:
        character = self._cursor.next()
        if self._verbose and self._skipped_blank(character):
            return
        match character:
            case "\\":
                self._escape()
            case "[":
                self._set()
            case "(":
                self._group()
            case ".":
                self._cursor.take()
                self._write(*_ANY)
            case "$":
                self._cursor.take()
                self._write(_LINE_END)
            case ")" | "|" | "^":
                self._literals.structure(self._cursor.take())
                self._write(character)
            case _ if found := self._cursor.match(_REPETITION):
                self._repetition(found)
            case _:
                self._character(self._cursor.take())

    def _write(self, python: str, strict: str | None = None, rust: str | None = None) -> None:
        self._literals.end()
        self._add(python, strict, rust)

    def _add(self, python: str, strict: str | None = None, rust: str | None = None) -> None:
        self._pieces.append(
            Written(python, python if strict is None else strict, python if rust is None else rust)
        )

    def _character(self, character: str) -> None:
        """A character that means itself."""
        if character == LINE_BREAK:
            raise InvalidRegex(
                f"a line break at position {self._cursor.at - 1} cannot match, since every line "
                "is searched by itself"
            )
        self._for_rust &= not "\ud800" <= character <= "\udfff"
        self._add(written(character))
        self._literals.add(character)

    def _escape(self) -> None:
        cursor = self._cursor
        if not cursor.is_at_number() and (found := cursor.match(_BACKREFERENCE)):
            self._only_python(found[0])
        elif (character := cursor.take_escaped()) is not None:
            self._character(character)
        else:
            self._special(cursor.take(2)[1:])

    def _special(self, name: str) -> None:
        """An escape that is no character."""
        if name in SHORTHAND:
            python, rust, _ = SHORTHAND[name]
            self._write(python.format(""), python.format(STRAY), f"[{rust}]")
        elif name == "A":
            self._write("^")
        elif name == "Z":
            self._write(_LINE_END)
        else:  # an assertion, or what `re` will complain about
            self._for_rust &= name in ("b", "B")
            self._write(f"\\{name}")

    def _set(self) -> None:
        found = read_set(self._cursor)
        if found is None:  # without its end: `re` will complain
            self._only_python(self._cursor.pattern[self._cursor.at :])
        else:
            self._write(*found)

    def _group(self) -> None:
        self._literals.structure("(")
        if found := self._cursor.match(_COMMENT):
            self._literals.structure(")")
            self._cursor.take(len(found[0]))
        elif found := self._cursor.match(_GROUP):
            self._cursor.take(len(found[0]))
            self._write(found[0], rust="(?:")
        elif found := self._cursor.match(_FLAGS):
            self._flags(found)
        elif found := self._cursor.match(_BACKREFERENCE):
            self._literals.structure(")")
            self._only_python(found[0])
        elif found := self._cursor.match(_ONLY_PYTHON):
            self._only_python(found[0])
        else:
            self._only_python("(")

    def _flags(self, found: re.Match[str]) -> None:
        """Of the flags only `i` and `a` change what a line matches; `x` changes how we read on."""
        on, off, end = found[1], found[2] or "", found[3]
        if "L" in on:
            raise InvalidRegex(f"the flag L is for bytes at position {found.start()}")
        if "x" in on + off:
            if end == ":" or off:
                raise InvalidRegex("the flag x is possible for the whole expression only")
            self._verbose = True
        kept = "".join(flag for flag in "ai" if flag in on)
        kept_off = "-i" if "i" in off else ""
        self._for_rust &= "a" not in on
        self._cursor.take(len(found[0]))
        if end == ")":
            self._literals.structure(")")
            self._write(f"(?{kept})" if kept else "")
        else:
            self._write(f"(?{kept}{kept_off}:")

    def _only_python(self, text: str) -> None:
        self._for_rust = False
        self._cursor.take(len(text))
        self._write(text)

    def _repetition(self, found: re.Match[str]) -> None:
        self._cursor.take(len(found[0]))
        low, comma, high, suffix = found[1], found[2], found[3], found[4]
        kind = found[0][0]
        at_least_one = kind == "+" or (kind == "{" and low not in ("", "0"))
        self._literals.repeated(at_least_one)
        self._for_rust &= suffix != "+"
        times = f"{{{low or '0'}{comma}{high}}}" if kind == "{" else kind
        self._write(times + suffix)

    def _skipped_blank(self, character: str) -> bool:
        if character.isspace():
            self._cursor.take(1)
        elif character == "#":
            line, _, _ = self._cursor.pattern[self._cursor.at :].partition("\n")
            self._cursor.take(len(line) + 1)
        else:
            return False
        return True


class _Literals:
    """Collects the runs of characters that every match must hold."""

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._run = ""
        self._depth = 0
        self._has_choice = False

    def add(self, character: str) -> None:
        if self._depth == 0 and character.isascii():
            self._run += character.lower()
        else:
            self.end()

    def end(self) -> None:
        self._runs.append(self._run)
        self._run = ""

    def repeated(self, at_least_one: bool) -> None:
        """The last character may stand there several times, or never."""
        if not at_least_one:
            self._run = self._run[:-1]
        self.end()

    def structure(self, character: str) -> None:
        self.end()
        self._depth += {"(": 1, ")": -1}.get(character, 0)
        self._has_choice |= character == "|" and self._depth == 0

    def longest(self) -> str:
        self.end()
        return "" if self._has_choice else max(self._runs, key=len)
