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

LINE_BREAK = "\n"
_STRAY = "\\udc80-\\udcff"  # how a byte that is no UTF-8 reads; no expression matches it
_POSIX = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\x09\x0b-\x0d ",
    "blank": r"\x09 ",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "A-Fa-f0-9",
    "word": "A-Za-z0-9_",
    "cntrl": r"\x00-\x09\x0b-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
}
# Python's shorthands: as they are within a line, and how a set in Rust says what Python means.
_SHORTHAND = {
    "d": (r"\d", r"\d"),
    "D": (r"[^\d\r\n{}]", r"[^\d\r]"),
    "w": (r"\w", r"\p{L}\p{N}_"),
    "W": (r"[^\w\r\n{}]", r"[^\p{L}\p{N}_\r]"),
    "s": (r"[^\S\r\n]", r"[\s\x1c-\x1f--\r]"),
    "S": (r"[^\s{}]", r"[^\s\x1c-\x1f]"),
}
_MAY_BE_LINE_BREAK = "DWsS"
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBERED = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(0[0-7]{0,2}|[0-3][0-7]{2}))"
)
_NAMED = re.compile(r"\\N\{([^}]*)\}")
_BACKREFERENCE = re.compile(r"\\[1-9][0-9]?|\(\?P=\w+\)")
_REPETITION = re.compile(r"(?:[*+?]|\{(?!\})(\d*)(,?)(\d*)\})([?+]?)")
_GROUP = re.compile(r"\((?:\?(?:P<\w+>|:))?(?!\?)")
_FLAGS = re.compile(r"\(\?([aiLmsux]*)(-[imsx]+)?([:)])")
_POSIX_CLASS = re.compile(r"\[:(\w+):\]")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_ONLY_PYTHON = re.compile(r"\(\?(?:<?[=!]|>|\(\w+\))")
_LINE_END = r"(?:\r?$)"
_META = frozenset("\\.+*?()|[]{}^$")
_SET_META = frozenset("\\[]^-&~|")


class InvalidRegex(ValueError):
    """The expression cannot be used; the message says why."""


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
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRegex(str(error)) from error
    return expression


