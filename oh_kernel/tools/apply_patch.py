"""The tool with which a model changes several files by one patch: all of them or none."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from agentskills.disk import resolved
from agentskills.editing import FileText, new_file, printable
from agentskills.errors import EditingError, NotAllowed
from oh_kernel.events import Action, FileEdit, Observation, ToolAnnotations
from oh_kernel.events.base import Wire
from oh_kernel.tools.base import Preview, Tool, ToolContext, clip
from oh_kernel.tools.file_answers import MAX_CHARS
from oh_kernel.tools.file_tool import FileToolExecutor, is_there, lock_keys
from oh_kernel.tools.files import Step, text_of
from oh_kernel.tools.patch_grammar import (
    AddFile,
    DeleteFile,
    DiffError,
    Section,
    UpdateFile,
    duplicate,
    named_paths,
    parse,
    refusal,
)
from oh_kernel.tools.patch_matching import apply

DONE = "Done!"
OUTSIDE = "Absolute or escaping paths are not allowed"
_VERBS = {"add": "added", "delete": "deleted", "update": "updated"}


class ApplyPatchAction(Action):
    """A patch."""

    patch: str = Field(description="The patch, from `*** Begin Patch` to `*** End Patch`.")


class FileChange(Wire):
    """How one file was changed. The texts are whole, with LF endings; only people see them."""

    type: Literal["add", "delete", "update"]
    old_content: str | None = None
    new_content: str | None = None
    move_path: str | None = None


class Commit(Wire):
    """The changes of a patch by the path that it names."""

    changes: dict[str, FileChange] = Field(default_factory=dict)


class ApplyPatchObservation(Observation):
    """What became of it. `fuzz` says how loosely the hunks matched; 0 is exactly."""

    message: str = ""
    fuzz: int = 0
    commit: Commit | None = None

    def edits(self) -> list[FileEdit]:
        changes = self.commit.changes if self.commit else {}
        return [
            FileEdit(path, change.old_content, change.new_content, change.move_path)
            for path, change in changes.items()
        ]


@dataclass
class _Plan:
    """What a patch would do; nothing is written yet."""

    steps: list[Step] = field(default_factory=list)
    changes: dict[str, FileChange] = field(default_factory=dict)
    fuzz: int = 0


class ApplyPatchExecutor(FileToolExecutor[ApplyPatchAction, ApplyPatchObservation]):
    """Applies patches to files of the workspace."""

    def resources(self, action: ApplyPatchAction) -> tuple[str, ...]:
        return lock_keys([self.workspace / path for path in named_paths(action.patch)])

    async def run(self, action: ApplyPatchAction, context: ToolContext) -> ApplyPatchObservation:
        try:
            return self._applied(action.patch)
        except (DiffError, EditingError) as error:
            text = clip(printable(str(error)), MAX_CHARS)
            return ApplyPatchObservation.from_text(text, True)

    def preview(self, action: ApplyPatchAction) -> list[Preview]:
        """What the patch would change, without changing it; nothing when it cannot be applied."""
        try:
            changes = self._planned(parse(action.patch), self.files.peek).changes
        except (DiffError, EditingError):
            return []
        return [
            Preview(
                self.workspace / path,
                change.old_content,
                change.new_content,
                self.workspace / change.move_path if change.move_path else None,
            )
            for path, change in changes.items()
        ]

    def _applied(self, patch: str) -> ApplyPatchObservation:
        plan = self._planned(parse(patch), self.files.for_edit)
        notes = self.files.carry_out(plan.steps)
        return ApplyPatchObservation.from_text(
            clip(printable(_answer(plan, notes)), MAX_CHARS),
            message=DONE,
            fuzz=plan.fuzz,
            commit=Commit(changes=plan.changes),
        )

    def _planned(self, sections: list[Section], read: Callable[[Path], FileText]) -> _Plan:
        plan = _Plan()
        taken: set[Path] = set()
        for section in sections:
            # By where paths lead: two spellings of one file are one file.
            for target, path in {resolved(self._located(p)): p for p in _paths(section)}.items():
                if target in taken:
                    raise duplicate(section, path)
                taken.add(target)
            match section:
                case AddFile():
                    self._add(section, plan)
                case DeleteFile():
                    self._delete(section, plan, read)
                case UpdateFile():
                    self._update(section, plan, read)
        return plan

    def _add(self, section: AddFile, plan: _Plan) -> None:
        path = self._located(section.path)
        _require_free(path, section, section.path)
        after = new_file(path, section.text)
        plan.steps.append(Step(path, None, after, makes_folders=True))
        plan.changes[section.path] = FileChange(type="add", new_content=text_of(after))

    def _delete(self, section: DeleteFile, plan: _Plan, read: Callable[[Path], FileText]) -> None:
        path = self._located(section.path)
        _require_there(path, section)
        _require_no_link(path, section)
        before = read(path)
        plan.steps.append(Step(path, before, None))
        plan.changes[section.path] = FileChange(type="delete", old_content=text_of(before))

    def _update(self, section: UpdateFile, plan: _Plan, read: Callable[[Path], FileText]) -> None:
        path = self._located(section.path)
        _require_there(path, section)
        before = read(path)
        try:
            after, fuzz = apply(section.hunks, before, section.path)
        except EditingError as error:  # such as a character that the file's encoding lacks
            raise DiffError(f"{section.path}: {error}") from error
        move_to = self._moved_to(section)
        if move_to is None:
            plan.steps.append(Step(path, before, after))
        else:
            # The new one first: should the machine stop in between, there are two, not none.
            moved = replace(after, path=move_to)
            plan.steps.append(Step(move_to, None, moved, like=path, makes_folders=True))
            plan.steps.append(Step(path, before, None))
        plan.fuzz += fuzz
        plan.changes[section.path] = FileChange(
            type="update",
            old_content=text_of(before),
            new_content=text_of(after),
            move_path=section.move_to if move_to else None,
        )

    def _moved_to(self, section: UpdateFile) -> Path | None:
        """Where a file goes; None when it stays, also when it is "moved" to where it is."""
        path = self._located(section.path)
        if section.move_to is None or resolved(self._located(section.move_to)) == resolved(path):
            return None
        _require_no_link(path, section)
        target = self._located(section.move_to)
        _require_free(target, section, section.move_to)
        return target

    def _located(self, path: str) -> Path:
        located = self.workspace / path
        try:
            self.files.require_writable(located)
        except NotAllowed as error:
            raise DiffError(f"{OUTSIDE}: {path}. Nothing was changed. {error}") from error
        return located


class ApplyPatchTool(Tool):
    """Patching files, as a model calls it."""

    name = "apply_patch"
    prose = (
        "Change files by a patch: all of them or, when anything does not fit, none.\n"
        "*** Begin Patch\n"
        "*** Add File: PATH (never overwrites; each line of the file begins with +, a last bare + "
        "gives it a final newline)\n"
        "*** Delete File: PATH\n"
        "*** Update File: PATH\n"
        "*** Move to: NEW PATH (optional; must be free)\n"
        "@@ LINE (optional: a line above the change, such as `def f():`)\n"
        " a line that stays\n"
        "-a line that goes\n"
        "+a line that comes\n"
        "*** End of File (optional: the change is at the end)\n"
        "*** End Patch\n"
        "Show 3 lines that stay around a change, exactly as they are. A file may have several @@ "
        "parts, from top to bottom. Paths are relative to the workspace."
    )
    action = ApplyPatchAction
    observation = ApplyPatchObservation
    executor = ApplyPatchExecutor
    hints = ToolAnnotations(
        readOnlyHint=False, destructiveHint=True, idempotentHint=False, openWorldHint=False
    )


def _paths(section: Section) -> list[str]:
    move_to = section.move_to if isinstance(section, UpdateFile) else None
    return [section.path] if move_to is None else [section.path, move_to]


def _require_there(path: Path, section: Section) -> None:
    if not is_there(path):
        raise refusal(section, f"Missing File: {section.path}")


def _require_free(path: Path, section: Section, named: str) -> None:
    if is_there(path):
        remedy = "Update or delete that file, or choose another path. Nothing was changed."
        raise refusal(section, f"File already exists: {named}. {remedy}")


def _require_no_link(path: Path, section: Section) -> None:
    if path.is_symlink():
        remedy = f"Name {path.readlink()}, or change the link in the terminal."
        raise refusal(section, f"{section.path} is a link. {remedy} Nothing was changed.")


def _answer(plan: _Plan, notes: list[str]) -> str:
    lines = [f"{DONE} Nothing was to be changed." if not plan.changes else DONE]
    for path, change in plan.changes.items():
        moved = f" and moved to {change.move_path}" if change.move_path else ""
        lines.append(f"{path} {_VERBS[change.type]}{moved}")
    if plan.fuzz:
        lines.append(f"Some lines matched only loosely (fuzz {plan.fuzz}): check the result.")
    return "\n".join([*lines, *notes])
