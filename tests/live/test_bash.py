"""A bash that lives on: what commands may do to it, and that nothing of it is left behind."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.errors import SessionError
from oh_kernel.sessions.bash import BashSession, Outcome
from oh_kernel.sessions.bash_protocol import Record, RecordScanner
from oh_kernel.sessions.handover import Handover
from tests.experiments import measured

Scenario = Callable[[BashSession], Awaitable[None]]


@pytest.fixture(params=["memory", "file"])
def handover(request: pytest.FixtureRequest) -> Handover:
    if request.param == "memory" and sys.platform != "linux":
        return "file"
    return request.param


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process, no terminal and no open file of a session outlives its close."""
    before, fds = set(psutil.Process().children(recursive=True)), open_files()
    yield
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [child.cmdline() for child in left]
    assert open_files() <= fds


def open_files() -> set[str]:
    """What the open files are; those of Python's own loops come and go and do not count."""
    paths = {os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()}
    return {path for path in paths if "ptmx" in path or "oh-" in path}


@asynccontextmanager
async def bash_in(folder: Path, **options: Any) -> AsyncIterator[BashSession]:
    session = BashSession(folder, **options)
    try:
        yield session
    finally:
        await session.close()


def play(scenario: Scenario, folder: Path, **options: Any) -> None:
    async def run() -> None:
        async with bash_in(folder, **options) as session:
            await scenario(session)

    asyncio.run(run())


async def run(session: BashSession, command: str, **options: Any) -> Outcome:
    return await session.run(command, **{"quiet_s": 10, **options})


