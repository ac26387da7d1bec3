"""The widget holds no markup, takes one decision an item, and leaves a static form behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oh_kernel.views.diff import Diff
from oh_kernel.views.diff_widget import DiffWidget
from tests.unit.shown import Shown

EDIT = Diff("a.py", "x = 1\n", "x = 2\n")
HOSTILE = Diff('x"><b>.html', "<p>old</p>\n", "<img src=x onerror=alert(1)></script><style>&\n")


def click(widget: DiffWidget, item_id: object, accepted: object, **more: Any) -> None:
    """A message of the front end, as ipywidgets hands it over."""
    content = {"type": "decide", "id": item_id, "accepted": accepted, **more}
    widget._handle_custom_msg(content, [])


def states(widget: DiffWidget) -> dict[str, str]:
    return {item_id: state["state"] for item_id, state in json.loads(widget.states).items()}


def test_a_click_reaches_the_callback_once() -> None:
    decisions: list[tuple[str, bool, str]] = []
    widget = DiffWidget(lambda *decision: decisions.append(decision))
    widget.add_edit("e1", [EDIT], "applied")
    click(widget, "e1", False, reason=" too early ")
    click(widget, "e1", True)
    assert decisions == [("e1", False, "too early")]
    widget.set_state("e1", "rejected", "taken back")
    click(widget, "e1", True)
    assert len(decisions) == 1
    assert states(widget) == {"e1": "rejected"}
    widget.set_state("e1", "applied")
    click(widget, "e1", True)
    assert decisions[1:] == [("e1", True, "")]


@pytest.mark.parametrize(
    "message",
    [(None, True), ("nobody", True), (["e1"], True), ("e1", "yes"), ("e1", 1), ("e1", None)],
)
def test_messages_that_decide_nothing_are_passed_over(message: tuple[object, object]) -> None:
    decisions: list[object] = []
    widget = DiffWidget()
    widget.on_decision(lambda *decision: decisions.append(decision))
    widget.add_edit("e1", [EDIT], "waiting")
    click(widget, *message)
    assert decisions == []
    assert widget.open_items == ["e1"]


def test_UI_01_the_state_holds_no_markup_and_reads_the_same() -> None:
    widget = DiffWidget()
    widget.add_edit("e1", [HOSTILE], "waiting")
    widget.add_question("q1", "the command <svg>", lines=["Why: </textarea>"], code="<script>")
    for value in widget.get_state().values():
        for live in ("<img src=x", "<script", "</script", "<svg", "</textarea", "<style"):
            assert live not in str(value)
    edit, question = json.loads(widget.items)
    assert edit["title"] == 'x"><b>.html'
    lines = [sign + "".join(text for _, text in spans) for _, sign, _, _, spans in edit["rows"]]
    assert lines == ["-<p>old</p>", "+<img src=x onerror=alert(1)></script><style>&"]
    assert (question["title"], question["code"]) == ("the command <svg>", "<script>")


def test_closing_takes_the_buttons_and_leaves_words() -> None:
    widget = DiffWidget()
    widget.add_edit("e1", [EDIT], "applied")
    widget.add_edit("e2", [HOSTILE], "waiting")
    widget.close_open()
    assert states(widget) == {"e1": "accepted", "e2": "closed"}
    assert widget.open_items == []
    static = widget.static()
    assert set(static.bundle()) == {"text/html", "text/markdown", "text/plain"}
    assert "a.py: +1 −1 · kept" in static.text and "-x = 1\n+x = 2" in static.text
    assert "+<img src=x onerror=alert(1)></script><style>&" in Shown(static.html).text
    assert "not decided" in static.text
    short = widget.static(with_diffs=False)
    assert "a.py: +1 −1 · kept" in short.text and "-x = 1" not in short.text


def test_the_live_bundle_has_the_twins_beside_the_widget() -> None:
    widget = DiffWidget()
    widget.add_edit("e1", [EDIT], "waiting")
    bundle = widget.live_bundle()
    view = bundle["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == widget.model_id == widget.comm.comm_id
    assert "+x = 2" in bundle["text/plain"] and "waiting" in bundle["text/html"]


def test_an_id_is_shown_once() -> None:
    widget = DiffWidget()
    widget.add_edit("e1", [EDIT], "waiting")
    with pytest.raises(ValueError, match="already shown"):
        widget.add_edit("e1", [EDIT], "waiting")


def test_an_edit_of_several_files_is_one_item() -> None:
    widget = DiffWidget()
    widget.add_edit("e1", [EDIT, Diff("b.py", None, "y\n")], "waiting")
    (item,) = json.loads(widget.items)
    assert (item["title"], item["headline"]) == ("a.py, b.py", "2 files, +2 −1")
    lines = [sign + "".join(text for _, text in spans) for _, sign, _, _, spans in item["rows"]]
    expected = [" a.py: +1 −1", "-x = 1", "+x = 2", " b.py: new file, +1 −0", "+y"]
    assert lines == expected
    assert "+x = 2" in widget.static().text and "+y" in widget.static().text
    widget.add_edit("e2", [Diff(f"{n}.py", "", "z\n") for n in range(9)], "waiting")
    assert json.loads(widget.items)[1]["title"] == "0.py, 1.py, 2.py, 3.py and 5 more"
