"""Which lines of one text must be replaced to get another, found in bounded time?

difflib gives good answers but needs time that grows with the square of the length (30 s for 20,000
lines of which every second is gone). So long texts are first cut at lines that occur exactly once
on both sides, as "patience" diff does, and difflib sees only the short pieces between.
"""

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Pieces up to this size (lines of one side times lines of the other) go to difflib: some 50 ms.
_EXACT_UP_TO = 400_000


class Changed(NamedTuple):
    """`old[i1:i2]` has become `new[j1:j2]`; either may be empty."""

    i1: int
    i2: int
    j1: int
    j2: int


def changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Changed]:
    """The changes in order, no two of them adjacent."""
    pending: Changed | None = None
    for change in _raw_changes(old, new):
        if pending and (pending.i2, pending.j2) == (change.i1, change.j1):
            pending = Changed(pending.i1, change.i2, pending.j1, change.j2)
            continue
        if pending:
            yield pending
        pending = change
    if pending:
        yield pending


def _raw_changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Changed]:
    start = _common_start(old, new)
    end = _common_start(old[start:][::-1], new[start:][::-1])
    whole = Changed(start, len(old) - end, start, len(new) - end)
    if _size(whole) <= _EXACT_UP_TO:
        yield from _exact(whole, old, new)
        return
    for piece in _between_anchors(whole, old, new):
        if _size(piece) <= _EXACT_UP_TO:
            yield from _exact(piece, old, new)
        else:
            yield piece


def _common_start(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _size(piece: Changed) -> int:
    return (piece.i2 - piece.i1) * (piece.j2 - piece.j1)


def _exact(piece: Changed, old: Sequence[str], new: Sequence[str]) -> Iterator[Changed]:
    i, j = piece.i1, piece.j1
    matcher = difflib.SequenceMatcher(None, old[i : piece.i2], new[j : piece.j2], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield Changed(i + i1, i + i2, j + j1, j + j2)


def _between_anchors(whole: Changed, old: Sequence[str], new: Sequence[str]) -> Iterator[Changed]:
    i, j = whole.i1, whole.j1
    for a, b in [*_anchors(whole, old, new), (whole.i2, whole.j2)]:
        if a > i or b > j:
            yield Changed(i, a, j, b)
        i, j = a + 1, b + 1


def _anchors(whole: Changed, old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal lines that are unique on both sides, the longest series in rising order."""
    once_old = _unique(old, whole.i1, whole.i2)
    once_new = _unique(new, whole.j1, whole.j2)
    pairs = [(at, once_new[line]) for line, at in once_old.items() if line in once_new]
    tails: list[int] = []  # positions in `new`: the smallest end of a series of each length
    series: list[tuple[int, int]] = []  # for each pair: the length of its series, its index
    for index, (_, at) in enumerate(pairs):
        length = bisect_left(tails, at)
        tails[length : length + 1] = [at]
        series.append((length, index))
    chosen: list[tuple[int, int]] = []
    wanted = len(tails) - 1
    for length, index in reversed(series):
        if length == wanted and (not chosen or pairs[index][1] < chosen[-1][1]):
            chosen.append(pairs[index])
            wanted -= 1
    return chosen[::-1]


def _unique(lines: Sequence[str], start: int, stop: int) -> dict[str, int]:
    counts = Counter(lines[start:stop])
    return {lines[at]: at for at in range(start, stop) if counts[lines[at]] == 1}
