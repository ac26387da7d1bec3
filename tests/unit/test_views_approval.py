"""A person is told what is asked, and only a plain yes is a yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_kernel.conversation.confirmation import Decision, Question
from oh_kernel.events import SecurityRisk
from oh_kernel.tools.base import Preview
from oh_kernel.views import approval
from tests.unit.turns import action


@pytest.mark.parametrize("text", ["y", "Y", " yes ", "Yes.", "approve", "accept"])
def test_a_bare_word_of_approval_approves(text: str) -> None:
    assert approval.read_answer(text) == Decision(approved=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n", ""),
        ("No.", ""),
        ("no, keep the file", "keep the file"),
        ("reject: too big", "too big"),
        ("yes, but keep a copy", "yes, but keep a copy"),
        ("yes please delete everything else", "yes please delete everything else"),
        ("now use pandas", "now use pandas"),
        ("ok let us look at the data first", "ok let us look at the data first"),
        ("yy", "yy"),
    ],
)
def test_everything_else_refuses_and_the_words_are_kept(text: str, reason: str) -> None:
    assert approval.read_answer(text) == Decision(approved=False, reason=reason)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_answer_is_asked_again(text: str) -> None:
    assert approval.read_answer(text) is None


def test_the_question_about_a_command_says_what_why_and_how_risky() -> None:
    call = action("terminal", {"command": "rm -r build\x1b[2J"}, summary="clean up")
    question = Question(call, SecurityRisk.HIGH, ("deletes files",))
    text = approval.question_text(question)
    assert text.splitlines() == [
        "The agent wants to run: the command rm -r build␛[2J",
        "Why: clean up",
        "Risk: high (deletes files)",
        "",
        "rm -r build␛[2J",
    ]


def test_the_question_about_an_edit_shows_the_diff() -> None:
    call = action("file_editor", {"command": "str_replace", "path": "/w/a.py"})
    preview = Preview(Path("/w/a.py"), "x = 1\n", "x = 2\n")
    question = Question(call, SecurityRisk.UNKNOWN, ("the policy asks for every call",), (preview,))
    text = approval.question_text(question)
    assert "edit of /w/a.py" in text and "-x = 1\n+x = 2" in text
    assert "Risk: not known (the policy asks for every call)" in text
    assert approval.code(question) == ""
    assert [diff.headline for diff in approval.previews(question)] == ["+1 −1"]


def test_the_question_about_a_patch_shows_every_file() -> None:
    call = action("apply_patch", {"patch": "*** Begin Patch\n*** End Patch"})
    edits = (
        Preview(Path("/w/a.py"), "x = 1\n", "x = 2\n", Path("/w/lib/a.py")),
        Preview(Path("/w/b.py"), None, "y\n"),
    )
    question = Question(call, SecurityRisk.UNKNOWN, (), edits)
    text = approval.question_text(question)
    assert "edit of /w/a.py, /w/b.py" in text and "+x = 2" in text and "+y" in text
    shown = [(diff.path, diff.headline) for diff in approval.previews(question, Path("/w"))]
    assert shown == [("a.py → lib/a.py", "+1 −1"), ("b.py", "new file, +1 −0")]


def test_a_long_command_is_shortened_in_the_question_only() -> None:
    call = action("ipython", {"code": "x = 1\n" * 500})
    question = Question(call, SecurityRisk.MEDIUM)
    assert "lines left out" in approval.question_text(question)
    assert approval.code(question) == "x = 1\n" * 500


def test_the_question_about_any_other_call_shows_all_that_is_asked() -> None:
    call = action("grep", {"pattern": "password", "path": "/w/lib"})
    text = approval.question_text(Question(call, SecurityRisk.UNKNOWN, ()))
    assert "The agent wants to run: grep /w/lib" in text
    assert '"pattern": "password"' in text
    tasks = [{"title": "Read the data"}]
    call = action("task_tracker", {"command": "plan", "task_list": tasks})
    assert approval.code(Question(call, SecurityRisk.UNKNOWN, ())) == "[ ] Read the data"
