"""`oh-kernel demo`: runs anywhere, says whose words it shows, fails when the task is not done."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.notebooks import NOTEBOOKS

DEADLINE_S = 90


def demo(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oh_kernel.cli", "demo"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


def outputs(folder: Path) -> list[dict[str, Any]]:
    notebook = json.loads((folder / "build" / "quickstart.ipynb").read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [output for cell in cells for output in cell["outputs"]]


def test_demo_in_any_folder(tmp_path: Path) -> None:
    run = demo(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    assert "scripted answers" in run.stdout.splitlines()[0]
    for words in ("FAIL: test_median", "+    return (ordered[middle - 1]"):
        assert words in run.stdout
    assert run.stdout.count("door           12.4            83") == 1, "the frame is shown once"
    mimes = {mime for output in outputs(tmp_path) for mime in output.get("data", {})}
    assert {"image/png", "text/html", "text/plain"} <= mimes
    work = tmp_path / "build" / "quickstart_work"
    assert "ordered[middle - 1]" in (work / "stats.py").read_text()
    shipped = (NOTEBOOKS / "quickstart_files" / "stats.py").read_bytes()
    assert (tmp_path / "build" / "quickstart_files" / "stats.py").read_bytes() == shipped
    # The saved notebook shows no call as running, and no error.
    assert "(running)" not in json.dumps(outputs(tmp_path), ensure_ascii=False)
    assert "error" not in [output["output_type"] for output in outputs(tmp_path)]


def test_demo_tells_paths_that_hold_elsewhere(tmp_path: Path) -> None:
    """As after `make -C DIR demo`, even where DIR has a space in its name."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    run = demo(folder)
    line = next(line for line in run.stdout.splitlines() if "oh-kernel lab" in line)
    program, command, notebook = shlex.split(line)
    assert command == "lab" and Path(program).is_absolute() and os.access(program, os.X_OK)
    assert Path(notebook) == folder / "build" / "quickstart.ipynb"


def test_demo_writes_to_its_own_folder_alone(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    folder.mkdir()
    run = demo(folder, HOME=str(home), IPYTHONDIR=str(home / ".ipython"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(home.rglob("*")) == []
    assert (folder / "build" / "ipython").is_dir() and (folder / "build" / "matplotlib").is_dir()


def test_demo_fails_when_the_bug_is_still_there(tmp_path: Path) -> None:
    """The project in the working folder counts; its script here lacks the edit."""
    project = tmp_path / "notebooks"
    shutil.copytree(NOTEBOOKS, project, ignore=shutil.ignore_patterns("quickstart_work"))
    script = project / "quickstart.script.json"
    turns = json.loads(script.read_text("utf-8"))
    for turn in turns:
        for call in turn.get("tool_calls", ()):
            if call["arguments"].get("command") == "str_replace":
                call["arguments"]["new_str"] = call["arguments"]["old_str"] + "# looks fine\n"
    script.write_text(json.dumps(turns), "utf-8")
    run = demo(tmp_path)
    assert run.returncode == 1
    assert "CalledProcessError" in run.stdout
    assert "A cell failed" in run.stderr


def test_demo_with_a_model_says_so(tmp_path: Path) -> None:
    """Also where the model is no good: the first line tells which it was."""
    run = demo(tmp_path, OPENHANDS_MODEL="scripted:nothing.json")
    assert run.stdout.startswith("Demo with the model scripted:nothing.json (OPENHANDS_MODEL).")
    assert run.returncode == 1
