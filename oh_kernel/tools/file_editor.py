"""The tool with which a model views, creates and edits files, and takes its edits back.

Reading is allowed everywhere; writing only in the workspace and the folders that a person allowed.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, WithJsonSchema

from agentskills.disk import (
    MAX_FILE_BYTES,
    create_bytes,
    read_bytes,
    remove_file,
    replace_bytes,
    resolved,
)
from agentskills.editing import FileText, new_file, printable, read_file
from agentskills.errors import CannotRead, CannotWrite, EditingError, FileChanged, FileTooLarge
from oh_kernel.events import Action, ImageContent, Observation, TextContent, ToolAnnotations
from oh_kernel.tools.base import Preview, Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.edit_history import EditHistory, Step
from oh_kernel.tools.excerpts import folder_listing
from oh_kernel.tools.file_answers import (
    MAX_CHARS,
    Refused,
    after_insertion,
    after_replacement,
    after_undo,
    image_url,
    invalid,
    lines_in_range,
    listing,
    told,
)

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"}

Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
T = TypeVar("T")


class FileEditorAction(Action):
    """What to do with which file."""

    command: Command
    path: str = Field(description="Absolute path of a file, or of a folder to view.")
    file_text: str | None = Field(None, description="create: the whole text of the new file.")
    old_str: str | None = Field(
        None, description="str_replace: text that is in the file exactly once."
    )
    new_str: str | None = Field(
        None, description="str_replace: what replaces it. insert: the lines to add."
    )
    # A negative number passes, so that the answer can name the range that is allowed.
    insert_line: Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})] | None = Field(
        None, description="insert: the line after which to add; 0 is the top."
    )
    view_range: list[int] | None = Field(
        None, description="view: [first, last] line; last -1 is the end of the file."
    )


class FileEditorObservation(Observation):
    """What became of it. The texts of an edit are whole, with LF endings; only people see them."""

    command: Command
    path: str | None = None
    prev_exist: bool = True
    old_content: str | None = None
    new_content: str | None = None


class FileEditorExecutor(ToolExecutor[FileEditorAction, FileEditorObservation]):
    """Views and edits files. To be used on one thread at a time; remembers its edits for undo."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        super().__init__(workspace)
        self.writable = [resolved(folder) for folder in (workspace, *allowed_folders)]
        self.max_file_bytes = max_file_bytes
        self._history = EditHistory()

    async def run(self, action: FileEditorAction, context: ToolContext) -> FileEditorObservation:
        try:
            return self._carried_out(action, self._checked_path(action))
        except Refused as refusal:
            reason = str(refusal)
        except EditingError as error:
            reason = told(error, action.path, action.old_str)
        text = clip(printable(reason), MAX_CHARS)
        return FileEditorObservation.from_text(text, True, command=action.command)

    def preview(self, action: FileEditorAction) -> Preview | None:
        """What an edit would change, without changing it; None when there is nothing to show."""
        if action.command in ("view", "undo_edit"):
            return None
        try:
            path = self._checked_path(action)
            step = self._planned(action, path)
        except (Refused, EditingError):
            return None
        return Preview(path, _text_of(step.before), printable(step.after.text))

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Take back an applied edit that a person rejects; the reason why not, if it cannot be.

        The texts are those of the edit's observation, None where there was no file. Nothing is
        written when the file no longer holds the new text.
        """
        try:
            self._revert(resolved(path), old_text, new_text)
        except EditingError as error:
            return str(error)
        return None

    def _carried_out(self, action: FileEditorAction, path: Path) -> FileEditorObservation:
        match action.command:
            case "view":
                return self._viewed(action, path)
            case "undo_edit":
                return self._undone(path)
            case _:
                return self._edited(action, path)

    def _checked_path(self, action: FileEditorAction) -> Path:
        """The path as the answer names it, once nothing speaks against it."""
        path = Path(os.path.expanduser(action.path))  # noqa: PTH111 - leaves ~nobody as it is
        if not path.is_absolute():
            raise invalid("path", action.path, self._absolute_path_hint(action))
        there = _is_there(path)
        if there and action.command == "create":
            hint = f"File already exists at: {path}. Cannot overwrite files using command `create`."
            raise invalid("path", path, hint)
        if not there and action.command != "create":
            hint = f"The path {path} does not exist. Please provide a valid path."
            raise invalid("path", path, hint)
        if action.command != "view":
            self._require_editable(action.command, path)
        return path

    def _absolute_path_hint(self, action: FileEditorAction) -> str:
        hint = "The path should be an absolute path."
        meant = str(self.workspace / action.path)
        # os.path, because Path.exists raises for a name that is too long.
        if action.path and (action.command == "create" or os.path.exists(meant)):  # noqa: PTH110
            hint += f" Maybe you meant {meant}?"
        return hint

    def _require_editable(self, command: Command, path: Path) -> None:
        if path.is_dir():
            hint = (
                f"The path {path} is a directory and only the `view` command can be used on "
                "directories."
            )
            raise invalid("path", path, hint)
        target = resolved(path)
        if not any(target.is_relative_to(folder) for folder in self.writable):
            folders = ", ".join(map(str, self.writable))
            raise Refused(
                f"Operation '{command}' is not allowed on file '{path}'. Only files in the "
                f"following folders can be edited: [{folders}]"
            )

    def _viewed(self, action: FileEditorAction, path: Path) -> FileEditorObservation:
        if path.is_dir():
            return _seen(path, _folder_text(action, path))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            url = image_url(path, read_bytes(path, max_bytes=self.max_file_bytes))
            text = f"Image file {path} read successfully. Displaying image content."
            return _seen(path, text, ImageContent(image_urls=[url]))
        file = read_file(path, max_bytes=self.max_file_bytes)
        if action.view_range is None:
            return _seen(path, listing(file, path))
        return _seen(path, lines_in_range(file, path, action.view_range))

    def _edited(self, action: FileEditorAction, path: Path) -> FileEditorObservation:
        step = self._planned(action, path)
        self._history.make(step.after.path, step)
        answer = f"File created successfully at: {path}"
        if step.before and action.command == "str_replace":
            old, new = str(action.old_str), str(action.new_str)
            answer = after_replacement(step.before, step.after, path, old, new)
        elif step.before and action.insert_line is not None:
            added = str(action.new_str).count("\n") + 1
            answer = after_insertion(step.after, path, action.insert_line, added)
        return _changed(action.command, path, answer, step.before, step.after)

    def _planned(self, action: FileEditorAction, path: Path) -> Step:
        """What an edit would do to the file; nothing is written yet."""
        target = resolved(path)
        if action.command == "create":
            text = _required(action, "file_text", action.file_text)
            _require_folder(target)
            step = Step(None, new_file(target, text))
        else:
            before = read_file(target, max_bytes=self.max_file_bytes)
            step = Step(before, _edited_text(action, before))
        if len(step.after.data) > self.max_file_bytes:
            raise FileTooLarge(path, len(step.after.data), self.max_file_bytes)
        return step

    def _undone(self, path: Path) -> FileEditorObservation:
        target = resolved(path)
        step = self._history.last(target)
        if step is None:
            raise Refused(f"No edit history found for {path}.")
        self._history.take_back(target)
        answer = after_undo(step.before, path)
        return _changed("undo_edit", path, answer, step.after, step.before)

    def _revert(self, target: Path, old_text: str | None, new_text: str | None) -> None:
        if new_text is None:  # an undo had removed the file
            create_bytes(target, new_file(target, old_text or "").data)
            return
        data = read_bytes(target, max_bytes=self.max_file_bytes)
        step = self._history.last(target)
        if step and step.after.data == data and _text_of(step.before) == old_text:
            self._history.take_back(target)
            return
        # An edit of an earlier process, or not the last one: the log alone knows its text.
        now = FileText.from_bytes(target, data)
        if now.text != new_text:
            raise FileChanged(target)
        if old_text is None:
            remove_file(target, was=data)
        else:
            replace_bytes(target, now.spliced(0, len(now.text), old_text).data, was=data)


class FileEditorTool(Tool):
    """Editing files, as a model calls it."""

    name = "file_editor"
    prose = (
        "View, create and edit text files. Encoding and line endings are kept.\n"
        "- view: a file with line numbers, an image, or a folder two levels deep. At most 16000 "
        "characters are shown; view_range shows other parts.\n"
        "- create: a new file; never overwrites.\n"
        "- str_replace: replaces old_str, taken literally (blanks and tabs count). It must be "
        "unique: add lines around it if it is not.\n"
        "- insert: adds lines after insert_line.\n"
        "- undo_edit: takes back the last edit of the file.\n"
        "Only files in the workspace can be changed, and only up to 10 MB."
    )
    action = FileEditorAction
    observation = FileEditorObservation
    executor = FileEditorExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=False, openWorldHint=False
    )


def _edited_text(action: FileEditorAction, file: FileText) -> FileText:
    if action.command == "insert":
        line = _required(action, "insert_line", action.insert_line)
        return file.inserted(line, _required(action, "new_str", action.new_str) + "\n")
    old = _required(action, "old_str", action.old_str)
    new = _required(action, "new_str", action.new_str)
    if old == new:
        hint = "No replacement was performed. `new_str` and `old_str` must be different."
        raise invalid("new_str", new, hint)
    return file.replaced(old, new)


def _folder_text(action: FileEditorAction, path: Path) -> str:
    if action.view_range:
        hint = "The `view_range` parameter is not allowed when `path` points to a directory."
        raise invalid("view_range", action.view_range, hint)
    try:
        return folder_listing(path, MAX_CHARS)
    except OSError as error:
        raise Refused(str(error)) from error


def _seen(path: Path, text: str, *images: ImageContent) -> FileEditorObservation:
    content = [TextContent(text=clip(printable(text), MAX_CHARS)), *images]
    return FileEditorObservation(content=content, command="view", path=printable(str(path)))


def _changed(
    command: Command, path: Path, answer: str, before: FileText | None, after: FileText | None
) -> FileEditorObservation:
    return FileEditorObservation.from_text(
        clip(printable(answer), MAX_CHARS),
        command=command,
        path=printable(str(path)),
        prev_exist=before is not None,
        old_content=_text_of(before),
        new_content=_text_of(after),
    )


def _text_of(file: FileText | None) -> str | None:
    return None if file is None else printable(file.text)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a loop of links, no permission, a NUL
        raise CannotRead(path, error) from error
    return True


def _require_folder(target: Path) -> None:
    try:
        target.parent.stat()
    except OSError as error:
        raise CannotWrite(target, error) from error


def _required(action: FileEditorAction, parameter: str, value: T | None) -> T:
    if value is None:
        raise Refused(f"Parameter `{parameter}` is required for command: {action.command}.")
    return value
