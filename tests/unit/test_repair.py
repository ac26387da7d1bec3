"""What a model meant by a call that no tool takes as it stands, rule by rule."""

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.agents.calls import events_of_calls
from oh_kernel.agents.repair import first_json, meant_tool
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Message,
    MessageToolCall,
    SecurityRisk,
)
from oh_kernel.llm.base import Completion
from oh_kernel.tools.apply_patch import ApplyPatchAction
from oh_kernel.tools.base import Tool
from oh_kernel.tools.file_editor import FileEditorAction
from oh_kernel.tools.presets import tool_named
from oh_kernel.tools.task_tracker import TaskItem, TaskTrackerAction
from oh_kernel.tools.terminal import TerminalAction

TOOLS = {name: tool_named(name) for name in ("terminal", "file_editor", "ipython", "task_tracker")}
LS = '{"command": "ls"}'


def understood(name: str, arguments: dict[str, Any] | str) -> ActionEvent:
    """The event of a call that must be understood."""
    event, *errors = events(name, arguments)
    assert not errors, errors
    assert isinstance(event, ActionEvent) and event.action is not None
    return event


def refused(name: str, arguments: dict[str, Any] | str) -> str:
    """The error of a call that must not be understood."""
    event, error = events(name, arguments)
    assert isinstance(event, ActionEvent) and event.action is None
    assert isinstance(error, AgentErrorEvent)
    return error.error


def events(
    name: str, arguments: dict[str, Any] | str, tools: Mapping[str, type[Tool]] = TOOLS
) -> list[Any]:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = MessageToolCall(id="c", name=name, arguments=raw, origin="completion")
    completion = Completion(
        message=Message(role="assistant", tool_calls=[call]), response_id="r", model="m"
    )
    return events_of_calls(completion, tools, lambda wanted: wanted)


def command(name: str, arguments: dict[str, Any] | str) -> str:
    action = understood(name, arguments).action
    assert isinstance(action, TerminalAction)
    return action.command


# Names


@pytest.mark.parametrize(
    "name",
    [
        "bash",
        "command",
        "execute",
        "execute_bash",
        "shell",
        "run_shell_command",
        "Bash",
        "Terminal",
        "TERMINAL",
        "TerminalTool",
        "terminal</parameter",
        "functions.terminal",
        "default_api:terminal",
    ],
)
def test_names_that_mean_the_terminal(name: str) -> None:
    event = understood(name, LS)
    assert event.tool_name == event.tool_call.name == "terminal"
    assert event.action == TerminalAction(command="ls")


@pytest.mark.parametrize(
    "name",
    [
        "str_replace",
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "str_replace</function>",
        "file-editor",
        "FileEditor",
        "FileEditorTool",
    ],
)
def test_names_that_mean_the_editor(name: str) -> None:
    action = understood(name, {"command": "view", "path": "/w/a"}).action
    assert action == FileEditorAction(command="view", path="/w/a")


def test_registered_name_wins_over_every_alias() -> None:
    tools = ["terminal", "git", "bash"]
    assert meant_tool("git", {}, tools) == ("git", {})
    assert meant_tool("bash", {}, tools) == ("bash", {})


@pytest.mark.parametrize("name", ["", "</function>", "no_such_tool", "1", "terminal2", "."])
def test_names_that_mean_nothing_are_told_the_tools(name: str) -> None:
    expected = f"Tool '{name}' not found. Available: {list(TOOLS)}"
    assert refused(name, LS) == expected
    assert refused(name, "no json") == expected


def test_alias_leads_nowhere_where_its_tool_is_not_given() -> None:
    assert meant_tool("bash", {}, ["file_editor"]) is None
    assert meant_tool("ls", {}, ["file_editor"]) is None


def test_git_and_reset_are_the_first_word_of_the_command() -> None:
    assert command("git", {"command": "status -s"}) == "git status -s"
    assert command("reset", {"command": "-Q"}) == "reset -Q"


@pytest.mark.parametrize("name", ["find", "git", "ls", "pwd"])
def test_bare_program_without_arguments_is_a_command(name: str) -> None:
    assert command(name, {"summary": "look around"}) == name
    assert understood(name, {"summary": "look around"}).summary == "look around"


def test_bare_program_with_arguments_is_no_command() -> None:
    assert refused("ls", {"path": "/"}).startswith("Tool 'ls' not found.")


