"""`oh-kernel run`: one task without a notebook, with all that a script around it relies on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OH_KERNEL = [sys.executable, "-m", "oh_kernel.cli"]
DEADLINE_S = 60


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


class Folder:
    """A workspace with a script beside it, and a store of its own."""

    def __init__(self, path: Path, *turns: dict[str, Any]) -> None:
        self.work = path / "work"
        self.work.mkdir()
        self.script = path / "script.json"
        self.script.write_text(json.dumps(turns))
        self.store = path / "events.sqlite"

    def run(
        self, *words: str, command: str = "run", text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        flags = ["-C", str(self.work), "--store-path", str(self.store)]
        if not any(word.startswith("--model") for word in words):
            flags += ["--model", f"scripted:{self.script}"]
        return subprocess.run(
            [*OH_KERNEL, command, *flags, *words],
            capture_output=True,
            text=True,
            input=text,
            timeout=DEADLINE_S,
        )


def events(run: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_json_prints_events_and_nothing_else(tmp_path: Path) -> None:
    python = 'import os\nx = 6\nprint("from python")\nos.system("echo from a child")\nx * 7'
    folder = Folder(
        tmp_path,
        {"tool_calls": [call("ipython", code=python)]},
        {"tool_calls": [call("ipython", code="x + 1")]},
        {"tool_calls": [call("terminal", command="pwd")]},
        {"content": "42"},
    )
    run = folder.run("--json", "compute")
    assert run.returncode == 0, run.stderr
    kinds = [event["kind"] for event in events(run)]
    assert kinds.count("ActionEvent") == kinds.count("ObservationEvent") == 3
    text = run.stdout
    assert "from python" in text and "42" in text
    assert str(folder.work) in text
    exported = subprocess.run(
        [*OH_KERNEL, "export", "--store-path", str(folder.store)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert exported.stdout == run.stdout


def test_task_from_stdin_and_transcript_on_stdout(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"content": "Hello there."})
    run = folder.run("-", text="Say hello\n")
    assert run.returncode == 0, run.stderr
    assert "Hello there." in run.stdout
    assert run.stderr == ""


RISKY = ({"tool_calls": [call("terminal", command="rm -rf data")]}, {"content": "done"})


def test_a_risky_call_is_refused_when_nobody_is_there(tmp_path: Path) -> None:
    folder = Folder(tmp_path, *RISKY)
    (folder.work / "data").mkdir()
    run = folder.run("--json", "clean up")
    assert run.returncode == 0
    assert "1 call was refused" in run.stderr
    assert "UserRejectObservation" in [event["kind"] for event in events(run)]
    assert (folder.work / "data").exists()


def test_it_fails_instead_when_told_to(tmp_path: Path) -> None:
    folder = Folder(tmp_path, *RISKY)
    (folder.work / "data").mkdir()
    run = folder.run("--unattended", "fail", "clean up")
    assert run.returncode == 3
    assert "terminal waits for a confirmation" in run.stderr
    assert (folder.work / "data").exists()


@pytest.mark.parametrize(("rule", "gone"), [("terminal:rm -rf data", True), ("ipython", False)])
def test_allowed_calls_run_unasked(tmp_path: Path, rule: str, gone: bool) -> None:
    folder = Folder(tmp_path, *RISKY)
    (folder.work / "data").mkdir()
    run = folder.run("--unattended", "allow", "--allow", rule, "clean up")
    assert run.returncode == 0
    assert (folder.work / "data").exists() != gone


def test_failures_exit_1_in_one_line(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"tool_calls": [call("think", thought="hm")]})
    run = folder.run("think")
    assert run.returncode == 1
    assert "has 1 turns" in run.stderr and "Traceback" not in run.stderr
    run = folder.run("--model", "scripted:nothing.json", "think")
    assert run.returncode == 1
    assert "nothing.json cannot be read" in run.stderr
    run = folder.run("--max-steps", "1", "think")
    assert run.returncode == 1


def test_record_then_replay(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path, {"tool_calls": [call("terminal", command="echo hi")]}, {"content": "hi"}
    )
    record = tmp_path / "record.jsonl"
    run = folder.run("-o", str(record), "greet", command="record")
    assert run.returncode == 0, run.stderr
    assert len(record.read_text().splitlines()) == 2
    run = folder.run("--json", "--model", f"replay:{record}", "greet")
    assert run.returncode == 0, run.stderr
    assert "ObservationEvent" in [event["kind"] for event in events(run)]
    again = folder.run("-o", str(record), "greet", command="record")
    assert again.returncode == 1
    assert "is there already" in again.stderr
