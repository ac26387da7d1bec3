"""A person is asked before a tool writes what runs by itself or says what may run."""

from pathlib import Path

import pytest

from oh_kernel.conversation.confirmation import Gate
from oh_kernel.events import Action, ActionEvent, MessageToolCall, SecurityRisk
from oh_kernel.security.analyzers import assess
from oh_kernel.security.policies import policy_named
from oh_kernel.settings import config_folder
from oh_kernel.tools.apply_patch import ApplyPatchAction
from oh_kernel.tools.edit import EditAction
from oh_kernel.tools.file_editor import FileEditorAction
from oh_kernel.tools.ipython import IpythonAction
from oh_kernel.tools.notebook_editor import NotebookEditorAction
from oh_kernel.tools.terminal import TerminalAction
from oh_kernel.tools.write_file import WriteFileAction

GUARDED = [
    ".openhands/hooks.json",
    "src/../.openhands/hooks.json",
    "sub/.openhands/hooks/check.sh",
    ".git/hooks/pre-commit",
    ".OpenHands/Hooks.json",
    "~/.bashrc",
    "~/.ssh/authorized_keys",
]
FREE = ["notes.md", ".openhands/skills/style.md", "hooks.json", "src/hooks/use.ts", ".gitignore"]


def writing(path: str) -> list[tuple[str, Action]]:
    """Each way in which a file tool may write `path`."""
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
    move = (
        f"*** Begin Patch\n*** Update File: a.txt\n*** Move to: {path}\n@@\n-a\n+b\n*** End Patch"
    )
    return [
        ("file_editor", FileEditorAction(command="create", path=path, file_text="x")),
        ("write_file", WriteFileAction(file_path=path, content="x")),
        ("edit", EditAction(file_path=path, old_string="", new_string="x")),
        ("notebook_editor", NotebookEditorAction(command="create", path=path)),
        ("apply_patch", ApplyPatchAction(patch=patch)),
        ("apply_patch", ApplyPatchAction(patch=move)),
    ]


def is_asked(tool_name: str, action: Action, workspace: Path | None) -> bool:
    return assess(tool_name, action, SecurityRisk.LOW, workspace).always_ask


@pytest.mark.parametrize("path", GUARDED)
def test_every_file_tool_is_asked_about(path: str, tmp_path: Path) -> None:
    for tool_name, action in writing(path):
        assert is_asked(tool_name, action, tmp_path), tool_name
        assert is_asked(tool_name, action, None), tool_name


@pytest.mark.parametrize("path", FREE)
def test_other_files_are_written_without_a_question(path: str, tmp_path: Path) -> None:
    for tool_name, action in writing(path):
        assert not is_asked(tool_name, action, tmp_path), tool_name


def test_reading_is_free(tmp_path: Path) -> None:
    action = FileEditorAction(command="view", path=str(tmp_path / ".openhands/hooks.json"))
    assert not is_asked("file_editor", action, tmp_path)


def test_a_link_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / ".openhands").mkdir()
    (tmp_path / "docs").symlink_to(".openhands")
    for tool_name, action in writing("docs/hooks.json"):
        assert is_asked(tool_name, action, tmp_path), tool_name


def test_the_person_s_own_settings(tmp_path: Path) -> None:
    for tool_name, action in writing(str(config_folder() / "config.toml")):
        assert is_asked(tool_name, action, tmp_path), tool_name


@pytest.mark.parametrize("path", ["a\0b", "~nobody-of-this-name/x"])
def test_a_name_that_cannot_be_judged_is_asked_about(path: str, tmp_path: Path) -> None:
    action = WriteFileAction(file_path=path, content="x")
    assert is_asked("write_file", action, tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "echo '{}' > .openhands/hooks.json",
        "cp /dev/null .openhands/hooks.json",
        "rm .openhands/hooks.json",
        "tee .git/hooks/pre-commit < x",
        "mv x ~/.config/oh-kernel/trusted_hooks.json",
    ],
)
def test_commands_that_change_hooks_are_asked_about_too(command: str) -> None:
    assert is_asked("terminal", TerminalAction(command=command), None)


@pytest.mark.parametrize(
    "code",
    [
        "open('.openhands/hooks.json', 'w').write('{}')",
        "import os\nos.remove('.openhands/hooks.json')",
        "from pathlib import Path\nPath('.git/hooks/pre-commit').write_text('x')",
    ],
)
def test_cells_that_change_hooks_are_asked_about_too(code: str) -> None:
    assert is_asked("ipython", IpythonAction(code=code), None)


def test_no_policy_and_no_rule_lets_it_through(tmp_path: Path) -> None:
    action = WriteFileAction(file_path=".openhands/hooks.json", content="{}")
    call = ActionEvent(
        thought=[],
        action=action,
        tool_name="write_file",
        tool_call_id="c",
        tool_call=MessageToolCall(id="c", name="write_file", arguments="{}", origin="completion"),
        llm_response_id="r",
    )
    gate = Gate(
        policy_named("never"), unattended="allow", allow=("write_file",), workspace=tmp_path
    )
    (question,) = gate.questions([call])
    assert question.reasons[0].startswith("changes hooks")
    assert not gate.answer_for_nobody(question).approved
