"""Did the agent run tests, and did they pass?

Told from the words of its commands and from what test programs are known to print. It is meant to
be right when it says so, and says nothing of what it does not know.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from oh_kernel.events import Action, ActionEvent, Event, MessageEvent, ObservationEvent

# What stands in front of a command and runs it.
_WRAPPERS = (
    "time",
    "env",
    "nice",
    "nohup",
    "timeout",
    "sudo",
    "command",
    "xvfb-run",
    "npx",
    "bunx",
)
_RUNNERS = ("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "bundle", "coverage")
_PROGRAMS = (
    *("pytest", "py.test", "unittest", "nose2", "tox", "nox"),
    *("jest", "vitest", "mocha", "ctest", "phpunit", "rspec", "bats"),
)
_PACKAGE_PROGRAMS = ("npm", "yarn", "pnpm", "bun")
_WITH_TARGETS = ("make", "just", "rake", "mvn", "gradle", "gradlew", "cargo", "go", "dotnet", "mix")
_TARGETS = ("test", "tests", "check", "nextest")
_RUNS_NOTHING = ("--version", "--help", "-h", "--collect-only", "--co", "--no-run")

_FAILED = re.compile(
    r"\b\d+ (?:failed|errors?)\b.* in [\d.:]+|ExitCode\.TESTS_FAILED"  # pytest
    r"|^FAILED \((?:failures|errors)"  # unittest
    r"|^ *Tests?:? .*\b\d+ failed"  # jest, vitest
    r"|^test result: FAILED|^(?:--- )?FAIL\b|\btests passed, [1-9]\d* tests failed",  # Rust, Go, C
    re.MULTILINE,
)
_PASSED = re.compile(
    r"\b\d+ passed\b.* in [\d.:]+|ExitCode\.OK|^OK\b|^ *Tests?:? .*\b\d+ passed"
    r"|^test result: ok|^ok\s+\S+\s|100% tests passed",
    re.MULTILINE,
)
_NOTHING_RAN = re.compile(r"\bno tests ran\b|^Ran 0 tests", re.MULTILINE)
_IN_PYTHON = re.compile(r"\bpytest\.main\(|\bunittest\.main\(|[\"'](?:pytest|unittest)[\"']")


@dataclass(frozen=True)
class RunOfTests:
    """A command that ran tests. `changed_since`: files were edited after it."""

    command: str
    passed: bool
    changed_since: bool = False


def last_run_of_tests(events: Sequence[Event]) -> RunOfTests | None:
    """The last one since the user spoke whose outcome is known. Looks back no further."""
    results: dict[str, ObservationEvent] = {}
    changed = False
    for event in reversed(events):
        match event:
            case MessageEvent(source="user"):
                return None
            case ObservationEvent():
                results[event.tool_call_id] = event
                changed = changed or bool(event.observation.edits())
            case ActionEvent(action=Action() as action):
                command = command_of_tests(action)
                result = results.get(event.tool_call_id)
                passed = _passed(result) if command and result else None
                if passed is not None:
                    return RunOfTests(command, passed, changed)
    return None


def command_of_tests(action: Action) -> str:
    """The command in a call that runs tests, "" if there is none."""
    command, code = (getattr(action, name, None) for name in ("command", "code"))
    if isinstance(command, str) and getattr(action, "is_input", None) is False:
        return command if runs_tests(command) else ""
    if isinstance(code, str):
        lines = [line.strip() for line in code.splitlines()]
        shell = (line[1:] for line in lines if line.startswith("!") and runs_tests(line[1:]))
        python = (line for line in lines if _IN_PYTHON.search(line))
        return next(shell, next(python, ""))
    return ""


def runs_tests(command: str) -> bool:
    """Whether a shell command runs tests.

    >>> runs_tests("cd src && timeout 60 python -m pytest -q | tail"), runs_tests("grep pytest a")
    (True, False)
    """
    from oh_kernel.tools.shell_syntax import syntax_tree  # tree-sitter, a native library

    return any(_is_test(words) for words in _commands(syntax_tree(command)))


def _commands(node: Any) -> Iterator[list[str]]:
    """The words of each simple command below `node`, as they are written."""
    if node.type == "command":
        parts = [child for child in node.children if child.type != "variable_assignment"]
        yield [part.text.decode("utf-8", "replace").strip("'\"") for part in parts]
    for child in node.children:
        yield from _commands(child)


def _is_test(words: list[str]) -> bool:
    words = _unwrapped(words)
    if not words or any(word in _RUNS_NOTHING for word in words):
        return False
    program, rest = _name(words[0]), words[1:]
    if program in _PROGRAMS:
        return True
    if program.startswith("python"):
        return any(re.fullmatch(r"(?:test_\w+|\w+_test|runtests)\.py", _name(w)) for w in rest[:1])
    if program in _PACKAGE_PROGRAMS:
        script = rest[1:2] if rest[:1] == ["run"] else rest[:1]
        return any(word == "t" or word.startswith("test") for word in script)
    return program in _WITH_TARGETS and any(word in _TARGETS for word in rest)


def _unwrapped(words: list[str]) -> list[str]:
    """The words of what is run in the end: a program, or the module of `python -m`."""
    while words:
        program = _name(words[0])
        if program in _WRAPPERS:
            words = words[1:]
            while words and re.match(r"-|\d+[smh]?$|\w+=", words[0]):
                words = words[1:]
        elif program in _RUNNERS and words[1:2] in (["run"], ["exec"]):
            words = ["python", *words[2:]] if words[2:3] == ["-m"] else words[2:]
        elif program.startswith("python") and words[1:2] == ["-m"]:
            return words[2:]
        else:
            return words
    return words


def _name(word: str) -> str:
    return PurePosixPath(word).name


def _passed(result: ObservationEvent) -> bool | None:
    """By the summary that test programs print, else by the exit code; None if that is not known."""
    text = result.observation.text
    if _FAILED.search(text):
        return False
    if _PASSED.search(text):
        return True
    exit_code = getattr(result.observation, "exit_code", None)
    if exit_code is None or exit_code < 0 or _NOTHING_RAN.search(text):
        return None
    return bool(exit_code == 0)
