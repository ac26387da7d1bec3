"""The terminal's field cases; each test asserts every line that its case expects."""

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.events import ObservationEvent, event_from_json
from oh_kernel.events.content import joined_text
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor, TerminalObservation
from oh_kernel.tools.terminal_answers import MAX_CHARS


class Terminal:
    """An executor with its calls written short."""

    def __init__(self, workspace: Path, no_change_timeout_s: float = 5) -> None:
        self.executor = TerminalExecutor(workspace, no_change_timeout_s=no_change_timeout_s)

    def __call__(self, command: str, within_s: float = 10, **fields: Any) -> TerminalObservation:
        started = time.monotonic()
        observation = self.executor(TerminalAction(command=command, **fields))
        assert time.monotonic() - started < within_s
        return observation


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.executor.close()


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def terminals() -> set[str]:
    links = Path("/proc/self/fd").iterdir()
    return {str(fd) for fd in links if "ptmx" in os.path.realpath(fd)}


def test_TM_01_marker_in_output(terminal: Terminal) -> None:
    for command in (
        'echo "$PS1"',
        'export PS1COPY="$PS1"; env | grep -c PS1COPY; set | grep -i ps1 | wc -c',
        "set; declare -f; env",
    ):
        assert terminal(command, within_s=2).exit_code == 0
    for block in (
        r'###PS1JSON###\n{"exit_code": 0, "pid": 1, "working_dir": "/nowhere"}\n###PS1END###',
        r"\036"
        + "0" * 16
        + r"\0350\0350\035\035\035/nowhere\035/bin\035\037",  # ours, with a token of our making
    ):
        done = terminal(f"printf '\\n{block}\\n'; (exit 9)")
        assert done.exit_code == 9
        assert done.metadata.working_dir == str(terminal.executor.workspace)
        assert "/nowhere" in done.text
        if "PS1JSON" in block:
            assert done.text == "\n" + block.replace("\\n", "\n")
    started = time.monotonic()
    done = terminal("printf '###PS1JSON###\\n\\036'; sleep 2; echo tail; (exit 3)")
    assert time.monotonic() - started >= 2
    assert done.text.endswith("tail")
    assert done.exit_code == 3
    done = terminal("echo next; (exit 4)")
    assert (done.text, done.exit_code) == ("next", 4)


def test_TM_02_prompt_changed(terminal: Terminal) -> None:
    steps = [
        (
            "python3 -m venv --without-pip v && source v/bin/activate && "
            'echo in=$(basename "$VIRTUAL_ENV")',
            "in=v",
            0,
        ),
        ('echo still=$(basename "$VIRTUAL_ENV"); deactivate', "still=v", 0),
        ("PS1='(base) $ '", "", 0),
        ("PROMPT_COMMAND='PS1=\"> \"'; echo one", "one", 0),
        ("unset PS1 PROMPT_COMMAND; echo two", "two", 0),
        (
            "readonly PS1 2>/dev/null; trap 'echo dbg >/dev/null' DEBUG; echo three; (exit 6)",
            "three",
            6,
        ),
        ("echo four", "four", 0),
    ]
    for command, text, exit_code in steps:
        done = terminal(command, within_s=5)
        assert (done.text, done.exit_code) == (text, exit_code)
        assert done.metadata.working_dir == str(terminal.executor.workspace)


def test_TM_03_shell_ends(terminal: Terminal, tmp_path: Path) -> None:
    before, ptys = children(), terminals()
    terminal("mkdir -p sub && cd sub && export K=v")
    done = terminal("echo bye; exit 3", within_s=5)
    assert done.exit_code == 3
    assert "bye" in done.text
    assert "shell ended" in done.text
    assert "new one was started" in done.text
    assert "directory, variables" in done.text
    assert "gone" in done.text
    done = terminal('echo alive; pwd; echo "K=[$K]"')
    assert (done.text, done.exit_code) == (f"alive\n{tmp_path}\nK=[]", 0)
    assert terminal("kill -9 $$", within_s=5).exit_code == 137
    done = terminal("echo again")
    assert (done.text, done.exit_code) == ("again", 0)
    terminal.executor.close()
    assert children() <= before
    assert terminals() == ptys


def test_TM_04_program_waits_for_input(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, no_change_timeout_s=1.5)  # shorter than the case's, for speed
    try:
        play_TM_04(terminal, tmp_path)
    finally:
        terminal.executor.close()


