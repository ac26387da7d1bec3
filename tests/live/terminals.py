"""IPython in a terminal and `jupyter console`, driven as a person does: by typing."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import psutil

from tests.live.agent_kernel import wait_until

PROMPT = r"In \[\d+\]: "
BIN = Path(sys.executable).parent
ARGV = {
    "terminal IPython": ["ipython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
    "jupyter console": [
        "jupyter-console",
        "--kernel=openhands",
        # It would start a viewer for plots.
        "--ZMQTerminalInteractiveShell.image_handler=stream",
        "--ZMQTerminalInteractiveShell.stream_image_handler=['sh', '-c', 'cat >/dev/null']",
    ],
}
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """One terminal; `shown` is all that has appeared in it."""

    def __init__(self, child: pexpect.spawn) -> None:
        self.child = child
        self.shown = ""

    def wait_for(self, pattern: str) -> None:
        self.child.expect(pattern)
        self.shown += _CONTROL.sub("", f"{self.child.before}{self.child.after}")

    def type(self, *lines: str) -> None:
        for line in lines:
            self.child.sendline(line)

    def interrupt(self) -> None:
        """Press C-c once the program waits.

        One that has shown what it will read, but does not read yet, would sleep through it.
        """
        program = psutil.Process(self.child.pid)
        wait_until(lambda: program.status() == psutil.STATUS_SLEEPING)
        self.child.sendintr()

    def run(self, cell: str) -> str:
        """Type a cell and wait for the next prompt; what appeared meanwhile."""
        self.begin(cell)
        return self.end()

    def begin(self, cell: str) -> None:
        self.type(*cell.split("\n"))
        if cell.startswith("%%"):
            self.type("", "")  # two empty lines end a cell that begins with a magic

    def end(self) -> str:
        before = len(self.shown)
        self.wait_for(PROMPT)
        return self.shown[before:]


@contextmanager
def terminal(kind: str, cwd: Path) -> Iterator[Terminal]:
    """A terminal at its first prompt, with the magics there; it has the caller's environment."""
    program, *arguments = ARGV[kind]
    # A dumb terminal gets text as it is, without cursor movements.
    env = {**os.environ, "TERM": "dumb", "PROMPT_TOOLKIT_NO_CPR": "1"}
    if kind == "terminal IPython":
        env["MPLBACKEND"] = "agg"  # or it would look for a screen
    child = pexpect.spawn(
        str(BIN / program),
        arguments,
        env=env,
        cwd=str(cwd),
        encoding="utf-8",
        timeout=40,
        dimensions=(50, 160),
    )
    try:
        opened = Terminal(child)
        opened.end()
        if kind == "terminal IPython":
            opened.run("%load_ext oh_kernel")
        yield opened
        opened.type("exit")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
