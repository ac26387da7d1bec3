"""Is the work judged before it counts as done?"""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.agents import tested
from oh_kernel.conversation.finish_check import admits_trouble
from oh_kernel.events import ActionEvent, MessageEvent
from oh_kernel.settings import load_settings
from oh_kernel.views.static import render_turn
from tests.conversations import Scripted, call, calls, say

TEST = """\
import a, unittest
class Test(unittest.TestCase):
    def test_a(self): self.assertEqual(a.x, 1)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "test_a.py").write_text(TEST, "utf-8")
    (folder / "a.py").write_text("x = 0\n", "utf-8")
    return folder


def scripted(workspace: Path, turns: list[Any], **flags: Any) -> Scripted:
    settings = load_settings({"policy": "never", **flags}, environ={})
    tools = ["terminal", "file_editor", "finish"]
    return Scripted(workspace, turns, settings=settings, tools=tools)


def told(one: Scripted) -> list[str]:
    return [
        event.llm_message.text
        for event in one.conversation.events
        if isinstance(event, MessageEvent) and event.source == "environment"
    ]


def runs(command: str = "python -m unittest -q test_a") -> dict[str, Any]:
    return calls(call("terminal", {"command": command}))


def edits(new: int) -> dict[str, Any]:
    text = {"old_str": f"x = {new - 1}", "new_str": f"x = {new}"}
    path = "@WORKSPACE@/a.py"
    return calls(call("file_editor", {"command": "str_replace", "path": path, **text}))


def finishes(text: str = "All is well.") -> dict[str, Any]:
    return calls(call("finish", {"message": text}))


# The end of a turn with failed tests


@pytest.mark.parametrize("ending", [finishes(), say("All is well.")], ids=["finish", "reply"])
def test_success_after_failed_tests_is_answered_once(
    workspace: Path, ending: dict[str, Any]
) -> None:
    with scripted(workspace, [runs(), ending, ending]) as one:
        assert one.ask() == "finished"
        [text] = told(one)
        assert "the last test run failed: python -m unittest" in text
        assert one.llm.requests[-1][-1].role == "user"
        assert "The agent is told: Before this counts" in render_turn(one.conversation.events).text


def test_an_edit_after_the_failure_is_told_of(workspace: Path) -> None:
    with scripted(workspace, [runs(), edits(1), finishes(), runs(), finishes()]) as one:
        assert one.ask() == "finished"
        assert "not repeated after your last edit" in told(one)[0]
        assert len(told(one)) == 1


def test_honest_answers_and_passing_tests_are_left_alone(workspace: Path) -> None:
    with scripted(workspace, [runs(), say("One test still fails: x is 0.")]) as one:
        assert one.ask() == "finished" and told(one) == []
    with scripted(workspace, [edits(1), runs(), finishes()]) as one:
        assert one.ask() == "finished" and told(one) == []


def test_what_failed_in_an_older_turn_is_not_held_against_this_one(workspace: Path) -> None:
    with scripted(workspace, [runs(), say("It fails."), say("Hello.")]) as one:
        assert (one.ask(), one.ask()) == ("finished", "finished")
        assert told(one) == []


@pytest.mark.parametrize(
    ("answer", "admits"),
    [
        ("2 of 5 tests fail.", True),
        ("I could not make it work.", True),
        ("I fixed a.py, but one test still fails.", True),
        ("The tests don't pass yet.", True),
        ("Fixed the failing test.", False),
        ("All tests pass, no failures.", False),
        ("Done. The error is resolved.", False),
        ("", False),
    ],
)
def test_what_counts_as_saying_that_it_fails(answer: str, admits: bool) -> None:
    assert admits_trouble(answer) is admits


TESTS = (
    *("pytest", "FOO=1 pytest -x", "python3 -m pytest", "python -m unittest", ".venv/bin/pytest"),
    *("cd a && uv run pytest", "poetry run python -m pytest", "timeout 60 pytest | tail -5"),
    *("tox -e py", "nox", "npm test", "npm run test:unit", "yarn test", "npx jest", "cargo test"),
    *("go test ./...", "make -j4 check", "coverage run -m pytest", "python test_a.py"),
    "for i in 1 2; do pytest; done",
)
NO_TESTS = (
    *("pip install pytest", "grep -r pytest .", "cat test_a.py", "echo pytest", "make", "npm ci"),
    *("pytest --version", "pytest --collect-only", "go build", "which pytest", "python train.py"),
)


def test_which_commands_run_tests() -> None:
    assert [command for command in TESTS if not tested.runs_tests(command)] == []
    assert [command for command in NO_TESTS if tested.runs_tests(command)] == []


# Critics


def results(one: Scripted) -> list[tuple[float, str | None]]:
    return [
        (event.critic_result.score, event.critic_result.message)
        for event in one.conversation.events
        if isinstance(event, ActionEvent | MessageEvent) and event.critic_result
    ]


def test_there_is_no_critic_unless_one_is_chosen(workspace: Path) -> None:
    with scripted(workspace, [say("done")]) as one:
        assert one.ask() == "finished" and results(one) == []


def test_the_judgement_stands_on_the_stored_event(workspace: Path) -> None:
    with scripted(workspace, [finishes()], critic="pass") as one:
        assert one.ask() == "finished"
        [(score, _)] = results(one)
        assert score == 1.0
        id_ = one.conversation.id
    with scripted(workspace, []) as other, Scripted(workspace, [], conversation_id=id_) as again:
        assert other.conversation.events == ()
        assert len(results(again)) == 1
        assert "Judged 1.00 of 1." in render_turn(again.conversation.events).html


def test_a_reply_without_finish_is_sent_back_so_many_times(workspace: Path) -> None:
    turns = [say("a"), runs("true"), say("b"), runs("echo"), say("c"), say("never asked")]
    with scripted(workspace, turns, critic="finished", critic_rounds=2) as one:
        assert one.ask() == "finished"
        assert [score for score, _ in results(one)] == [0.0, 0.0, 0.0]
        assert len(told(one)) == 2 and "0.00 of 1" in told(one)[0]
        assert one.conversation.answer == "c"


def test_finishing_pleases_it(workspace: Path) -> None:
    with scripted(workspace, [say("a"), finishes("b")], critic="finished") as one:
        assert one.ask() == "finished"
        assert [score for score, _ in results(one)] == [0.0, 1.0]


def test_changes_are_seen_in_the_log_and_by_git(workspace: Path) -> None:
    with scripted(workspace, [say("a"), edits(1), say("b")], critic="changes") as one:
        assert one.ask() == "finished"
        assert [score for score, _ in results(one)] == [0.0, 1.0]
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)  # all files are new to it
    with scripted(workspace, [say("a")], critic="changes") as one:
        assert one.ask() == "finished"
        assert [score for score, _ in results(one)] == [1.0]


def test_tests_have_to_pass_after_the_last_edit(workspace: Path) -> None:
    turns = [finishes("a"), runs(), finishes("It fails."), edits(1), runs(), finishes("c")]
    with scripted(workspace, turns, critic="tests") as one:
        assert one.ask() == "finished"
        assert [score for score, _ in results(one)] == [0.5, 0.0, 1.0]
        assert one.conversation.answer == "c"


def as_judge(*judgements: str, work: list[str]) -> Any:
    """A model that works and judges its own work; each judgement is asked for in a new history."""
    left = list(judgements)

    def answer(messages: Any) -> dict[str, Any]:
        if "You review" in messages[0].text:
            return say(left.pop(0))
        return say(work[sum(message.role == "assistant" for message in messages)])

    return answer


def test_a_model_judges_and_its_use_is_accounted_for(workspace: Path) -> None:
    judgements = ('Here: {"score": 0.2, "message": "x is missing"} so far', '{"score": 0.9}')
    model = as_judge(*judgements, work=["first try", "second try"])
    with scripted(workspace, [model] * 4, critic="model") as one:
        assert one.ask("add x") == "finished"
        assert results(one) == [(0.2, "x is missing"), (0.9, "")]
        assert one.conversation.answer == "second try"
        uses = one.conversation.stats.usage_to_metrics
        assert len(uses["critic"].token_usages) == 2
        assert (one.conversation.metrics.calls, one.conversation.metrics.steps) == (4, 2)
        asked = one.llm.requests[1][0].text
        assert "<task>\nadd x\n</task>" in asked and "first try" in asked


def test_a_judge_that_says_nothing_usable_stops_nobody(workspace: Path) -> None:
    model = as_judge("I like it", work=["done"])
    with scripted(workspace, [model] * 2, critic="model") as one:
        assert one.ask() == "finished"
        assert results(one) == []
