"""Does a cell for the agent reach it exactly as typed, in a shell that transforms what it can?"""

import ast
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from oh_kernel.kernel import front
from oh_kernel.kernel.transform import CellTransform, agent_call

TRICKY = [
    ">>> print(1)\n... 2",
    "In [1]: x\nOut[1]: 2",
    "    indented\n  less\n",
    "why?",
    "why??\n",
    "!ls {x} $y",
    "%time 1",
    "%%openhands\nagain",
    "'''\"\"\"'\\",
    "\\",
    "tab\tand\x0cfeed\x0b\x1c\u2028end",
    "a\r\nb\rc",
    "\n\nblank first",
    "trailing\n\n\n",
    "",
    "\n",
    "naïve 日本 🎉 \ud800",
    "x = %openhands",
    "# -*-",
]

bodies = st.text() | st.lists(st.sampled_from(TRICKY) | st.text(), min_size=1, max_size=4).map(
    "\n".join
)


class Asked:
    """What the agent's side was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []

    async def __call__(self, line: str, body: str | None, shell: object) -> object:
        self.calls.append((line, body))
        return None


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


@pytest.fixture(scope="module")
def shell(asked: Asked) -> Iterator[InteractiveShell]:
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    front.install(shell, run_cell=asked)
    yield shell
    shell.history_manager.end_session()


def ask(shell: InteractiveShell, asked: Asked, cell: str) -> tuple[str, str | None]:
    asked.calls.clear()
    shell.run_cell(cell).raise_error()
    assert len(asked.calls) == 1, cell
    return asked.calls[0]


@given(bodies)
@example("plain")
def test_body_in_is_body_out(shell, asked, body):
    assert ask(shell, asked, f"%%openhands\n{body}") == ("", body)


def test_body_that_is_empty_or_absent(shell, asked):
    assert ask(shell, asked, "%%openhands do it") == ("do it", "")
    assert ask(shell, asked, "%%openhands") == ("", "")


@pytest.mark.parametrize("body", TRICKY)
@pytest.mark.parametrize("before", ["", "\n", "  \n\n", "   ", "\n\t"])
def test_leading_blanks_are_skipped(shell, asked, before, body):
    assert ask(shell, asked, f"{before}%%openhands --new\n{body}") == ("--new", body)


@given(bodies)
def test_awaited_literals_are_the_body(body):
    lines = f"%%openhands\n{body}".splitlines(keepends=True)
    call = agent_call(lines, awaited=True)
    assert call is not None
    (statement,) = ast.parse("".join(call)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Await)
    assert [ast.literal_eval(node) for node in statement.value.value.args] == ["", body]


@pytest.mark.parametrize(
    "task",
    ["status", "what is df?", "why {x} $y %z", "fix it; then test", "-- status", "sum(1, 2)"],
)
def test_single_line_is_the_task(shell, asked, task):
    assert ask(shell, asked, f"%openhands {task}") == (task, None)
    assert ask(shell, asked, f"\n  %openhands {task}\n\n") == (task, None)


@pytest.mark.parametrize(
    "cell",
    [
        "%openhands?",
        "%openhands??",
        "%%openhands?",
        "%openhandsome thing",
        "% openhands",
        "%%%openhands\nx",
        "x = %openhands status",
        "# first\n%%openhands\nx",
        "%openhands status\nprint(1)",
        "%%time\n%openhands status",
        "",
        "\n",
        "1 + 1",
    ],
)
def test_other_cells_are_left_alone(cell):
    lines = cell.splitlines(keepends=True)
    assert CellTransform(lambda: True)(lines) is lines


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("x = %openhands status of {y}", ("status of {y}", None)),
        ("%openhands go on\nprint('after')", ("go on", None)),
        ("%%time\n%openhands go on", ("go on", None)),
        ("get_ipython().run_cell_magic('openhands', '--new', 'a $b\\n')", ("--new", "a $b")),
    ],
)
def test_every_other_way_in_reaches_the_agent(shell, asked, capsys, cell, expected):
    assert ask(shell, asked, cell) == expected


def test_help_shows_the_usage(shell, asked, capsys):
    asked.calls.clear()
    shell.run_cell("%openhands?")
    assert "agent" in capsys.readouterr().out
    assert asked.calls == []


def test_console_waits_for_the_body(shell):
    """The cell is a magic to "is it complete?", not a finished await."""
    assert shell.check_complete("%%openhands")[0] == "incomplete"
    assert shell.check_complete("%%openhands\nfix 'it")[0] == "incomplete"
    assert shell.check_complete("%%openhands\nfix 'it\n\n")[0] == "complete"


def test_installing_twice_changes_nothing(shell):
    before = list(shell.input_transformers_cleanup)
    assert front.install(shell) is shell.openhands
    assert shell.input_transformers_cleanup == before
