"""The tool with which a model writes a whole file."""

from pathlib import Path

from pydantic import Field

from agentskills.disk import resolved
from agentskills.editing import FileText, new_file, printable
from agentskills.errors import EditingError
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Preview, Tool, ToolContext
from oh_kernel.tools.file_tool import FileToolExecutor, is_there, lock_keys
from oh_kernel.tools.files import Step, text_of
from oh_kernel.tools.gemini_answers import why_not


class WriteFileAction(Action):
    """What to write where."""

    file_path: str = Field(description="Path of the file; relative ones are in the workspace.")
    content: str = Field(description="The whole text of the file.")


class WriteFileObservation(Observation):
    """What became of it. The texts are whole, with LF endings; only people see them."""

    file_path: str | None = None
    is_new_file: bool = False
    old_content: str | None = None
    new_content: str | None = None


class WriteFileExecutor(FileToolExecutor[WriteFileAction, WriteFileObservation]):
    """Writes files of the workspace, and the folders above new ones."""

    def resources(self, action: WriteFileAction) -> tuple[str, ...]:
        return lock_keys([self.files.locate(action.file_path)])

    async def run(self, action: WriteFileAction, context: ToolContext) -> WriteFileObservation:
        path = self.files.locate(action.file_path)
        try:
            return self._written(path, action.content)
        except EditingError as error:
            return WriteFileObservation.from_text(why_not(error, path, "writing"), True)

    def preview(self, action: WriteFileAction) -> Preview | None:
        """What the file would become, without writing it; None when it cannot be written."""
        path = self.files.locate(action.file_path)
        try:
            self.files.require_writable(path)
            before = self.files.peek(path) if is_there(resolved(path)) else None
            after = _after(path, before, action.content)
        except EditingError:
            return None
        return Preview(path, text_of(before), text_of(after))

    def _written(self, path: Path, content: str) -> WriteFileObservation:
        self.files.require_writable(path)
        # Not anchored: nothing in the call shows that the model knows what it writes over.
        is_new = not is_there(resolved(path))
        before = None if is_new else self.files.for_edit(path, anchored=False)
        after = _after(path, before, content)
        step = Step(path, before, after, anchored=False, makes_folders=True)
        notes = self.files.carry_out([step])
        done = "Created" if is_new else "Updated"
        return WriteFileObservation.from_text(
            printable("\n".join([f"{done} file: {path}", *notes])),
            file_path=printable(str(path)),
            is_new_file=is_new,
            old_content=text_of(before),
            new_content=text_of(after),
        )


class WriteFileTool(Tool):
    """Writing files, as a model calls it."""

    name = "write_file"
    prose = (
        "Write a whole text file in the workspace, new or over what is there; folders are made. "
        "A file that is there keeps its encoding and line endings."
    )
    action = WriteFileAction
    observation = WriteFileObservation
    executor = WriteFileExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=True, openWorldHint=False
    )


def _after(path: Path, before: FileText | None, content: str) -> FileText:
    if before is None:
        return new_file(path, content)
    if before.charset.mark:  # which stays, and is written once
        content = content.removeprefix("\ufeff")
    return before.spliced(0, len(before.text), content)
