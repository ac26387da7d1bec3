"""The same notebook in every front end: the same answers, the same log, no traceback."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from oh_kernel.store import EventStore
from tests.live.agent_kernel import wait_until
from tests.live.kernel_client import PLAIN, running_kernel
from tests.live.terminals import ARGV, Terminal, terminal
from tests.outputs import final_text

ROOT = Path(__file__).resolve().parents[2]
SANITIZE = ROOT / "notebooks" / "nbval.cfg"
DEADLINE_S = 60
LOAD = "%load_ext oh_kernel"
PLOT = """\
import matplotlib.pyplot as plt
from IPython.display import display
figure, axes = plt.subplots()
axes.plot(numbers)
display(figure)
plt.close(figure)"""


def asks(name: str, *, say: str = "", **arguments: Any) -> dict[str, Any]:
    return {"content": say, "tool_calls": [{"name": name, "arguments": arguments}]}


SCRIPT = [
    asks("ipython", code="numbers = [1, 2, 3, 4]\ntotal = sum(numbers)", say="I add them up."),
    asks("terminal", command="echo shell-$((6 * 7))"),
    asks("file_editor", command="create", path="@WORKSPACE@/note.txt", file_text="one\ntwo\n"),
    asks("ipython", code=PLOT),
    asks("finish", message="The sum is ten."),
    {"content": "It was quick."},
]
CELLS = [
    "%%openhands\nAdd the numbers up.",
    "print('total is', total)",
    "%openhands status",
    "usage = %openhands --help",
    "print(repr(usage).splitlines()[0])",
    "%%time\n%%openhands\nWas it quick?",
    "import sys; print('widgets:', sorted({'anywidget', 'ipywidgets'} & set(sys.modules)))",
]
SHOWN = (
    "The sum is ten.",
    "shell-42",
    "<Figure size",
    "total is 10",
    "events, finished.",
    "%%openhands [FLAGS]",
    "It was quick.",
    "Wall time",
    "widgets: []",
    "answers from a file: nothing leaves this machine.",
)
TOOLS = ["ipython", "terminal", "file_editor", "ipython", "finish"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and the environment that every front end's kernel starts with."""
    folder = tmp_path / "work"
    folder.mkdir()
    use_script(tmp_path, monkeypatch, SCRIPT)
    for name, value in {
        "OPENHANDS_STORE_PATH": str(tmp_path / "events.sqlite"),
        "OPENHANDS_POLICY": "never",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "JUPYTER_PATH": str(ROOT / "jupyter-config"),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def use_script(folder: Path, monkeypatch: pytest.MonkeyPatch, script: list[dict[str, Any]]) -> None:
    file = folder / "script.json"
    file.write_text(json.dumps(script))
    monkeypatch.setenv("OPENHANDS_MODEL", f"scripted:{file}")


# The front ends. Each runs the cells in `work` and gives the text that it shows in the end.


def through_jupyter_client(work: Path, argv: list[str] | None = None) -> str:
    options = {"argv": argv} if argv else {}
    with running_kernel(work.parent, cwd=work, **options) as kernel:  # type: ignore[arg-type]
        cells = [LOAD, *CELLS] if argv else CELLS
        results = [kernel.run(cell, deadline_s=DEADLINE_S) for cell in cells]
        assert not [result.errors for result in results if result.errors]
        return "\n".join(final_text(result.messages) for result in results)


def through_stock_kernel(work: Path) -> str:
    return through_jupyter_client(work, PLAIN)


def through_nbclient(work: Path) -> str:
    notebook = new_notebook()
    NotebookClient(notebook, timeout=DEADLINE_S).execute(cwd=str(work))
    nbformat.write(notebook, work.parent / "executed.ipynb")
    return saved_text(notebook)


def through_papermill(work: Path) -> str:
    nbformat.write(new_notebook(), work.parent / "in.ipynb")
    executed = work.parent / "out.ipynb"
    run_module("papermill", "../in.ipynb", str(executed), cwd=work)
    return saved_text(nbformat.read(executed, as_version=4))


def through_nbval(work: Path) -> str:
    """Once to have answers that are reproducible, then again from the start to compare."""
    text = through_nbclient(work)
    (work / "note.txt").unlink()
    for file in work.parent.glob("events.sqlite*"):
        file.unlink()
    notebook = (work.parent / "executed.ipynb").rename(work / "executed.ipynb")
    options = ("--nbval", "--nbval-sanitize-with", str(SANITIZE), "-p", "no:cacheprovider")
    shown = run_module("pytest", *options, "--rootdir", str(work), str(notebook), cwd=work)
    assert f"{len(CELLS)} passed" in shown
    return text


def through_terminal(kind: str) -> Callable[[Path], str]:
    def run(work: Path) -> str:
        with terminal(kind, work) as opened:
            for cell in CELLS:
                opened.run(cell)
        for said in ("The sum is ten.", "✓ terminal: echo", "✓ file_editor: create", "+two"):
            assert opened.shown.count(said) == 1, opened.shown
        assert opened.shown.count("[starting]") == 2
        assert "<div" not in opened.shown and "**" not in opened.shown
        return opened.shown

    return run


FRONT_ENDS = {
    "jupyter_client": through_jupyter_client,
    "nbclient": through_nbclient,
    "papermill": through_papermill,
    "nbval": through_nbval,
    "stock kernel": through_stock_kernel,
    **{kind: through_terminal(kind) for kind in ARGV},
}


def new_notebook() -> nbformat.NotebookNode:
    spec = {"name": "openhands", "display_name": "Python 3 (OpenHands)", "language": "python"}
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})


