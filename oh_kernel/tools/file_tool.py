"""What is the same in all tools that read and write files?"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from agentskills.disk import MAX_FILE_BYTES, resolved
from agentskills.errors import EditingError
from oh_kernel.events import Action, Observation
from oh_kernel.tools.base import ToolExecutor
from oh_kernel.tools.files import Files

A = TypeVar("A", bound=Action)
O = TypeVar("O", bound=Observation)  # noqa: E741 - as in tools/base.py


class FileToolExecutor(ToolExecutor[A, O]):
    """Reads or writes files. To be used on one thread at a time.

    `files` is what it shares with the other file tools of its conversation.
    """

    def __init__(
        self,
        workspace: str | Path,
        *,
        files: Files | None = None,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        super().__init__(workspace)
        self.files = files or Files(
            workspace, allowed_folders=allowed_folders, max_file_bytes=max_file_bytes
        )

    def revert(self, path: Path, old_text: str | None, new_text: str | None) -> str | None:
        """Take back an applied edit that a person rejects; the reason why not, if it cannot be."""
        return self.files.revert(path, old_text, new_text)


def lock_keys(paths: Sequence[Path]) -> tuple[str, ...]:
    """What a call must have to itself that works on these files."""
    try:
        return tuple(f"file:{resolved(path)}" for path in paths)
    except EditingError:
        return ()  # no file can have such a path


def is_there(path: Path) -> bool:
    """Whether something has this path, be it a link that leads nowhere."""
    return os.path.lexists(path)
