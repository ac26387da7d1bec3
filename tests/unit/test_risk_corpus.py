"""The labelled commands and snippets: shape, counts, and that none is on both sides.

Only counts are asserted, so that a failure shows no text that is held back.
"""

from collections import Counter
from pathlib import Path

import pytest

from oh_kernel.events import SecurityRisk
from tests.risk_corpus import LabelledText, Name, read_corpus, read_lines, split

RISKS = {SecurityRisk.LOW, SecurityRisk.MEDIUM, SecurityRisk.HIGH}
HIGH = SecurityRisk.HIGH
BOTH: tuple[Name, Name] = ("known", "held_back")


def whole() -> list[LabelledText]:
    return [entry for name in BOTH for entry in read_corpus(name)]


@pytest.mark.parametrize("name", BOTH)
def test_each_line_has_a_text_a_risk_and_a_reason(name: Name) -> None:
    entries = read_corpus(name)
    assert {entry.risk for entry in entries} == RISKS
    assert {entry.tool for entry in entries} == {"terminal", "ipython"}
    assert not sum(1 for entry in entries if not entry.text.strip())
    assert not sum(1 for entry in entries if not 8 <= len(entry.why) <= 100)


def test_corpus_is_large_and_four_in_ten_are_high() -> None:
    entries = whole()
    high = sum(entry.risk is HIGH for entry in entries)
    assert len(entries) >= 330
    assert 0.35 <= high / len(entries) <= 0.45


@pytest.mark.parametrize("name", BOTH)
def test_near_misses_are_as_many_as_the_dangerous(name: Name) -> None:
    entries = read_corpus(name)
    high = [entry for entry in entries if entry.risk is HIGH]
    assert sum(entry.is_near_miss for entry in entries) >= len(high)
    assert not sum(entry.is_near_miss for entry in high)


def test_no_text_is_there_twice_also_not_with_other_blanks() -> None:
    counts = Counter("".join(entry.text.split()) for entry in whole())
    assert max(counts.values()) == 1


def test_a_third_of_each_stratum_is_held_back() -> None:
    held_back = Counter(entry.stratum for entry in read_corpus("held_back"))
    for stratum, count in Counter(entry.stratum for entry in whole()).items():
        assert abs(held_back[stratum] - count / 3) <= 1, stratum


def test_split_is_the_same_each_time_and_loses_nothing() -> None:
    entries = [
        LabelledText("terminal", f"echo {number}", risk, "shows a number")
        for risk in sorted(RISKS)
        for number in range(30)
    ]
    parts = split(entries)
    assert parts == split(entries)
    assert parts != split(entries, seed=1)
    assert set(parts["known"]) | set(parts["held_back"]) == set(entries)
    assert Counter(entry.risk for entry in parts["held_back"]) == dict.fromkeys(RISKS, 10)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"tool": "browser", "text": "ls", "risk": "LOW", "why": "lists"}', ValueError),
        ('{"tool": "terminal", "text": "ls", "risk": "NONE", "why": "lists"}', ValueError),
        ('{"tool": "terminal", "text": "ls", "risk": "LOW", "note": "lists"}', TypeError),
    ],
)
def test_line_of_another_shape_is_refused(
    tmp_path: Path, line: str, error: type[Exception]
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(line + "\n", "utf-8")
    with pytest.raises(error):
        read_lines(path)
