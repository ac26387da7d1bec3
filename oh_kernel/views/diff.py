"""How is the change of a file shown?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from oh_kernel.views.escape import clip, printable
from oh_kernel.views.highlight import Span, coloured_lines, line_to_html
from oh_kernel.views.linediff import NO_NEWLINE, SIGNS, Diff, Line, unified
from oh_kernel.views.rendered import Rendered, fenced
from oh_kernel.views.style import ADDED, CODE_FONT, MUTED, REMOVED

__all__ = ["Diff", "Row", "diff_html", "diff_rows", "render_diff", "unified"]

MAX_ROWS = 2_000
MAX_LINE_CHARS = 1_000

_TABLE = f"{CODE_FONT};border-collapse:collapse;table-layout:auto;width:100%;margin:0;border:none"
_NUMBER = (
    f"{MUTED};text-align:right;vertical-align:top;padding:0 6px;width:1%;user-select:none;"
    "white-space:nowrap;overflow-wrap:normal;word-break:normal"
)
_LINE = (
    "text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere;padding:0 6px"
)
_TINTS = {
    "same": "background:transparent",
    "added": ADDED,
    "removed": REMOVED,
    "note": "background:transparent",
}


@dataclass(frozen=True)
class Row:
    """One row of a diff: a line with sign and numbers, or a note without numbers."""

    kind: Literal["same", "added", "removed", "note"]
    sign: str
    old: int | None
    new: int | None
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.spans)


def diff_rows(diff: Diff, max_rows: int = MAX_ROWS) -> list[Row]:
    """The rows to show: changes with lines around them, and notes about what is left out."""
    shown = list(islice(_rows(diff), max_rows + 1))
    if len(shown) > max_rows:
        shown[max_rows:] = [_note("…", f"the rest of this diff ({diff.headline}) is not shown")]
    return shown


def all_rows(diffs: Sequence[Diff], max_rows: int = MAX_ROWS) -> list[Row]:
    """The rows of several files, each below its name when there is more than one."""
    if len(diffs) == 1:
        return diff_rows(diffs[0], max_rows)
    rows: list[Row] = []
    for diff in diffs:
        rows += [_note("", f"{diff.path}: {diff.headline}")]
        rows += diff_rows(diff, max_rows // len(diffs))
    return rows


def render_diff(diff: Diff, max_rows: int = MAX_ROWS) -> Rendered:
    """The change as an HTML table, as a Markdown `diff` block, and as a unified diff."""
    whole = printable(diff.unified().replace("\r\n", "\n")) or "(no change)"
    text, note = clip(whole, max_lines=max_rows, max_chars=max_rows * 80)
    twin = f"{text}\n{note}" if note else text
    return Rendered(html=diff_html(diff, max_rows), markdown=fenced(twin, "diff"), text=twin)


def diff_html(diff: Diff, max_rows: int = MAX_ROWS) -> str:
    """The change as a table: old and new line number, then sign and line."""
    body = "".join(map(_row_html, diff_rows(diff, max_rows)))
    if not body:
        return f'<div style="{MUTED}">(no change)</div>'
    return f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'


def _row_html(row: Row) -> str:
    line = f"{_LINE};{MUTED}" if row.kind == "note" else _LINE
    return (
        f'<tr style="{_TINTS[row.kind]}"><td style="{_NUMBER}">{row.old or ""}</td>'
        f'<td style="{_NUMBER}">{row.new or ""}</td>'
        f'<td style="{line}">{row.sign}{line_to_html(row.spans)}</td></tr>'
    )


def _rows(diff: Diff) -> Iterator[Row]:
    colours = _Colours(diff)
    at = 0
    for hunk in diff.hunks:
        if hunk.old_start > at:
            yield _fold(hunk.old_start - at)
        at = hunk.old_start + hunk.old_count
        for line in hunk.lines:
            yield Row(line.change, SIGNS[line.change], line.old, line.new, colours.of(line))
            if not line.text.endswith("\n"):
                yield _note("\\", NO_NEWLINE.removeprefix("\\"))
    rest = (diff.old or "").count("\n") - at
    if diff.hunks and rest > 0:
        yield _fold(rest)


class _Colours:
    """The spans of every line of both versions of a file."""

    def __init__(self, diff: Diff) -> None:
        one_line_end = all(_only_crlf(text) for text in (diff.old, diff.new) if text)
        self._old = _shown_lines(diff.old, diff.path, hide_cr=one_line_end)
        self._new = _shown_lines(diff.new, diff.path, hide_cr=one_line_end)

    def of(self, line: Line) -> tuple[Span, ...]:
        if line.new is not None:
            return _shortened(self._new[line.new - 1])
        assert line.old is not None
        return _shortened(self._old[line.old - 1])


def _shown_lines(text: str | None, path: str, *, hide_cr: bool) -> list[list[Span]]:
    """The lines with control characters made visible.

    A CR at a line's end is one of them, since an edit may change nothing else; only where both
    versions end every line with CR LF does it go without saying.
    """
    shown = (text or "").replace("\r\n", "\n") if hide_cr else (text or "")
    return coloured_lines(printable(shown), path)


def _only_crlf(text: str) -> bool:
    return text.count("\n") == text.count("\r\n")


def _shortened(spans: Sequence[Span]) -> tuple[Span, ...]:
    room, kept = MAX_LINE_CHARS, []
    for colour, text in spans:
        kept.append((colour, text[:room]))
        if len(text) > room:
            rest = sum(len(part) for _, part in spans) - MAX_LINE_CHARS
            return (*kept, ("", f" … {rest:,} more characters"))
        room -= len(text)
    return tuple(kept)


def _fold(count: int) -> Row:
    return _note("…", f"{count:,} unchanged line{'' if count == 1 else 's'}")


def _note(sign: str, text: str) -> Row:
    return Row("note", sign, None, None, (("", f" {text.strip()}"),))
