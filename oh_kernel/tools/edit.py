"""The tool with which a model replaces a text in a file, as often as it expects to find it."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from agentskills.editing import FileText, new_file, printable
from agentskills.errors import EditingError
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Preview, Tool, ToolContext
from oh_kernel.tools.file_tool import FileToolExecutor, is_there, lock_keys
from oh_kernel.tools.files import Step, text_of
from oh_kernel.tools.gemini_answers import Failed, why_not


class EditAction(Action):
    """What to replace by what in which file."""

    file_path: str = Field(description="Path of the file; relative ones are in the workspace.")
    old_string: str = Field(
        description="The text to replace, taken literally; '' makes a new file of new_string."
    )
    new_string: str = Field(description="What replaces it.")
    expected_replacements: int = Field(
        1, ge=0, description="How often old_string is in the file; each is replaced."
    )


class EditObservation(Observation):
    """What became of it. The texts are whole, with LF endings; only people see them."""

    file_path: str | None = None
    is_new_file: bool = False
    replacements_made: int = 0
    old_content: str | None = None
    new_content: str | None = None


class EditExecutor(FileToolExecutor[EditAction, EditObservation]):
    """Edits files of the workspace."""

    def resources(self, action: EditAction) -> tuple[str, ...]:
        return lock_keys([self.files.locate(action.file_path)])

    async def run(self, action: EditAction, context: ToolContext) -> EditObservation:
        path = self.files.locate(action.file_path)
        try:
            return (
                self._created(action, path) if not action.old_string else self._edited(action, path)
            )
        except (Failed, EditingError) as error:
            return EditObservation.from_text(why_not(error, path, "editing"), True)

    def preview(self, action: EditAction) -> Preview | None:
        """What the file would become, without writing it; None when it cannot be edited."""
        path = self.files.locate(action.file_path)
        try:
            self.files.require_writable(path)
            if not action.old_string:
                return None if is_there(path) else Preview(path, None, action.new_string)
            before = self.files.peek(path)
            return Preview(path, text_of(before), text_of(_replaced(action, before, path)))
        except (Failed, EditingError):
            return None

    def _created(self, action: EditAction, path: Path) -> EditObservation:
        if is_there(path):
            raise Failed(
                f"Cannot create file that already exists: {path}. Give the text to replace as "
                "old_string, or write the whole file with write_file."
            )
        after = new_file(path, action.new_string)
        notes = self.files.carry_out([Step(path, None, after, makes_folders=True)])
        return _done([f"Created new file: {path}", *notes], path, None, after, 1)

    def _edited(self, action: EditAction, path: Path) -> EditObservation:
        if not is_there(path):
            raise Failed(f"File not found: {path}. To create a new file, use old_string=''.")
        before = self.files.for_edit(path)
        after = _replaced(action, before, path)
        notes = self.files.carry_out([Step(path, before, after)])
        count = action.expected_replacements
        answer = f"Successfully edited {path} ({count} replacement(s))"
        return _done([answer, *notes], path, before, after, count)


class EditTool(Tool):
    """Editing files, as a model calls it."""

    name = "edit"
    prose = (
        "Replace old_string by new_string in a file of the workspace. old_string must be there "
        "exactly expected_replacements times: add lines around it if it is not unique. Encoding "
        "and line endings are kept."
    )
    action = EditAction
    observation = EditObservation
    executor = EditExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=False, openWorldHint=False
    )


def _replaced(action: EditAction, file: FileText, path: Path) -> FileText:
    if action.old_string == action.new_string:
        raise Failed("No changes to apply. old_string and new_string are identical.")
    old, expected = action.old_string.replace("\r\n", "\n"), action.expected_replacements
    found = list(_places(file.text, old))
    if not found:
        raise Failed(
            f"Could not find the string to replace. 0 occurrences found in {path}. "
            "Use read_file to verify the exact text."
        )
    if len(found) != expected:
        raise Failed(f"Expected {expected} occurrence(s) but found {len(found)} in {path}.")
    return file.spliced_all((at, at + len(old), action.new_string) for at in found)


def _places(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at != -1:
        yield at
        at = text.find(old, at + len(old))


def _done(
    lines: list[str], path: Path, before: FileText | None, after: FileText, count: int
) -> EditObservation:
    return EditObservation.from_text(
        printable("\n".join(lines)),
        file_path=printable(str(path)),
        is_new_file=before is None,
        replacements_made=count,
        old_content=text_of(before),
        new_content=text_of(after),
    )
