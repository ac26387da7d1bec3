"""Diffs say what changed, completely, and quickly also for long files."""

import random
import time
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentskills.changed_lines import changed_lines
from oh_kernel.views.diff import Diff, diff_html, diff_rows, render_diff, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\r\n", "\x0c\n"]), max_size=40)


def rebuilt(old: list[str], new: list[str]) -> list[str]:
    """`new`, made from `old` and the changes alone."""
    at, lines = 0, []
    for change in changed_lines(old, new):
        lines += old[at : change.i1] + new[change.j1 : change.j2]
        at = change.i2
    return lines + old[at:]


@given(old=LINES, new=LINES)
def test_changes_lead_from_old_to_new(old: list[str], new: list[str]) -> None:
    assert rebuilt(old, new) == new


@pytest.mark.parametrize("seed", range(5))
def test_changes_of_long_texts_lead_from_old_to_new(seed: int) -> None:
    chance = random.Random(seed)
    old = [f"{chance.randrange(900)}\n" for _ in range(3_000)]
    new = [line for line in old if chance.random() > 0.2] + ["end\n"]
    assert rebuilt(old, new) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n".join(map(str, range(20_000))), "\n".join(map(str, range(0, 20_000, 2)))),
        ("\n" * 20_000, "\n" * 19_000 + "x\n" * 1_000),
        ("a\nb\n" * 10_000, "b\nb\na\n" * 7_000),
    ],
)
def test_long_texts_take_no_longer_than_a_second(old: str, new: str) -> None:
    start = time.process_time()
    assert Diff("f", old, new).hunks
    assert time.process_time() - start < 1.0


def test_unified_is_what_diff_writes() -> None:
    old = "".join(f"{n}\n" for n in range(1, 31))
    new = old.replace("\n10\n", "\nten\n").replace("30\n", "30")
    assert unified(old, new, "n.txt").splitlines() == [
        "--- n.txt",
        "+++ n.txt",
        "@@ -7,7 +7,7 @@",
        " 7",
        " 8",
        " 9",
        "-10",
        "+ten",
        " 11",
        " 12",
        " 13",
        "@@ -27,4 +27,4 @@",
        " 27",
        " 28",
        " 29",
        "-30",
        "+30",
        "\\ No newline at end of file",
    ]


def test_new_empty_and_deleted_files() -> None:
    assert unified(None, "a\n", "f").splitlines()[:3] == ["--- /dev/null", "+++ f", "@@ -0,0 +1 @@"]
    assert unified("a\n", None, "f").splitlines()[:3] == ["--- f", "+++ /dev/null", "@@ -1 +0,0 @@"]
    assert unified("same\n", "same\n", "f") == ""
    assert Diff("f", None, "a\nb\n").headline == "new file, +2 −0"
    assert render_diff(Diff("f", None, "")).text == "(no change)"


def test_line_ends_are_shown_when_they_change() -> None:
    rows = diff_rows(Diff("f", "a\r\nb\r\n", "a\nb\r\n"))
    assert [(row.sign, row.text) for row in rows] == [("-", "a␍"), ("+", "a"), (" ", "b␍")]
    unchanged_ends = diff_rows(Diff("f", "a\r\nb\r\n", "c\r\nb\r\n"))
    assert [row.text for row in unchanged_ends] == ["a", "c", "b"]


def test_rows_are_numbered_and_coloured_and_the_rest_is_folded() -> None:
    old = "\n" * 10 + "def f():\n    return 1\n" + "\n" * 10
    rows = diff_rows(Diff("f.py", old, old.replace("1", "'x'")))
    assert rows[0].text == " 8 unchanged lines"
    assert rows[-1].text == " 7 unchanged lines"
    removed, added = (row for row in rows if row.sign in "+-")
    assert (removed.old, removed.new, added.old, added.new) == (12, None, None, 12)
    assert ("s", "'x'") in added.spans


def test_long_diffs_and_long_lines_say_how_much_is_missing() -> None:
    long = Diff("f", "", "x\n" * 5_000)
    assert len(diff_rows(long, max_rows=100)) == 101
    assert "+5000" in diff_rows(long, max_rows=100)[-1].text
    assert "Shortened here" in render_diff(long, max_rows=100).text
    (row,) = diff_rows(Diff("f", "", "y" * 3_000 + "\n"))
    assert row.text.endswith("… 2,000 more characters")
    assert len(diff_html(Diff("f", "", "z" * 10**6))) < 5_000


def test_nothing_in_a_diff_acts_as_markup() -> None:
    diff = Diff('x"><b>.html', "<p>old</p>\n", "<script>alert(1)</script>\x1b[31m\n")
    shown = render_diff(diff)
    assert "<script" not in shown.html and "<p>" not in shown.html
    assert "<script>alert(1)</script>␛[31m" in "".join(
        ElementTree.fromstring(shown.html).itertext()
    )
    assert "\x1b" not in shown.text + shown.html + shown.markdown
