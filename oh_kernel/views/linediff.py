"""What did an edit change, line by line?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from agentskills.changed_lines import Changed, changed_lines

CONTEXT_LINES = 3
NO_NEWLINE = "\\ No newline at end of file"

Change = Literal["same", "added", "removed"]
SIGNS: dict[Change, str] = {"same": " ", "added": "+", "removed": "-"}


class Line(NamedTuple):
    """One line of a hunk with its numbers, counted from 1, and its own line end."""

    change: Change
    old: int | None
    new: int | None
    text: str


class Hunk(NamedTuple):
    """Changed lines that are near each other, with the unchanged ones around them."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[Line]

    @property
    def header(self) -> str:
        old = _range(self.old_start, self.old_count)
        return f"@@ -{old} +{_range(self.new_start, self.new_count)} @@"


@dataclass(frozen=True)
class Diff:
    """The change of one file. `old` is None for a file that is new, `new` for one that is gone."""

    path: str
    old: str | None
    new: str | None

    @cached_property
    def hunks(self) -> list[Hunk]:
        """The changes in order; empty when nothing changed."""
        return list(_hunks(_lines(self.old), _lines(self.new)))

    @property
    def added(self) -> int:
        return sum(line.change == "added" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.change == "removed" for hunk in self.hunks for line in hunk.lines)

    @property
    def headline(self) -> str:
        """How much changed, such as "+3 −1"."""
        counts = f"+{self.added} −{self.removed}"
        if self.old is None:
            return f"new file, {counts}"
        return f"deleted, {counts}" if self.new is None else counts

    def unified(self) -> str:
        """The change in the format of `diff -u`, without a final newline; "" when nothing changed.

        >>> print(Diff("a.txt", "one\\n", "two\\n").unified())
        --- a.txt
        +++ a.txt
        @@ -1 +1 @@
        -one
        +two
        """
        if not self.hunks:
            return ""
        names = (
            "/dev/null" if self.old is None else self.path,
            "/dev/null" if self.new is None else self.path,
        )
        body = [text for hunk in self.hunks for text in _unified_hunk(hunk)]
        return "\n".join([f"--- {names[0]}", f"+++ {names[1]}", *body])


def headline(diffs: Sequence[Diff]) -> str:
    """How much changed in all of these files.

    >>> headline([Diff("a", "x", "y"), Diff("b", None, "z")])
    '2 files, +2 −1'
    """
    if len(diffs) == 1:
        return diffs[0].headline
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    return f"{len(diffs)} files, +{added} −{removed}"


def unified(old: str | None, new: str | None, path: str) -> str:
    """The change from `old` to `new` as `Diff.unified` gives it."""
    return Diff(path, old, new).unified()


def _lines(text: str | None) -> list[str]:
    """Lines with their ends. Only a newline ends a line: form feeds and the like are content."""
    if not text:
        return []
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _hunks(old: list[str], new: list[str]) -> Iterator[Hunk]:
    for group in _neighbours(changed_lines(old, new)):
        before = min(CONTEXT_LINES, group[0].i1)
        after = min(CONTEXT_LINES, len(old) - group[-1].i2)
        i1, j1 = group[0].i1 - before, group[0].j1 - before
        i2, j2 = group[-1].i2 + after, group[-1].j2 + after
        yield Hunk(i1, i2 - i1, j1, j2 - j1, list(_hunk_lines(group, old, new, before, after)))


def _neighbours(changes: Iterable[Changed]) -> Iterator[list[Changed]]:
    group: list[Changed] = []
    for change in changes:
        if group and change.i1 - group[-1].i2 > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk_lines(
    group: list[Changed], old: list[str], new: list[str], before: int, after: int
) -> Iterator[Line]:
    i, j = group[0].i1 - before, group[0].j1 - before
    for change in group:
        yield from _same(old, i, change.i1, j)
        for at in range(change.i1, change.i2):
            yield Line("removed", at + 1, None, old[at])
        for at in range(change.j1, change.j2):
            yield Line("added", None, at + 1, new[at])
        i, j = change.i2, change.j2
    yield from _same(old, i, i + after, j)


def _same(old: list[str], start: int, stop: int, j: int) -> Iterator[Line]:
    for at in range(start, stop):
        yield Line("same", at + 1, j + at - start + 1, old[at])


def _range(start: int, count: int) -> str:
    """A range as diff writes it: counted from 1, the count left out when it is 1."""
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _unified_hunk(hunk: Hunk) -> Iterator[str]:
    yield hunk.header
    for line in hunk.lines:
        yield SIGNS[line.change] + line.text.removesuffix("\n")
        if not line.text.endswith("\n"):
            yield NO_NEWLINE
