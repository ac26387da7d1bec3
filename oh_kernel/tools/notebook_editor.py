"""The tool with which a model views and edits notebooks by their cells.

A notebook that people have open in Jupyter is edited in the open document where they share it
(jupyter-collaboration), and otherwise not at all: what they have not saved would be lost.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BeforeValidator, Field

from agentskills.disk import resolved
from agentskills.editing import FileText, printable
from agentskills.errors import EditingError, FileExists, FileMissing
from oh_kernel.events import Action, ImageContent, Observation, ToolAnnotations
from oh_kernel.tools.base import Preview, Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.changes import Step
from oh_kernel.tools.files import Files
from oh_kernel.tools.live_notebook import CannotShare, live_notebook
from oh_kernel.tools.notebook_changes import source_of
from oh_kernel.tools.notebook_format import (
    POINTER,
    NotANotebook,
    flaw,
    new_notebook,
    read_notebook,
)
from oh_kernel.tools.notebook_plan import CannotEdit, CellType, find_cell, planned
from oh_kernel.tools.notebook_view import cell_view, outputs_of, percent_text, whole_view
from oh_kernel.tools.open_notebooks import (
    NoAnswer,
    Room,
    Whereabouts,
    find_open,
    runtime_folder,
)
from oh_kernel.tools.output_text import model_images

MAX_CHARS = 16_000
"""Characters of an answer, titles and notices included."""

OPEN_AND_SHARED = "It is open in Jupyter; this is the open document as it stands."
OPEN_UNSHARED = (
    "It is open in Jupyter: changes that are not saved there are not shown here, and it can only "
    "be edited once it is closed."
)
EDITED_LIVE = "The edit was made in the open document; Jupyter saves the file by itself."
CANNOT_SHARE = (
    "is open in Jupyter, where it can be edited together (jupyter-collaboration), but this Python "
    "lacks the library for that. Nothing was changed. Ask the user to run `pip install "
    "jupyter-ydoc` for this kernel."
)

Command = Literal[
    "view",
    "create",
    "replace",
    "str_replace",
    "insert",
    "delete",
    "move",
    "clear_outputs",
    "suggest",
    "undo_edit",
]


def _as_text(value: object) -> object:
    """An index may come as a number, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


CellName = Annotated[str, BeforeValidator(_as_text)]


class NotebookEditorAction(Action):
    """What to do with which cell of which notebook."""

    command: Command
    path: str
    cell: CellName | None = Field(
        None,
        description="Index from 0, or id. insert: beside which, default the last. view: this "
        "alone, whole. clear_outputs: default all.",
    )
    source: str | None = Field(None, description="The whole source of the cell.")
    cell_type: CellType | None = Field(None, description="Default code; replace: as it is.")
    old_str: str | None = Field(None, description="Must be unique in the source.")
    new_str: str | None = None
    position: Literal["before", "after"] = Field("after", description="insert, move: which side.")
    target: CellName | None = Field(None, description="move: the cell beside which to go.")
    keep_outputs: bool = Field(False, description="Do not clear them: only comments change.")
    view_range: list[int] | None = Field(
        None, description="[first, last] index, -1 is the end; with cell, of its lines."
    )


class NotebookEditorObservation(Observation):
    """What became of it.

    The contents are the sources of all cells as a script with `# %%` lines; only people see them.
    """

    command: Command
    path: str | None = None
    old_content: str | None = None
    new_content: str | None = None
    live: bool = False
    """Whether the edit was made in the document that is open in Jupyter, not in the file."""


class OwnNotebook(Protocol):
    """The notebook that the kernel serves, where there is one."""

    @property
    def path(self) -> Path | None:
        """Its file, if known."""

    async def add_cell_below(self, source: str) -> bool:
        """Have a new cell stand below the running one; False if no front end shows it."""


