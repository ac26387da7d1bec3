"""How do all file tools of one conversation read, change and restore the same files?

One `Files` knows where may be written, what the agent saw of each file, and what each edit changed.
A tool shows a file with `read`; it plans an edit from what `for_edit` gives and hands the outcome
to `carry_out`:

    before = files.for_edit(path)
    notes = files.carry_out([Step(path, before, before.replaced("old", "new"))])
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from agentskills.disk import (
    MAX_FILE_BYTES,
    create_bytes,
    read_bytes,
    remove_file,
    replace_bytes,
    resolved,
)
from agentskills.editing import FileText, new_file, printable
from agentskills.errors import (
    CannotWrite,
    ChangedOutside,
    EditingError,
    FileChanged,
    FileTooLarge,
    NotAllowed,
)
from oh_kernel.tools.edit_history import Edit, EditHistory, History, digest
from oh_kernel.tools.seen_files import SeenFiles, stamp_of

SEEN = "you last saw it"


@dataclass(frozen=True)
class Step:
    """One change of one file: made when `before` is None, removed when `after` is None.

    A move is a removal and a creation, whose file is `like` the removed one in mode and owner.
    """

    path: Path
    before: FileText | None
    after: FileText | None
    anchored: bool = True
    """Whether its place was found by the text that stands there, not by a line number."""
    like: Path | None = None
    makes_folders: bool = False
    """Whether the folders above a new file are made as well."""


@runtime_checkable
class UsesFiles(Protocol):
    """An executor that reads and writes through the Files of its conversation."""

    files: "Files"


class NothingToUndo(EditingError):
    """No edit of this file is remembered."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"No edit history found for {path}.")


