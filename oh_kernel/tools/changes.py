"""How are files changed so that several changes happen all or none, and each can be undone?"""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agentskills.disk import create_bytes, read_bytes, remove_file, replace_bytes, resolved
from agentskills.edit_history import Edit, History, digest
from agentskills.editing import FileText
from agentskills.errors import CannotWrite, EditingError
from agentskills.journal import Journal
from oh_kernel.tools.notebook_format import max_bytes_of
from oh_kernel.tools.seen_files import SeenFiles, stamp_of


@dataclass(frozen=True)
class Step:
    """One change of one file: made when `before` is None, removed when `after` is None.

    A move is a removal and a creation, whose file is `like` the removed one: it gets its mode.
    """

    path: Path
    before: FileText | None
    after: FileText | None
    anchored: bool = True
    """Whether its place was found by the text that stands there, not by a line number."""
    like: Path | None = None
    makes_folders: bool = False
    """Whether the folders above a new file are made as well."""


class NothingToUndo(EditingError):
    """No edit of this file is remembered."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"No edit history found for {path}.")


class ChangedSinceEdit(EditingError):
    """The file is not as its last edit left it."""


class Changes:
    """Writes files, keeping what each write changed. What it writes, the agent knows."""

    def __init__(
        self, history: History, journal: Journal, seen: SeenFiles, max_file_bytes: int
    ) -> None:
        self._history = history
        self._journal = journal
        self._seen = seen
        self._max_file_bytes = max_file_bytes
        self._newest: tuple[bytes | None, bytes | None] = (None, None)

    def make(self, steps: Sequence[Step]) -> None:
        """Carry out all steps; when one of them fails, those before it are taken back."""
        # Asked before anything is done: the file that a new one is like may be removed first.
        modes = [_mode_of(step.like or step.path) for step in steps]
        with ExitStack() as undone:
            for step, mode in zip(steps, modes, strict=True):
                if step.makes_folders:
                    _make_folders(resolved(step.path).parent, undone)
                self._make(step, mode)
                undone.callback(self._unmake, step, mode)
            undone.pop_all()

    def last(self, target: Path) -> Edit | None:
        """The newest edit of a file that was made. Forgets newer ones that were not.

        A process that dies after it kept an edit, and before it made it, leaves such a one.
        """
        kept = self._history.last(target)
        if kept and not kept.done:
            now = digest(self.content(target))
            while kept and not kept.done and kept.edit.after != now:
                self._history.drop(target, kept.number)
                kept = self._history.last(target)
        return kept.edit if kept else None

    def take_back(self, target: Path) -> tuple[bytes | None, bytes | None]:
        """Undo the last edit of a file; gives its content before and now.

        Raises NothingToUndo, and ChangedSinceEdit when the file holds something else.
        """
        edit, content = self.last(target), self.content(target)
        kept = self._history.last(target)
        if edit is None or kept is None:
            raise NothingToUndo(target)
        if edit.after != digest(content):
            raise ChangedSinceEdit(target)
        restored = edit.content_before(content)
        self.write(target, content, restored, mode=edit.mode)
        self._history.drop(target, kept.number)
        return content, restored

    def content(self, target: Path) -> bytes | None:
        """What a file holds; None when there is none."""
        if not os.path.lexists(target):
            return None
        return read_bytes(target, max_bytes=max_bytes_of(target, self._max_file_bytes))

    def write(
        self, target: Path, old: bytes | None, new: bytes | None, *, mode: int | None = None
    ) -> None:
        """Lead a file from one content to another; None is no file."""
        if new is None:
            remove_file(target, was=old or b"")
            self._seen.forget(target)
            return
        if old is None:
            create_bytes(target, new)
            if mode is not None:
                target.chmod(mode)
        else:
            replace_bytes(target, new, was=old, journal=self._journal)
        self._seen.note(target, new, stamp_of(target))

    def _make(self, step: Step, mode: int | None) -> None:
        target = resolved(step.path)
        old, new = _data(step.before), _data(step.after)
        number = self._history.add(target, Edit.between(old, new, mode, digest=self._digest))
        try:
            self.write(target, old, new, mode=mode)
        except BaseException:
            self._history.drop(target, number)
            raise
        self._history.confirm(target, number)

    def _digest(self, content: bytes | None) -> bytes | None:
        """The digest of a content; that of the newest is known when the next edit begins there."""
        if content is None or content is not self._newest[0]:
            self._newest = (content, digest(content))
        return self._newest[1]

    def _unmake(self, step: Step, mode: int | None) -> None:
        target = resolved(step.path)
        self.write(target, _data(step.after), _data(step.before), mode=mode)
        if kept := self._history.last(target):
            self._history.drop(target, kept.number)


def _data(file: FileText | None) -> bytes | None:
    return None if file is None else file.data


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except (OSError, ValueError):
        return None


def _make_folders(folder: Path, undone: ExitStack) -> None:
    """Make a folder and those above it; `undone` takes them away again."""
    # os.path, because Path.exists raises for a name that is too long.
    missing = [each for each in (folder, *folder.parents) if not os.path.exists(each)]  # noqa: PTH110
    for each in reversed(missing):
        try:
            each.mkdir()
        except OSError as error:
            raise CannotWrite(each, error) from error
        undone.callback(each.rmdir)
