"""The terminal tool: what a model is told, call by call."""

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.loop import run_blocking, spawn
from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor, TerminalObservation


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[TerminalExecutor]:
    executor = TerminalExecutor(tmp_path, no_change_timeout_s=1)
    yield executor
    executor.close()


def call(executor: TerminalExecutor, command: str, **fields: Any) -> TerminalObservation:
    return executor(TerminalAction(command=command, **fields))


def test_round_trip_is_quick(executor: TerminalExecutor) -> None:
    call(executor, "true")
    times = []
    for _ in range(50):
        started = time.perf_counter()
        assert call(executor, "true").exit_code == 0
        times.append(time.perf_counter() - started)
    assert min(times) < 0.005  # no polling floor; the machine may be busy


def test_facts_about_the_shell(executor: TerminalExecutor, tmp_path: Path) -> None:
    done = call(executor, "sleep 6161 & echo $!")
    pid = int(done.text.splitlines()[-1])
    assert done.metadata.pid == pid
    assert done.metadata.working_dir == str(tmp_path)
    assert done.metadata.username
    assert done.metadata.hostname
    assert done.command == "sleep 6161 & echo $!"
    assert done.metadata.suffix == "\n[The command completed with exit code 0.]"


def test_nothing_to_read_or_to_type_to(executor: TerminalExecutor) -> None:
    for fields in ({}, {"is_input": True}):
        done = call(executor, "", **fields)
        assert done.is_error
        assert done.text == "No previous running command to retrieve logs from."
        assert done.exit_code is None
    done = call(executor, "y", is_input=True)
    assert (done.is_error, done.text) == (True, "No previous running command to interact with.")


def test_keys_are_keys_only_as_input(executor: TerminalExecutor) -> None:
    for word in ("end", "up", "home", "tab"):
        assert call(executor, word).exit_code == 127


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"command": "cd /\nls"}, "Cannot execute multiple commands at once.\nPlease run each"),
        ({"command": '["ls"]'}, "[Tool-argument error] The `command` argument looks like a Python"),
        ({"command": "ls\0"}, "NUL character"),
        ({"command": "cat <<E\nx"}, "here-document"),
        ({"command": "x", "is_input": True, "reset": True}, "Cannot use reset=True with is_input"),
    ],
)
def test_refused(executor: TerminalExecutor, fields: dict[str, Any], text: str) -> None:
    done = executor(TerminalAction(**fields))
    assert done.is_error
    assert done.exit_code is None
    assert text in done.text


def test_silent_command_goes_on(executor: TerminalExecutor) -> None:
    first = call(executor, "sleep 1.5; echo end; (exit 3)")
    assert (first.exit_code, first.timeout, first.is_error) == (-1, True, False)
    assert "[The command has no new output after 1 seconds. " in first.text
    rest = call(executor, "")
    assert (rest.text, rest.exit_code, rest.timeout) == ("end", 3, False)
    assert rest.command == "sleep 1.5; echo end; (exit 3)"
    assert call(executor, "").is_error


def test_end_that_nobody_waited_for_is_told(executor: TerminalExecutor, tmp_path: Path) -> None:
    call(executor, "sleep 0.3; echo unseen; touch over; (exit 3)", timeout=0.1)
    until_exists(tmp_path / "over")
    done, told = None, ""
    while done is None or done.is_error:  # `over` may be there before the prompt is
        done = call(executor, "echo new")
        told += done.text
    assert done.text.splitlines()[-1] == "new"
    assert "exit code 3" in done.text
    assert told.count("unseen") == 1
    assert call(executor, "echo new").text == "new"


def until_exists(path: Path) -> None:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_control_keys_are_confirmed(executor: TerminalExecutor) -> None:
    call(executor, "sleep 6161", timeout=0.1)
    done = call(executor, "C-c", is_input=True)
    assert done.metadata.suffix == "\n[The command completed with exit code 130. CTRL+C was sent.]"
    call(executor, "sleep 6161", timeout=0.1)
    stopped = call(executor, "C-z", is_input=True)
    assert stopped.exit_code == 148
    assert "Stopped" in stopped.text


