"""What is shown before a call and taken back after it, when it changes several files."""

from pathlib import Path

import pytest

from oh_kernel.conversation.confirmation import Question
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.events import ActionEvent, ObservationEvent, SecurityRisk
from oh_kernel.tools.apply_patch import ApplyPatchTool
from oh_kernel.tools.think import ThinkTool
from tests.unit.turns import action, observed

PATCH = """\
*** Begin Patch
*** Update File: a.txt
*** Move to: sub/m.txt
-one
+1
*** Add File: n.txt
+new
*** Delete File: b.txt
*** End Patch"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "a.txt").chmod(0o750)
    (tmp_path / "b.txt").write_bytes("garçon, ça va déjà\r\n".encode("cp1252"))
    return tmp_path


@pytest.fixture
def toolbox(workspace: Path) -> Toolbox:
    return Toolbox((ApplyPatchTool, ThinkTool), workspace, lambda tool: tool.executor(workspace))


def content(workspace: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in workspace.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mode) for path in files}


def carried_out(toolbox: Toolbox, call: ActionEvent) -> ObservationEvent:
    executor = toolbox.executor(call.tool_name)
    assert executor
    return observed(call, "").model_copy(update={"observation": executor(call.action)})


def test_a_rejected_patch_gives_every_byte_of_every_file_back(
    workspace: Path, toolbox: Toolbox
) -> None:
    before = content(workspace)
    event = carried_out(toolbox, action("apply_patch", {"patch": PATCH}))
    assert len(event.observation.edits()) == 3
    assert toolbox.revert(event) is None
    assert content(workspace) == before


@pytest.mark.parametrize("name", ["n.txt", "sub/m.txt", "b.txt"])
def test_a_patch_is_taken_back_as_a_whole_or_not_at_all(
    workspace: Path, toolbox: Toolbox, name: str
) -> None:
    event = carried_out(toolbox, action("apply_patch", {"patch": PATCH}))
    (workspace / name).write_bytes(b"mine by now\n")
    after = {path: data for path, (data, _) in content(workspace).items()}
    assert toolbox.revert(event)
    assert {path: data for path, (data, _) in content(workspace).items()} == after


def test_what_is_no_edit_is_not_taken_back(toolbox: Toolbox) -> None:
    thought = carried_out(toolbox, action("think", {"thought": "hm"}))
    failed = carried_out(toolbox, action("apply_patch", {"patch": "nothing"}))
    assert toolbox.revert(thought) == toolbox.revert(failed) == "it is not an edit of a file"


def test_a_question_shows_every_file_that_would_change(workspace: Path, toolbox: Toolbox) -> None:
    before = content(workspace)
    question = Question(action("apply_patch", {"patch": PATCH}), SecurityRisk.UNKNOWN)
    shown = toolbox.with_preview(question).previews
    assert [(edit.path.name, edit.old_text, edit.new_text) for edit in shown] == [
        ("a.txt", "one\ntwo\n", "1\ntwo\n"),
        ("n.txt", None, "new"),
        ("b.txt", "garçon, ça va déjà\n", None),
    ]
    assert shown[0].moved_to == workspace / "sub/m.txt"
    thought = Question(action("think", {"thought": "hm"}), SecurityRisk.UNKNOWN)
    assert toolbox.with_preview(thought).previews == ()
    assert content(workspace) == before