class NotebookEditorExecutor(ToolExecutor[NotebookEditorAction, NotebookEditorObservation]):
    """Views and edits notebooks. Used on the agent thread.

    `own` is the notebook that the kernel serves. Running servers are looked up in `runtime`, by
    default in the user's own Jupyter runtime folder.
    """

    def __init__(
        self,
        workspace: str | Path,
        *,
        files: Files | None = None,
        allowed_folders: Sequence[str | Path] = (),
        own: OwnNotebook | None = None,
        runtime: Path | None = None,
    ) -> None:
        super().__init__(workspace)
        self.files = files or Files(workspace, allowed_folders=allowed_folders)
        self._own = own
        self._runtime = runtime

    def resources(self, action: NotebookEditorAction) -> tuple[str, ...]:
        try:
            return (f"file:{resolved(self.files.locate(action.path))}",)
        except EditingError:
            return ()  # no file can have this path

    async def run(
        self, action: NotebookEditorAction, context: ToolContext
    ) -> NotebookEditorObservation:
        path = self.files.locate(action.path)
        try:
            return await self._carried_out(action, path)
        except NotANotebook as error:
            return _failed(action, f"{path} cannot be read as a notebook: {error}.")
        except EditingError as error:
            return _failed(action, str(error))
        except CannotShare:
            return _failed(action, f"{path} {CANNOT_SHARE}")
        except NoAnswer as error:
            text = f"{path} is open in Jupyter, but {error}. View it to see how it stands."
            return _failed(action, text)

    def preview(self, action: NotebookEditorAction) -> Preview | None:
        """What an edit would change in the file; None when there is nothing to show."""
        path = self.files.locate(action.path)
        if action.command in ("view", "undo_edit", "suggest"):
            return None
        try:
            if action.command == "create":
                created = new_notebook(action.cell_type or "code", action.source or "")
                return Preview(path, None, _script(read_notebook(created)[1]))
            _, notebook = read_notebook(self.files.peek(path).data)
            return Preview(path, _script(notebook), _script(planned(action, notebook).after))
        except EditingError:
            return None

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Take back an applied edit that a person rejects; the reason why not, if it cannot be.

        Only the last edit of the file: the log knows the sources of a notebook, not the file.
        """
        try:
            undone = self.files.undo(path)
            texts = _script(_read(undone.before)), _script(_read(undone.after))
            if texts == (old_text, new_text):
                return None
            self.files.carry_out([undone])  # it was another edit: make it again
        except EditingError as error:
            return str(error)
        return "it is not the last edit of this notebook"

    async def _carried_out(
        self, action: NotebookEditorAction, path: Path
    ) -> NotebookEditorObservation:
        if path.suffix.lower() != ".ipynb":
            raise CannotEdit(f"{path} is no .ipynb file. Use the tools for text files.")
        if action.command == "suggest":
            return await self._suggested(action, path)
        if action.command == "create":
            return self._created(action, path)
        if not path.exists() and action.command != "undo_edit":
            raise FileMissing(path)
        where = await self._where(path)
        match action.command:
            case "view":
                return await self._viewed(action, path, where)
            case "undo_edit":
                return self._undone(action, path, where)
            case _:
                return await self._edited(action, path, where)

    async def _where(self, path: Path) -> Whereabouts:
        """Where the notebook is open. The kernel's own is, unless a server knows better."""
        found = await asyncio.to_thread(find_open, path, self._runtime or runtime_folder())
        if self._is_own(path) and not found.is_known:
            return replace(found, is_open=True)
        return found

    def _is_own(self, path: Path) -> bool:
        own = self._own.path if self._own else None
        return own is not None and resolved(own) == resolved(path)

    def _created(self, action: NotebookEditorAction, path: Path) -> NotebookEditorObservation:
        if os.path.lexists(path):
            raise FileExists(path)
        data = new_notebook(action.cell_type or "code", action.source or "")
        self.files.carry_out([Step(path, None, FileText.from_bytes(path, data))])
        answer = f"{path} was created with one {action.cell_type or 'code'} cell."
        return _changed(action, path, answer, None, read_notebook(data)[1])

    async def _viewed(
        self, action: NotebookEditorAction, path: Path, where: Whereabouts
    ) -> NotebookEditorObservation:
        if where.room is not None:
            async with live_notebook(where.room) as live:
                return _seen(action, path, live.value, [OPEN_AND_SHARED])
        file, notebook = read_notebook(self.files.read(path).data)
        remarks = []
        if where.is_open:
            remarks.append(OPEN_UNSHARED)
        if file.has_mark:
            remarks.append("It begins with a byte order mark; Jupyter does not open it so.")
        return _seen(action, path, notebook, remarks)

    async def _edited(
        self, action: NotebookEditorAction, path: Path, where: Whereabouts
    ) -> NotebookEditorObservation:
        self.files.require_writable(path)
        if where.room is not None:
            return await self._edited_live(action, path, where.room)
        if where.is_open:
            raise CannotEdit(self._refusal(path, where))
        is_anchored = action.command == "str_replace"
        before = self.files.for_edit(path, anchored=is_anchored)
        file, notebook = read_notebook(before.data)
        plan = planned(action, notebook)
        after = replace(before, data=file.with_changes(plan.changes).data)
        notes = self.files.carry_out([Step(path, before, after, is_anchored)])
        notes += [
            f"{reason}; if it has the file open, it must be reloaded." for reason in where.unasked
        ]
        answer = "\n".join([plan.answer, *(note for note in notes if note != POINTER)])
        return _changed(action, path, answer, notebook, plan.after)

    async def _edited_live(
        self, action: NotebookEditorAction, path: Path, room: Room
    ) -> NotebookEditorObservation:
        async with live_notebook(room) as live:
            notebook = live.value
            plan = planned(action, notebook)
            await live.change(plan.changes)
        answer = f"{plan.answer}\n{EDITED_LIVE}"
        return _changed(action, path, answer, notebook, plan.after, live=True)

    def _undone(
        self, action: NotebookEditorAction, path: Path, where: Whereabouts
    ) -> NotebookEditorObservation:
        if where.is_open:
            raise CannotEdit(f"{path} is open in Jupyter, so no edit of its file is taken back.")
        undone = self.files.undo(path)
        answer = f"The last edit of {path} was taken back."
        if undone.before is None:
            answer += " It had created the file, so the file was removed."
        return _changed(action, path, answer, _read(undone.after), _read(undone.before))

    async def _suggested(
        self, action: NotebookEditorAction, path: Path
    ) -> NotebookEditorObservation:
        if not action.source:
            raise CannotEdit("Parameter `source` is required for command: suggest.")
        own = self._own.path if self._own else None
        if own is not None and not self._is_own(path):
            raise CannotEdit(
                f"suggest adds a cell to the notebook of this kernel, {own}, not to {path}."
            )
        if self._own is None or not await self._own.add_cell_below(action.source):
            raise CannotEdit("No notebook is served here, so there is nowhere to add a cell.")
        answer = (
            "When the running cell ends, a new cell with this source stands below it, not run. "
            "Further suggestions until then are joined to it."
        )
        return _answer(action, path, answer)

    def _refusal(self, path: Path, where: Whereabouts) -> str:
        """Why nothing is written over an open notebook, and what can be done instead."""
        ways = []
        if self._is_own(path):
            ways.append(
                "Use the command suggest to put all your code into a new cell below the running "
                "one, or tell the user what to change."
            )
        ways.append(
            "Or ask the user to save it and to close it (File > Close and Shut Down Notebook), or "
            "to install jupyter-collaboration where Jupyter runs."
        )
        at = f" ({where.server})" if where.server else ""
        return (
            f"{path} is open in Jupyter{at}, where the user may have changes that are not saved, "
            f"so nothing was written. {' '.join(ways)}"
        )


