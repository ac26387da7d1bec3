"""The tool with which a model finds files by their names."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agentskills.editing import printable
from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.search import answers
from oh_kernel.tools.search.answers import MAX_CHARS, MAX_FILES, NEAR_MISS_S, TIMEOUT_S, shown
from oh_kernel.tools.search.globs import BadGlob, Hidden, PathPattern, has_wildcard, split_base
from oh_kernel.tools.search.tree import Tree


class GlobAction(Action):
    """Which files to find."""

    pattern: str = Field(
        description="A glob for paths below the folder, such as `*.py`, `src/**/*.{ts,tsx}` or "
        "`.github/*.yml`; or an absolute one."
    )
    path: str | None = Field(
        None, description="The folder to look in; by default the working directory."
    )


class GlobObservation(Observation):
    """The files found, the newest first."""

    files: list[str]
    pattern: str
    search_path: str
    truncated: bool = False


class GlobExecutor(ToolExecutor[GlobAction, GlobObservation]):
    """Walks the tree on a thread of its own."""

    def __init__(self, workspace: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(workspace)
        self.timeout_s = timeout_s

    def resources(self, action: GlobAction) -> tuple[str, ...]:
        return ()

    async def run(self, action: GlobAction, context: ToolContext) -> GlobObservation:
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(self._answer, action, cancelled.is_set)
        finally:
            cancelled.set()

    def _answer(self, action: GlobAction, cancelled: Callable[[], bool]) -> GlobObservation:
        root, pattern = self._where(action)
        try:
            PathPattern.parse(pattern)
        except BadGlob as error:
            return _refused(action, root, str(error))
        if not answers.is_folder(root):
            return _refused(action, root, f"Search path '{root}' is not a valid directory")
        search = _Search(root, pattern, cancelled)
        return _told(action, search, self.timeout_s)

    def _where(self, action: GlobAction) -> tuple[str, str]:
        """The folder to start from, and the pattern from there."""
        pattern = action.pattern
        folder = answers.search_path(self.workspace, action.path)
        base, rest = split_base(pattern)
        outside = base.startswith(("/", "~")) or ".." in base.split("/")
        whole = answers.search_path(Path(folder), pattern)
        if pattern and not has_wildcard(pattern) and answers.is_folder(whole):
            # A folder by its name: all that is in it.
            return (whole, "**/*") if outside else (folder, f"{pattern}/**")
        if not outside:
            return folder, pattern
        return answers.search_path(Path(folder), base), f"./{rest}"


class GlobTool(Tool):
    """Finding files, as a model calls it."""

    name = "glob"
    prose = (
        f"Find files by their paths, the newest first ({MAX_FILES} at most).\n"
        "- A pattern without a slash is looked for at any depth; one with a slash starts at the "
        "folder, and `**` stands for any folders.\n"
        "- `*`, `?`, `[ab]` and `{ts,tsx}` are understood. Wildcards leave out hidden files, what "
        ".gitignore leaves out, and links to folders; what you spell out (`.github/*.yml`, "
        "`build/*.js`) is found."
    )
    action = GlobAction
    observation = GlobObservation
    executor = GlobExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )


@dataclass(frozen=True)
class _Search:
    root: str
    pattern: str
    cancelled: Callable[[], bool]

    def tree(self, seconds: float, *, everything: bool = False) -> Tree:
        until = time.monotonic() + seconds
        hidden = Hidden(files=everything, folders=everything)
        return Tree(
            self.root,
            PathPattern.parse(self.pattern, hidden=hidden, any_depth=everything),
            outright=True,
            ignoring=not everything,
            stopped=lambda: self.cancelled() or time.monotonic() > until,
        )


def _told(action: GlobAction, search: _Search, timeout_s: float) -> GlobObservation:
    tree = search.tree(timeout_s)
    files = [path for _, path in tree.newest_first()]
    notes = answers.shortfalls(
        files, tree.unreadable, is_complete=tree.is_complete, timeout_s=timeout_s
    )
    if files:
        first = [shown(path) for path in files[:MAX_FILES]]
        head = f"Found {len(first)} file(s) matching pattern '{action.pattern}' in '{search.root}':"
        text = answers.listing(head, first, notes)
    else:
        notes += _near_miss(search)
        head = f"No files found matching pattern '{action.pattern}' in directory '{search.root}'"
        text = answers.listing(head, [], notes)
    return GlobObservation.from_text(
        clip(printable(text), MAX_CHARS),
        files=files[:MAX_FILES],
        pattern=action.pattern,
        search_path=search.root,
        truncated=len(files) > MAX_FILES or not tree.is_complete,
    )


def _near_miss(search: _Search) -> list[str]:
    """What would match deeper down, or but for ignore rules and dots: not to say too easily that
    there is nothing.
    """
    found = search.tree(NEAR_MISS_S, everything=True).newest_first()
    paths = [path for _, path in found]
    how = "deeper down, hidden or ignored"
    return [answers.near_miss(paths, how)] if paths else []


def _refused(action: GlobAction, root: str, reason: str) -> GlobObservation:
    return GlobObservation.from_text(
        clip(printable(reason), MAX_CHARS), True, files=[], pattern=action.pattern, search_path=root
    )
