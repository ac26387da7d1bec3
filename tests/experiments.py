"""Experiments that are repeated: few times in every run, in full by `make test-long`.

The full runs write their counts to docs/measurements.md, a line each.
"""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

LONG = os.environ.get("OH_LONG") == "1"
MEASUREMENTS = Path(__file__).parents[1] / "docs" / "measurements.md"
HEADER = """# Measurements

Written by `make test-long` (and `make bench` for what says so): what was counted, how often it
failed, and when. Times are of a shared machine with two cores; compare them with each other only.

| what | figures | when |
|---|---|---|
"""


def count(usual: int, *, long: int) -> int:
    """How often an experiment is repeated in this run."""
    return long if LONG else usual


@contextmanager
def measured(what: str, **figures: object) -> Iterator[dict[str, object]]:
    """An experiment: its figures, those added to the yielded dictionary, failures and seconds."""
    began, failures = time.monotonic(), 1
    try:
        yield figures
        failures = 0
    finally:
        seconds = round(time.monotonic() - began)
        record(what, **figures, failures=failures, seconds=seconds)


def record(what: str, **figures: object) -> None:
    """Note the figures of an experiment; a line for the same thing is replaced. Long runs only."""
    if not LONG:
        return
    text = MEASUREMENTS.read_text("utf-8") if MEASUREMENTS.exists() else HEADER
    lines = [line for line in text.splitlines() if not line.startswith(f"| {what} |")]
    words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
    when = f"{date.today().isoformat()}, Python {platform.python_version()}"
    last_row = max(at for at, line in enumerate(lines) if line.startswith("|"))
    lines.insert(last_row + 1, f"| {what} | {words} | {when} |")
    MEASUREMENTS.write_text("\n".join([*lines, ""]), "utf-8")
