"""Planning: every file is seen, only the plan is edited."""

from pathlib import Path
from typing import Any

import pytest

from oh_kernel.tools.files import Files
from oh_kernel.tools.planning_file_editor import (
    EMPTY_PLAN,
    PlanningFileEditorAction,
    PlanningFileEditorExecutor,
    PlanningFileEditorObservation,
)

HEADINGS = """\
# 1. OBJECTIVE

# 2. CONTEXT SUMMARY

# 3. APPROACH OVERVIEW

# 4. IMPLEMENTATION STEPS

# 5. TESTING AND VALIDATION
"""


def call(
    executor: PlanningFileEditorExecutor, command: Any, path: Path, **more: Any
) -> PlanningFileEditorObservation:
    answer = executor(PlanningFileEditorAction(command=command, path=str(path), **more))
    assert isinstance(answer, PlanningFileEditorObservation)
    return answer


def test_a_plan_is_made_and_its_edits_tell_the_whole_texts(tmp_path: Path) -> None:
    executor = PlanningFileEditorExecutor(tmp_path)
    plan = tmp_path / ".agents_tmp/PLAN.md"
    assert plan.read_text() == HEADINGS == EMPTY_PLAN
    answer = call(executor, "insert", plan, insert_line=1, new_str="Do it.")
    assert not answer.is_error
    assert answer.old_content == HEADINGS
    assert answer.new_content == plan.read_text() == HEADINGS.replace("VE\n", "VE\nDo it.\n", 1)
    assert [edit.path for edit in answer.edits()] == [str(plan)]
    assert not call(executor, "undo_edit", plan).is_error
    assert plan.read_text() == HEADINGS


def test_other_files_are_seen_and_not_edited(tmp_path: Path) -> None:
    executor = PlanningFileEditorExecutor(tmp_path)
    other = tmp_path / "a.py"
    other.write_text("x = 1\n")
    assert "x = 1" in call(executor, "view", other).text
    for command, more in (
        ("str_replace", {"old_str": "x", "new_str": "y"}),
        ("insert", {"insert_line": 0, "new_str": "y"}),
    ):
        answer = call(executor, command, other, **more)
        assert answer.is_error
        assert answer.text == (
            f"Operation '{command}' is not allowed on file '{other}'. Only the following files can "
            f"be edited: ['{tmp_path}/.agents_tmp/PLAN.md']"
        )
    assert call(executor, "create", tmp_path / "new", file_text="x").is_error
    assert sorted(path.name for path in tmp_path.iterdir()) == [".agents_tmp", "a.py"]
    assert other.read_text() == "x = 1\n"


def test_a_plan_at_the_top_of_the_workspace_is_used(tmp_path: Path) -> None:
    plan = tmp_path / "PLAN.md"
    plan.write_text("mine\n")
    executor = PlanningFileEditorExecutor(tmp_path)
    assert executor.plan_path == plan
    assert not call(executor, "str_replace", plan, old_str="mine", new_str="ours").is_error
    assert [path.name for path in tmp_path.iterdir()] == ["PLAN.md"]
    assert plan.read_text() == "ours\n"


def test_a_plan_may_be_named_by_an_absolute_path(tmp_path: Path) -> None:
    plan = tmp_path / "plans/a.md"
    (tmp_path / "workspace").mkdir()
    executor = PlanningFileEditorExecutor(tmp_path / "workspace", plan_path=plan)
    assert plan.read_text() == HEADINGS
    answer = call(executor, "str_replace", plan, old_str="# 1. ", new_str="# 1. THE ")
    assert not answer.is_error
    assert call(executor, "create", plan.parent / "b.md", file_text="x").is_error
    with pytest.raises(ValueError, match=r"^plan_path must be an absolute path, got: a\.md$"):
        PlanningFileEditorExecutor(tmp_path, plan_path="a.md")


def test_a_plan_that_cannot_be_made_is_told_at_the_call(tmp_path: Path) -> None:
    (tmp_path / ".agents_tmp").write_text("in the way")
    executor = PlanningFileEditorExecutor(tmp_path)
    answer = call(executor, "view", tmp_path)
    assert answer.is_error
    assert answer.text.startswith(f"The plan cannot be made. Cannot write {executor.plan_path}: ")
    (tmp_path / ".agents_tmp").unlink()
    assert not call(executor, "view", tmp_path).is_error
    assert executor.plan_path.read_text() == HEADINGS


def test_no_plan_is_made_through_a_link_that_leads_out(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / ".agents_tmp").symlink_to(outside)
    for files in (None, Files(workspace)):
        executor = PlanningFileEditorExecutor(workspace, files=files)
        answer = call(executor, "view", workspace)
        assert answer.is_error and answer.text.startswith("The plan cannot be made. ")
        assert list(outside.iterdir()) == []
