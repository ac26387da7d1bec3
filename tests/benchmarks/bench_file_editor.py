"""How fast are views and edits of large files? `python -m tests.benchmarks.bench_file_editor`"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oh_kernel.store import EventStore
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files

ROUNDS = 9
LINE = "line {:07d} the quick brown fox jumps over the lazy dog 0123456789 abcdefgh\n"
SIZES = {"0.01 MB": 10_000, "1 MB": 1_000_000, "9 MB": 9_000_000}
TARGETS_MS = {("9 MB", "view 100 lines"): 10, ("9 MB", "str_replace"): 90}


def main() -> None:
    print("| file | work | history | median ms | best ms | to reach |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, EventStore.open(Path(name) / "events.db") as store:
        folder = Path(name)
        for size, length in SIZES.items():
            path = folder / f"{length}.txt"
            in_store = Files(folder, history=store.edits_of("c"))
            for history, files in (("memory", None), ("store", in_store)):
                lines = write_lines(path, length)
                executor = FileEditorExecutor(workspace=folder, files=files)
                for work, times in measurements(executor, path, lines):
                    target = TARGETS_MS.get((size, work), "")
                    median, best = statistics.median(times), min(times)
                    print(f"| {size} | {work} | {history} | {median:.2f} | {best:.2f} | {target} |")


def write_lines(path: Path, length: int) -> int:
    count = length // len(LINE.format(0)) + 1
    path.write_text("".join(map(LINE.format, range(1, count + 1))))
    return count


def measurements(
    executor: FileEditorExecutor, path: Path, lines: int
) -> Iterator[tuple[str, list[float]]]:
    """What was done and how many milliseconds each round took; the first one does not count."""
    deep = lines * 3 // 4
    rounds = iter(range(deep, lines))

    def call(command: Any, **arguments: Any) -> None:
        answer = executor(FileEditorAction(command=command, path=str(path), **arguments))
        assert not answer.is_error, answer.text[:300]

    def replace() -> None:
        old = f"line {next(rounds):07d} the"
        call("str_replace", old_str=old, new_str=old.upper())

    data = path.read_bytes()
    yield "(write and fsync alone)", timed(lambda: write_and_sync(path.with_suffix(".other"), data))
    yield "view", timed(lambda: call("view"))
    last = min(deep + 99, lines)
    yield "view 100 lines", timed(lambda: call("view", view_range=[deep, last]))
    yield "str_replace", timed(replace)
    yield "insert", timed(lambda: call("insert", insert_line=lines // 3, new_str="a new line"))
    yield "undo_edit", timed(lambda: call("undo_edit"))


def write_and_sync(path: Path, data: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(data)
        os.fsync(file.fileno())


def timed(work: Callable[[], None]) -> list[float]:
    def once() -> float:
        began = time.perf_counter()
        work()
        return (time.perf_counter() - began) * 1000

    return [once() for _ in range(ROUNDS + 1)][1:]


if __name__ == "__main__":
    main()
