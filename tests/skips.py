"""No test is skipped unseen: a skip that tests/allowed_skips.txt does not name fails the run.

A line of that file is a pattern of node ids, a `#`, and the reason.
"""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


def allowed_patterns(text: str) -> list[str]:
    """The patterns in the file's text; ValueError for one without a reason."""
    patterns = []
    for line in text.splitlines():
        pattern, _, reason = line.partition("#")
        if pattern.strip() and not reason.strip():
            raise ValueError(f"{ALLOWED.name}: {pattern.strip()} has no reason behind a #")
        if pattern.strip():
            patterns.append(pattern.strip())
    return patterns


class Skips:
    """The skips of one run."""

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns
        self.unexpected: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._see(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._see(report.nodeid)

    def _see(self, nodeid: str) -> None:
        if not any(fnmatchcase(nodeid, pattern) for pattern in self.patterns):
            self.unexpected.append(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for nodeid in self.unexpected:
            terminalreporter.write_line(f"skipped, but not in {ALLOWED.name}: {nodeid}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Skips(allowed_patterns(ALLOWED.read_text("utf-8"))))
