"""What is shown of each tool's calls: a line that says enough, and tasks as a checklist."""

from typing import Any

import pytest

from oh_kernel.events import Event
from oh_kernel.tools.task_tracker import TaskItem
from oh_kernel.views.blocks import heading_text
from oh_kernel.views.calls import Call
from oh_kernel.views.checklist import render_checklist
from oh_kernel.views.static import render_turn
from oh_kernel.views.turn import Turn
from tests.unit.shown import Shown
from tests.unit.turns import action, failed, finished, observed

PLAN: list[dict[str, Any]] = [
    {"title": "read <b>it</b>", "status": "done"},
    {"title": "mend it", "status": "in_progress", "notes": "first the\x1b[31m test"},
    {"title": "run it", "status": "todo"},
]


def heading(tool: str, arguments: dict[str, Any], **answer: Any) -> str:
    """The line of a call that went well, without its time."""
    call = action(tool, arguments)
    (block,) = Turn.of([call, observed(call, "text", **answer)]).blocks
    assert isinstance(block, Call)
    return heading_text(block)


@pytest.mark.parametrize(
    ("tool", "arguments", "answer", "expected"),
    [
        (
            "glob",
            {"pattern": "**/*.py", "path": "/w/src"},
            {"files": ["/w/src/a.py"], "pattern": "**/*.py", "search_path": "/w/src"},
            "✓ glob: **/*.py in src (ok, 1 file)",
        ),
        (
            "grep",
            {"pattern": "def f"},
            {
                "matches": [f"/w/{n}.py" for n in range(100)],
                "pattern": "def f",
                "search_path": "/w",
                "truncated": True,
            },
            "✓ grep: def f (ok, 100 files, cut)",
        ),
        (
            "list_directory",
            {"dir_path": "/w/data"},
            {"dir_path": "/w/data", "total_count": 3},
            "✓ list_directory: data (ok, 3 entries)",
        ),
        ("read_file", {"file_path": "/w/a.py"}, {"file_path": "/w/a.py"}, "✓ read_file: a.py (ok)"),
        (
            "write_file",
            {"file_path": "/w/a.py", "content": "x\n"},
            {"file_path": "/w/a.py", "is_new_file": True, "new_content": "x\n"},
            "✓ write_file: a.py (ok, new file, +1 \u22120)",
        ),
        (
            "edit",
            {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"},
            {"file_path": "/w/a.py", "old_content": "x\n", "new_content": "y\n"},
            "✓ edit: a.py (ok, +1 \u22121)",
        ),
        (
            "planning_file_editor",
            {"command": "view", "path": "/w/PLAN.md"},
            {"command": "view", "path": "/w/PLAN.md"},
            "✓ planning_file_editor: view PLAN.md (ok)",
        ),
        (
            "notebook_editor",
            {"command": "view", "path": "/w/a.ipynb", "cell": 3},
            {"command": "view", "path": "/w/a.ipynb"},
            "✓ notebook_editor: view cell 3 of a.ipynb (ok)",
        ),
        (
            "task_tracker",
            {"command": "plan", "task_list": PLAN},
            {"command": "plan", "task_list": PLAN},
            "✓ task_tracker: plan 3 tasks (ok, 1 of 3 done)",
        ),
    ],
)
def test_line_of_a_call_says_what_for_and_how_much(
    tool: str, arguments: dict[str, Any], answer: dict[str, Any], expected: str
) -> None:
    assert heading(tool, arguments, **answer) == expected


def test_what_a_search_found_is_shown_once_and_its_arguments_are_not() -> None:
    call = action("glob", {"pattern": "*.py"})
    text = "Found 1 file(s) matching pattern '*.py' in '/w':\n/w/a.py"
    answer = observed(call, text, files=["/w/a.py"], pattern="*.py", search_path="/w")
    shown = render_turn([call, answer, finished()])
    assert text in shown.text and '"pattern"' not in shown.text
    assert '"pattern"' not in Shown(shown.html).text


def test_search_that_failed_shows_what_was_asked() -> None:
    call = action("glob", {"pattern": "*.py"})
    shown = render_turn([call, failed(call, "no such folder")])
    assert '"pattern": "*.py"' in shown.text and "no such folder" in shown.text


# Tasks


def planned(tasks: list[dict[str, Any]]) -> list[Event]:
    call = action("task_tracker", {"command": "plan", "task_list": tasks})
    return [call, observed(call, "updated", command="plan", task_list=tasks)]


def test_tasks_are_shown_with_boxes_and_words_in_every_form() -> None:
    shown = render_checklist([TaskItem.model_validate(task) for task in PLAN])
    assert shown.text.splitlines() == [
        "[x] read <b>it</b>",
        "[>] mend it",
        "    first the\u241b[31m test",
        "[ ] run it",
    ]
    assert Shown(shown.html).text == (
        "☑read <b>it</b>▶mend it · in progressfirst the\u241b[31m test☐run it"
    )
    assert shown.markdown.splitlines()[0].startswith("- [x] read ")
    assert "*(in progress)*" in shown.markdown


def test_list_stands_open_and_only_the_last_one_of_a_turn() -> None:
    done = [{**task, "status": "done"} for task in PLAN]
    shown = render_turn([*planned(PLAN), *planned(done), finished()])
    assert Shown(shown.html).opened == [False, True]
    assert "[>] mend it" not in shown.text
    assert shown.text.count("[x] mend it") == 1
    assert "1 of 3 done" in shown.text and "3 of 3 done" in shown.text


def test_list_is_shown_while_its_call_runs() -> None:
    (call, _) = planned(PLAN)
    (block,) = Turn.of([call]).blocks
    assert isinstance(block, Call)
    assert heading_text(block) == "… task_tracker: plan 3 tasks (running, 1 of 3 done)"


def test_list_that_was_refused_is_not_shown_as_one() -> None:
    (call, _) = planned(PLAN)
    shown = render_turn([call, failed(call, "no")])  # type: ignore[arg-type]  # it is the call
    assert "[>] mend it" not in shown.text and "1 of 3 done" not in shown.text


def test_no_tasks_are_words() -> None:
    call = action("task_tracker", {})
    answer = observed(call, "No task list found.", command="view")
    assert "No task list found." in render_turn([call, answer]).text


# Answers in a given form


def test_answer_as_data_stands_before_the_answer() -> None:
    call = action("finish", {"message": "Two.", "structured_output": {"count": 2}})
    shown = render_turn([call, observed(call, "Two."), finished()])
    assert shown.text.index('"count": 2') < shown.text.index("Two.")
    assert Turn.of([call]).answer == "Two."
