"""What did each file hold before and after the last edits, byte for byte?"""

from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path

from agentskills.disk import create_bytes, remove_file, replace_bytes
from agentskills.editing import FileText

DEPTH = 10
"""Edits of one file that can be taken back."""


@dataclass(frozen=True)
class Step:
    """One edit. `before` is None when it made the file."""

    before: FileText | None
    after: FileText


class EditHistory:
    """The last edits of each file, by the path that it really has; lives with its executor."""

    def __init__(self) -> None:
        self._steps: dict[Path, deque[Step]] = {}

    def make(self, path: Path, step: Step) -> None:
        """Carry out an edit and remember it."""
        if step.before is None:
            create_bytes(path, step.after.data)
        else:
            replace_bytes(path, step.after.data, was=step.before.data)
        # Copies, for they leave the derived texts and lists behind.
        kept = Step(step.before and replace(step.before), replace(step.after))
        self._steps.setdefault(path, deque(maxlen=DEPTH)).append(kept)

    def last(self, path: Path) -> Step | None:
        """The last edit that has not been taken back."""
        steps = self._steps.get(path)
        return steps[-1] if steps else None

    def take_back(self, path: Path) -> None:
        """Undo the last edit, unless the file holds something else by now (FileChanged)."""
        step = self._steps[path][-1]
        if step.before is None:
            remove_file(path, was=step.after.data)
        else:
            replace_bytes(path, step.before.data, was=step.after.data)
        self._steps[path].pop()