def saved_text(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    return "".join(
        # A stream comes in pieces of any size.
        output.text if output.output_type == "stream" else f"{output.data.get('text/plain', '')}\n"
        for output in outputs
    )


def run_module(name: str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", name, *arguments],
        cwd=cwd,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stored_kinds(store: Path) -> list[str]:
    """Kinds and tools of the only conversation's events, oldest first."""
    with EventStore.open(store) as opened:
        (info,) = opened.conversations()
        events = list(opened.iterate(info.id))
    return [" ".join([e.kind, *filter(None, [getattr(e, "tool_name", "")])]) for e in events]


STEP = ["LLMCompletionLogEvent", "ActionEvent {}", "ObservationEvent {}"]


def expected_kinds() -> list[str]:
    """What the script leads to, whatever shows it; without the changes of status."""
    steps = [kind.format(tool) for tool in TOOLS for kind in STEP]
    answer = ["MessageEvent", "LLMCompletionLogEvent", "MessageEvent"]
    return ["SystemPromptEvent", "MessageEvent", *steps, *answer]


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_same_notebook_in_every_front_end(name: str, work: Path) -> None:
    shown = FRONT_ENDS[name](work)
    assert not [text for text in SHOWN if text not in shown], shown
    assert not re.search(r"Traceback|Error|Warning", shown), shown
    assert (work / "note.txt").read_text() == "one\ntwo\n"
    kinds = stored_kinds(work.parent / "events.sqlite")
    status = "ConversationStateUpdateEvent"
    assert [kind for kind in kinds if kind != status] == expected_kinds()
    assert kinds.count(status) == 5  # each turn: running, finished; between them idle


@pytest.mark.parametrize("kind", ARGV)
def test_approvals_are_typed_in_a_terminal(
    kind: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_POLICY", "always")
    commands = [asks("terminal", command=f"touch {name}") for name in ("yes", "no", "other")]
    use_script(tmp_path, monkeypatch, [*commands, {"content": "All asked."}])
    with terminal(kind, work) as opened:
        opened.begin("%%openhands\nAsk me.")
        for answer in ("y", "n", "use make instead"):
            opened.wait_for("do instead: ")
            opened.type(answer)
        assert "All asked." in opened.end()
        assert "2" in opened.run("1+1")
    assert sorted(path.name for path in work.iterdir()) == ["yes"]
    kinds = stored_kinds(tmp_path / "events.sqlite")
    assert kinds.count("UserRejectObservation terminal") == 2
    assert "use make instead" in opened.shown
    assert "Traceback" not in opened.shown


SLEEPERS = {
    "bash": asks("terminal", command="touch begun; sleep 100"),
    "python": asks("ipython", code="open('begun', 'w').close()\nimport time; time.sleep(100)"),
}


@pytest.mark.parametrize("sleeper", SLEEPERS)
@pytest.mark.parametrize("kind", ARGV)
def test_ctrl_c_stops_the_agent_in_a_terminal(
    kind: str, sleeper: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_script(tmp_path, monkeypatch, [SLEEPERS[sleeper], {"content": "Here again."}])
    with terminal(kind, work) as opened:
        opened.begin("%%openhands\nSleep.")
        opened.wait_for(r"\(running\)")
        wait_until((work / "begun").exists)
        check_stopped(opened)
        assert "Here again." in opened.run("%%openhands\nGo on.")


@pytest.mark.parametrize("kind", ARGV)
def test_ctrl_c_stops_a_question_in_a_terminal(
    kind: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_POLICY", "always")
    use_script(tmp_path, monkeypatch, [asks("terminal", command="touch never")])
    with terminal(kind, work) as opened:
        opened.begin("%%openhands\nAsk me.")
        opened.wait_for("do instead: ")
        check_stopped(opened)
    assert not list(work.iterdir())


def check_stopped(opened: Terminal) -> None:
    opened.interrupt()
    stopped = opened.end()
    assert stopped.count("stopped by you") == 1
    assert stopped.count("■ ") + stopped.count("✗ ") == 1, stopped  # the call, once
    assert "oh_kernel" not in stopped  # no traceback of ours
    assert "2" in opened.run("1+1")