class NotebookEditorTool(Tool):
    """Editing notebooks, as a model calls it."""

    name = "notebook_editor"
    prose = (
        "View and edit notebooks (.ipynb) by cells; nothing is run.\n"
        "- view: sources, short outputs, run order.\n"
        "- replace: a cell's source; str_replace: a part of it. Both clear its outputs.\n"
        "- suggest: a new cell below the running one, where the user's open notebook cannot be "
        "edited.\n"
        "Only what is edited changes in the file."
    )
    action = NotebookEditorAction
    observation = NotebookEditorObservation
    executor = NotebookEditorExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=False, openWorldHint=False
    )


def _seen(
    action: NotebookEditorAction,
    path: Path,
    notebook: Mapping[str, Any],
    remarks: Sequence[str],
) -> NotebookEditorObservation:
    if reason := flaw(notebook):
        remarks = [*remarks, f"It is not valid by its own format: {reason}."]
    said = "".join(f"{remark}\n" for remark in remarks)
    room = MAX_CHARS - len(said)
    cells, images = notebook["cells"], []
    if action.cell is None:
        first, last = _range(action.view_range, 0, len(cells) - 1, "cells")
        text = whole_view(str(path), notebook, first, last, room)
    else:
        index = find_cell(cells, action.cell)
        count = source_of(cells[index]).count("\n") + 1
        lines = action.view_range and _range(action.view_range, 1, count, "lines")
        text = cell_view(index, cells[index], lines or None, room)
        images = model_images(outputs_of(cells[index]))
    answer = _answer(action, path, said + text)
    if not images:
        return answer
    return answer.model_copy(update={"content": [*answer.content, ImageContent(image_urls=images)]})


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


def _changed(
    action: NotebookEditorAction,
    path: Path,
    answer: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    live: bool = False,
) -> NotebookEditorObservation:
    scripts = {"old_content": _script(before), "new_content": _script(after)}
    return _answer(action, path, answer).model_copy(update={**scripts, "live": live})


def _answer(action: NotebookEditorAction, path: Path, text: str) -> NotebookEditorObservation:
    text = clip(printable(text), MAX_CHARS)
    return NotebookEditorObservation.from_text(
        text, command=action.command, path=printable(str(path))
    )


def _failed(action: NotebookEditorAction, text: str) -> NotebookEditorObservation:
    text = clip(printable(text), MAX_CHARS)
    return NotebookEditorObservation.from_text(text, True, command=action.command)


def _script(notebook: Mapping[str, Any] | None) -> str | None:
    return None if notebook is None else printable(percent_text(notebook))


def _read(file: FileText | None) -> Mapping[str, Any] | None:
    return None if file is None else read_notebook(file.data)[1]
