"""Which files does a glob such as `src/**/*.{ts,tsx}` mean?

A pattern is matched folder by folder while a tree is walked, so that a walk enters only folders
that can lead to a match. A part without wildcards names its file or folder outright; `*`, `?` and
`[...]` match no name that begins with a dot, and `**` stands for any depth of folders:

    >>> PathPattern.parse("src/**/*.{ts,tsx}").matches("src/a/b.tsx")
    True
    >>> PathPattern.parse("*.py").matches("deep/down/x.py")
    True
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple, Self

MAX_ALTERNATIVES = 1000
_WILDCARD = re.compile(r"[*?\[{\\]")
_AFTER_WILDCARDS = re.compile(r"[^*?\]\\]*\Z")
_TOKEN = re.compile(
    r"\\(?P<escaped>.) | \[(?P<negated>[!^]?)(?P<set>\]?[^]]*)\] | (?P<star>\*+) | (?P<plain>.)",
    re.DOTALL | re.VERBOSE,
)
_ANY_DEPTH = "**"
_ONE = "[^/]"


class BadGlob(ValueError):
    """A pattern that cannot be used; the message says why."""


class Match(IntEnum):
    """How a name matched: by a wildcard, or because the pattern spells it out."""

    NO = 0
    WILDCARD = 1
    OUTRIGHT = 2


class Hidden(NamedTuple):
    """Which names that begin with a dot are matched by wildcards."""

    files: bool = False
    folders: bool = False


SHOWN = Hidden()


class Part:
    """What one name in a path has to look like."""

    def __init__(self, text: str, *, hidden: bool) -> None:
        self.is_plain = not has_wildcard(text)
        self.text = text
        guard = "" if hidden or text.startswith((".", "\\.")) else r"(?!\.)"
        regex = guard + name_regex(text)
        self.ending = _AFTER_WILDCARDS.findall(text)[0]
        self.either_regex = re.escape(text) + r"\Z" + ("" if self.is_plain else "|" + regex)
        self._fits = re.compile(regex).match

    def match(self, name: str) -> Match:
        """Whether and how `name` fits. `b [1].txt` fits itself, whatever its brackets mean."""
        if name == self.text:
            return Match.OUTRIGHT
        return Match.WILDCARD if not self.is_plain and self._fits(name) else Match.NO


Parts = tuple[Part | None, ...]
"""The parts of a path; None is any depth of folders."""
Place = tuple[int, int]
"""Which alternative, and which of its parts comes next."""
States = dict[frozenset[Place], "State"]


class State:
    """How far the path to a folder has matched, and so what may match inside of it."""

    def __init__(
        self,
        alternatives: Sequence[Parts],
        places: frozenset[Place],
        hidden: Hidden,
        states: States,
    ) -> None:
        self._alternatives = alternatives
        self._hidden = hidden
        self._places = places
        self._states = states  # of the whole pattern: there are few, however deep a tree is
        self._known: dict[str, tuple[State | None, State | None]] = {}
        parts = [part for _, part, is_last in self._parts() if is_last]
        self._names = {part.text for part in parts if part is not None}
        any_name = "" if hidden.files else r"(?!\.)"
        regexes = [any_name if part is None else part.either_regex for part in parts]
        self.fits = re.compile("|".join(regexes) if regexes else "(?!)").match
        """Whether a file of this name in the folder matches the whole pattern."""
        self.endings = tuple("" if part is None else part.ending for part in parts)
        """What the names of such files end with: many times faster to look at first."""
        self.spells_folders = any(part and not is_last for _, part, is_last in self._parts())
        """Whether the pattern has the name of a folder here, other than wildcards."""

    def spells(self, name: str) -> bool:
        """Whether the pattern has this very name for a file in the folder."""
        return name in self._names

    def folder(self, name: str) -> tuple["State | None", "State | None"]:
        """The states inside a folder of this name: by any means, and as the pattern spells it."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._entered(name)
        return found

    def _entered(self, name: str) -> tuple["State | None", "State | None"]:
        by_any: set[Place] = set()
        outright: set[Place] = set()
        for (alternative, index), part, is_last in self._parts():
            if part is None:
                if self._hidden.folders or not name.startswith("."):
                    by_any.add((alternative, index))
            elif not is_last and (match := part.match(name)):
                by_any.add((alternative, index + 1))
                if match is Match.OUTRIGHT:
                    outright.add((alternative, index + 1))
        return self._state(by_any), self._state(outright)

    def _state(self, places: set[Place]) -> "State | None":
        if not places:
            return None
        key = _with_no_depth(self._alternatives, places)
        if key not in self._states:
            self._states[key] = State(self._alternatives, key, self._hidden, self._states)
        return self._states[key]

    def _parts(self) -> Iterator[tuple[Place, Part | None, bool]]:
        for alternative, index in self._places:
            parts = self._alternatives[alternative]
            yield (alternative, index), parts[index], index == len(parts) - 1


