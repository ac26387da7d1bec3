"""How do short answers of the magics look: a remark, a refusal, a table?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from oh_kernel.errors import OpenHandsError
from oh_kernel.views.escape import escape, printable
from oh_kernel.views.found import Found
from oh_kernel.views.style import PRE, STATE_COLOURS


@dataclass(frozen=True, repr=False)
class Note:
    """A few lines of text, as the value of a cell."""

    text: str
    is_error: bool = False

    def __repr__(self) -> str:
        return printable(self.text)

    def _repr_html_(self) -> str:
        colour = STATE_COLOURS["failed"] if self.is_error else ""
        # Not scrolled, as output of tools is: half of the usage would go unseen.
        return f'<pre style="{PRE};max-height:none;{colour}">{escape(self.text)}</pre>'


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under headings, as the value of a cell; `caption` is a line below them."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __repr__(self) -> str:
        lines = [[printable(str(cell)) for cell in row] for row in (self.headings, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*text, self.caption] if self.caption else text)

    def _repr_html_(self) -> str:
        # JupyterLab aligns every table to the right, which suits numbers only.
        styles = [f"text-align:{self._side(at)};vertical-align:top" for at in self._columns]
        head = "".join(map(_cell, repeat("th"), styles, self.headings))
        rows = ["".join(map(_cell, repeat("td"), styles, row)) for row in self.rows]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        below = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    @property
    def _columns(self) -> range:
        return range(len(self.headings))

    def _side(self, column: int) -> str:
        cells = [row[column] for row in self.rows]
        return "right" if cells and all(isinstance(c, int | float) for c in cells) else "left"


def _cell(tag: str, style: str, value: object) -> str:
    html = value._repr_html_() if isinstance(value, Found) else escape(str(value))
    return f'<{tag} style="{style}">{html}</{tag}>'


def refused(error: OpenHandsError) -> Note:
    """An error that a person can act on: one short line with its remedy, no traceback."""
    return Note(str(error), is_error=True)


def displayed(value: object) -> object:
    """Text becomes a note and plain data a table; what can show itself stays as it is."""
    if isinstance(value, str):
        return Note(value)
    if isinstance(value, Mapping):
        return Table(("", ""), [(_words(name), cell) for name, cell in value.items()])
    if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        headings = list(value[0])
        return Table(
            [_words(name) for name in headings],
            [[row.get(name, "") for name in headings] for row in value],
        )
    return value


def _words(name: object) -> str:
    return str(name).replace("_", " ")
