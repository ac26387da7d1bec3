"""How do all file tools of one conversation read, change and restore the same files?

One `Files` knows where may be written, what the agent saw of each file, and what each edit changed.
A tool shows a file with `read`; it plans an edit from what `for_edit` gives and hands the outcome
to `carry_out`:

    before = files.for_edit(path)
    notes = files.carry_out([Step(path, before, before.replaced("old", "new"))])
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Protocol, runtime_checkable

from agentskills.disk import MAX_FILE_BYTES, expanded, read_bytes, resolved
from agentskills.edit_history import EditHistory, History, digest
from agentskills.editing import FileText, new_file, printable
from agentskills.errors import (
    CannotUndo,
    ChangedOutside,
    EditingError,
    FileChanged,
    FileMissing,
    FileTooLarge,
    NotAllowed,
)
from agentskills.journal import Journal
from oh_kernel.sessions.masking import HIDDEN
from oh_kernel.settings import data_folder
from oh_kernel.tools.changes import ChangedSinceEdit, Changes, NothingToUndo, Step
from oh_kernel.tools.notebook_format import checked_as_notebook, max_bytes_of
from oh_kernel.tools.seen_files import SeenFiles, stamp_of

__all__ = ["Files", "NothingToUndo", "Step", "UsesFiles", "text_of"]

JOURNAL_FOLDER = "unfinished"


@runtime_checkable
class UsesFiles(Protocol):
    """An executor that reads and writes through the Files of its conversation."""

    files: "Files"


class Files:
    """The files of one conversation. Used on one thread; an edit is one call, so none overlap.

    Without a `history`, edits can be undone as long as the process lives. The `journal` is where
    files that are written in place are kept meanwhile; by default in the user's data folder.
    """

    def __init__(
        self,
        workspace: str | Path,
        *,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
        history: History | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.workspace = Path(workspace)
        self.max_file_bytes = max_file_bytes
        self.seen = SeenFiles()
        self._journal = journal or default_journal()
        self._changes = Changes(history or EditHistory(), self._journal, self.seen, max_file_bytes)
        # The file that was read last: of a large one, much is worth knowing the second time.
        self._newest = new_file(self.workspace, "")
        self._writable: list[Path] = []
        self._mended: list[Path] = []
        self.allow(allowed_folders)

    def allow(self, folders: Sequence[str | Path]) -> None:
        """Have these folders be writable beside the workspace, and no others.

        Files there whose writing a dead process left half done are put right.
        """
        self._writable = [resolved(folder) for folder in (self.workspace, *folders)]
        self._mended += self._journal.put_all_right(self._writable)

    def locate(self, path: str) -> Path:
        """The path that a model means: `~` expanded, relative ones joined to the workspace."""
        return self.workspace / expanded(path)

    def require_writable(self, path: Path) -> None:
        """Raise NotAllowed when the path, its links followed, leads out of the writable folders."""
        target = resolved(path)
        if not any(target.is_relative_to(folder) for folder in self._writable):
            raise NotAllowed(path, self._writable)

    def read(self, path: Path) -> FileText:
        """The text of a file that is shown to the agent, which has seen it then."""
        target = resolved(path)
        stamp = stamp_of(target)
        file = self.peek(path)
        self.seen.note(target, file.data, stamp)
        return file

    def peek(self, path: Path) -> FileText:
        """The text of a file as it is, for a person or a preview."""
        target = resolved(path)
        if self._journal.put_right(target):
            self._mended.append(target)
        data = read_bytes(path, max_bytes=max_bytes_of(path, self.max_file_bytes))
        if (path, data) != (self._newest.path, self._newest.data):
            self._newest = FileText.from_bytes(path, data)
        return self._newest

    def news(self) -> list[str]:
        """What the agent must be told beside the answer of its call; each is told once."""
        mended, self._mended = self._mended, []
        return [
            f"Writing {path} was cut short; it was put back as it was before." for path in mended
        ]

    def for_edit(self, path: Path, *, anchored: bool = True) -> FileText:
        """The text that an edit starts from; ChangedOutside when the agent does not know it.

        Raising counts as showing what changed, so the next try is allowed.
        """
        self.require_writable(path)
        file = self.peek(path)
        self._require_known(Step(path, file, None, anchored))
        return file

    @contextmanager
    def during_call(self, executor: object, name: str) -> Iterator[None]:
        """What changes meanwhile is the agent's own doing; file tools say so themselves."""
        if isinstance(executor, UsesFiles):
            yield
            return
        self.seen.call_begins(name)
        try:
            yield
        finally:
            self.seen.call_ends(name)

    def carry_out(self, steps: Sequence[Step]) -> list[str]:
        """Make all of these changes or none, each to be undone; gives what to tell the model.

        Raises an EditingError when one of them cannot be made; those before it are taken back.
        """
        for step in steps:
            self.require_writable(step.path)
            limit = max_bytes_of(step.path, self.max_file_bytes)
            if step.after and len(step.after.data) > limit:
                raise FileTooLarge(step.path, len(step.after.data), limit)
        notes = [note for step in steps for note in self._require_known(step)]
        notes += _notes_on_notebooks(steps)
        self._changes.make(steps)
        for step in steps:
            self._newest = step.after or self._newest
        return self.news() + notes

    def was_removed(self, path: Path) -> bool:
        """Whether the last edit of this file removed it, which `undo` can take back."""
        edit = self._changes.last(resolved(path))
        return edit is not None and edit.after is None

    def undo(self, path: Path) -> Step:
        """Take the last edit of this file back; gives that edit.

        Raises NothingToUndo, and ChangedOutside when the file is not as the edit left it.
        """
        self.require_writable(path)
        target = resolved(path)
        try:
            content, restored = self._changes.take_back(target)
        except NothingToUndo:
            raise NothingToUndo(path) from None
        except ChangedSinceEdit:
            self._refuse(path, self._changes.content(target), CannotUndo)
        return Step(path, _text(path, restored), _text(path, content))

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Take back an edit that a person rejects; the reason why not, if it cannot be.

        The texts are those of the edit's observation, None where there was no file. Nothing is
        written when the file no longer holds the new text.
        """
        try:
            self._revert(resolved(path), old_text, new_text)
        except EditingError as error:
            return str(error)
        return None

    def _revert(self, target: Path, old_text: str | None, new_text: str | None) -> None:
        edit, content = self._changes.last(target), self._changes.content(target)
        is_last = edit and edit.after == digest(content) and _tells(new_text, target, content)
        if edit and is_last and _tells(old_text, target, edit.content_before(content)):
            self._changes.take_back(target)
            return
        # Not the last edit, or one that is not remembered: the log alone knows its text.
        if old_text and HIDDEN in old_text:
            raise EditingError(f"{target} held a secret there, which the log does not know.")
        if new_text is None:
            self._changes.write(target, None, new_file(target, old_text or "").data)
            return
        now = self.peek(target)
        if now.text != new_text:
            raise FileChanged(target)
        old = None if old_text is None else now.spliced(0, len(now.text), old_text).data
        self._changes.write(target, now.data, old)

    def _require_known(self, step: Step) -> list[str]:
        """Raise when the file is not what the agent saw; a note if it changed that itself."""
        if step.before is None:
            return []
        change = self.seen.change(resolved(step.path), step.before.data)
        if change is None:
            return []
        if not (change.own_call and step.anchored):
            self._refuse(step.path, step.before.data, ChangedOutside)
        return [_own_change(step.path, change.own_call)]

    def _refuse(self, path: Path, content: bytes | None, error: type[ChangedOutside]) -> NoReturn:
        """Say what changed, which the agent has seen then."""
        if content is None:
            raise FileMissing(path)
        target = resolved(path)
        change = self.seen.change(target, content)
        self.seen.note(target, content, stamp_of(target))
        raise error(path, change.diff if change else "(View it.)")


def text_of(file: FileText | None) -> str | None:
    """The text of a file as observations hold it."""
    return None if file is None else printable(file.text)


def default_journal() -> Journal:
    """In the user's data folder, or in the system's for temporary files where there is none."""
    spare = Path(tempfile.gettempdir()) / f"oh-kernel-{os.geteuid()}"
    return Journal(data_folder() / JOURNAL_FOLDER, spare / JOURNAL_FOLDER)


def _notes_on_notebooks(steps: Sequence[Step]) -> list[str]:
    """What to tell of edits of notebooks; BreaksNotebook for one that must not be made."""
    before = {step.path: step.before for step in steps}
    notes: list[str] = []
    for step in steps:
        was = step.before or (before.get(step.like) if step.like else None)
        if step.after:
            notes += checked_as_notebook(step.path, was.data if was else None, step.after.data)
    return notes


def _own_change(path: Path, call: str) -> str:
    return f"{path} was changed by your own {call} call since you last saw it."


def _text(path: Path, content: bytes | None) -> FileText | None:
    return None if content is None else FileText.from_bytes(path, content)


def _tells(told: str | None, path: Path, content: bytes | None) -> bool:
    """Whether an observation told `content` so; in place of a secret it has a mask."""
    shown = _shown(path, content)
    if told is None or shown is None or told == shown:
        return told == shown
    parts = map(re.escape, told.split(HIDDEN))
    return HIDDEN in told and re.fullmatch("(?s:.+?)".join(parts), shown) is not None


def _shown(path: Path, content: bytes | None) -> str | None:
    return text_of(_text(path, content))