def test_grep_becomes_a_search_in_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text("x = 1\nNeedle = 2\n")
    (tmp_path / "c.txt").write_text("needle\n")
    (tmp_path / "none.py").write_text("hay\n")
    line = command("grep", {"pattern": "needle", "path": str(tmp_path), "include": "*.py"})
    found = subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [f"{tmp_path}/a b.py:2:Needle = 2"]


def test_pattern_of_a_search_is_never_an_option() -> None:
    words = shlex.split(command("grep", {"pattern": "--pre=evil; ls", "path": "-x"}))
    assert words[-4:] == ["-e", "--pre=evil; ls", "--", "-x"]


# Arguments as a whole


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(LS),
        '{"arguments": {"command": "ls"}}',
        '{"terminal": {"command": "ls"}, "summary": "look"}',
        '{"input": "{\\"command\\": \\"ls\\"}"}',
        '{"command": "ls", "timeout": null}',
        '{"command": "ls"}</parameter></function>',
        '{"command": "ls"}\n\nThat lists the files.',
        '{"Command": "ls"}',
        '{"cmd": "ls"}',
        '{"command": "ls", "description placeholder\\n</parameter": ""}',
        '{"command": ["ls"]}',
        '{"command": "ls", "is_input": "false"}',
    ],
)
def test_object_that_can_only_mean_one_command(raw: str) -> None:
    event = understood("terminal", raw)
    assert event.action == TerminalAction(command="ls")
    sent = json.loads(event.tool_call.arguments)
    sent.pop("summary", None)
    assert TerminalAction.model_validate(sent) == event.action


def test_call_that_needs_no_mending_is_sent_back_as_it_came() -> None:
    raw = '{ "command":"ls" , "summary":"look" }'
    assert understood("terminal", raw).tool_call.arguments == raw


@pytest.mark.parametrize(
    "raw",
    [
        '{"command": "ls"}{"command": "rm -r ."}',
        '{"command": "echo {a}',
        '["ls"]',
        "null",
        "3",
        '""',
        '{"command": "ls',
        "{'command': 'ls'}",
    ],
)
def test_what_could_mean_several_things_is_refused(raw: str) -> None:
    assert refused("terminal", raw).startswith("Error validating tool 'terminal': ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bash", "-lc", "cd /w && ls 'a b'"], "cd /w && ls 'a b'"),
        (["ls", "-la", "*.py"], "ls -la '*.py'"),
        (["echo one\n", "echo two"], "echo one\necho two"),
        (["cat", "my file.txt"], "cat 'my file.txt'"),
        (["grep", "a", " | head"], "grepa | head"),
    ],
)
def test_command_in_words_or_pieces(words: list[str], expected: str) -> None:
    assert command("shell", {"command": words}) == expected


def test_unknown_argument_is_named_and_not_dropped() -> None:
    text = refused("terminal", {"command": "ls", "colour": "red"})
    assert "colour" in text
    assert text.endswith("Parameters provided: ['colour', 'command']")


def test_object_one_level_too_deep_beside_others_is_left_alone() -> None:
    assert "arguments" in refused("terminal", {"command": "ls", "arguments": {"command": "pwd"}})


# Single arguments


@pytest.mark.parametrize(
    "key",
    ["security_rort", "securtiy_risk", "security_riks", "securityRisk", "security-risk"],
)
def test_misspelt_risk_counts(key: str) -> None:
    event = understood("terminal", {"command": "ls", key: "HIGH"})
    assert event.security_risk is SecurityRisk.HIGH


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"old_str": "a", "new_str": "b"}, "str_replace"),
        ({"insert_line": 2, "new_str": "b"}, "insert"),
        ({"file_text": "x"}, "create"),
        ({"view_range": [1, 2]}, "view"),
        ({"old_string": "a", "new_string": "b"}, "str_replace"),
        ({"content": "x"}, "create"),
    ],
)
def test_command_of_the_editor_is_seen_from_its_arguments(
    arguments: dict[str, Any], expected: str
) -> None:
    action = understood("file_editor", {"path": "/w/a", **arguments}).action
    assert isinstance(action, FileEditorAction)
    assert action.command == expected


@pytest.mark.parametrize("key", ["file_path", "filePath", "filepath", "filename", "PATH", "File"])
def test_other_words_for_the_path(key: str) -> None:
    action = understood("file_editor", {"command": "view", key: "/w/a"}).action
    assert action == FileEditorAction(command="view", path="/w/a")


def test_other_word_beside_the_right_one_is_an_unknown_argument() -> None:
    text = refused("file_editor", {"command": "view", "path": "/w/a", "file_path": "/w/b"})
    assert "file_path" in text


