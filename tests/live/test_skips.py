"""A skip that nobody allowed fails the run, even when every other test passed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import allowed_patterns

# The source of a run of its own: what is skipped in it is what the run has to notice.
TEST = """
import pytest

def test_fine():
    assert "fine".isalpha()

@pytest.mark.skip(reason="no time")  # the skip that is looked for
def test_left_out():
    raise AssertionError
"""
PLUGIN = """
from tests.skips import Skips

def pytest_configure(config):
    config.pluginmanager.register(Skips({patterns}))
"""


@pytest.mark.parametrize(("patterns", "code"), [([], 1), (["*::test_left_out"], 0)])
def test_skips_are_counted(tmp_path: Path, patterns: list[str], code: int) -> None:
    (tmp_path / "test_x.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text(PLUGIN.format(patterns=patterns))
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert run.returncode == code, run.stdout
    assert ("skipped, but not in allowed_skips.txt" in run.stdout) == bool(code)


def test_an_allowed_skip_has_a_reason() -> None:
    assert allowed_patterns("# comment\n\na::b  # slow disk\n") == ["a::b"]
    with pytest.raises(ValueError, match="has no reason"):
        allowed_patterns("a::b\n")
