"""The tool with which a model lists a folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from pydantic import Field

from agentskills.editing import printable
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.events.base import Wire
from oh_kernel.tools.base import Tool, ToolContext, clip
from oh_kernel.tools.file_tool import FileToolExecutor
from oh_kernel.tools.gemini_answers import MAX_CHARS

MAX_ENTRIES = 500
_LEVELS = 2


class ListDirectoryAction(Action):
    """Which folder."""

    dir_path: str = Field(
        ".", description="Path of the folder; relative ones are in the workspace."
    )
    recursive: bool = Field(False, description="Whether to list the folders in it as well.")


class FileEntry(Wire):
    """A file or folder. `size` is in bytes, 0 for a folder."""

    name: str
    path: str
    is_directory: bool
    size: int
    modified_time: datetime


class ListDirectoryObservation(Observation):
    """The entries, as many as are told, and how many there are."""

    dir_path: str | None = None
    entries: list[FileEntry] = Field(default_factory=list)
    total_count: int = 0
    is_truncated: bool = False


class ListDirectoryExecutor(FileToolExecutor[ListDirectoryAction, ListDirectoryObservation]):
    """Lists folders, wherever they are."""

    def resources(self, action: ListDirectoryAction) -> tuple[str, ...]:
        return ()

    async def run(
        self, action: ListDirectoryAction, context: ToolContext
    ) -> ListDirectoryObservation:
        folder = self.files.locate(action.dir_path)
        try:
            paths = sorted(_paths(folder, _LEVELS if action.recursive else 1))
        except (OSError, ValueError) as error:
            return ListDirectoryObservation.from_text(_why_not(folder, error), True)
        entries = list(islice(filter(None, map(_entry, paths)), MAX_ENTRIES))
        return ListDirectoryObservation.from_text(
            _text(folder, entries, len(paths)),
            dir_path=printable(str(folder)),
            entries=entries,
            total_count=len(paths),
            is_truncated=len(paths) > MAX_ENTRIES,
        )


class ListDirectoryTool(Tool):
    """Listing folders, as a model calls it."""

    name = "list_directory"
    prose = (
        f"List the files and folders in a folder, with sizes, at most {MAX_ENTRIES}. With "
        "`recursive` also what is in the folders in it, but not in hidden ones."
    )
    action = ListDirectoryAction
    observation = ListDirectoryObservation
    executor = ListDirectoryExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )


def _paths(folder: Path, levels: int) -> Iterator[Path]:
    """What is in the folder. Links to folders and hidden folders are named but not entered."""
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        yield Path(entry.path)
        enter = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        if levels > 1 and enter:
            with suppress(OSError):  # it may not be entered, or is gone by now
                yield from list(_paths(Path(entry.path), levels - 1))


def _entry(path: Path) -> FileEntry | None:
    """What is known of a path; None when it is gone by now."""
    try:
        status = _status(path)
    except OSError:
        return None
    is_directory = stat.S_ISDIR(status.st_mode)
    return FileEntry(
        name=printable(path.name),
        path=printable(str(path)),
        is_directory=is_directory,
        size=0 if is_directory else status.st_size,
        modified_time=_as_date(status.st_mtime),
    )


def _status(path: Path) -> os.stat_result:
    """What the system says of a file, or of a link that leads nowhere."""
    try:
        return path.stat()
    except OSError:
        return path.lstat()


def _as_date(seconds: float) -> datetime:
    """A time of the file system, some of which hold years that no date has."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def _text(folder: Path, entries: list[FileEntry], total: int) -> str:
    cut = f", truncated to {MAX_ENTRIES}" if total > MAX_ENTRIES else ""
    base = printable(str(folder))
    rows = [f"Listed directory: {base} ({total} entries{cut})"]
    for entry in entries:
        name = entry.path.removeprefix(base).lstrip("/")
        rows.append(f"{name}/" if entry.is_directory else f"{name} ({entry.size} bytes)")
    return clip("\n".join(rows), MAX_CHARS)


def _why_not(folder: Path, error: Exception) -> str:
    match error:
        case FileNotFoundError():
            reason = "Error: Directory not found"
        case NotADirectoryError():
            reason = "Error: Path is not a directory"
        case PermissionError():
            reason = "Error: Permission denied"
        case _:
            return printable(f"Error listing directory: {error}")
    return printable(f"{reason}: {folder}")
