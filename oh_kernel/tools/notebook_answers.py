"""In which words does the notebook editor answer a model, and what do people see of an edit?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentskills.editing import FileText, printable
from oh_kernel.tools.notebook_changes import source_of
from oh_kernel.tools.notebook_format import NotANotebook, flaw, read_notebook
from oh_kernel.tools.notebook_plan import CannotEdit, find_cell
from oh_kernel.tools.notebook_view import cell_view, outputs_of, percent_text, whole_view
from oh_kernel.tools.open_notebooks import Whereabouts
from oh_kernel.tools.output_text import model_images

MAX_CHARS = 16_000
"""Characters of an answer, titles and notices included."""
OPEN_AND_SHARED = "It is open in Jupyter; this is the open document as it stands."
OPEN_UNSHARED = (
    "It is open in Jupyter: changes that are not saved there are not shown here, and it can only "
    "be edited once it is closed."
)
HAS_MARK = "It begins with a byte order mark; Jupyter does not open it so."
EDITED_LIVE = "The edit was made in the open document; Jupyter saves the file by itself."
CANNOT_SHARE = (
    "is open in Jupyter, where it can be edited together (jupyter-collaboration), but this Python "
    "lacks the library for that. Nothing was changed. Ask the user to run `pip install "
    "jupyter-ydoc` for this kernel."
)
SUGGESTED = (
    "When the running cell ends, a new cell with this source stands below it, not run. Further "
    "suggestions until then are joined to it."
)
_SUGGEST = (
    "Use the command suggest to put all your code into a new cell below the running one, or tell "
    "the user what to change. "
)


def view(
    path: Path,
    notebook: Mapping[str, Any],
    cell: str | None,
    view_range: list[int] | None,
    remarks: Sequence[str],
) -> str:
    """Cells of a notebook, or lines of one cell, behind what is to be said of the whole."""
    if reason := flaw(notebook):
        remarks = [*remarks, f"It is not valid by its own format: {reason}."]
    said = "".join(f"{remark}\n" for remark in remarks)
    room, cells = MAX_CHARS - len(said), notebook["cells"]
    if cell is None:
        first, last = _range(view_range, 0, len(cells) - 1, "cells")
        return said + whole_view(str(path), notebook, first, last, room)
    index = find_cell(cells, cell)
    count = source_of(cells[index]).count("\n") + 1
    lines = _range(view_range, 1, count, "lines") if view_range else None
    return said + cell_view(index, cells[index], lines, room)


def pictures(notebook: Mapping[str, Any], cell: str | None) -> list[str]:
    """The pictures that a cell has put out, when it is viewed alone."""
    if cell is None:
        return []
    cells = notebook["cells"]
    return model_images(outputs_of(cells[find_cell(cells, cell)]))


def refusal(path: Path, where: Whereabouts, *, is_own: bool) -> str:
    """Why nothing is written over an open notebook, and what can be done instead."""
    at = f" ({where.server})" if where.server else ""
    return (
        f"{path} is open in Jupyter{at}, where the user may have changes that are not saved, so "
        f"nothing was written. {_SUGGEST if is_own else ''}To have it edited, ask the user to save "
        "and close it (File > Close and Shut Down Notebook), or to install jupyter-collaboration "
        "where Jupyter runs."
    )


def script(notebook: Mapping[str, Any] | None) -> str | None:
    """What people see of a notebook, and compare; None for no notebook."""
    return None if notebook is None else printable(percent_text(notebook))


def read_again(file: FileText | None) -> Mapping[str, Any] | None:
    """What a file says; None for no file, and for what an edit as text had made no notebook."""
    try:
        return None if file is None else read_notebook(file.data)[1]
    except NotANotebook:
        return None


def _range(wanted: list[int] | None, first: int, last: int, what: str) -> tuple[int, int]:
    """The range that is meant; CannotEdit when it is none."""
    if wanted is None:
        return first, last
    if len(wanted) == 2:
        begin, end = wanted[0], last if wanted[1] == -1 else min(wanted[1], last)
        if first <= begin <= end:
            return begin, end
    raise CannotEdit(
        f"Invalid `view_range` parameter: {wanted}. The {what} go from {first} to {last}; give "
        "[first, last], -1 for the last."
    )
