"""What changed between two texts, in the words of `diff -u`, told in bounded time?"""

from collections.abc import Iterable, Iterator, Sequence

from agentskills.changed_lines import Changed, changed_lines


def unified_diff(old: str, new: str, name: str = "", *, context: int = 3) -> str:
    """What changed between two texts, as `diff -u` says it; empty when nothing did."""
    before, after = old.split("\n"), new.split("\n")
    rows: list[str] = []
    for group in _neighbours(changed_lines(before, after), 2 * context):
        rows += _hunk(group, before, after, context)
    return "\n".join([f"--- a/{name}", f"+++ b/{name}", *rows]) if rows else ""


def _neighbours(changes: Iterable[Changed], most_between: int) -> Iterator[list[Changed]]:
    """The changes in groups; between those of one there are few lines."""
    group: list[Changed] = []
    for change in changes:
        if group and change.i1 - group[-1].i2 > most_between:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(
    group: Sequence[Changed], before: Sequence[str], after: Sequence[str], context: int
) -> Iterator[str]:
    lead = min(context, group[0].i1)
    trail = min(context, len(before) - group[-1].i2)
    old = _span(group[0].i1 - lead, group[-1].i2 + trail)
    yield f"@@ -{old} +{_span(group[0].j1 - lead, group[-1].j2 + trail)} @@"
    at = group[0].i1 - lead
    for i1, i2, j1, j2 in group:
        yield from (f" {line}" for line in before[at:i1])
        yield from (f"-{line}" for line in before[i1:i2])
        yield from (f"+{line}" for line in after[j1:j2])
        at = i2
    yield from (f" {line}" for line in before[at : at + trail])


def _span(start: int, stop: int) -> str:
    """The first line, counted from 1, and how many; of no lines, the line before them."""
    count = stop - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