@pytest.mark.parametrize("lines", ["[1, 2]", "[1, 2]</parameter>", "[1,\n2] "])
def test_list_as_text(lines: str) -> None:
    action = understood(
        "file_editor", {"command": "view", "path": "/w/a", "view_range": lines}
    ).action
    assert action == FileEditorAction(command="view", path="/w/a", view_range=[1, 2])


def test_text_in_pieces_is_joined_and_text_like_json_stays_text() -> None:
    pieces = {"command": "create", "path": "/w/a", "file_text": ["a\n", "b\n"]}
    whole = {"command": "create", "path": "/w/a", "file_text": '["a", "b"]'}
    for given, expected in ((pieces, "a\nb\n"), (whole, '["a", "b"]')):
        action = understood("file_editor", given).action
        assert isinstance(action, FileEditorAction) and action.file_text == expected


@pytest.mark.parametrize("timeout", [5, "5", " 5.0 "])
def test_number_as_text(timeout: Any) -> None:
    event = understood("terminal", {"command": "ls", "timeout": timeout, "is_input": "False"})
    assert event.action == TerminalAction(command="ls", timeout=5)


def test_choice_in_other_letters() -> None:
    action = understood("file_editor", {"command": "STR-Replace", "path": "/w/a", "old_str": "a"})
    assert isinstance(action.action, FileEditorAction)
    assert action.action.command == "str_replace"
    assert "command" in refused("file_editor", {"command": "paint", "path": "/w/a"})


WRITE_AND_TEST = [TaskItem(title="write"), TaskItem(title="test", status="in_progress")]


@pytest.mark.parametrize(
    "tasks",
    [
        ["write", {"title": "test", "status": "In Progress"}],
        '["write", {"title": "test", "status": "in_progress"}]',
        ['{"title": "write"}', '{"title": "test", "status": "in-progress"}'],
        '[{"title": "write", "notes": null}, {"title": "test", "status": "IN_PROGRESS"}]</x>',
    ],
)
def test_tasks_in_every_form_that_can_be_read(tasks: Any) -> None:
    action = understood("task_tracker", {"command": "plan", "task_list": tasks}).action
    assert action == TaskTrackerAction(command="plan", task_list=WRITE_AND_TEST)


def test_one_task_without_its_list_and_other_words_for_the_list() -> None:
    for name, tasks in (("task_list", {"title": "write"}), ("todos", ["write"])):
        action = understood("task_tracker", {"command": "plan", name: tasks}).action
        assert isinstance(action, TaskTrackerAction)
        assert [task.title for task in action.task_list] == ["write"]


def test_tasks_without_a_command_are_a_plan() -> None:
    action = understood("task_tracker", {"task_list": ["write"]}).action
    assert action == TaskTrackerAction(command="plan", task_list=[TaskItem(title="write")])
    assert understood("task_tracker", "").action == TaskTrackerAction(command="view")


PATCH = "*** Begin Patch\n*** Update File: Makefile\n rm -rf dist\n+x\n*** End Patch"


def test_patch_that_comes_as_its_text_or_as_a_program() -> None:
    tools = {name: tool_named(name) for name in ("terminal", "apply_patch")}
    for name, arguments in (
        ("apply_patch", PATCH),
        ("shell", json.dumps({"command": ["apply_patch", PATCH]})),
        ("terminal", json.dumps({"command": ["apply_patch", PATCH], "summary": "s"})),
        ("apply_patch", json.dumps({"command": ["apply_patch", PATCH]})),
    ):
        event, *errors = events(name, arguments, tools)
        assert not errors and event.action == ApplyPatchAction(patch=PATCH)
        assert event.tool_name == event.tool_call.name == "apply_patch"


def test_lines_of_a_patch_are_never_run() -> None:
    line = command("shell", {"command": ["apply_patch", f"{PATCH}\n"]})
    assert shlex.split(line) == ["apply_patch", f"{PATCH}\n"]


def test_tasks_that_cannot_be_read_are_named() -> None:
    assert "task_list.0.title" in refused(
        "task_tracker", {"command": "plan", "task_list": [{"name": "write"}]}
    )


def test_json_before_something_else() -> None:
    assert first_json('{"a": "x\ny"}') == {"a": "x\ny"}
    for broken in ("", "no", "[1, 2", '{"a": "}"', "[" * 100_000 + "]" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            first_json(broken)
