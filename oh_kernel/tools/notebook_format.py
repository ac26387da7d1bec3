"""What makes a file a notebook that Jupyter opens, and what may an edit not make of it?"""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentskills.errors import EditingError
from oh_kernel.tools.notebook_changes import lines_of
from oh_kernel.tools.notebook_text import NotebookText, json_text

IDS_SINCE = (4, 5)
"""The format from which on cells have ids; in older ones an id makes the file invalid."""
MAX_NOTEBOOK_BYTES = 100 * 1024 * 1024
"""More than of other files: outputs are large."""
POINTER = (
    "This was an edit of a notebook's JSON. Edit notebooks by their cells with notebook_editor, "
    "which keeps them valid and knows whether they are open in Jupyter."
)
_UPGRADE = "jupyter nbconvert --to notebook --inplace FILE"
_MAX_REASON_CHARS = 300


class NotANotebook(EditingError):
    """The file cannot be read as a notebook, so its cells cannot be edited."""


class BreaksNotebook(EditingError):
    """The edit would leave a notebook that Jupyter does not open."""


def read_notebook(data: bytes) -> tuple[NotebookText, dict[str, Any]]:
    """The text of a notebook file and what it says; NotANotebook with the reason otherwise."""
    try:
        file = NotebookText.from_bytes(data)
        notebook = file.outline.value
    except ValueError as error:  # of the encoding, or of JSON
        raise NotANotebook(f"it is {_unreadable(error)}") from error
    if trouble := _no_cells(notebook):
        raise NotANotebook(trouble)
    return file, notebook


def version_of(notebook: Mapping[str, Any]) -> tuple[int, int]:
    """The format as (major, minor); 0 for what is not said."""
    major, minor = notebook.get("nbformat"), notebook.get("nbformat_minor")
    return (major if isinstance(major, int) else 0, minor if isinstance(minor, int) else 0)


def has_ids(notebook: Mapping[str, Any]) -> bool:
    """Whether cells of this notebook have ids."""
    return version_of(notebook) >= IDS_SINCE


def new_cell(notebook: Mapping[str, Any], cell_type: str, source: str) -> dict[str, Any]:
    """A cell as this notebook's format has it, with an id that is not taken where it has ids."""
    cells = notebook["cells"]
    as_text = bool(cells) and all(isinstance(cell.get("source"), str) for cell in cells)
    cell: dict[str, Any] = {"cell_type": cell_type, "metadata": {}}
    cell["source"] = source if as_text else lines_of(source)
    if cell_type == "code":
        cell.update(outputs=[], execution_count=None)
    if has_ids(notebook):
        cell["id"] = _free_id({cell.get("id") for cell in cells})
    return cell


def retyped(cell: Mapping[str, Any], cell_type: str) -> dict[str, Any]:
    """The cell as one of another type, without what that type does not have."""
    only_code = ("outputs", "execution_count")
    kept = {name: value for name, value in cell.items() if name not in only_code}
    if cell_type == "code":
        kept.pop("attachments", None)
        kept.update(outputs=[], execution_count=None)
    return {**kept, "cell_type": cell_type}


def new_notebook(cell_type: str, source: str) -> bytes:
    """A notebook of one cell, as Jupyter writes a new one for Python."""
    notebook: dict[str, Any] = {
        "cells": [],
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook["cells"].append(new_cell(notebook, cell_type, source))
    text = json_text(notebook, indent=1, sort_keys=True)
    return f"{text}\n".encode()


def flaw(notebook: Mapping[str, Any]) -> str:
    """What is wrong with it by the schema of its own format; empty for a valid notebook."""
    from nbformat import validator  # 150 ms, and only edits need it

    iter_validate: Any = validator.iter_validate  # has no types
    major, minor = version_of(notebook)
    try:
        errors = iter_validate(notebook, version=major, version_minor=minor)
        error = next(iter(errors), None)
    except (KeyError, TypeError, AttributeError, IndexError) as failure:
        # It looks into what it found wrong to word it, and stumbles over some things there.
        return f"it has an unexpected form ({failure!r:.100})"
    return "" if error is None else str(error).partition("\n")[0][:_MAX_REASON_CHARS]


def checked_as_notebook(path: Path, before: bytes | None, after: bytes) -> list[str]:
    """What to tell a model that edits a file, if that is a notebook.

    Raises BreaksNotebook where the notebook would be worse off than it is now; an edit that leaves
    a damaged one no worse passes. `before` is None for a new file.
    """
    if not is_notebook(path):
        return []
    rank, reason = _condition(after)
    if rank and (before is None or rank > _condition(before)[0]):
        raise BreaksNotebook(
            f"The notebook would no longer be valid, so nothing was changed: {reason}. Edit it by "
            "its cells with notebook_editor."
        )
    return [f"{path} still is no valid notebook: {reason}.", POINTER] if rank else [POINTER]


def is_notebook(path: Path) -> bool:
    """Whether a file is one by its name."""
    return path.suffix.lower() == ".ipynb"


def max_bytes_of(path: Path, max_file_bytes: int) -> int:
    """How large a file may be to be edited."""
    return max(MAX_NOTEBOOK_BYTES, max_file_bytes) if is_notebook(path) else max_file_bytes


def _condition(data: bytes) -> tuple[int, str]:
    """How bad things stand: 0 for a valid notebook, 1 for an invalid one, 2 for no notebook."""
    try:
        notebook = NotebookText.from_bytes(data).outline.value
    except ValueError as error:
        return 2, f"it is {_unreadable(error)}"
    if trouble := _no_cells(notebook, versions=(3, 4)):
        return 2, trouble
    reason = flaw(notebook)
    return (1 if reason else 0), reason


def _unreadable(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.start}: {error.reason})"
    return f"not valid JSON: {error}"


def _no_cells(notebook: Mapping[str, Any], versions: tuple[int, ...] = (4,)) -> str:
    """Why it has no cells that could be edited; empty if it has."""
    major, _ = version_of(notebook)
    if not major:
        return 'it has no number "nbformat", so it is no notebook'
    if major not in versions:
        older = major < min(versions)
        remedy = f"Convert it first: {_UPGRADE}" if older else "A newer Jupyter may read it"
        return f"it has the notebook format {major}; format 4 is needed. {remedy}"
    if major < 4:
        return ""  # its cells lie elsewhere
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return 'it has no list of objects "cells"'
    return ""


def _free_id(taken: set[Any]) -> str:
    while (cell_id := uuid.uuid4().hex[:8]) in taken:
        continue
    return cell_id
