"""The tool with which a model finds text in files."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentskills.editing import printable
from oh_kernel.errors import OpenHandsError
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.search import answers
from oh_kernel.tools.search.answers import MAX_CHARS, MAX_FILES, NEAR_MISS_S, TIMEOUT_S, shown
from oh_kernel.tools.search.dialect import read
from oh_kernel.tools.search.dialect_characters import InvalidRegex
from oh_kernel.tools.search.finding import Found, Query, find, look_into
from oh_kernel.tools.search.globs import BadGlob, PathPattern, split_base
from oh_kernel.tools.search.lines import Line
from oh_kernel.tools.search.worker import Item, Job

Backend = Literal["auto", "ripgrep", "python"]
Output = Literal["files", "lines", "counts"]
MAX_CONTEXT = 20


class GrepAction(Action):
    """What to find, and where."""

    pattern: str = Field(
        description="A regular expression of Python, applied to each line; case does not matter."
    )
    path: str | None = Field(
        None, description="The folder or file to look in; by default the working directory."
    )
    include: str | None = Field(
        None, description="A glob for the files to look in, such as `*.py` or `src/**/*.{ts,tsx}`."
    )
    case_sensitive: bool | None = Field(None, description="Whether case matters.")
    output: Output | None = Field(
        None,
        description="files (default): paths alone. lines: the lines with their numbers. "
        "counts: how many lines match in each file.",
    )
    context: int | None = Field(
        None, ge=0, le=MAX_CONTEXT, description="With lines: lines to show around each match."
    )


class GrepObservation(Observation):
    """The files with a match, the newest first; their lines are in the text."""

    matches: list[str]
    pattern: str
    search_path: str
    include_pattern: str | None = None
    truncated: bool = False


class GrepExecutor(ToolExecutor[GrepAction, GrepObservation]):
    """Searches in a process of its own, which never outlives its time.

    `backend`: ripgrep or Python's `re`, which agree on what they find; by default ripgrep when it
    is on the search path.
    """

    def __init__(
        self, workspace: str | Path, *, backend: Backend = "auto", timeout_s: float = TIMEOUT_S
    ) -> None:
        super().__init__(workspace)
        self.timeout_s = timeout_s
        self._rg = None if backend == "python" else shutil.which("rg")
        if backend == "ripgrep" and self._rg is None:
            raise OpenHandsError(
                "backend='ripgrep', but there is no rg on the search path.",
                remedy="Install ripgrep, or choose 'auto' or 'python'.",
            )

    def resources(self, action: GrepAction) -> tuple[str, ...]:
        return ()

    async def run(self, action: GrepAction, context: ToolContext) -> GrepObservation:
        place = answers.search_path(self.workspace, action.path)
        try:
            query = _query(action, place)
        except InvalidRegex as error:
            return _refused(action, place, f"Invalid regex pattern: {error}")
        except BadGlob as error:
            return _refused(action, place, f"Invalid include pattern '{action.include}': {error}")
        if not (answers.is_folder(place) or answers.is_file(place)):
            return _refused(action, place, f"Search path '{place}' is not a valid directory")
        until = time.monotonic() + self.timeout_s
        found = await find(query, rg=self._rg, until=until)
        detail = await _detail(action, found.files[:MAX_FILES], until)
        notes = answers.shortfalls(
            found.files,
            found.unreadable,
            is_complete=found.is_complete and detail.is_complete,
            timeout_s=self.timeout_s,
        )
        if not found.files and found.is_complete:
            notes += await self._near_miss(query)
        return _told(action, place, found, detail, notes)

    async def _near_miss(self, query: Query) -> list[str]:
        """What ignored and hidden files hold: not to say too easily that there is nothing."""
        if not answers.is_folder(query.root):
            return []
        until = time.monotonic() + NEAR_MISS_S
        found = await find(replace(query, everything=True), rg=self._rg, until=until)
        return [answers.near_miss(found.files, "hidden or ignored")] if found.files else []


class GrepTool(Tool):
    """Finding text, as a model calls it."""

    name = "grep"
    prose = (
        "Find the files in which a line matches a regular expression, the newest first "
        f"({MAX_FILES} at most).\n"
        "- `output` lines shows the lines with their numbers, counts how many there are.\n"
        "- Hidden and binary files, what .gitignore leaves out, and links are passed by; `path` "
        "can name any folder or file outright.\n"
        "- Every line is searched by itself: `\\n` cannot match."
    )
    action = GrepAction
    observation = GrepObservation
    executor = GrepExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )


@dataclass(frozen=True)
class _Detail:
    """What is said of the files beside their paths."""

    lines: list[str]
    is_complete: bool = True


def _query(action: GrepAction, place: str) -> Query:
    include = action.include or None
    if include is not None:
        PathPattern.parse(include)
        base, rest = split_base(include)
        below = answers.search_path(Path(place), base)
        if base and rest and answers.is_folder(below):  # as if that were `path`: it may be hidden
            place, include = below, f"./{rest}"
    return Query(place, action.pattern, read(action.pattern), bool(action.case_sensitive), include)


async def _detail(action: GrepAction, files: Sequence[str], until: float) -> _Detail:
    output = action.output or ("files" if action.context is None else "lines")
    if output == "files" or not files:
        return _Detail([shown(path) for path in files])
    job = Job(
        action.pattern,
        bool(action.case_sensitive),
        output,
        action.context or 0,
        files=tuple(files),
    )
    items, is_complete = await look_into(job, until=until)
    if output == "counts":
        lines = [f"{shown(i.path)}: {i.what}" for i in items if i.kind == "count"]
    else:
        lines = _lines([i for i in items if i.kind == "lines"], bool(action.context))
    # Without any, the time was up before; the paths are known all the same.
    return _Detail(lines or [shown(path) for path in files], is_complete)


def _lines(items: Sequence[Item], has_context: bool) -> list[str]:
    """Below each path its lines: `12:` in front of one that matches, `13-` of one beside it."""
    told: list[str] = []
    path, last = "", 0
    for item in items:
        line = Line(*item.what)
        if item.path != path:
            told += ["", shown(item.path)] if path else [shown(item.path)]
        elif has_context and line.number > last + 1:
            told.append("--")
        told.append(f"{line.number}{':' if line.is_match else '-'} {printable(line.text)}")
        path, last = item.path, line.number
    return told


def _told(
    action: GrepAction, place: str, found: Found, detail: _Detail, notes: list[str]
) -> GrepObservation:
    matches = found.files[:MAX_FILES]
    about = f"containing pattern '{action.pattern}' in"
    filtered = f" (filtered by '{action.include}')" if action.include else ""
    if matches:
        head = f"Found {len(matches)} file(s) {about} '{place}'{filtered}:"
    else:
        head = f"No files found {about} directory '{place}'{filtered}"
    text = answers.listing(head, detail.lines, notes)
    return GrepObservation.from_text(
        clip(text, MAX_CHARS),
        matches=matches,
        pattern=action.pattern,
        search_path=place,
        include_pattern=action.include,
        truncated=len(found.files) > MAX_FILES or not (found.is_complete and detail.is_complete),
    )


def _refused(action: GrepAction, place: str, reason: str) -> GrepObservation:
    return GrepObservation.from_text(
        reason,
        True,
        matches=[],
        pattern=action.pattern,
        search_path=place,
        include_pattern=action.include,
    )