async def until_output(session: BashSession, text: str) -> Outcome:
    """Follow the running command until it has printed `text`."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        outcome = await session.follow(timeout_s=0.05)
        if text in outcome.text:
            return outcome
    raise AssertionError(f"{text!r} was not printed")


def test_commands_share_one_shell(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        assert not (await run(session, "cd / && export A=1 && f() { echo f$A; }")).text
        done = await run(session, "f; pwd; (exit 3)")
        assert (done.text, done.exit_code, done.ending) == ("f1\n/\n", 3, "finished")
        assert session.cwd == "/"
        assert (await run(session, "echo $?")).text == "3\n"

    play(scenario, tmp_path, handover=handover)


@pytest.mark.parametrize("interpreter", ["python", "python3", "python3.11"])
def test_python_is_the_kernels(tmp_path: Path, interpreter: str) -> None:
    folder = Path(sys.executable).parent
    if not (folder / interpreter).exists():
        (tmp_path / "bin").mkdir()
        folder = tmp_path / "bin"
        (folder / interpreter).symlink_to(sys.executable)
    executable = str(folder / interpreter)

    async def scenario(session: BashSession) -> None:
        done = await run(session, "python -c 'import sys; print(sys.executable)'")
        assert done.text.strip() == executable == session.python
        done = await run(session, "echo 'import sys; print(sys.executable)' | python - & wait $!")
        assert executable in done.text

    play(scenario, tmp_path, interpreter=executable)


def test_activated_environment_wins(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "python -m venv --without-pip v; . v/bin/activate")
        assert session.python == str(tmp_path / "v/bin/python")
        done = await run(session, "python -c 'import sys; print(sys.prefix)'; deactivate")
        assert done.text == f"{tmp_path}/v\n"
        assert session.python == sys.executable

    play(scenario, tmp_path)


def test_environment_is_given_without_our_keys(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        names = {line.split("=")[0] for line in (await run(session, "env")).text.splitlines()}
        assert {"MINE", "PAGER", "GIT_PAGER"} <= names
        assert not {"LLM_API_KEY", "OPENHANDS_API_KEY", "SESSION_API_KEY"} & names
        assert (await run(session, "echo $PAGER $GIT_PAGER ${HISTFILE-} $-")).text.count("cat") == 2
        assert (await run(session, "set -o | grep history")).text.split() == ["history", "off"]

    keys = dict.fromkeys(("LLM_API_KEY", "OPENHANDS_API_KEY", "SESSION_API_KEY"), "k")
    play(scenario, tmp_path, env={**os.environ, **keys, "MINE": "1"})


def test_variables_for_one_command(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        secret = 'it\'s "$HOME"\nline'
        done = await run(
            session, "python -c \"import os; print(repr(os.environ['K']))\"", env={"K": secret}
        )
        assert done.text.strip() == repr(secret)
        assert (await run(session, 'echo "[${K-gone}]"')).text == "[gone]\n"

    play(scenario, tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        "PS1='(base) $ '; PS2='> '",
        "PROMPT_COMMAND='echo spam'",
        "PROMPT_COMMAND=(one two)",
        "unset PS1 PROMPT_COMMAND",
        "readonly PS1 PROMPT_COMMAND",
        "PS1='mine> '; readonly PS1",
        "set -e; true",
        "set -u",
        "set -o posix",
        "set -o vi",
        "set -o emacs; set -o vi",
        "set -a; trap 'true' DEBUG ERR",
        "exec >out.txt; exec >/dev/tty",
        "exec 2>/dev/null",
        "stty -echo; stty echo; stty raw; stty -icanon",
        "mkdir gone; cd gone; rmdir ../gone",
        "alias echo='echo aliased' printf=false",
        "IFS=/; TMOUT=1; PATH=/usr/bin:/bin",
        "shopt -s extdebug nullglob; set -f; set -C",
        "IFS=0123456789",
        "set -euo pipefail; shopt -s inherit_errexit",
        "trap 'echo bye' EXIT; trap 'true' ERR RETURN DEBUG INT TERM HUP",
        "builtin() { :; }; unset() { :; }; printf() { :; }; read() { :; }",
        "enable -n builtin printf read unset set",
        "alias builtin=false printf=false local=false unset=false export=false",
        "readonly PS2='> ' TMOUT=100",
        'conda() { export PS1="(base) $PS1" CONDA_PREFIX=$PWD; hash -r; }; conda activate',
        "exec sh",
        "exec bash --rcfile /dev/null",
        "kill -TSTP $$",
        "ulimit -c 0; umask 077; cd /proc/self; LC_ALL=C",
        "exec 255>&-",
    ],
)
def test_shell_survives(tmp_path: Path, damage: str) -> None:
    async def scenario(session: BashSession) -> None:
        assert (await run(session, damage, quiet_s=5)).ending == "finished"
        for n in (1, 2):
            done = await run(session, f"\\echo ok{n}; (exit {n})", quiet_s=5)
            assert (done.text, done.exit_code, done.ending) == (f"ok{n}\n", n, "finished")

    play(scenario, tmp_path)


def test_exec_bash(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "cd / && export KEPT=1")
        for command in ("exec bash", "exec bash --norc", "exec bash --norc --noediting"):
            done = await run(session, command)
            assert (done.ending, done.text) == ("finished", "")
            assert (await run(session, "echo $KEPT; pwd")).text == "1\n/\n"

    play(scenario, tmp_path, handover=handover)


def test_what_was_said_is_read_before_the_shell_is_called_mute(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        going = asyncio.ensure_future(run(session, "echo head; sleep 0.5; echo tail; (exit 3)"))
        await asyncio.wait({going}, timeout=0.4)
        time.sleep(0.5)  # the loop comes late: the command has ended, and nothing was read of that
        await session._look_after_shell()
        done = await going
        assert (done.text, done.exit_code) == ("head\ntail\n", 3)

    play(scenario, tmp_path)


@pytest.mark.parametrize(
    "asks", ["exec bash -c 'read x; echo got $x; exit 5'", "read x; echo got $x"]
)
def test_nothing_is_typed_into_what_reads_in_place_of_the_prompt(tmp_path: Path, asks: str) -> None:
    async def scenario(session: BashSession) -> None:
        assert (await run(session, asks, quiet_s=1.5)).ending == "quiet"
        await session.type(b"mine\r")
        done = await session.follow(quiet_s=10)
        assert done.text == "got mine\n"
        assert done.exit_code == (5 if "exit" in asks else 0)

    play(scenario, tmp_path)


def test_readonly_prompt_command_of_others_is_remarked_upon_once(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        done = await run(session, "readonly PROMPT_COMMAND='echo spam'")
        assert "PROMPT_COMMAND is read-only" in "".join(done.remarks)
        done = await run(session, "echo hi; (exit 3)")
        assert done.text.replace("spam\n", "") == "hi\n"
        assert (done.exit_code, done.remarks) == (3, ())

    play(scenario, tmp_path)


def test_interactive_child_shell_is_a_program_like_others(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        assert (await run(session, "bash --norc", quiet_s=0.5)).ending == "quiet"
        await session.type(b"echo in$((1+1))ner\r")
        await until_output(session, "in2ner")
        await session.type(b"exit 4\r")
        assert (await session.follow(quiet_s=10)).exit_code == 4
        assert (await run(session, "echo outer")).text == "outer\n"

    play(scenario, tmp_path)


def test_traces_show_no_machinery(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "set -x")
        for _ in range(2):
            assert (await run(session, "echo hi")).text == "++ echo hi\nhi\n"
        await run(session, "set +x; set -v")
        for _ in range(2):
            assert (await run(session, "echo hi")).text == "echo hi\nhi\n"
        assert "/proc" not in (await run(session, "no_such_command; if then")).text

    play(scenario, tmp_path)


def test_shell_death_is_noticed(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        for command, status in (
            ("echo bye; exit 3", 3),
            ("kill -9 $$", 137),
            ("exec sh -c 'exit 5'", 5),
        ):
            done = await run(session, command)
            assert (done.ending, done.exit_code, bool(done.replaced)) == ("died", status, True)
            assert (await run(session, "echo alive")).text == "alive\n"

    play(scenario, tmp_path, handover=handover)


def test_death_with_a_background_job_on_the_terminal(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        started = time.monotonic()
        done = await run(session, "sleep 6262 & exit 4")
        assert (done.ending, done.exit_code) == ("died", 4)
        assert time.monotonic() - started < 5

    play(scenario, tmp_path)


def test_death_between_commands(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "cd /")
        assert session.pid
        shell = psutil.Process(session.pid)
        shell.kill()
        while shell.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)
        done = await run(session, "pwd")
        assert (done.text, bool(done.replaced)) == (f"{tmp_path}\n", True)
        assert not (await run(session, "true")).replaced

    play(scenario, tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "echo go; sleep 6161",
        "echo go; python3 -c 'while True: pass'",
        "echo go; python3 -c 'import time; time.sleep(6161)'",
        "echo go; read x",
        "echo go; while :; do :; done",
        "echo go; cat",
        "echo go; sleep 6161 | sleep 6161; echo never",
        "PROMPT_COMMAND=none; echo go; sleep 6161",
        "stty -isig; echo go; sleep 6161",
    ],
)
def test_interrupt(tmp_path: Path, handover: Handover, command: str) -> None:
    async def scenario(session: BashSession) -> None:
        task = asyncio.ensure_future(run(session, command, timeout_s=0.2))
        await task
        started = time.monotonic()
        done = await session.interrupt(2)
        assert time.monotonic() - started < 2
        assert (done.ending, done.exit_code) == ("finished", 130)
        assert "never" not in done.text
        assert (await run(session, "echo fine")).text == "fine\n"

    play(scenario, tmp_path, handover=handover)


def test_interrupt_that_is_ignored_is_not_called_a_success(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "trap '' INT; echo go; sleep 1.5; trap - INT; echo end", timeout_s=0.3)
        still = await session.interrupt(0.3)
        assert (still.ending, still.exit_code) == ("timeout", None)
        done = await session.follow(quiet_s=10)
        assert (done.text, done.exit_code) == ("end\n", 0)
        assert (await run(session, "echo fine")).text == "fine\n"

    play(scenario, tmp_path)


def test_many_interrupts_at_awkward_moments(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        for n in range(40):
            await run(session, f"sleep 0.0{n % 10}", timeout_s=0.01 * (n % 7))
            if session.running:
                assert (await session.interrupt(5)).ending == "finished"
            else:
                await session.type(b"\x03")  # at the prompt, as if it had come too late
            done = await run(session, f"echo {n}")
            assert (done.text.strip("\n"), done.exit_code) == (str(n), 0)

    play(scenario, tmp_path, handover=handover)


def test_input_left_unread_is_not_run(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "read -p 'sure? ' a; echo a=$a", quiet_s=0.3)
        await session.type(b"y\rtouch oops\rtouch again; hal")
        assert (await session.follow(quiet_s=10)).text == "a=y\n"
        assert (await run(session, "ls")).text == ""
        await run(session, "sleep 0.5", timeout_s=0.1)
        await session.type(b"half\x04\x04")
        assert (await session.follow(quiet_s=10)).exit_code == 0
        assert (await run(session, "echo here")).text == "here\n"

    play(scenario, tmp_path, handover=handover)


def test_input_that_nobody_reads_does_not_block(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "stty raw -echo; sleep 6161", timeout_s=0.3)
        assert await session.type(b"x" * 1_000_000) < 1_000_000
        assert (await session.interrupt(2)).exit_code == 130

    play(scenario, tmp_path)


def test_output_comes_live_and_once(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        seen: list[str] = []
        command = "for i in 1 2 3; do echo line$i; sleep 0.2; done"
        first = await run(session, command, timeout_s=0.3, on_output=seen.append)
        assert first.ending == "timeout"
        assert "line1\n" in "".join(seen)
        rest = await session.follow(quiet_s=10, on_output=seen.append)
        assert first.text + rest.text == "".join(seen) == "line1\nline2\nline3\n"

    play(scenario, tmp_path)


def test_quiet_counts_from_the_last_output(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        started = time.monotonic()
        done = await run(session, "for i in 1 2 3 4; do echo $i; sleep 0.3; done", quiet_s=1)
        assert done.ending == "finished"
        assert (await run(session, "sleep 6161", quiet_s=0.4)).ending == "quiet"
        assert time.monotonic() - started < 5
        await session.interrupt()

    play(scenario, tmp_path)


def test_background_output_between_commands_is_not_lost(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "(sleep 0.2; echo late) & true")
        end = time.monotonic() + 10
        texts = ""
        while "late" not in texts and time.monotonic() < end:
            await asyncio.sleep(0.05)
            done = await run(session, "true")
            texts += done.text
        assert texts.splitlines().count("late") == 1

    play(scenario, tmp_path)


@pytest.mark.parametrize(
    "bashrc", ["exit 1", "exec sleep 6161", "set -e; false", "set -u; exec 2>/dev/null; echo noise"]
)
def test_bashrc_cannot_break_the_shell(tmp_path: Path, bashrc: str) -> None:
    (tmp_path / ".bashrc").write_text(f"export FROM_RC=1\n{bashrc}\n")

    async def scenario(session: BashSession) -> None:
        done = await run(session, "echo ok")
        assert (done.text, done.exit_code) == ("ok\n", 0)

    play(scenario, tmp_path, env={**os.environ, "HOME": str(tmp_path)}, start_s=1.0)


def test_bashrc_is_read_and_our_python_stays_first(tmp_path: Path) -> None:
    rc = "export FROM_RC=1 PAGER=less PATH=/usr/bin:$PATH; alias rm='rm -i'; echo hello\n"
    (tmp_path / ".bashrc").write_text(rc)

    async def scenario(session: BashSession) -> None:
        done = await run(session, "echo $FROM_RC $PAGER; touch x; rm x; ls -A")
        assert done.text == "1 cat\n.bashrc\n"
        assert session.python == sys.executable

    play(scenario, tmp_path, env={**os.environ, "HOME": str(tmp_path)})


def test_close_ends_everything(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        stubborn = "bash -c 'trap \"\" INT HUP TERM TSTP; while :; do sleep 0.1; done'"
        await run(session, f"{stubborn} & nohup sleep 6464 >/dev/null 2>&1 &")
        await run(session, "sleep 6565", timeout_s=0.2)
        await session.close()
        await session.close()
        assert session.pid is None
        assert (await run(session, "echo again")).text == "again\n"

    play(scenario, tmp_path)
    for process in psutil.process_iter(["cmdline"]):
        assert process.info["cmdline"] not in (["sleep", "6464"], ["sleep", "6565"])


def test_kill_at_once(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "sleep 6666 & sleep 6767", timeout_s=0.2)
        session.kill()
        assert not session.running

    play(scenario, tmp_path)


def test_start_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("sleep 6868\n")

    async def scenario(session: BashSession) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run(session, "echo x"), 0.3)
        assert session.pid is None

    play(scenario, tmp_path, env={**os.environ, "HOME": str(tmp_path)})


def test_missing_folder_or_bash_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    async def missing_folder(session: BashSession) -> None:
        with pytest.raises(SessionError, match="nowhere does not exist"):
            await run(session, "true")

    async def missing_bash(session: BashSession) -> None:
        with pytest.raises(SessionError, match="no-such-bash could not be started"):
            await run(session, "true")

    play(missing_folder, tmp_path / "nowhere")
    play(missing_bash, tmp_path, bash="no-such-bash")


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_many_commands_leak_nothing(tmp_path: Path, handover: Handover, count: int) -> None:
    async def scenario(session: BashSession) -> None:
        await run(session, "true")
        fds = len(os.listdir("/proc/self/fd"))
        for n in range(count):
            done = await run(session, f"echo {n}; (exit {n % 7})")
            assert (done.text, done.exit_code) == (f"{n}\n", n % 7)
        assert len(os.listdir("/proc/self/fd")) == fds
        # It still undoes the redirections of its record when that has been read.
        end = time.monotonic() + 10
        while set(os.listdir(f"/proc/{session.pid}/fd")) != {"0", "1", "2", "255"}:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    with measured(f"commands in one shell, handed over by {handover}", tries=count):
        play(scenario, tmp_path, handover=handover)


@pytest.mark.parametrize("name", ["\x1f\x1d\x1e", "new\nline", "%s\\033[31m", "日本 ç"])
def test_folder_may_have_any_name(tmp_path: Path, handover: Handover, name: str) -> None:
    (tmp_path / name).mkdir()

    async def scenario(session: BashSession) -> None:
        done = await run(session, "cd */ && (exit 4)")
        assert (done.ending, done.exit_code) == ("finished", 4)
        assert session.cwd == str(tmp_path / name)
        assert (await run(session, "echo on")).text == "on\n"

    play(scenario, tmp_path, handover=handover)


def test_commands_that_unset_every_function_end(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        for command in ("unset -f $(compgen -A function); (exit 3)", "exec env -i bash --norc"):
            assert (await run(session, command)).ending == "finished"
        done = await run(session, "export PAGER=less; unset -f __oh_rearm; false")
        assert (done.ending, done.exit_code) == ("finished", 1)
        assert (await run(session, "echo $PAGER")).text == "less\n"

    play(scenario, tmp_path, handover=handover)


def test_bashrc_for_shells_with_a_prompt_can_be_sourced_again(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        (tmp_path / "rc").write_text('[ -z "$PS1" ] && return\nADDED=yes\n')
        done = await run(session, 'source ./rc; echo "[$ADDED]"')
        assert done.text == "[yes]\n"

    play(scenario, tmp_path)


def test_shell_that_stops_itself_goes_on(tmp_path: Path, handover: Handover) -> None:
    async def scenario(session: BashSession) -> None:
        done = await run(session, "kill -STOP $$; echo woken; (exit 5)")
        assert (done.ending, done.text, done.exit_code) == ("finished", "woken\n", 5)
        assert (await run(session, "suspend -f")).ending == "finished"
        # Stopped while another group has the terminal.
        done = await run(session, "kill -STOP $$ & sleep 0.1; echo woken", quiet_s=5)
        assert done.ending == "finished"
        assert done.text.endswith("woken\n")
        assert (await run(session, "echo on")).text == "on\n"

    play(scenario, tmp_path, handover=handover)


def test_interrupt_while_a_program_is_being_started(tmp_path: Path) -> None:
    async def scenario(session: BashSession) -> None:
        for _ in range(40):  # about every tenth C-c used to strike before the program was there
            printed = asyncio.Event()
            running = asyncio.ensure_future(
                session.run("echo on; sleep 1000", on_output=lambda text, it=printed: it.set())
            )
            await asyncio.wait_for(printed.wait(), 10)
            running.cancel()
            await asyncio.wait({running})
            done = await session.interrupt(5)
            assert (done.ending, done.exit_code) == ("finished", 130)

    play(scenario, tmp_path)


def fields_of(pieces: list[bytes | Record]) -> tuple[bytes, list[Record]]:
    output = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    return output, [piece for piece in pieces if isinstance(piece, Record)]


def test_records_are_found_wherever_pieces_are_cut() -> None:
    fields = (b"3", b"1", b"77", b"", b"/a b\r\nc\x1d\x1f", b"/bin", b"p> ")
    record = b"\x1etoken" + b"\x1dtoken".join(fields) + b"\x1ftoken"
    data = b"out\x1e\x1etok" + record + b"after"
    for cut in range(len(data)):
        scanner = RecordScanner(b"token")
        pieces = [*scanner.feed(data[:cut]), *scanner.feed(data[cut:])]
        output, records = fields_of(pieces)
        assert output == b"out\x1e\x1etokafter"
        assert records == [Record(3, True, 77, "", "/a b\nc\x1d\x1f", "/bin", b"p> ")]


def test_imitated_records_are_output() -> None:
    scanner = RecordScanner(b"token")
    for fake in (b"\x1etoken\x1d" + b"x" * 300_000, b"\x1eother\x1d0\x1d\x1f", b"token\x1d0"):
        output, records = fields_of(list(scanner.feed(fake)))
        assert records == []
        assert output == fake