class Files:
    """The files of one conversation. Used on one thread; an edit is one call, so none overlap."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
        history: History | None = None,
    ) -> None:
        self.workspace = Path(workspace)
        self.max_file_bytes = max_file_bytes
        self.seen = SeenFiles()
        self._history = history or EditHistory()
        self._writable: list[Path] = []
        self.allow(allowed_folders)

    def allow(self, folders: Sequence[str | Path]) -> None:
        """Have these folders be writable beside the workspace, and no others."""
        self._writable = [resolved(folder) for folder in (self.workspace, *folders)]

    def locate(self, path: str) -> Path:
        """The path that a model means: `~` expanded, relative ones joined to the workspace."""
        return self.workspace / os.path.expanduser(path)  # noqa: PTH111 - leaves ~nobody as it is

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
        return FileText.from_bytes(path, read_bytes(path, max_bytes=self.max_file_bytes))

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

    def changed_by_own_call(self, path: Path) -> str:
        """A sentence for the model when a call of its own changed the file since it saw it."""
        try:
            change = self.seen.change(resolved(path), self.peek(path).data)
        except EditingError:
            return ""
        return _own_change(path, change.own_call) if change and change.own_call else ""

    def carry_out(self, steps: Sequence[Step]) -> list[str]:
        """Make all of these changes or none, each to be undone; gives what to tell the model.

        Raises an EditingError when one of them cannot be made; those before it are taken back.
        """
        notes = []
        for step in steps:
            self.require_writable(step.path)
            if step.after and len(step.after.data) > self.max_file_bytes:
                raise FileTooLarge(step.path, len(step.after.data), self.max_file_bytes)
        for step in steps:
            notes += self._require_known(step)
        self._all_or_none(steps)
        return notes

    def was_removed(self, path: Path) -> bool:
        """Whether the last edit of this file removed it, which `undo` can take back."""
        kept = self._history.last(resolved(path))
        return kept is not None and kept.edit.after is None

    def undo(self, path: Path) -> Step:
        """Take the last edit of this file back; gives that edit.

        Raises NothingToUndo, and ChangedOutside when the file is not as the edit left it.
        """
        self.require_writable(path)
        target = resolved(path)
        content = self._content(target)
        kept = self._history.last(target)
        while kept and not kept.done and kept.edit.after != digest(content):
            self._history.drop(target, kept.number)  # the process ended before it was made
            kept = self._history.last(target)
        if kept is None:
            raise NothingToUndo(path)
        if kept.edit.after != digest(content):
            self._refuse(target, content, "the last edit")
        restored = kept.edit.content_before(content)
        self._write(target, content, restored, mode=kept.edit.mode)
        self._history.drop(target, kept.number)
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
        if new_text is None:  # an undo had removed the file, or the edit itself
            self._write(target, None, new_file(target, old_text or "").data)
            return
        now = self.peek(target)
        if now.text != new_text and printable(now.text) != new_text:
            raise FileChanged(target)
        kept = self._history.last(target)
        if kept and kept.edit.after == digest(now.data):
            restored = kept.edit.content_before(now.data)
            before = _text(target, restored)
            if (before and printable(before.text)) == old_text:
                self._write(target, now.data, restored)
                self._history.drop(target, kept.number)
                return
        # Not the last edit, or one that is not remembered: the log alone knows its text.
        old = None if old_text is None else now.spliced(0, len(now.text), old_text).data
        self._write(target, now.data, old)

    def _require_known(self, step: Step) -> list[str]:
        """Raise when the file is not what the agent saw; a note if it changed that itself."""
        if step.before is None:
            return []
        target = resolved(step.path)
        change = self.seen.change(target, step.before.data)
        if change is None:
            return []
        if change.own_call and step.anchored:
            return [_own_change(step.path, change.own_call)]
        self.seen.note(target, step.before.data, stamp_of(target))
        raise ChangedOutside(step.path, change.diff, SEEN)

    def _refuse(self, target: Path, content: bytes | None, since: str) -> None:
        if content is None:
            raise FileChanged(target)
        change = self.seen.change(target, content)
        self.seen.note(target, content, stamp_of(target))
        raise ChangedOutside(target, change.diff if change else "(View it.)", since)

    def _all_or_none(self, steps: Sequence[Step]) -> None:
        # Asked before anything is done: the file that a new one is like may be removed first.
        modes = [_mode_of(step.like or step.path) for step in steps]
        with ExitStack() as undone:
            for step, mode in zip(steps, modes, strict=True):
                if step.makes_folders:
                    _make_folders(resolved(step.path).parent, undone)
                self._make(step, mode)
                undone.callback(self._unmake, step, mode)
            undone.pop_all()

    def _make(self, step: Step, mode: int | None) -> None:
        target = resolved(step.path)
        old, new = _data(step.before), _data(step.after)
        number = self._history.add(target, Edit.between(old, new, mode))
        try:
            self._write(target, old, new, mode=mode)
        except BaseException:
            self._history.drop(target, number)
            raise
        self._history.confirm(target, number)

    def _unmake(self, step: Step, mode: int | None) -> None:
        target = resolved(step.path)
        self._write(target, _data(step.after), _data(step.before), mode=mode)
        if kept := self._history.last(target):
            self._history.drop(target, kept.number)

    def _content(self, target: Path) -> bytes | None:
        if not os.path.lexists(target):
            return None
        return read_bytes(target, max_bytes=self.max_file_bytes)

    def _write(
        self, target: Path, old: bytes | None, new: bytes | None, *, mode: int | None = None
    ) -> None:
        """Lead a file from one content to another; the agent knows the outcome."""
        if new is None:
            remove_file(target, was=old or b"")
            self.seen.forget(target)
            return
        if old is None:
            create_bytes(target, new)
            if mode is not None:
                target.chmod(mode)
        else:
            replace_bytes(target, new, was=old)
        self.seen.note(target, new, stamp_of(target))


def _own_change(path: Path, call: str) -> str:
    return f"{path} was changed by your own {call} call since you last saw it."


def _data(file: FileText | None) -> bytes | None:
    return None if file is None else file.data


def _text(path: Path, content: bytes | None) -> FileText | None:
    return None if content is None else FileText.from_bytes(path, content)


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except (OSError, ValueError):
        return None


def _make_folders(folder: Path, undone: ExitStack) -> None:
    """Make a folder and those above it; `undone` takes them away again."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        try:
            each.mkdir()
        except OSError as error:
            raise CannotWrite(each, error) from error
        undone.callback(each.rmdir)
