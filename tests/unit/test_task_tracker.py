"""The list of tasks: texts, what is kept, and where it is remembered."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import ObservationEvent
from oh_kernel.tools.task_tracker import (
    TaskItem,
    TaskTrackerAction,
    TaskTrackerExecutor,
    TaskTrackerObservation,
    TaskTrackerTool,
)
from tests.conversations import Scripted, call, calls, say

PLAN: list[dict[str, Any]] = [
    {"title": "fix typo", "status": "done"},
    {"title": "add script", "notes": "new.py", "status": "in_progress"},
    {"title": "run it"},
]
IN_WORDS = (
    "# Task List\n\n1. \u2705 fix typo\n\n2. \U0001f504 add script\n   new.py\n\n3. \u23f3 run it"
)


def plan(*tasks: Any) -> TaskTrackerAction:
    return TaskTrackerAction.model_validate({"command": "plan", "task_list": list(tasks)})


def test_view_is_the_default_and_says_that_there_is_no_list(tmp_path: Path) -> None:
    answer = TaskTrackerExecutor(tmp_path)(TaskTrackerAction())
    assert answer.text == 'No task list found. Use the "plan" command to create one.'
    assert (answer.command, answer.task_list, answer.is_error) == ("view", [], False)


def test_plan_replaces_the_list_and_counts_it(tmp_path: Path) -> None:
    executor = TaskTrackerExecutor(tmp_path)
    executor(plan("old"))
    answer = executor(plan(*PLAN))
    assert answer.text == "Task list has been updated with 3 item(s)."
    assert answer.task_list == [TaskItem.model_validate(task) for task in PLAN]


def test_view_shows_number_state_title_and_notes(tmp_path: Path) -> None:
    executor = TaskTrackerExecutor(tmp_path)
    executor(plan(*PLAN))
    answer = executor(TaskTrackerAction(command="view"))
    assert answer.text == IN_WORDS
    assert [task.status for task in answer.task_list] == ["done", "in_progress", "todo"]


def test_plan_of_nothing_takes_the_list_away(tmp_path: Path) -> None:
    executor = TaskTrackerExecutor(tmp_path)
    executor(plan(*PLAN))
    assert executor(plan()).text == "Task list has been updated with 0 item(s)."
    assert executor(TaskTrackerAction()).text.startswith("No task list found.")


def test_fields_of_a_task_that_are_not_known_are_kept() -> None:
    """Newer versions of the reference give tasks an id."""
    task = TaskItem.model_validate({"title": "x", "id": "7"})
    assert json.loads(task.to_json())["id"] == "7"


def test_no_two_calls_at_a_time_and_nothing_of_it_is_dangerous() -> None:
    assert TaskTrackerExecutor(".").resources(TaskTrackerAction()) is None
    hints = TaskTrackerTool.hints
    assert (hints.readOnlyHint, hints.destructiveHint, hints.openWorldHint) == (False, False, False)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def answers(scripted: Scripted) -> list[TaskTrackerObservation]:
    results = [
        event for event in scripted.conversation.events if isinstance(event, ObservationEvent)
    ]
    given = [event.observation for event in results]
    return [one for one in given if isinstance(one, TaskTrackerObservation)]


def test_list_is_there_when_the_conversation_is_opened_again(work: Path) -> None:
    planned = call("task_tracker", {"command": "plan", "task_list": PLAN})
    turns = [calls(planned), say("planned"), calls(call("task_tracker")), say("seen")]
    with Scripted(work, turns, policy="never") as first:
        assert first.ask() == "finished"
        cid = first.conversation.id
    with Scripted(work, turns, policy="never", conversation_id=cid) as again:
        assert again.ask() == "finished"
        assert answers(again)[-1].text == IN_WORDS
    assert list(work.iterdir()) == []  # the log is the only memory


def test_each_conversation_has_a_list_of_its_own(work: Path) -> None:
    planned = call("task_tracker", {"command": "plan", "task_list": PLAN})
    with Scripted(work, [calls(planned), say("planned")], policy="never") as first:
        first.ask()
    with Scripted(work, [calls(call("task_tracker")), say("seen")], policy="never") as other:
        other.ask()
        assert answers(other)[-1].text.startswith("No task list found.")
