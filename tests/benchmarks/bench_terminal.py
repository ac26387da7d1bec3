"""What does the terminal tool add to bash itself?

Each figure stands beside that of a bare loop over a bash on a pseudo-terminal, taken in turns with
it; the best of some rounds counts, as the machine may be busy. The home folder is empty.
usage: python tests/benchmarks/bench_terminal.py [--times 100] [--rounds 5]
"""

import argparse
import os
import re
import resource
import secrets
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pexpect

from oh_kernel.loop import run_blocking
from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor

BIG = "seq 1 1500000"  # 10.9 MB
BIG_MB = 10.9
PROMPT = r"""
PS1= PS2=
show_end() { printf '\036%s{"exit":%d,"cwd":"%s"}\037' @TOKEN@ $? "$PWD"; }
PROMPT_COMMAND=show_end
"""


class BareBash:
    """The least one can do: bash prints a token after each command, and that is read for."""

    def __init__(self, folder: Path) -> None:
        token = secrets.token_hex(6)
        (folder / "rc").write_text(PROMPT.replace("@TOKEN@", token))
        self._end = re.compile(b"\x1e" + token.encode() + rb"\{.*?\}\x1f")
        self._begin = b"\x1e" + token.encode()
        self._command = os.memfd_create("command")
        argv = ["--noprofile", "--rcfile", str(folder / "rc"), "--noediting", "-i"]
        self._bash = pexpect.spawn("bash", argv, echo=False, encoding=None)
        self._poll = select.poll()
        self._poll.register(self._bash.child_fd, select.POLLIN)
        self._read()

    def run(self, command: str) -> int:
        """How many bytes it printed."""
        os.ftruncate(self._command, 0)
        os.pwrite(self._command, command.encode() + b"\n", 0)
        os.write(self._bash.child_fd, b". /proc/%d/fd/%d\n" % (os.getpid(), self._command))
        return self._read()

    def _read(self) -> int:
        output, searched = bytearray(), 0
        while True:
            self._poll.poll()
            output += os.read(self._bash.child_fd, 65_536)
            at = output.find(self._begin, max(0, searched - 32))
            if at >= 0 and self._end.search(output, at):
                return at
            searched = len(output)

    def close(self) -> None:
        self._bash.close(force=True)
        os.close(self._command)


def ms(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def median(run: Callable[[], object], times: int) -> float:
    return statistics.median(ms(run) for _ in range(times))


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_loop(executor: TerminalExecutor, action: TerminalAction, times: int) -> float:
    """The median where the caller is on the agent's thread already, as a conversation is."""

    async def measure() -> float:
        context, took = ToolContext(executor.workspace), []
        for _ in range(times):
            started = time.perf_counter()
            await executor.run(action, context)
            took.append((time.perf_counter() - started) * 1e3)
        return statistics.median(took)

    return run_blocking(measure())


def noticed_after(executor: TerminalExecutor) -> float:
    """From the end of a command, as bash sees it, to its result, without what starting it takes."""
    done = executor(TerminalAction(command="sleep 1; echo $EPOCHREALTIME"))
    return (time.time() - float(done.text)) * 1e3


def first_result(folder: Path) -> float:
    """From making an executor to the result of its first command."""
    started = time.perf_counter()
    executor = TerminalExecutor(folder)
    executor(TerminalAction(command="true"))
    took = (time.perf_counter() - started) * 1e3
    executor.close()
    return took


def measure(folder: Path, times: int, rounds: int) -> list[tuple[str, str, str, bool]]:
    """Rows: what, measured, to reach, reached."""
    first_result(folder)  # imports are not part of the figure
    starts = [first_result(folder) for _ in range(rounds)]
    bare, executor = BareBash(folder), TerminalExecutor(folder)
    true, second = TerminalAction(command="true"), TerminalAction(command="sleep 1")
    executor(true)
    trips = [
        (
            median(lambda: bare.run("true"), times),
            median(lambda: executor(true), times),
            on_loop(executor, true, times),
        )
        for _ in range(rounds)
    ]
    bare_ms, called_ms, awaited_ms = (min(column) for column in zip(*trips, strict=True))
    late = [
        (ms(lambda: bare.run("sleep 1")) - 1000, ms(lambda: executor(second)) - 1000)
        for _ in range(rounds)
    ]
    bare_late_ms, late_ms = (statistics.median(column) for column in zip(*late, strict=True))
    noticed_ms = statistics.median(noticed_after(executor) for _ in range(rounds))
    big = TerminalAction(command=BIG, timeout=100)
    executor(big)  # what is kept of an output is allocated once
    before_mb = resident_mb()
    ours_s = [ms(lambda: executor(big)) / 1e3 for _ in range(rounds)]
    grown_mb = resident_mb() - before_mb
    bare_s, again_s = zip(
        *(
            (ms(lambda: bare.run(BIG)) / 1e3, ms(lambda: executor(big)) / 1e3)
            for _ in range(rounds)
        ),
        strict=True,
    )
    best_s = min(*ours_s, *again_s)
    rate = min(bare_s) / best_s
    executor.close()
    bare.close()
    start_ms, ratio = statistics.median(starts), called_ms / bare_ms
    return [
        ("bare loop, `true`", f"{bare_ms:.3f} ms", "", True),
        ("`true`, called", f"{called_ms:.3f} ms", "<= 1 ms", called_ms <= 1),
        ("... beside the bare loop", f"{ratio:.1f} x", "<= 5 x", ratio <= 5),
        ("`true`, awaited on the loop", f"{awaited_ms:.3f} ms", "", True),
        ("bare loop, `sleep 1` over its second", f"{bare_late_ms:.1f} ms", "", True),
        ("`sleep 1` over its second", f"{late_ms:.1f} ms", "", True),
        ("... of it after its end", f"{noticed_ms:.1f} ms", "<= 5 ms", noticed_ms <= 5),
        ("10.9 MB of output", f"{BIG_MB / best_s:.1f} MB/s", "", True),
        ("... beside the bare loop's rate", f"{rate:.2f} x", ">= 0.6 x", rate >= 0.6),
        ("... memory grows by", f"{grown_mb:.1f} MB", "< 20 MB", grown_mb < 20),
        ("new shell to first result", f"{start_ms:.1f} ms", "<= 50 ms", start_ms <= 50),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        rows = measure(Path(folder), options.times, options.rounds)
    print(f"| what (Python {sys.version.split()[0]}) | measured | to reach | reached |")
    print("|---|---|---|---|")
    for what, measured, wanted, reached in rows:
        print(f"| {what} | {measured} | {wanted} | {'yes' if reached else 'no'} |")


if __name__ == "__main__":
    main()