class PathPattern:
    """A glob for paths below a folder."""

    def __init__(self, alternatives: Sequence[Parts], hidden: Hidden) -> None:
        places = _with_no_depth(alternatives, ((i, 0) for i in range(len(alternatives))))
        self.start = State(alternatives, places, hidden, {})

    @classmethod
    def parse(cls, pattern: str, *, hidden: Hidden = SHOWN, any_depth: bool = False) -> Self:
        """The pattern for a relative glob. A single name is looked for at any depth.

        `./x` is in the folder itself only, and with `any_depth` nothing is.
        """
        return cls([_parts(text, hidden, any_depth) for text in expand_braces(pattern)], hidden)

    def matches(self, path: str) -> bool:
        """Whether the relative path of a file matches."""
        *folders, name = path.split("/")
        state: State | None = self.start
        for folder in folders:
            if state is None:
                return False
            state, _ = state.folder(folder)
        return state is not None and bool(state.fits(name))


def has_wildcard(pattern: str) -> bool:
    """Whether a pattern is more than a name or path."""
    return _WILDCARD.search(pattern) is not None


def split_base(pattern: str) -> tuple[str, str]:
    """The folder that a pattern begins with by name, and the rest of it.

    >>> split_base("/srv/app/src/**/*.ts")
    ('/srv/app/src/', '**/*.ts')
    """
    wildcard = _WILDCARD.search(pattern)
    end = pattern.rfind("/", 0, wildcard.start() if wildcard else len(pattern)) + 1
    return pattern[:end], pattern[end:]


def expand_braces(pattern: str) -> list[str]:
    """The patterns without braces that one with braces stands for; `{x}` is as it is written.

    >>> expand_braces("*.{ts,js{,x}}")
    ['*.ts', '*.js', '*.jsx']
    """
    expanded = list(islice(_expanded(pattern), MAX_ALTERNATIVES + 1))
    if len(expanded) > MAX_ALTERNATIVES:
        raise BadGlob(f"The braces stand for more than {MAX_ALTERNATIVES} patterns.")
    return expanded


def name_regex(text: str) -> str:
    """One part of a glob as a regular expression that matches whole names."""
    pieces = [_fixed(piece) for piece in _between_stars(text)]
    if len(pieces) == 1:
        return pieces[0] + r"\Z"
    # Taking the first fit of every piece but the last for good keeps the time linear.
    middle = "".join(f"(?>{_ONE}*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}{_ONE}*{pieces[-1]}\\Z"


def _parts(text: str, hidden: Hidden, any_depth: bool) -> Parts:
    names = [name for name in text.split("/") if name not in ("", ".")]
    if not names:
        raise BadGlob("The pattern is empty.")
    if text.endswith("/"):
        names.append(_ANY_DEPTH)
    if any_depth or "/" not in text:
        names.insert(0, _ANY_DEPTH)
    names = [n for i, n in enumerate(names) if n != _ANY_DEPTH or names[i - 1 : i] != [n]]
    parts: list[Part | None] = [
        None if name == _ANY_DEPTH else Part(name, hidden=hidden.folders) for name in names
    ]
    if names[-1] != _ANY_DEPTH:
        parts[-1] = Part(names[-1], hidden=hidden.files)
    return tuple(parts)


def _with_no_depth(alternatives: Sequence[Parts], places: Iterable[Place]) -> frozenset[Place]:
    """The places, and those behind a `**` that stands for no folder at all."""
    all_places = set(places)
    for alternative, index in tuple(all_places):
        parts = alternatives[alternative]
        if parts[index] is None and index + 1 < len(parts):
            all_places.add((alternative, index + 1))
    return frozenset(all_places)


def _expanded(pattern: str) -> Iterator[str]:
    for start, character in _unescaped(pattern):
        if character != "{":
            continue
        choices, end = _choices(pattern, start)
        if len(choices) > 1:
            for choice in choices:
                for tail in _expanded(choice + pattern[end:]):
                    yield pattern[:start] + tail
            return
    yield pattern


def _choices(pattern: str, start: int) -> tuple[list[str], int]:
    """What stands between commas in the braces that open at `start`, and where they have closed."""
    depth, begin, choices = 0, start + 1, []
    for index, character in _unescaped(pattern, start):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if (character == "," and depth == 1) or depth == 0:
            choices.append(pattern[begin:index])
            begin = index + 1
        if depth == 0:
            return choices, begin
    return [], start


def _unescaped(pattern: str, start: int = 0) -> Iterator[tuple[int, str]]:
    for found in re.compile(r"\\.|(.)", re.DOTALL).finditer(pattern, start):
        if found[1] is not None:
            yield found.start(), found[1]


def _between_stars(text: str) -> list[list[re.Match[str]]]:
    pieces: list[list[re.Match[str]]] = [[]]
    for token in _TOKEN.finditer(text):
        if token["star"]:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _fixed(tokens: list[re.Match[str]]) -> str:
    return "".join(_single(token) for token in tokens)


def _single(token: re.Match[str]) -> str:
    if token["set"] is not None:
        return _set(token["set"], bool(token["negated"]))
    if token["plain"] == "?":
        return _ONE
    return re.escape(token["escaped"] or token["plain"])


def _set(members: str, negated: bool) -> str:
    """The members of a bracket expression as a regular expression's."""
    ranges = re.findall(r"\\?(.)-\\?(.)|\\?(.)", members, re.DOTALL)
    items = [
        f"{re.escape(low)}-{re.escape(high)}" if low else re.escape(one)
        for low, high, one in ranges
        if one or low <= high
    ]
    if negated:
        return f"[^/{''.join(items)}]"
    return f"[{''.join(items)}]" if items else "(?!)"
