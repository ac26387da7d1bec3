"""No kill of a writer, at any moment, leaves a file that is neither the old nor the new one."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments import count, measured

MODES = ["renamed", "linked", "unwritable"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "work").mkdir()
        (folder / "work").chmod(0o777)
        yield folder
        (folder / "work").chmod(0o777)


def kill_writers(mode: str, folder: Path, times: int, seed: int = 0) -> int:
    """How often a file had to be put right."""
    command = [sys.executable, "-m", "tests.live.file_killer", mode, str(folder / "work")]
    done = subprocess.run(
        [*command, str(times), str(seed)],
        env={**os.environ, "JUPYTER_DATA_DIR": str(folder / "data")},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.repeated
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", MODES)
def test_kill_leaves_the_old_or_the_new_file(mode: str, open_folder: Path) -> None:
    times = count(7, long=334)
    with measured(f"kill -9 of a process that writes a file ({mode})", kills=times) as figures:
        figures["put_right"] = kill_writers(mode, open_folder, times)
    assert mode != "renamed" or figures["put_right"] == 0
