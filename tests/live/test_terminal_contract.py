"""The terminal tool's contract: limits, exact texts, secrets, and what it says of trouble."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.loop import run_blocking
from oh_kernel.settings import load_settings
from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.presets import Resources, make_executor
from oh_kernel.tools.terminal import (
    TerminalAction,
    TerminalExecutor,
    TerminalObservation,
    TerminalTool,
)

Call = Callable[..., TerminalObservation]
SECRET = "hunter22-of-the-night"


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def caller(executor: TerminalExecutor) -> Call:
    def call(command: str, **fields: Any) -> TerminalObservation:
        return executor(TerminalAction(command=command, **fields))

    return call


@pytest.fixture
def executors() -> Iterator[list[TerminalExecutor]]:
    made: list[TerminalExecutor] = []
    yield made
    for executor in made:
        executor.close()


@pytest.fixture
def terminal(tmp_path: Path, executors: list[TerminalExecutor]) -> Call:
    executors.append(TerminalExecutor(tmp_path, no_change_timeout_s=1))
    return caller(executors[0])


def test_suffixes(terminal: Call) -> None:
    assert terminal("(exit 3)").metadata.suffix == "\n[The command completed with exit code 3.]"
    soft = terminal("sleep 6161")
    assert soft.metadata.suffix.startswith("\n[The command has no new output after 1 seconds. ")
    assert (soft.exit_code, soft.metadata.exit_code, soft.is_error) == (-1, -1, False)
    ended = terminal("C-c", is_input=True)
    assert ended.metadata.suffix == "\n[The command completed with exit code 130. CTRL+C was sent.]"
    hard = terminal("echo on; sleep 6161", timeout=0.5)
    assert hard.metadata.suffix.startswith("\n[The command timed out after 0.5 seconds. ")
    for hint in ("empty command", "C-c", "C-z", "C-d", "timeout"):
        assert hint in hard.metadata.suffix
    busy = terminal("echo no")
    assert (busy.is_error, busy.exit_code, busy.timeout) == (True, -1, True)
    assert busy.metadata.prefix == "[Below is the output of the previous command.]\n"
    assert busy.metadata.suffix.startswith(
        '\n[Your command "echo no" is NOT executed. The previous command is still running - You '
        "CANNOT send new commands until the previous command is completed. By setting `is_input` "
        "to `true`, you can interact with the current process: "
    )


def test_a_command_that_fails_is_no_error_of_the_tool(terminal: Call) -> None:
    for command, exit_code in (("false", 1), ("no-such-program", 127), ("if then", 2)):
        done = terminal(command)
        assert (done.exit_code, done.is_error) == (exit_code, False)


def test_a_reset_cannot_be_typed(terminal: Call) -> None:
    done = terminal("x", is_input=True, reset=True)
    assert (done.is_error, done.exit_code) == (True, None)
    assert done.text == "Cannot use reset=True with is_input=True"


def test_hard_timeout_replaces_the_soft_one(terminal: Call) -> None:
    assert terminal("sleep 1.5; echo over", timeout=20).text == "over"
    started = time.monotonic()
    assert terminal("while :; do echo .; sleep 0.1; done", timeout=1.2).timeout
    assert time.monotonic() - started >= 1.2
    assert terminal("", timeout=0).timeout


def test_reset_texts(terminal: Call) -> None:
    text = (
        "Terminal session has been reset. All previous environment variables and session state "
        "have been cleared."
    )
    terminal("A=1; cd /")
    done = terminal("", reset=True)
    assert (done.text, done.command, done.exit_code) == (text, "[RESET]", 0)
    done = terminal('echo "A=$A"; pwd', reset=True)
    folder = done.metadata.working_dir
    assert done.text == f"{text}\n\nA=\n{folder}"
    assert done.command == '[RESET] echo "A=$A"; pwd'


def test_metadata_has_all_fields(terminal: Call, tmp_path: Path) -> None:
    meta = terminal("(exit 4)").metadata
    assert (meta.exit_code, meta.pid) == (4, -1)
    assert (meta.working_dir, meta.py_interpreter_path) == (str(tmp_path), sys.executable)
    assert meta.username == subprocess.check_output(["id", "-un"], text=True).strip()
    assert meta.hostname == subprocess.check_output(["hostname"], text=True).strip()


def test_several_statements_are_listed(terminal: Call) -> None:
    assert terminal("cd /\nls").text == (
        "Cannot execute multiple commands at once.\nPlease run each command separately OR chain "
        "them into a single command via && or ;\nProvided commands:\n(1) cd /\n(2) ls"
    )


@pytest.mark.parametrize("refused", [True, False])
def test_several_statements_run_in_order_unless_set_otherwise(
    tmp_path: Path, executors: list[TerminalExecutor], refused: bool
) -> None:
    settings = load_settings({"terminal_one_statement": refused}, environ={})
    executors.append(make_executor(TerminalTool, tmp_path, settings, Resources()))
    done = caller(executors[0])("cd /\npwd")
    assert done.is_error == refused
    assert refused or done.text == "/"


def test_literal_is_shown_up_to_60_characters(terminal: Call) -> None:
    text = terminal(f'["ls", "{"x" * 100}"]').text
    assert text.startswith(
        "[Tool-argument error] The `command` argument looks like a Python/JSON list literal, not a "
        'shell command. It starts with: \'["ls", "xxx'
    )
    assert text.count("x") == 60 - len('["ls", "')


# The idle cap


def test_timeout_near_the_idle_cap_is_refused(
    tmp_path: Path, executors: list[TerminalExecutor]
) -> None:
    executors.append(TerminalExecutor(tmp_path, idle_cap_s=10))
    terminal = caller(executors[0])
    refused = terminal("echo no", timeout=9.5)
    assert refused.is_error
    assert refused.exit_code is None
    assert refused.text.startswith("Refusing to run foreground terminal command with timeout=9.5s.")
    assert terminal("echo yes", timeout=9).text == "yes"
    terminal("sleep 0.5; echo end", timeout=0.1)
    assert terminal("", timeout=60).text == "end"
    terminal("read x; echo got $x", timeout=0.1)
    assert terminal("line", is_input=True, timeout=60).text.endswith("got line")


def test_idle_cap_comes_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executors: list[TerminalExecutor]
) -> None:
    monkeypatch.setenv("OH_RUNTIME_IDLE_TIMEOUT_SECONDS", "100")
    settings = load_settings()
    executors.append(make_executor(TerminalTool, tmp_path, settings, Resources()))
    assert "timeout=91s" in caller(executors[0])("true", timeout=91).text


# Secrets


@pytest.fixture
def secretive(tmp_path: Path, executors: list[TerminalExecutor]) -> Call:
    output = tmp_path / "output"
    executors.append(
        TerminalExecutor(tmp_path, secrets={"TOKEN": SECRET, "OTHER": "a'b"}, output_folder=output)
    )
    return caller(executors[0])


def test_secret_is_there_for_a_command_that_names_it_and_hidden(secretive: Call) -> None:
    assert secretive('[ "$TOKEN" = hunter22-of-the-night ] && echo same').text == "same"
    assert secretive('echo "$TOKEN" | tr a-z A-Z; env | grep ^TOKEN').text == (
        f"{SECRET.upper()}\nTOKEN=<secret-hidden>"
    )
    assert secretive('echo "$OTHER" # short ones are not hidden').text == "a'b"
    for other in (
        "env | grep -c ^TOK",
        "echo ${TOKENS-}0; env | grep -c TOK",
        "env | grep -c MYTOKEN",
    ):
        assert secretive(other).text.endswith("0")
    assert "hunter" not in secretive("set -x; : $TOKEN; set +x").text


def test_secret_is_hidden_however_it_comes(secretive: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(SECRET)  # not from the variable
    split = "printf hunter22; sleep 0.3; printf %s -of-the-night; echo"
    assert secretive(f"cat file; echo; {split}").text == "<secret-hidden>\n<secret-hidden>"
    assert secretive("printf hunter22-of; sleep 0.1; echo").text == "hunter22-of"


def test_secret_is_hidden_in_the_saved_output(secretive: Call, tmp_path: Path) -> None:
    done = secretive("for i in $(seq 3000); do echo $i $TOKEN; done")
    assert "hunter" not in done.to_json()
    (saved,) = (tmp_path / "output").iterdir()
    assert saved.read_text() == "".join(f"{n} <secret-hidden>\n" for n in range(1, 3001))


def test_secret_is_hidden_in_the_live_view(
    secretive: Call, tmp_path: Path, executors: list[TerminalExecutor]
) -> None:
    seen: list[str] = []
    command = "for i in 1 2 3; do printf hunter22; sleep 0.1; echo -of-the-night; done; printf hunt"
    action = TerminalAction(command=command)
    run_blocking(executors[0].run(action, ToolContext(tmp_path, show=seen.append)))
    assert "".join(seen) == "<secret-hidden>\n" * 3 + "hunt"


def test_own_keys_do_not_reach_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executors: list[TerminalExecutor]
) -> None:
    own = ("OPENHANDS_API_KEY", "LLM_API_KEY", "SESSION_API_KEY", "OH_SESSION_API_KEYS_0")
    for name in own:
        monkeypatch.setenv(name, "a key of ours")
    monkeypatch.setenv("AI_AGENT", "")
    executors.append(TerminalExecutor(tmp_path))
    terminal = caller(executors[0])
    assert "a key of ours" not in terminal("env").text
    assert terminal("echo $AI_AGENT").text == "openhands"


# Trouble


def test_output_that_cannot_be_saved_is_said(
    tmp_path: Path, executors: list[TerminalExecutor]
) -> None:
    (tmp_path / "output").write_text("a file in the place of the folder")
    executors.append(TerminalExecutor(tmp_path, output_folder=tmp_path / "output"))
    terminal = caller(executors[0])
    for command in ("seq 20000", "seq 600000"):
        done = terminal(command)
        assert done.exit_code == 0
        assert len(done.text) == 30_000
        assert "The complete output could not be saved to a file: " in done.text
        assert done.text.endswith(command.split()[1])
        assert done.full_output_save_dir is None
    assert terminal("echo fine").text == "fine"


FULL_DISK = """
import resource, sys
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor
executor = TerminalExecutor(sys.argv[1], output_folder=None)
executor(TerminalAction(command="true"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))  # a write beyond it fails
done = executor(TerminalAction(command="seq 600000; (exit 4)"))
print(done.exit_code, "could not be saved to a file: File too large" in done.text)
print(executor(TerminalAction(command="echo fine")).text)
executor.close()
"""


def test_full_disk_costs_the_file_alone(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=True)
    assert done.stdout == "4 True\nfine\n"
    assert not list(tmp_path.glob("oh-output-*/*"))


@pytest.mark.parametrize(
    ("bashrc", "said"),
    [("sleep 1.1", r"^\[~/\.bashrc took \d\.\d s\.\]\nok$"), ("true", "^ok$")],
)
def test_slow_bashrc_is_named_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    executors: list[TerminalExecutor],
    bashrc: str,
    said: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text(bashrc)
    executors.append(TerminalExecutor(tmp_path))
    terminal = caller(executors[0])
    assert re.search(said, terminal("echo ok").text)
    assert terminal("echo ok").text == "ok"


def test_folder_that_vanished_is_said_and_its_return_noticed(
    tmp_path: Path, executors: list[TerminalExecutor]
) -> None:
    (tmp_path / "w").mkdir()
    executors.append(TerminalExecutor(tmp_path / "w"))
    terminal = caller(executors[0])
    assert terminal("rmdir ../w; echo still").text == "still"
    assert terminal("echo here").text == "here"
    ended = terminal("echo bye; exit 3")
    assert ended.exit_code == 3
    assert "bye" in ended.text
    assert "no new one could be started" in ended.text
    assert "does not exist" in ended.text
    assert terminal("echo x").is_error
    (tmp_path / "w").mkdir()
    assert terminal("echo back").text == "back"


@pytest.mark.parametrize("damage", ["set -r", "shopt -s extdebug; trap false DEBUG", "ulimit -n 3"])
def test_shell_that_is_beyond_help_is_replaced(
    tmp_path: Path, executors: list[TerminalExecutor], damage: str
) -> None:
    executors.append(TerminalExecutor(tmp_path))
    terminal = caller(executors[0])
    lost = terminal(f"echo before; {damage}")
    assert (lost.exit_code, lost.is_error, lost.timeout) == (-1, False, False)
    assert lost.text.startswith("before\n")
    assert "The shell no longer says when commands end. A new one was started" in lost.text
    assert lost.metadata.suffix == (
        "\n[The command completed but the exit code could not be determined. Terminal output may "
        "have corrupted the PS1 metadata markers.]"
    )
    assert terminal("echo fine").text == "fine"


def test_death_between_calls_is_told_with_its_signal(terminal: Call) -> None:
    pid = int(terminal("echo $$").text)
    shell = psutil.Process(pid)
    shell.kill()
    until(lambda: shell.status() == psutil.STATUS_ZOMBIE)
    done = terminal("echo next")
    assert done.text.startswith("[The shell had ended with exit code 137 (SIGKILL). A new one was")
    assert done.text.endswith("\nnext")


def test_calls_from_several_threads_come_one_after_the_other(terminal: Call) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(terminal, [f"echo a{n}; sleep 0.1; echo b{n}" for n in range(4)])
        assert [answer.text for answer in answers] == [f"a{n}\nb{n}" for n in range(4)]


def test_closing_during_a_call_ends_it_and_starts_no_shell(
    terminal: Call, executors: list[TerminalExecutor], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(terminal, "touch begun; sleep 6263", timeout=60)
        until((tmp_path / "begun").exists)
        executors[0].close()
        answer = call.result(timeout=20)
    assert answer.is_error
    assert answer.text == "The shell was closed while the command was running."
    assert "bash" not in [child.name() for child in psutil.Process().children()]


def test_a_line_too_long_to_be_typed_is_not_cut_silently(terminal: Call) -> None:
    terminal("read line; echo ${#line}", timeout=0.5)
    answer = terminal("z" * 5000, is_input=True)
    assert answer.text.startswith("[Only 4096 of 5001 bytes were taken: ")
    assert answer.text.endswith("\n4095")
    terminal("read line; echo ${#line}", timeout=0.5)
    answer = terminal("z" * 4095, is_input=True)
    assert answer.text == "4095"
