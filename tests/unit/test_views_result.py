"""The value of an agent cell says briefly how the turn ended."""

from __future__ import annotations

from oh_kernel.views.result import TurnResult
from tests.unit.shown import Shown


def test_the_result_says_what_it_took() -> None:
    result = TurnResult("finished", "42", "c1", 3, 1234, 0.0123, ("a<b>.py",))
    assert str(result) == "42"
    assert repr(result).splitlines() == [
        "finished · 3 steps · 1,234 tokens · $0.0123 · 1 file changed",
        "conversation c1",
        "changed: a<b>.py",
    ]
    shown = Shown(result._repr_html_())
    assert shown.text == "finished · conversation c1 · changed: a<b>.py"
    assert shown.tags == {"div"}


def test_an_unknown_cost_is_said_to_be_unknown() -> None:
    assert "cost unknown" in repr(TurnResult("paused", "", "c1", 1, 1))