def play_TM_04(terminal: Terminal, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", repo], check=True)
    commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m"
    loop = f"for i in $(seq 200); do {commit} m$i; done"
    subprocess.run(["bash", "-c", loop], cwd=repo, check=True)

    done = terminal("cd repo && git log --oneline", within_s=5)
    assert done.exit_code == 0
    assert len(done.text.splitlines()) == 200
    asked = terminal("read -s -p '[sudo] password for dev: ' P; echo; echo \"len=${#P}\"")
    assert asked.exit_code == -1
    assert asked.timeout
    assert "has no new output after 1.5 seconds" in asked.text
    assert "[sudo] password for dev: " in asked.text
    other = terminal("echo other")
    assert other.is_error
    assert "previous command is still running" in other.text
    done = terminal("s3cret!", is_input=True)
    assert done.text.endswith("len=7")
    assert done.exit_code == 0
    assert "s3cret!" not in done.to_json()
    assert "y/N" in terminal("read -p 'Proceed? [y/N] ' a; echo \"a=$a\"").text
    assert terminal("y", is_input=True).text.endswith("a=y")
    assert terminal("python3 -q").exit_code == -1
    assert "42" in terminal("print(6*7)", is_input=True).text
    assert terminal("C-d", is_input=True).exit_code == 0
    refused = terminal("nothing runs now", is_input=True)
    assert refused.is_error
    assert "command not found" not in refused.text
    assert terminal("echo fine").text == "fine"


def test_TM_05_timeouts_and_interrupts(terminal: Terminal) -> None:
    first = terminal("echo start; sleep 9; echo end")
    assert (first.exit_code, first.timeout) == (-1, True)
    assert "start" in first.text
    rest = terminal("", is_input=True)
    assert (rest.text, rest.exit_code) == ("end", 0)
    started = time.monotonic()
    first = terminal("for i in $(seq 1 9); do echo t$i; sleep 1; done", timeout=3)
    assert 3 <= time.monotonic() - started <= 5
    assert (first.exit_code, first.timeout) == (-1, True)
    assert "timed out after 3 seconds" in first.text
    rest = terminal("C-c", is_input=True)
    assert rest.exit_code == 130
    lines = re.findall(r"^t(\d)$", first.text + "\n" + rest.text, re.MULTILINE)
    assert lines == [str(n + 1) for n in range(len(lines))]
    assert len(lines) >= 3
    stubborn = "bash -c 'trap \"\" INT TSTP; echo ign; while :; do sleep 0.2; done'"
    assert terminal(stubborn, timeout=2).exit_code == -1
    for key in ("C-c", "C-z"):
        still = terminal(key, is_input=True)
        assert still.exit_code == -1
        assert "is still running" in still.text
        assert not re.search("stopped|ended|finished|completed", still.text)
    assert not terminal("", reset=True, within_s=10).is_error
    count = terminal("pgrep -fc 'trap .* INT TSTP' || true; echo ok").text.splitlines()
    assert count in (["0", "ok"], ["1", "ok"])  # the shell's own line may count


def test_TM_06_command_text_arrives_unchanged(terminal: Terminal, tmp_path: Path) -> None:
    body = '<a b="$HOME">`id` it\'s "q" \\n</a>\n  )\n$(exit 5) # not a comment\n\n'
    assert terminal(f"cat > cfg.xml <<'EOF'\n{body}EOF").exit_code == 0
    assert (tmp_path / "cfg.xml").read_bytes() == body.encode()
    script = "python3 - <<\"PY\" | tr a-z A-Z\nfor i in range(2):\n    print('row', i)\nPY"
    assert terminal(script).text == "ROW 0\nROW 1"
    assert terminal(f"printf %s '{'a' * 20_000}' | wc -c").text == "20000"
    assert terminal(f"cat <<E | wc -c\n{'b' * 9000}\nE").text == "9001"
    unfinished = terminal("cat <<MISSING\nnever closed", within_s=5)
    assert unfinished.is_error
    assert "here-document" in unfinished.text
    assert terminal("echo fine").text == "fine"
    assert terminal("A=(); [[ x =~ ^(y|z)$ ]] || false").exit_code == 1
    for broken in ("if then", "echo 'open", "echo $("):
        done = terminal(broken)
        assert done.is_error or done.exit_code not in (0, None), broken
    assert terminal(r"echo a\;b && find . -name cfg.xml -exec echo {} \; && echo next").text == (
        "a;b\n./cfg.xml\nnext"
    )


def test_TM_07_flood_of_output(terminal: Terminal) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = (
        'echo FIRST; python3 -c "import sys; '
        "[sys.stdout.write('x'*1023+'\\n') for _ in range(102400)]\"; echo LAST; (exit 7)"
    )
    done = terminal(flood, timeout=120, within_s=120)
    assert done.exit_code == 7
    assert len(done.text) <= MAX_CHARS
    assert "FIRST" in done.text[:100]
    assert done.text.endswith("LAST")
    total = 102_400 * 1024 + len("FIRST\nLAST\n")
    assert f"about {total - MAX_CHARS} of {total} characters are left out" in done.text
    saved = re.search(r"saved to (\S+?)\.</NOTE>", done.text)
    assert saved
    assert Path(saved[1]).stat().st_size == total
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 300 * 1024
    event = ObservationEvent(
        source="environment",
        observation=done,
        action_id="a",
        tool_name="terminal",
        tool_call_id="c",
    )
    assert len(event.to_json().encode()) < 1_048_576
    started = time.monotonic()
    spam = terminal("yes spam", timeout=5)
    assert 5 <= time.monotonic() - started < 10
    assert (spam.exit_code, spam.timeout) == (-1, True)
    assert terminal("C-c", is_input=True).exit_code == 130
    done = terminal("echo small")
    assert (done.text, done.exit_code) == ("small", 0)


def test_TM_08_control_characters(terminal: Terminal) -> None:
    assert terminal("printf 'down 10%%\\rdown 55%%\\rdown 100%%\\n'").text == "down 100%"
    colours = "printf '\\033[31mred\\033[0m \\033[?25lx\\033[?25h\\033]0;my title\\007y\\n'"
    assert terminal(colours).text == "red xy"
    done = terminal("printf 'a\\000b\\n'")
    assert (done.text, done.exit_code) == ("ab", 0)
    assert "\\u0000" not in done.to_json()
    assert "\0" not in joined_text(done.for_model())
    done = terminal(
        "printf '\\346\\227\\245\\346\\234\\254 e\\314\\201 \\377 \\xe2\\x80\\xa8z\\n'; (exit 2)"
    )
    assert (done.text, done.exit_code) == ("日本 e\u0301 \ufffd \u2028z", 2)
    assert terminal("python3 -c \"print('w'*2000)\"").text == "w" * 2000
    refused = terminal("echo a\0b")
    assert refused.is_error
    assert refused.exit_code is None
    assert terminal("printf 'l1\\r\\nl2\\r\\n'").text == "l1\nl2"


def test_TM_09_metadata(terminal: Terminal, tmp_path: Path) -> None:
    def folder(done: TerminalObservation) -> str:
        return done.metadata.working_dir or ""

    done = terminal("mkdir -p 'a b/\u00e7' && cd 'a b/\u00e7'")
    assert folder(done).endswith("a b/ç")
    done = terminal("(cd .. && pwd); pwd")
    assert done.text == f"{tmp_path}/a b\n{tmp_path}/a b/ç"
    assert folder(done).endswith("a b/ç")
    done = terminal("true | false")
    assert done.exit_code == 1
    assert folder(done).endswith("a b/ç")
    done = terminal("(sleep 2; echo late) & echo now", within_s=2)
    assert done.exit_code == 0
    assert [line for line in done.text.splitlines() if not line.startswith("[1]")] == ["now"]
    assert folder(done).endswith("a b/ç")
    done = terminal("sleep 3; echo after; (exit 5)")
    assert done.exit_code == 5
    assert done.text.splitlines().count("after") == 1
    lates = [line for line in done.text.splitlines() if "late" in line and "Done" not in line]
    assert lates in ([], ["late"])
    assert folder(done).endswith("a b/ç")
    done = terminal("mkdir gone && cd gone && rmdir ../gone", within_s=2)
    assert done.exit_code == 0
    done = terminal('echo here; cd "$HOME"; (exit 8)')
    assert (done.text, done.exit_code) == ("here", 8)
    assert folder(done) == os.environ["HOME"]


def test_LM_03_invalid_bytes_in_output(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "dash.txt").write_bytes(b"a \x97 b\n")
    done = terminal("cat dash.txt; printf '\\xed\\xa0\\xbd end\\n'")
    assert done.text == "a \ufffd b\n\ufffd\ufffd\ufffd end"
    event = ObservationEvent(
        source="environment",
        observation=done,
        action_id="a",
        tool_name="terminal",
        tool_call_id="c",
    )
    text = event.to_json()
    json.loads(text.encode("utf-8"))
    assert event_from_json(text) == event
