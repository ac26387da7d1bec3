"""The two tools that only speak."""

from pathlib import Path

from oh_kernel.tools.finish import FinishAction, FinishExecutor, FinishTool
from oh_kernel.tools.think import ThinkAction, ThinkExecutor, ThinkTool


def test_think_answers_that_the_thought_is_logged(tmp_path: Path) -> None:
    answer = ThinkExecutor(workspace=tmp_path)(ThinkAction(thought="first the tests"))
    assert answer.text == "Your thought has been logged."
    assert not answer.is_error


def test_finish_gives_the_message_back(tmp_path: Path) -> None:
    answer = FinishExecutor(workspace=tmp_path)(FinishAction(message="All 3 tests pass."))
    assert answer.text == "All 3 tests pass."
    assert not answer.is_error


def test_both_are_read_only_and_ask_for_one_text() -> None:
    for tool, field in ((ThinkTool, "thought"), (FinishTool, "message")):
        parameters = tool.spec().parameters
        assert tool.hints.readOnlyHint
        assert parameters["required"] == [field]
        assert "security_risk" not in parameters["properties"]
