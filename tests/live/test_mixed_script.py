"""One script with everything that goes wrong in it, as a command and as a cell, over real HTTP."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import Event, event_from_json
from oh_kernel.store import EventStore
from tests.conversations import assert_each_call_answered_once
from tests.live.kernel_client import running_kernel
from tests.live.model_server import ModelServer
from tests.outputs import final_text


def turn(*calls: tuple[str, dict[str, Any] | str], say: str = "", **more: Any) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"content": say, "tool_calls": made, **more}


def script(work: Path) -> list[dict[str, Any]]:
    bad = str(work / "bad.txt")
    replace = {"command": "str_replace", "path": bad}
    return [
        turn(("terminal", {"command": "ls -a", "security_risk": "LOW"}), say="I look around."),
        turn(
            ("file_editor", {"command": "view", "path": bad}),
            ("file_editor", {"command": "view", "path": str(work)}),
        ),
        turn(("file_editor", {**replace, "old_str": "teh", "new_str": "the"})),
        turn(
            ("file_editor", {**replace, "old_str": "nope", "new_str": "x"}),
            fail=[{"status": 429, "retry_after": 0.1}],
        ),
        turn(("ipython", {"code": "numbers = [1, 2, 3]\nprint(sum(numbers))"})),
        turn(("ipython", {"code": "1 / 0"})),
        turn(("terminal", {"command": "ls nosuch"}), fail=[{"status": 500}]),
        turn(("terminal", '{"command": "echo unterminated')),
        turn(("nosuchtool", {})),
        turn(("terminal", {"command": "echo x1"}), ("ipython", {"code": "len(numbers)"})),
        turn(("think", {"thought": "All parts are done."})),
        turn(("finish", {"message": "Fixed the typo."}), ("terminal", {"command": "touch late"})),
    ]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "bad.txt").write_text("This is teh file.\n")
    return folder


def environment(server: ModelServer, store: Path, stream: str) -> dict[str, str]:
    return {
        "OPENHANDS_MODEL": "openai:scripted",
        "OPENHANDS_BASE_URL": f"{server.url}/v1",
        "OPENHANDS_API_KEY": "sk-test-1234567890",
        "OPENHANDS_STORE_PATH": str(store),
        "OPENHANDS_STREAM": stream,
    }


def as_command(work: Path, store: Path, stream: str) -> tuple[list[Event], ModelServer]:
    with ModelServer(script(work)) as server:
        done = subprocess.run(
            [sys.executable, "-m", "oh_kernel.cli", "run", "-C", str(work), "--json", "fix it"],
            env={**os.environ, **environment(server, store, stream)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return [event_from_json(line) for line in done.stdout.splitlines()], server


def as_cell(
    work: Path, tmp_path: Path, store: Path, stream: str
) -> tuple[list[Event], ModelServer]:
    with (
        ModelServer(script(work)) as server,
        running_kernel(tmp_path, cwd=work, **environment(server, store, stream)) as kernel,
    ):
        result = kernel.run("%%openhands\nfix it", deadline_s=60)
        assert result.status == "ok" and not result.errors
        assert "Fixed the typo." in final_text(result.messages)
    with EventStore.open(store) as opened:
        (info,) = opened.conversations()
        return list(opened.iterate(info.id)), server


@pytest.mark.parametrize("stream", ["yes", "no"])
def test_command_and_cell_give_the_same_events(work: Path, tmp_path: Path, stream: str) -> None:
    command, asked_by_command = as_command(work, tmp_path / "command.sqlite", stream)
    (work / "bad.txt").write_text("This is teh file.\n")
    cell, asked_by_cell = as_cell(work, tmp_path, tmp_path / "cell.sqlite", stream)
    assert [event.kind for event in command] == [event.kind for event in cell]
    assert (work / "bad.txt").read_text() == "This is the file.\n"
    assert not (work / "late").exists()
    for server in (asked_by_command, asked_by_cell):
        assert bool(server.requests[0].json.get("stream")) is (stream == "yes")
        assert len(server.requests) == 14  # 12 turns, a 429 and a 500
        _check_history(server.requests[-1].json["messages"])


def _check_history(messages: list[dict[str, Any]]) -> None:
    """Each call id is there once and answered once, right behind its call."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        made = message.get("tool_calls") or []
        waiting = [call["id"] for call in made]
        assert not seen & set(waiting)
        seen.update(waiting)
        for call in made:
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting


def test_events_of_the_command_answer_each_call_once(work: Path, tmp_path: Path) -> None:
    from oh_kernel.events.messages import events_to_messages

    events, _ = as_command(work, tmp_path / "s.sqlite", "yes")
    assert_each_call_answered_once(events_to_messages(events))


@pytest.mark.parametrize("images", ["yes", "no"])
def test_plot_goes_to_a_model_that_takes_images(work: Path, tmp_path: Path, images: str) -> None:
    code = "import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()"
    with ModelServer([turn(("ipython", {"code": code})), {"content": "I see."}]) as server:
        env = {**environment(server, tmp_path / "s.sqlite", "yes"), "OPENHANDS_IMAGES": images}
        done = subprocess.run(
            [sys.executable, "-m", "oh_kernel.cli", "run", "-C", str(work), "plot it"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        sent = server.requests[-1].body.decode()
        assert ("data:image/png;base64," in sent) is (images == "yes")
