"""The tool with which a model reads a text file, page by page."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from agentskills.editing import FileText, printable
from agentskills.errors import EditingError
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, clip
from oh_kernel.tools.file_tool import FileToolExecutor, lock_keys
from oh_kernel.tools.gemini_answers import MAX_CHARS, Failed, why_not

MAX_LINES_PER_READ = 1000
_HEAD_CHARS = 1000  # room for what stands above the lines


class ReadFileAction(Action):
    """Which lines of which file."""

    file_path: str = Field(description="Path of a text file; relative ones are in the workspace.")
    offset: int | None = Field(None, ge=0, description="How many lines to skip; default 0.")
    limit: int | None = Field(
        None, ge=1, description=f"How many lines to read; default {MAX_LINES_PER_READ}."
    )


class ReadFileObservation(Observation):
    """The lines. When there are more, `lines_shown` says which these are, counted from 1."""

    file_path: str
    file_content: str = ""
    is_truncated: bool = False
    lines_shown: tuple[int, int] | None = None
    total_lines: int | None = None


@dataclass(frozen=True)
class _Page:
    """Some lines of a file, those with the indices `start` up to before `stop`."""

    start: int
    stop: int
    total: int
    lines: list[str]
    is_ended: bool
    """Whether the last line of the file ends with a newline."""

    @property
    def content(self) -> str:
        ended = self.lines and (self.is_ended or self.stop < self.total)
        return "\n".join(self.lines) + ("\n" if ended else "")

    @property
    def is_all(self) -> bool:
        return self.stop - self.start == self.total


class ReadFileExecutor(FileToolExecutor[ReadFileAction, ReadFileObservation]):
    """Reads files, wherever they are."""

    def resources(self, action: ReadFileAction) -> tuple[str, ...]:
        return lock_keys([self.files.locate(action.file_path)])

    async def run(self, action: ReadFileAction, context: ToolContext) -> ReadFileObservation:
        path = self.files.locate(action.file_path)
        name = printable(str(path))
        try:
            page = _page(self.files.read(path), action)
        except (Failed, EditingError) as error:
            text = why_not(error, path, "reading")
            return ReadFileObservation.from_text(text, True, file_path=name)
        return ReadFileObservation.from_text(
            clip(_text(page, name, action.limit or MAX_LINES_PER_READ), MAX_CHARS),
            file_path=name,
            file_content=page.content,
            is_truncated=not page.is_all,
            lines_shown=None if page.is_all else (page.start + 1, page.stop),
            total_lines=page.total,
        )


class ReadFileTool(Tool):
    """Reading files, as a model calls it."""

    name = "read_file"
    prose = (
        f"Read a text file, with line numbers. At most {MAX_LINES_PER_READ} lines at a time, "
        "unless `limit` asks for more; the answer says how to read on."
    )
    action = ReadFileAction
    observation = ReadFileObservation
    executor = ReadFileExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )


def _page(file: FileText, action: ReadFileAction) -> _Page:
    """The lines that were asked for, as many of them as an answer holds."""
    total, start = len(file.lines), action.offset or 0
    if start and start >= total:
        raise Failed(f"Offset {start} is beyond file length ({total} lines)")
    wanted = file.lines[start : start + (action.limit or MAX_LINES_PER_READ)]
    lines = list(_fitting(wanted, start + 1, MAX_CHARS - _HEAD_CHARS))
    return _Page(start, start + len(lines), total, lines, file.text.endswith("\n"))


def _fitting(lines: list[str], first: int, room: int) -> Iterator[str]:
    """The first lines that have room with their numbers; of a very long one, what has."""
    for number, line in enumerate(map(printable, lines), first):
        gutter = len(_row(number, ""))
        if number == first and len(line) + gutter > room:
            note = f" [line cut: it has {len(line)} characters]"
            yield line[: room - gutter - len(note)] + note
            return
        room -= len(line) + gutter
        if room < 0:
            return
        yield line


def _text(page: _Page, name: str, limit: int) -> str:
    if page.total == 0:
        return f"Read file: {name}\n\n(The file is empty.)"
    rows = "".join(_row(number, line) for number, line in enumerate(page.lines, page.start + 1))
    shown = f" (showing lines {page.start + 1}-{page.stop} of {page.total})"
    more = (
        f" To read more, use: read_file(file_path='{name}', offset={page.stop}, limit={limit})"
        if page.stop < page.total
        else ""
    )
    return f"Read file: {name}{'' if page.is_all else shown + more}\n\n{rows}"


def _row(number: int, line: str) -> str:
    return f"{number:6d}  {line}\n"
