"""Diffs are as `diff -u` writes them, for texts of any form and in bounded time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentskills.unified import unified_diff
from tests.experiments import count


def test_unified_diff_names_only_what_changed() -> None:
    assert unified_diff("a\nb\nc\n", "a\nB\nc\n", "f.py", context=1) == (
        "--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    )
    assert unified_diff("same\n", "same\n") == ""


@settings(max_examples=count(300, long=20_000), deadline=None)
@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1),
    st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1),
    st.integers(0, 3),
)
def test_what_it_says_leads_from_one_text_to_the_other(
    old: list[str], new: list[str], context: int
) -> None:
    rows = unified_diff("\n".join(old), "\n".join(new), "f", context=context).split("\n")
    assert applied(old, rows[2:]) == new


def applied(old: list[str], rows: list[str]) -> list[str]:
    """What a diff makes of a text, by its own line numbers."""
    new: list[str] = []
    at = 0
    for row in rows:
        if row.startswith("@@"):
            first, _, length = row.split()[1][1:].partition(",")
            start = int(first) - (length != "0")
            new += old[at:start]
            at = start
        elif row[0] == "+":
            new.append(row[1:])
        else:
            assert old[at] == row[1:]
            new += [old[at]] if row[0] == " " else []
            at += 1
    return new + old[at:]


@pytest.mark.timeout(30)  # difflib alone takes minutes
def test_many_small_changes_are_told_in_bounded_time() -> None:
    lines = [str(number) for number in range(40_000)]
    diff = unified_diff("\n".join(lines), "\n".join(lines[1::2]))
    assert diff.count("\n-") == 20_000
