"""A process that kills writers of files: `python -m tests.live.file_killer MODE FOLDER TIMES SEED`.

What is needed is imported once; each writer, and each process that looks at what the writer left,
is forked from here. Prints how often a file had to be put right. Fails on any mixture of contents.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor

MENDED, WHOLE = 10, 11
AIM_S = 0.0002
LINES = "".join(f"line {number} of a file that is long enough\n" for number in range(100_000))
OLD, NEW = f"short\n{LINES}", f"a much longer first line, which moves all others\n{LINES}"


def main() -> None:
    mode, folder, times, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    chance = random.Random(seed)
    path = prepare(folder, mode)
    mended = 0
    for _ in range(times):
        kill_a_writer(path, mode, chance)
        mended += look_in_child(path, mode)
    print(mended)


def prepare(folder: Path, mode: str) -> Path:
    path = folder / "f.txt"
    path.write_text(OLD)
    path.chmod(0o666)
    if mode == "linked":
        (folder / "other.txt").hardlink_to(path)
    if mode == "unwritable":
        folder.chmod(0o555)
    return path


def kill_a_writer(path: Path, mode: str, chance: random.Random) -> None:
    ready, write_end = os.pipe()
    writer = forked(lambda: write_for_ever(path, write_end), mode)
    os.close(write_end)
    assert os.read(ready, 1), "the writer wrote nothing"
    os.close(ready)
    time.sleep(chance.uniform(0, 0.05))
    if mode != "renamed" and chance.random() < 0.8:
        # Most of the time goes by waiting for the disk. Aim at the moment of the writing itself.
        wait_for_write(path)
        time.sleep(chance.uniform(0, AIM_S))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)


def wait_for_write(path: Path) -> None:
    """Return when the first bytes are being written over the old ones."""
    before, deadline = path.stat().st_mtime_ns, time.monotonic() + 10
    while path.stat().st_mtime_ns == before:
        assert time.monotonic() < deadline, "nothing is written in place"


def write_for_ever(path: Path, ready: int) -> None:
    executor = FileEditorExecutor(workspace=path.parent)
    first_lines = [text.partition("\n")[0] for text in (OLD, NEW)]
    if path.read_text() == NEW:
        first_lines.reverse()
    while True:
        old, new = first_lines
        action = FileEditorAction(
            command="str_replace",
            path=str(path),
            old_str=f"{old}\nline 0",
            new_str=f"{new}\nline 0",
        )
        answer = executor(action)
        assert not answer.is_error, answer.text
        os.write(ready, b".")
        first_lines.reverse()


def look(path: Path) -> bool:
    """Whether the file had to be put right; it must be whole now, and nothing lie beside it."""
    before = path.read_text()
    executor = FileEditorExecutor(workspace=path.parent)
    after = path.read_text()
    assert after in (OLD, NEW), "a mixture"
    assert before == after or before not in (OLD, NEW), "a whole file was changed"
    assert not [name for name in os.listdir(path.parent) if name.endswith(".tmp")], "litter"
    answer = executor(FileEditorAction(command="view", path=str(path), view_range=[1, 2]))
    assert ("was cut short" in answer.text) == (before != after)
    return before != after


def look_in_child(path: Path, mode: str) -> bool:
    child = forked(lambda: os._exit(MENDED if look(path) else WHOLE), mode)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (MENDED, WHOLE), "what the writer left is not whole"
    return status == MENDED


def forked(work: Callable[[], None], mode: str) -> int:
    """A child that does this and nothing else."""
    child = os.fork()
    if child:
        return child
    try:
        become_nobody(mode)
        work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def become_nobody(mode: str) -> None:
    """Rights on files mean nothing to root."""
    if mode == "unwritable" and os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


if __name__ == "__main__":
    main()
