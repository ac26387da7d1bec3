"""Programs that draw on the screen, or redraw a line, are read as a person reads them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.loop import run_blocking
from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor, TerminalObservation

Call = Callable[..., TerminalObservation]

CURSES = """
import curses, sys
def draw(screen):
    screen.box()
    for step in range(5):
        screen.addstr(2, 4, f"step {step} \u65e5\u672c")
        screen.refresh()
    if "wait" in sys.argv:
        screen.getkey()
curses.wrapper(draw)
"""
TWO_BARS = """
import sys, time
for percent in range(0, 101, 10):
    sys.stdout.write(f"one {percent}%\\ntwo {percent}%\\n" + ("" if percent == 100 else "\\x1b[2A"))
    sys.stdout.flush()
print("done")
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Call]:
    executor = TerminalExecutor(tmp_path, no_change_timeout_s=5)

    def call(command: str, **fields: Any) -> TerminalObservation:
        return executor(TerminalAction(command=command, **fields))

    yield call
    executor.close()


def test_top_is_a_table(terminal: Call) -> None:
    lines = terminal("TERM=xterm top -n1").text.splitlines()
    assert lines[0].startswith("top - ")
    assert any(line.split()[:2] == ["PID", "USER"] for line in lines)
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("term", ["xterm", "xterm-256color", "screen", "linux"])
def test_curses_leaves_its_last_screen(terminal: Call, tmp_path: Path, term: str) -> None:
    (tmp_path / "draw.py").write_text(CURSES)
    lines = terminal(f"TERM={term} python draw.py; echo after").text.splitlines()
    assert lines[0].strip("┌─┐+-lqk ") == ""
    assert lines[2].strip("│|x ") == "step 4 日本"
    assert lines[-1] == "after"


def test_screen_of_a_running_program_can_be_looked_at(terminal: Call, tmp_path: Path) -> None:
    (tmp_path / "draw.py").write_text(CURSES)
    shown = terminal("TERM=xterm python draw.py wait", timeout=1)
    assert (shown.exit_code, shown.timeout) == (-1, True)
    assert "step 4 日本" in shown.text
    assert "step" not in terminal("", timeout=0.2).text  # nothing has changed
    assert terminal("q", is_input=True).exit_code == 0
    assert terminal("echo fine").text == "fine"


def test_cursor_addressed_by_hand(terminal: Call) -> None:
    placed = "tput clear; tput cup 2 5; echo third; tput cup 0 0; echo first; tput cup 4 0"
    assert terminal(f"export TERM=xterm; {placed}").text == "first\n\n     third"


def test_watch_shows_one_frame(terminal: Call) -> None:
    shown = terminal("TERM=xterm watch -n 0.1 'echo time; date +%s'", timeout=1).text
    assert shown.count("time\n") == 1
    assert terminal("C-c", is_input=True).exit_code != -1


def test_bars_on_several_lines_are_their_last_frames(terminal: Call, tmp_path: Path) -> None:
    (tmp_path / "bars.py").write_text(TWO_BARS)
    assert terminal("python bars.py").text == "one 100%\ntwo 100%\ndone"


def test_live_view_is_told_what_a_program_leaves_behind(tmp_path: Path) -> None:
    (tmp_path / "draw.py").write_text(CURSES)
    executor = TerminalExecutor(tmp_path)
    seen: list[str] = []
    action = TerminalAction(command="echo before; TERM=xterm python draw.py; echo after")
    try:
        done = run_blocking(executor.run(action, ToolContext(tmp_path, show=seen.append)))
    finally:
        executor.close()
    assert "".join(seen).rstrip("\n") == done.text


def test_shells_in_the_shell_leave_the_users_history_alone(terminal: Call, tmp_path: Path) -> None:
    terminal("export HOME=$PWD; bash --norc", timeout=1)
    assert "typed" in terminal("echo typed; exit", is_input=True).text
    terminal("exec bash")
    assert terminal("echo after; history").text == "after"
    assert not (tmp_path / ".bash_history").exists()
