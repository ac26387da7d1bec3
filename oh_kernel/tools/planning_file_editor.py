"""The tool with which a model that only plans views every file and edits the plan alone."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from agentskills.disk import MAX_FILE_BYTES
from agentskills.editing import create_file, printable
from agentskills.errors import CannotWrite, EditingError
from oh_kernel.events import ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext
from oh_kernel.tools.file_editor import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
    FileEditorTool,
)
from oh_kernel.tools.file_tool import is_there
from oh_kernel.tools.files import Files

PLAN_NAME = "PLAN.md"
PLAN_FOLDER = ".agents_tmp"
HEADINGS = (
    "OBJECTIVE",
    "CONTEXT SUMMARY",
    "APPROACH OVERVIEW",
    "IMPLEMENTATION STEPS",
    "TESTING AND VALIDATION",
)
EMPTY_PLAN = "\n".join(f"# {number}. {title}\n" for number, title in enumerate(HEADINGS, 1))


class PlanningFileEditorAction(FileEditorAction):
    """What to do with which file."""


class PlanningFileEditorObservation(FileEditorObservation):
    """What became of it."""


class PlanningFileEditorExecutor(FileEditorExecutor):
    """Views files, and edits the plan, which it makes with its headings if there is none."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        plan_path: str | Path | None = None,
        files: Files | None = None,
        allowed_folders: Sequence[str | Path] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self.plan_path = _plan_path(Path(workspace), plan_path)
        super().__init__(
            workspace,
            files=files,
            # Whoever names a plan elsewhere means it to be written; nothing else there can be.
            allowed_folders=(*allowed_folders, *([self.plan_path.parent] if plan_path else [])),
            max_file_bytes=max_file_bytes,
            allowed_edits_files=[self.plan_path],
        )
        with contextlib.suppress(EditingError):  # told at the first call, which tries again
            self._make_plan()

    async def run(
        self, action: FileEditorAction, context: ToolContext
    ) -> PlanningFileEditorObservation:
        try:
            self._make_plan()
        except EditingError as error:
            text = printable(f"The plan cannot be made. {error}")
            return PlanningFileEditorObservation.from_text(text, True, command=action.command)
        answer = await super().run(action, context)
        return PlanningFileEditorObservation.model_validate(answer.model_dump(exclude={"kind"}))

    def _make_plan(self) -> None:
        if is_there(self.plan_path):
            return
        self.files.require_writable(self.plan_path)  # its folder may be a link that leads out
        try:
            self.plan_path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(self.plan_path, error) from error
        create_file(self.plan_path, EMPTY_PLAN)


class PlanningFileEditorTool(Tool):
    """Planning, as a model calls it."""

    name = "planning_file_editor"
    prose = (
        f"{FileEditorTool.prose}\nYou are planning: every file can be viewed, but only the plan "
        f"can be edited. It is {PLAN_FOLDER}/{PLAN_NAME} in the workspace, or {PLAN_NAME} where "
        "that is there already, and has its headings: fill them in with str_replace and insert."
    )
    action = PlanningFileEditorAction
    observation = PlanningFileEditorObservation
    executor = PlanningFileEditorExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=False, idempotentHint=False, openWorldHint=False
    )


def _plan_path(workspace: Path, given: str | Path | None) -> Path:
    """The plan that was named; else one that is there at the top of the workspace; else ours."""
    if given is not None:
        if not Path(given).is_absolute():
            raise ValueError(f"plan_path must be an absolute path, got: {given}")
        return Path(given)
    at_the_top = workspace / PLAN_NAME
    return at_the_top if is_there(at_the_top) else workspace / PLAN_FOLDER / PLAN_NAME
