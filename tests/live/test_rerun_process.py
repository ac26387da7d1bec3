"""Recorded actions are carried out again in another folder; what differs is told call by call."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.rerun import Rerun
from oh_kernel.conversation.rerun_report import RerunReport
from oh_kernel.errors import ConversationError
from oh_kernel.loop import run_blocking
from oh_kernel.settings import load_settings
from oh_kernel.views.rerun import render_rerun
from tests.conversations import Scripted, call, calls, say


def shell(command: str) -> dict[str, Any]:
    return call("terminal", {"command": command})


def recorded(folder: Path, *turns: dict[str, Any], **options: Any) -> Scripted:
    """A conversation in `folder`/work that made these calls."""
    (folder / "work").mkdir()
    options.setdefault("policy", "never")
    scripted = Scripted(folder / "work", [*turns, say("done")], **options)
    scripted.conversation.send_message("go")
    scripted.conversation.run()
    return scripted


def rerun_here(scripted: Scripted, workspace: Path, **options: Any) -> RerunReport:
    """A rerun in this process, which touches no Python."""
    workspace.mkdir(exist_ok=True)
    conversation = scripted.conversation
    rerun = Rerun(conversation.workspace, workspace, load_settings(), **options)
    try:
        return run_blocking(rerun(conversation.id, conversation.events))
    finally:
        rerun.close()


def outcomes(report: RerunReport) -> list[str]:
    return [one.outcome for one in report.calls]


def test_the_same_again_in_a_fresh_folder(tmp_path: Path) -> None:
    path = str(tmp_path / "work" / "a.txt")
    turns = [
        calls(call("file_editor", {"command": "create", "path": path, "file_text": "one\ntwo\n"})),
        calls(call("file_editor", {"command": "view", "path": path})),
        calls(call("task_tracker", {"command": "view"}), call("think", {"thought": "hm"})),
    ]
    turns.insert(1, calls(shell(f"pwd; wc -l {path}; date; date +%T; mktemp -u")))
    with recorded(tmp_path, *turns) as scripted:
        report = rerun_here(scripted, tmp_path / "fresh")
    assert report.drifted == (), str(render_rerun(report).text)
    assert outcomes(report) == ["same"] * 5
    assert (tmp_path / "fresh" / "a.txt").read_text() == "one\ntwo\n"
    assert (report.workspace, report.recorded_workspace) == (
        str(tmp_path / "fresh"),
        str(tmp_path / "work"),
    )


def test_a_difference_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("1\n")
    read = f"cat {tmp_path}/counter"
    with recorded(tmp_path, calls(shell(read), shell("echo fixed")), calls(shell(read))) as one:
        (tmp_path / "counter").write_text("2\n")
        report = rerun_here(one, tmp_path / "fresh")
    assert outcomes(report) == ["differs", "same", "differs"]
    assert "-1" in report.calls[0].detail and "+2" in report.calls[0].detail
    assert report.headline == "3 calls: 1 same, 2 differs"


def test_an_exit_code_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    with recorded(tmp_path, calls(shell(f"test -e {tmp_path}/there"))) as one:
        (tmp_path / "there").unlink()
        report = rerun_here(one, tmp_path / "fresh")
    assert outcomes(report) == ["differs"]
    assert "exit code 1" in report.calls[0].detail


def test_what_was_not_allowed_or_not_carried_out_is_skipped(tmp_path: Path) -> None:
    turns = [
        calls(call("nosuch", {}), call("terminal", {"nonsense": 1})),
        calls(shell("touch rejected")),
    ]
    with recorded(tmp_path, *turns, policy="always") as one:
        assert one.conversation.status == "waiting_for_confirmation"
        waits = rerun_here(one, tmp_path / "waiting")
        one.conversation.reject("not that")
        one.conversation.run()
        report = rerun_here(one, tmp_path / "fresh")
    assert outcomes(waits) == outcomes(report) == ["skipped"] * 3
    assert waits.calls[-1].detail == "it has no result in the recording"
    assert report.calls[-1].detail == "it was rejected: not that"
    assert list((tmp_path / "fresh").iterdir()) == []


def test_risky_calls_are_skipped_unless_allowed(tmp_path: Path) -> None:
    command = "git push --force"
    with recorded(tmp_path, calls(shell(command), shell("echo after"))) as one:
        careful = rerun_here(one, tmp_path / "a")
        daring = rerun_here(one, tmp_path / "b", allow_risky=True)
    assert outcomes(careful) == ["skipped", "same"]
    assert careful.calls[0].detail.startswith("it is risky: ")
    assert daring.calls[0].outcome != "skipped"


def test_the_new_folder_stands_apart(tmp_path: Path) -> None:
    with recorded(tmp_path, calls(shell("true"))) as one:
        work = one.conversation.workspace
        for folder in (work, work / "inside", tmp_path):
            with pytest.raises(ConversationError, match="is not apart from"):
                rerun_here(one, folder)
            with pytest.raises(ConversationError, match="is not apart from"):
                one.conversation.rerun(folder)


def test_from_a_terminal_and_from_python(tmp_path: Path) -> None:
    """Each in a process of its own, in which the agent's Python runs."""
    code = "import os; x = globals().get('x', 0) + 1; print(x, os.getcwd())"
    with recorded(tmp_path, calls(call("ipython", {"code": code}), shell("ls"))) as one:
        report = one.conversation.rerun(tmp_path / "fresh")
        assert outcomes(report) == ["same", "same"], str(render_rerun(report).text)
        ask = [sys.executable, "-m", "oh_kernel.cli", "rerun", one.conversation.id[:8]]
        ask += ["--workspace", str(tmp_path / "more"), "--store-path"]
        ask.append(str(one.conversation._core.store.path))
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "unexpected").touch()
        done = subprocess.run(ask, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("2 calls: 1 same, 1 differs\n")
        assert "+unexpected" in done.stdout
        shutil.rmtree(tmp_path / "more")
        done = subprocess.run([*ask, "--json"], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert outcomes(RerunReport.model_validate_json(done.stdout)) == ["same", "same"]
        missing = [*ask[:4], "ffffffff", *ask[5:]]
        done = subprocess.run(missing, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert "No stored conversation begins with ffffffff" in done.stderr
