"""The tool with which a model views, creates and edits files, and takes its edits back.

Reading is allowed everywhere; writing only in the workspace and the folders that a person allowed.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, WithJsonSchema

from agentskills.disk import MAX_FILE_BYTES, expanded, read_bytes, resolved
from agentskills.editing import FileText, new_file, printable
from agentskills.errors import CannotRead, CannotWrite, EditingError, FileTooLarge
from oh_kernel.events import Action, ImageContent, Observation, TextContent, ToolAnnotations
from oh_kernel.tools.base import Preview, Tool, ToolContext, clip
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
from oh_kernel.tools.file_tool import FileToolExecutor, lock_keys
from oh_kernel.tools.files import Files, Step, text_of

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


class FileEditorExecutor(FileToolExecutor[FileEditorAction, FileEditorObservation]):
    """Views and edits files. With `allowed_edits_files` it edits these files and no others."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        files: Files | None = None,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
        allowed_edits_files: Sequence[str | Path] | None = None,
    ) -> None:
        super().__init__(
            workspace, files=files, allowed_folders=allowed_folders, max_file_bytes=max_file_bytes
        )
        self._only: list[Path] | None = None
        if allowed_edits_files is not None:
            self._only = sorted(resolved(path) for path in allowed_edits_files)

    def resources(self, action: FileEditorAction) -> tuple[str, ...]:
        return lock_keys([self.files.locate(action.path)])

    async def run(self, action: FileEditorAction, context: ToolContext) -> FileEditorObservation:
        try:
            answer = self._carried_out(action, self._checked_path(action))
        except Refused as refusal:
            answer = _failed(action, str(refusal))
        except EditingError as error:
            answer = _failed(action, told(error, action.command, action.path, action.old_str))
        news = self.files.news()
        return _with(news, answer) if news else answer

    def preview(self, action: FileEditorAction) -> Preview | None:
        """What an edit would change, without changing it; None when there is nothing to show."""
        if action.command in ("view", "undo_edit"):
            return None
        try:
            path = self._checked_path(action)
            before = None if action.command == "create" else self.files.peek(path)
            after = self._after(action, path, before)
        except (Refused, EditingError):
            return None
        return Preview(path, text_of(before), printable(after.text))

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
        path = Path(expanded(action.path))
        if not path.is_absolute():
            raise invalid("path", action.path, self._absolute_path_hint(action))
        there = _exists(path)
        if there and action.command == "create":
            hint = f"File already exists at: {path}. Cannot overwrite files using command `create`."
            raise invalid("path", path, hint)
        if not there and not self._is_brought_back(action, path) and action.command != "create":
            hint = f"The path {path} does not exist. Please provide a valid path."
            raise invalid("path", path, hint)
        if action.command != "view":
            self._require_editable(action.command, path)
        return path

    def _is_brought_back(self, action: FileEditorAction, path: Path) -> bool:
        return action.command == "undo_edit" and self.files.was_removed(path)

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
        self.files.require_writable(path)
        if self._only is not None and resolved(path) not in self._only:
            raise Refused(
                f"Operation '{command}' is not allowed on file '{path}'. Only the following files "
                f"can be edited: {[str(only) for only in self._only]}"
            )

    def _viewed(self, action: FileEditorAction, path: Path) -> FileEditorObservation:
        if path.is_dir():
            return _seen(path, _folder_text(action, path))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            url = image_url(path, read_bytes(path, max_bytes=self.files.max_file_bytes))
            text = f"Image file {path} read successfully. Displaying image content."
            return _seen(path, text, ImageContent(image_urls=[url]))
        file = self.files.read(path)
        if action.view_range is None:
            return _seen(path, listing(file, path))
        return _seen(path, lines_in_range(file, path, action.view_range))

    def _edited(self, action: FileEditorAction, path: Path) -> FileEditorObservation:
        anchored = action.command != "insert"
        before = None
        if action.command != "create":
            before = self.files.for_edit(path, anchored=anchored)
        after = self._after(action, path, before)
        notes = self.files.carry_out([Step(path, before, after, anchored)])
        answer = _answer(action, path, before, after)
        return _changed(action.command, path, " ".join([*notes, answer]), before, after)

    def _after(self, action: FileEditorAction, path: Path, before: FileText | None) -> FileText:
        """What an edit would make of the file; nothing is written yet."""
        if before is None:
            text = _required(action, "file_text", action.file_text)
            _require_parent(resolved(path))
            after = new_file(path, text)
        else:
            after = _edited_text(action, before)
        if len(after.data) > self.files.max_file_bytes:
            raise FileTooLarge(path, len(after.data), self.files.max_file_bytes)
        return after

    def _undone(self, path: Path) -> FileEditorObservation:
        step = self.files.undo(path)
        return _changed("undo_edit", path, after_undo(step.before, path), step.after, step.before)


class FileEditorTool(Tool):
    """Editing files, as a model calls it."""

    name = "file_editor"
    prose = (
        "View, create and edit text files. Encoding and line endings are kept.\n"
        "- view: a file with line numbers, an image, or a folder two levels deep. At most "
        f"{MAX_CHARS} characters are shown; view_range shows other parts.\n"
        "- create: a new file; never overwrites.\n"
        "- str_replace: replaces old_str, taken literally (blanks and tabs count). It must be "
        "unique: add lines around it if it is not.\n"
        "- insert: adds lines after insert_line.\n"
        "- undo_edit: takes back the last edit of the file.\n"
        "Only files in the workspace can be changed, and only up to "
        f"{MAX_FILE_BYTES // 2**20} MB."
    )
    action = FileEditorAction
    observation = FileEditorObservation
    executor = FileEditorExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=False, openWorldHint=False
    )


def _answer(action: FileEditorAction, path: Path, before: FileText | None, after: FileText) -> str:
    if before is None:
        return f"File created successfully at: {path}"
    if action.command == "str_replace":
        old, new = str(action.old_str), str(action.new_str)
        return after_replacement(before, after, path, old, new)
    added = str(action.new_str).count("\n") + 1
    return after_insertion(after, path, action.insert_line or 0, added)


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


def _failed(action: FileEditorAction, reason: str) -> FileEditorObservation:
    text = clip(printable(reason), MAX_CHARS)
    return FileEditorObservation.from_text(text, True, command=action.command)


def _with(news: list[str], answer: FileEditorObservation) -> FileEditorObservation:
    text = clip(printable("\n".join([*news, answer.text])), MAX_CHARS)
    images = [part for part in answer.content if isinstance(part, ImageContent)]
    return answer.model_copy(update={"content": [TextContent(text=text), *images]})


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
        old_content=text_of(before),
        new_content=text_of(after),
    )


def _exists(path: Path) -> bool:
    """Whether the path leads to something; CannotRead where that cannot be told."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a loop of links, no permission, a NUL
        raise CannotRead(path, error) from error
    return True


def _require_parent(target: Path) -> None:
    try:
        target.parent.stat()
    except OSError as error:
        raise CannotWrite(target, error) from error


def _required(action: FileEditorAction, parameter: str, value: T | None) -> T:
    if value is None:
        raise Refused(f"Parameter `{parameter}` is required for command: {action.command}.")
    return value
