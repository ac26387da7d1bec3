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
from oh_kernel.tools.base import Preview, Tool, ToolContext, clip
from oh_kernel.tools.file_tool import FileToolExecutor, is_there, lock_keys
from oh_kernel.tools.files import Files, Step
from oh_kernel.tools.live_notebook import CannotShare, live_notebook
from oh_kernel.tools.notebook_answers import (
    CANNOT_SHARE,
    EDITED_LIVE,
    HAS_MARK,
    MAX_CHARS,
    OPEN_AND_SHARED,
    OPEN_UNSHARED,
    SUGGESTED,
    pictures,
    read_again,
    refusal,
    script,
    view,
)
from oh_kernel.tools.notebook_format import (
    POINTER,
    NotANotebook,
    is_notebook,
    new_notebook,
    read_notebook,
)
from oh_kernel.tools.notebook_plan import CannotEdit, CellType, planned
from oh_kernel.tools.open_notebooks import (
    NoAnswer,
    Room,
    Whereabouts,
    find_open,
    runtime_folder,
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
    if isinstance(value, float) and value.is_integer():
        value = int(value)
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


class NotebookEditorExecutor(FileToolExecutor[NotebookEditorAction, NotebookEditorObservation]):
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
        super().__init__(workspace, files=files, allowed_folders=allowed_folders)
        self._own = own
        self._runtime = runtime

    def resources(self, action: NotebookEditorAction) -> tuple[str, ...]:
        return lock_keys([self.files.locate(action.path)])

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
                return Preview(path, None, script(read_notebook(created)[1]))
            _, notebook = read_notebook(self.files.peek(path).data)
            return Preview(path, script(notebook), script(planned(action, notebook).after))
        except EditingError:
            return None

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Take back an applied edit that a person rejects; the reason why not, if it cannot be.

        Only the last edit of the file: the log knows the sources of a notebook, not the file.
        """
        try:
            undone = self.files.undo(path)
            texts = script(read_again(undone.before)), script(read_again(undone.after))
            if texts == (old_text, new_text):
                return None
            self.files.carry_out([undone])  # it was another edit: make it again
        except EditingError as error:
            return str(error)
        return "it is not the last edit of this notebook"

    async def _carried_out(
        self, action: NotebookEditorAction, path: Path
    ) -> NotebookEditorObservation:
        if not is_notebook(path):
            raise CannotEdit(f"{path} is no .ipynb file. Use the tools for text files.")
        if action.command == "suggest":
            return await self._suggested(action, path)
        if action.command == "create":
            return self._created(action, path)
        # os.path, because Path.exists raises for a name that is too long.
        if not os.path.exists(path) and action.command != "undo_edit":  # noqa: PTH110
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
        if is_there(path):
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
        remarks = [OPEN_UNSHARED] * where.is_open + [HAS_MARK] * file.has_mark
        return _seen(action, path, notebook, remarks)

    async def _edited(
        self, action: NotebookEditorAction, path: Path, where: Whereabouts
    ) -> NotebookEditorObservation:
        self.files.require_writable(path)
        if where.room is not None:
            return await self._edited_live(action, path, where.room)
        if where.is_open:
            raise CannotEdit(refusal(path, where, is_own=self._is_own(path)))
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
        return _changed(action, path, answer, read_again(undone.after), read_again(undone.before))

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
            raise CannotEdit("No notebook takes a cell here: none is served, or it is too busy.")
        return _answer(action, path, SUGGESTED)


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
    action: NotebookEditorAction, path: Path, notebook: Mapping[str, Any], remarks: Sequence[str]
) -> NotebookEditorObservation:
    text = view(path, notebook, action.cell, action.view_range, remarks)
    answer = _answer(action, path, text)
    if images := pictures(notebook, action.cell):
        content = [*answer.content, ImageContent(image_urls=images)]
        return answer.model_copy(update={"content": content})
    return answer


def _changed(
    action: NotebookEditorAction,
    path: Path,
    answer: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    live: bool = False,
) -> NotebookEditorObservation:
    scripts = {"old_content": script(before), "new_content": script(after)}
    return _answer(action, path, answer).model_copy(update={**scripts, "live": live})


def _answer(action: NotebookEditorAction, path: Path, text: str) -> NotebookEditorObservation:
    text = clip(printable(text), MAX_CHARS)
    return NotebookEditorObservation.from_text(
        text, command=action.command, path=printable(str(path))
    )


def _failed(action: NotebookEditorAction, text: str) -> NotebookEditorObservation:
    text = clip(printable(text), MAX_CHARS)
    return NotebookEditorObservation.from_text(text, True, command=action.command)
