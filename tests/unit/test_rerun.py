"""What counts as a difference between a recorded answer and a new one, and how it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_kernel.conversation.rerun import MAX_DIFF_LINES, Steady, diff, moved
from oh_kernel.conversation.rerun_report import RerunCall, RerunReport
from oh_kernel.events import Observation
from oh_kernel.tools.file_editor import FileEditorAction
from oh_kernel.tools.terminal import TerminalAction, TerminalObservation
from oh_kernel.views.rerun import RerunView, render_rerun


def told(text: str) -> Observation:
    """What a command said."""
    return TerminalObservation.from_text(text, command="it")


def test_paths_of_the_recorded_folder_mean_the_new_one() -> None:
    old, new = Path("/w/one"), Path("/elsewhere/two")
    action = TerminalAction(command='cd /w/one && ls "/w/one/a b" /w/one2 /w/one-b /w/one.old /w')
    assert moved(action, old, new) == TerminalAction(
        command='cd /elsewhere/two && ls "/elsewhere/two/a b" /w/one2 /w/one-b /w/one.old /w'
    )
    edit = FileEditorAction(command="view", path='/w/o"ne/é.txt')
    assert moved(edit, Path('/w/o"ne'), new) == FileEditorAction(
        command="view", path="/elsewhere/two/é.txt"
    )
    assert moved(action, Path("/other"), new) is action


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("in /w/a/x", "in /w/b/x"),
        ("2026-01-02T03:04:05Z took 0.31s", "2027-11-12T13:14:15Z took 12.4s"),
        ("<Thing at 0x7f3a2b1c0d10>", "<Thing at 0x7f00aa00bb00>"),
        ("pid 123, PID: 4", "pid 99, PID: 12345"),
        ("[1] 4321\nx", "[2] 99\nx"),
        ("-rw-r--r-- 1 me me 3 Jan  5 12:34 a", "-rw-r--r-- 1 me me 3 Nov 30 2026 a"),
        ("Tue Jan  5 12:34:56 UTC 2027", "Wed Feb 16 01:02:03 UTC 2027"),
        ("real\t0m0.003s", "real\t1m10.100s"),
        ("/tmp/tmp.AbCdEfGhIj /tmp/tmpab12_xyz", "/tmp/tmp.0123456789 /tmp/tmpzz99zz99"),
    ],
)
def test_what_changes_by_itself_is_no_difference(one: str, other: str) -> None:
    before = Steady(Path("/w/a"))(told(one))
    after = Steady(Path("/w/b"))(told(other))
    assert diff(before, after) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("3 passed", "2 passed"), ("Mayor 12", "Mayor 13"), ("x = 1.5", "x = 1.6")],
)
def test_what_does_not_is_one(one: str, other: str) -> None:
    before = Steady(Path("/w/a"))(told(one))
    after = Steady(Path("/w/b"))(told(other))
    assert diff(before, after)


def test_a_long_difference_says_how_much_is_left_out() -> None:
    shown = diff([str(n) for n in range(500)], []).splitlines()
    assert len(shown) == MAX_DIFF_LINES + 1
    assert shown[-1] == "[... 443 more lines of this difference ...]"
    assert len(diff(["x" * 100_000], ["y"])) < 200


def test_a_report_is_shown_in_every_form(tmp_path: Path) -> None:
    told = [
        RerunCall(call_id="1", tool="terminal", asked="echo <b>", outcome="same"),
        RerunCall(
            call_id="2", tool="terminal", asked="x", outcome="differs", detail="-a\n+<b>\x1b"
        ),
        RerunCall(call_id="3", tool="terminal", asked="", outcome="skipped", detail="it is risky"),
    ]
    report = RerunReport(
        conversation_id="c", recorded_workspace="/old", workspace="/new", calls=tuple(told)
    )
    assert str(report).splitlines()[0] == "3 calls: 1 same, 1 differs, 1 skipped"
    shown = RerunView(report)
    assert repr(shown) == (
        "3 calls: 1 same, 1 differs, 1 skipped\n/old → /new\n✓ terminal: echo <b> (same)\n"
        "≠ terminal: x (differs)\n-a\n+<b>␛\n⊘ terminal:  (skipped)\nit is risky"
    )
    html = shown._repr_html_()
    assert "<b>terminal</b> echo &lt;b&gt;" in html and "+&lt;b&gt;␛" in html
    assert "```diff\n-a\n+<b>␛\n```" in render_rerun(report).markdown
    assert RerunReport.model_validate_json(report.model_dump_json()) == report
