"""Where in a file do the hunks of a patch belong, and what does the file become?

Lines are those of `text.split("\\n")`: a text that ends with a newline has an empty last line.
Hunks are placed one after the other, each below the one before. How far what was written differs
from what was found is counted as `fuzz`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from agentskills.editing import FileText
from oh_kernel.tools.patch_grammar import DiffError, Hunk

# What a match costs that holds only for lines without blanks at their ends, or on both sides.
_FORMS: tuple[tuple[int, Callable[[str], str]], ...] = ((0, str), (1, str.rstrip), (100, str.strip))
_ANCHOR_STRIPPED = 1
_BLANK_END = 1
_NOT_AT_END = 10_000


class Replacement(NamedTuple):
    """The lines `first` up to before `stop` of a file give way to others."""

    first: int
    stop: int
    added: tuple[str, ...]


class Match(NamedTuple):
    """The line where something was found, and how loosely."""

    at: int
    fuzz: int


def apply(hunks: Sequence[Hunk], file: FileText, path: str) -> tuple[FileText, int]:
    """The file with the hunks carried out, and the fuzz; DiffError when one has no place."""
    lines = file.text.split("\n")
    replacements, fuzz = place(hunks, lines, path)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return file.spliced_all(_span(replacement, starts) for replacement in replacements), fuzz


def place(hunks: Sequence[Hunk], lines: Sequence[str], path: str) -> tuple[list[Replacement], int]:
    """Which lines give way to which, in rising order, and the fuzz of all hunks."""
    replacements: list[Replacement] = []
    text = _Lines(lines)
    cursor = fuzz = 0
    for hunk in hunks:
        anchor = _after_anchor(hunk.anchor, text, cursor)
        match = _find_hunk(hunk, text, anchor.at)
        if match is None and (shorter := _without_blank_end(hunk)) != hunk:
            hunk, match = shorter, _find_hunk(shorter, text, anchor.at)
            match = match and Match(match.at, match.fuzz + _BLANK_END)
        if match is None:
            raise _no_place(hunk, anchor.at, path)
        fuzz += anchor.fuzz + match.fuzz
        for replacement in _replacements(hunk, match.at):
            _add(replacement, replacements)
        cursor = match.at + len(hunk.before)
    return replacements, fuzz


class _Lines:
    """The lines of a file, to be searched many times: each form is made once, and is one text, so
    that long hunks are found in a time that grows with the file and not with its square.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._formed = cache(self._make)

    def find(self, wanted: Sequence[str], form: Callable[[str], str], start: int) -> int | None:
        """Where the wanted lines first stand one below the other, from line `start` on."""
        if not wanted:
            return start
        text, starts = self._formed(form)
        at = text.find(_as_text(wanted, form), starts[start])
        return None if at == -1 else bisect_left(starts, at)

    def _make(self, form: Callable[[str], str]) -> tuple[str, list[int]]:
        """The lines as one text, and where each, or the newline before it, begins."""
        formed = [form(line) for line in self.lines]
        return _as_text(formed, str), [0, *accumulate(len(line) + 1 for line in formed)]


def _as_text(lines: Sequence[str], form: Callable[[str], str]) -> str:
    """Newlines on both sides, so that only whole lines are found."""
    return "\n" + "".join(f"{form(line)}\n" for line in lines)


def _after_anchor(anchor: str, text: _Lines, cursor: int) -> Match:
    """The line below the anchor. One that is not there, or lies above already, moves nothing."""
    if anchor.strip():
        for fuzz, form in ((0, str), (_ANCHOR_STRIPPED, str.strip)):
            first = text.find([anchor], form, 0)
            if first is not None and first >= cursor:
                return Match(first + 1, fuzz)
    return Match(cursor, 0)


def _find_hunk(hunk: Hunk, text: _Lines, start: int) -> Match | None:
    if not hunk.at_end:
        return _find(hunk.before, text, start)
    lines = text.lines
    ends = [len(lines), len(lines) - 1] if lines[-1] == "" else [len(lines)]
    if not hunk.before:
        return Match(ends[-1], 0)
    positions = [end - len(hunk.before) for end in ends if end - len(hunk.before) >= start]
    if match := _find_at(positions, hunk.before, lines):
        return match
    match = _find(hunk.before, text, start)
    return match and Match(match.at, match.fuzz + _NOT_AT_END)


def _without_blank_end(hunk: Hunk) -> Hunk:
    """The hunk without the blank lines at its end that stay: many leave some before what follows
    a hunk, and do not mean lines of the file.
    """
    last = hunk.chunks[-1] if hunk.chunks else None
    least = last.offset + len(last.removed) if last else len(hunk.before)
    end = len(hunk.before)
    while end > least and hunk.before[end - 1] == "":
        end -= 1
    return replace(hunk, before=hunk.before[:end])


def _find(wanted: Sequence[str], text: _Lines, start: int) -> Match | None:
    """The first place from `start` on where the wanted lines are, the strictest form first."""
    for fuzz, form in _FORMS:
        at = text.find(wanted, form, start)
        if at is not None:
            return Match(at, fuzz)
    return None


def _find_at(positions: Sequence[int], wanted: Sequence[str], lines: Sequence[str]) -> Match | None:
    """The first of a few positions where the wanted lines are, the strictest form first."""
    for fuzz, form in _FORMS:
        sought = [form(line) for line in wanted]
        for at in positions:
            if [form(line) for line in lines[at : at + len(sought)]] == sought:
                return Match(at, fuzz)
    return None


def _replacements(hunk: Hunk, at: int) -> Iterator[Replacement]:
    for chunk in hunk.chunks:
        first = at + chunk.offset
        yield Replacement(first, first + len(chunk.removed), chunk.added)


def _add(replacement: Replacement, to: list[Replacement]) -> None:
    """Adjacent ones become one, so that no newline belongs to both."""
    if to and to[-1].stop == replacement.first:
        before = to.pop()
        replacement = Replacement(before.first, replacement.stop, before.added + replacement.added)
    to.append(replacement)


def _no_place(hunk: Hunk, cursor: int, path: str) -> DiffError:
    kind = "EOF Context" if hunk.at_end else "Context"
    shown = "\n".join(hunk.before)
    return DiffError(
        f"Invalid {kind} {cursor}:\n{shown}\n\n{path} does not hold these lines, one below the "
        f"other, from line {cursor + 1} on. No file was changed."
    )


def _span(replacement: Replacement, starts: Sequence[int]) -> tuple[int, int, str]:
    """The same in characters: which part of the text gives way to which.

    `starts` holds where each line begins and, one further, where another would begin.
    """
    first, stop, added = replacement
    text = "\n".join(added)
    end_of_text = starts[-1] - 1
    if added and stop > first:
        return starts[first], starts[stop] - 1, text
    if stop < len(starts) - 1:  # a line follows, whose newline goes with what is taken or added
        return starts[first], starts[stop], f"{text}\n" if added else ""
    if first == 0:
        return 0, end_of_text, text
    return min(starts[first] - 1, end_of_text), end_of_text, f"\n{text}" if added else ""