class _Reader:
    """Goes through a pattern once and writes it down for each engine."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._python: list[str] = []
        self._strict: list[str] = []
        self._rust: list[str] = []
        self._for_rust = True
        self._verbose = False
        self._literals = _Literals()

    def expression(self) -> Expression:
        while self._at < len(self._pattern):
            self._one()
        rust = "".join(self._rust) if self._for_rust else None
        python, strict = "".join(self._python), "".join(self._strict)
        return Expression(python, strict, rust, self._literals.longest())

    def _one(self) -> None:
        character = self._pattern[self._at]
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
                self._step(1)
                self._write(r"[^\r\n]", strict=rf"[^\r\n{_STRAY}]")
            case "$":
                self._step(1)
                self._write(_LINE_END)
            case ")" | "|" | "^":
                self._step(1)
                self._literals.structure(character)
                self._write(character)
            case _ if found := _REPETITION.match(self._pattern, self._at):
                self._repetition(found)
            case _:
                self._step(1)
                self._character(character)

    def _step(self, count: int) -> None:
        self._at += count

    def _write(self, python: str, rust: str | None = None, *, strict: str | None = None) -> None:
        self._literals.end()
        self._python.append(python)
        self._strict.append(python if strict is None else strict)
        self._rust.append(python if rust is None else rust)

    def _character(self, character: str) -> None:
        """A character that means itself."""
        if character == LINE_BREAK:
            raise InvalidRegex(
                f"a line break at position {self._at - 1} cannot match, since every line is "
                "searched by itself"
            )
        written = _written(character, _META)
        self._for_rust &= not "\ud800" <= character <= "\udfff"
        self._python.append(written)
        self._strict.append(written)
        self._rust.append(written)
        self._literals.add(character)

    def _escape(self) -> None:
        is_number = _NUMBERED.match(self._pattern, self._at)
        if not is_number and (found := _BACKREFERENCE.match(self._pattern, self._at)):
            self._only_python(found[0])
            return
        character = self._escaped_character()
        if character is not None:
            self._character(character)
            return
        name = self._pattern[self._at + 1 : self._at + 2]
        self._step(2)
        if name in _SHORTHAND:
            python, rust = _SHORTHAND[name]
            self._write(python.format(""), rust=f"[{rust}]", strict=python.format(_STRAY))
        elif name == "A":
            self._write("^")
        elif name == "Z":
            self._write(_LINE_END)
        else:  # an assertion, or what `re` will complain about
            self._for_rust &= name in ("b", "B")
            self._write(f"\\{name}")

    def _escaped_character(self) -> str | None:
        """The character that an escape here stands for; None when it is another kind of escape."""
        if found := _NUMBERED.match(self._pattern, self._at):
            self._step(len(found[0]))
            hexadecimal = found[1] or found[2] or found[3]
            number = int(hexadecimal, 16) if hexadecimal else int(found[4], 8)
            if number > 0x10FFFF:
                raise InvalidRegex(f"bad escape {found[0]} at position {found.start()}")
            return chr(number)
        if found := _NAMED.match(self._pattern, self._at):
            return self._named(found)
        following = self._pattern[self._at + 1 : self._at + 2]
        if following in _CONTROL:
            self._step(2)
            return _CONTROL[following]
        if following and not (following.isascii() and following.isalnum()):
            self._step(2)
            return following
        return None

    def _named(self, found: re.Match[str]) -> str:
        import unicodedata  # its tables, for an escape that nearly nobody uses

        self._step(len(found[0]))
        try:
            return unicodedata.lookup(found[1])
        except KeyError:
            problem = f"undefined character name {found[1]!r} at position {found.start()}"
            raise InvalidRegex(problem) from None

    def _group(self) -> None:
        self._literals.structure("(")
        if found := _COMMENT.match(self._pattern, self._at):
            self._literals.structure(")")
            self._step(len(found[0]))
        elif found := _GROUP.match(self._pattern, self._at):
            self._step(len(found[0]))
            self._write(found[0], rust="(?:")
        elif found := _FLAGS.match(self._pattern, self._at):
            self._flags(found)
        elif found := _BACKREFERENCE.match(self._pattern, self._at):
            self._literals.structure(")")
            self._only_python(found[0])
        elif found := _ONLY_PYTHON.match(self._pattern, self._at):
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
        self._step(len(found[0]))
        if end == ")":
            self._literals.structure(")")
            self._write(f"(?{kept})" if kept else "")
        else:
            self._write(f"(?{kept}{kept_off}:")

    def _only_python(self, text: str) -> None:
        self._for_rust = False
        self._step(len(text))
        self._write(text)

    def _repetition(self, found: re.Match[str]) -> None:
        self._step(len(found[0]))
        low, comma, high, suffix = found[1], found[2], found[3], found[4]
        kind = found[0][0]
        at_least_one = kind == "+" or (kind == "{" and low not in ("", "0"))
        self._literals.repeated(at_least_one)
        self._for_rust &= suffix != "+"
        times = f"{{{low or '0'}{comma}{high}}}" if kind == "{" else kind
        self._write(times + suffix)

    def _skipped_blank(self, character: str) -> bool:
        if character.isspace():
            self._step(1)
        elif character == "#":
            end = self._pattern.find("\n", self._at)
            self._at = len(self._pattern) if end < 0 else end + 1
        else:
            return False
        return True

    def _set(self) -> None:
        """A set in brackets; without its end, `re` is left to complain about it."""
        start = self._at
        self._step(1)
        negated = self._taken("^")
        python: list[str] = []
        rust: list[str] = []
        wide = negated
        while not (self._pattern.startswith("]", self._at) and self._at > start + 1 + negated):
            if self._at >= len(self._pattern):
                self._only_python("")
                self._write(self._pattern[start:])
                return
            wide |= self._member(python, rust)
        self._step(1)
        self._write_set(python, rust, negated=negated, wide=wide)

    def _member(self, python: list[str], rust: list[str]) -> bool:
        """Read one member of a set; whether it could match a line break."""
        found = _POSIX_CLASS.match(self._pattern, self._at)
        if found and found[1] in _POSIX:
            self._step(len(found[0]))
            python.append(_POSIX[found[1]])
            rust.append(_POSIX[found[1]])
            return False
        low = self._member_character()
        if len(low) > 1:
            python.append(low)
            rust.append(_SHORTHAND[low[1]][1])
            return low[1] in _MAY_BE_LINE_BREAK
        high = low
        if self._pattern[self._at : self._at + 1] == "-" and self._pattern[
            self._at + 1 : self._at + 2
        ] not in ("", "]"):
            self._step(1)
            high = self._member_character()
            if len(high) > 1 or high < low:
                raise InvalidRegex(f"bad character range {low}-{high} at position {self._at - 3}")
        if low == high == LINE_BREAK:
            return False  # no line has one
        written = _written(low, _SET_META)
        if high != low:
            written += "-" + _written(high, _SET_META)
        python.append(written)
        rust.append(written)
        return low <= LINE_BREAK <= high

    def _member_character(self) -> str:
        r"""The character that stands here in a set, or a shorthand such as `\w`."""
        if self._pattern[self._at] != "\\":
            self._step(1)
            return self._pattern[self._at - 1]
        following = self._pattern[self._at + 1 : self._at + 2]
        if following == "b":
            self._step(2)
            return "\b"
        character = self._escaped_character()
        if character is not None:
            return character
        if following in _SHORTHAND:
            self._step(2)
            return f"\\{following}"
        raise InvalidRegex(f"bad escape \\{following} at position {self._at}")

    def _write_set(self, python: list[str], rust: list[str], *, negated: bool, wide: bool) -> None:
        """A set that matches no end of a line, and in strict text no stray byte."""
        if not python and not negated:
            raise InvalidRegex("a line break cannot match, since every line is searched by itself")
        members, for_rust = "".join(python), "".join(rust)
        if negated:
            self._write(
                rf"[^\r\n{members}]",
                rf"[^\r\n{for_rust}]",
                strict=rf"[^\r\n{_STRAY}{members}]",
            )
        elif wide:
            self._write(
                rf"(?:(?![\r\n])[{members}])",
                rf"[{for_rust}--\r]",
                strict=rf"(?:(?![\r\n{_STRAY}])[{members}])",
            )
        else:
            self._write(f"[{members}]", f"[{for_rust}]")

    def _taken(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found


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


def _written(character: str, meta: frozenset[str]) -> str:
    """A character that means itself, as both engines write it."""
    if character in meta:
        return "\\" + character
    if character < " " or character == "\x7f":
        return f"\\x{ord(character):02x}"
    return character