def test_reset(executor: TerminalExecutor) -> None:
    call(executor, "export A=1; sleep 6161", timeout=0.1)
    done = call(executor, "", reset=True)
    assert done.text.startswith("Terminal session has been reset. All previous environment")
    assert (done.command, done.exit_code, done.is_error) == ("[RESET]", 0, False)
    done = call(executor, "echo A=$A; (exit 2)", reset=True)
    assert done.text.endswith("\n\nA=")
    assert (done.command, done.exit_code) == ("[RESET] echo A=$A; (exit 2)", 2)


def test_long_output_is_cut_and_saved(tmp_path: Path) -> None:
    executor = TerminalExecutor(tmp_path, output_folder=tmp_path / "observations")
    try:
        done = call(executor, "seq 1 20000")
    finally:
        executor.close()
    assert len(done.text) == 30_000
    assert done.text.startswith("1\n2\n")
    assert done.text.endswith("\n20000")
    assert (
        "\n<response clipped><NOTE>Due to the max output limit, only part of the full response has "
        "been shown to you: about 78894 of 108894 characters are left out; the truncated part "
        "starts around line "
    ) in done.text
    head, _, rest = done.text.partition("\n<response clipped>")
    (line,) = re.findall(r"starts around line (\d+)\. The complete output has been saved", rest)
    assert abs(int(line) - len(head.splitlines())) < 100
    assert done.full_output_save_dir == str(tmp_path / "observations")
    (saved,) = (tmp_path / "observations").iterdir()
    assert str(saved) in done.text
    assert saved.read_text() == "".join(f"{n}\n" for n in range(1, 20_001))


def test_output_is_shown_while_it_comes(executor: TerminalExecutor, tmp_path: Path) -> None:
    seen: list[str] = []
    action = TerminalAction(command="echo first; until test -e go; do sleep 0.05; done; echo last")
    running = spawn(executor.run(action, ToolContext(tmp_path, show=seen.append)))
    end = time.monotonic() + 10
    while "".join(seen) != "first\n" and time.monotonic() < end:
        time.sleep(0.01)
    assert "".join(seen) == "first\n"
    (tmp_path / "go").touch()
    assert running.result(10).text == "first\nlast"
    assert "".join(seen) == "first\nlast\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo so far; sleep 6161",
        "echo so far; python -c 'while True: pass'",
        "echo so far; read x",
    ],
)
def test_cancelled_call_says_how_far_it_got(
    executor: TerminalExecutor, tmp_path: Path, command: str
) -> None:
    shown = asyncio.Event()
    context = ToolContext(tmp_path, show=lambda text: shown.set())

    async def cancel_once_it_prints() -> TerminalObservation:
        task = asyncio.ensure_future(executor.run(TerminalAction(command=command), context))
        await asyncio.wait_for(shown.wait(), 10)
        task.cancel()
        return await asyncio.wait_for(task, 3)

    done = run_blocking(cancel_once_it_prints(), timeout_s=20)
    assert done.is_error
    assert done.text.startswith("so far\n")
    assert done.text.endswith(
        "[The command was interrupted by the user: it ended with exit code 130.]"
    )
    assert call(executor, "echo fine").text == "fine"


def test_cancelled_command_that_ignores_it(executor: TerminalExecutor, tmp_path: Path) -> None:
    shown = asyncio.Event()
    context = ToolContext(tmp_path, show=lambda text: shown.set())
    action = TerminalAction(command="bash -c 'trap \"\" INT; echo deaf; sleep 6161'")

    async def cancel_once_it_prints() -> TerminalObservation:
        task = asyncio.ensure_future(executor.run(action, context))
        await asyncio.wait_for(shown.wait(), 10)
        task.cancel()
        return await asyncio.wait_for(task, 3)

    done = run_blocking(cancel_once_it_prints(), timeout_s=20)
    assert "C-c was sent, but it is still running" in done.text
    assert (done.exit_code, done.timeout) == (-1, True)
    assert call(executor, "echo no").is_error
    assert not call(executor, "echo yes", reset=True).is_error


def test_missing_folder_is_an_error_the_model_can_read(tmp_path: Path) -> None:
    executor = TerminalExecutor(tmp_path / "nowhere")
    done = call(executor, "ls")
    executor.close()
    assert done.is_error
    assert "does not exist" in done.text


def test_close_twice_and_on_the_agent_thread(tmp_path: Path) -> None:
    executor = TerminalExecutor(tmp_path)
    executor.close()
    call(executor, "sleep 6161 & true")

    async def close() -> None:
        executor.close()
        executor.close()

    run_blocking(close())
    assert not psutil.Process().children(recursive=True)
