"""`oh-kernel run`: one task without a notebook, with all that a script around it relies on."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.store import EventStore

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


def words_of(folder: Folder, *words: str) -> list[str]:
    flags = ["-C", str(folder.work), "--store-path", str(folder.store)]
    return [*OH_KERNEL, "run", *flags, "--model", f"scripted:{folder.script}", *words]


def stored_kinds(folder: Folder) -> list[str]:
    with EventStore.open(folder.store) as store:
        return [event.kind for event in store.iterate(store.conversations()[0].id)]


@pytest.mark.parametrize("form", ["--json", "--max-steps=5"])
def test_reader_that_has_seen_enough_ends_nothing(tmp_path: Path, form: str) -> None:
    folder = Folder(tmp_path, {"tool_calls": [call("terminal", command="touch it")]})
    with subprocess.Popen(
        words_of(folder, form, "go"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read().decode().count("\n") <= 1  # the script has run out
        process.wait(DEADLINE_S)
    assert (folder.work / "it").exists()


def test_output_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"content": "done"})
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            words_of(folder, "go"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1 and "No space left" in run.stderr
    assert "MessageEvent" in stored_kinds(folder)


def test_closed_streams_are_no_harm(tmp_path: Path) -> None:
    python = "import os; os.write(1, b'x' * 9999); os.system('echo child')"
    folder = Folder(tmp_path, {"tool_calls": [call("ipython", code=python)]}, {"content": "done"})
    line = shlex.join(words_of(folder, "go"))
    run = subprocess.run(["bash", "-c", f"{line} <&- >&- 2>&-"], timeout=DEADLINE_S)
    assert run.returncode == 0
    assert stored_kinds(folder).count("ObservationEvent") == 1
    with EventStore.open(folder.store) as store:
        assert store.repair_report is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "step",
    [
        call("terminal", command="echo $$ > pid; sleep 1000"),
        call("ipython", code="import time, os; open('pid', 'w').write(f'{os.getpid()}\\n')\n"
                             "while True: time.sleep(1)"),
    ],
    ids=["terminal", "ipython"],
)  # fmt: skip
def test_run_that_is_told_to_go_ends_in_order(
    tmp_path: Path, number: signal.Signals, step: dict[str, Any]
) -> None:
    folder = Folder(tmp_path, {"tool_calls": [step]}, {"content": "went on"})
    process = subprocess.Popen(
        words_of(folder, "go"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pid_file, deadline = folder.work / "pid", time.monotonic() + DEADLINE_S
    while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (128 + number, "oh-kernel: stopped\n")
    kinds = stored_kinds(folder)
    assert kinds.count("ActionEvent") == 1 and kinds[-2] == "InterruptEvent"
    assert not psutil.pid_exists(int(pid_file.read_text()))


def test_task_of_bytes_that_are_no_text_is_done(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"content": "done"})
    run = subprocess.run(
        [*map(os.fsencode, words_of(folder, "--json")), b"g\xff\xfeo"], capture_output=True
    )
    assert run.returncode == 0, run.stderr
    assert "g\ufffd\ufffdo" in run.stdout.decode()
