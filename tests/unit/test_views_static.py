"""A turn that is over shows what was said and done, in three forms, and stays small."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import get_args

import pytest

from oh_kernel.conversation.calls import STOPPED_CALL
from oh_kernel.conversation.state import Status, status_event
from oh_kernel.events import (
    Condensation,
    ConversationErrorEvent,
    Event,
    InterruptEvent,
    LLMCompletionLogEvent,
    PauseEvent,
    UserRejectObservation,
    event_from_json,
)
from oh_kernel.views.blocks import render_block
from oh_kernel.views.calls import Call, CallState, call_of
from oh_kernel.views.static import MAX_SAVED_CHARS, render_turn
from oh_kernel.views.turn import Turn
from tests.unit.shown import Shown
from tests.unit.turns import action, answer, failed, finished, observed, reference_events, user


def test_the_reference_conversation_is_shown_whole() -> None:
    shown = render_turn(reference_events(), show_prompt=True)
    for text in (shown.text, shown.markdown, Shown(shown.html).text):
        for words in (
            "Fix the typo in bad.txt and add a script.",
            "I will look at the workspace first.",
            "list workspace files",
            "ls: cannot access 'nosuch': No such file or directory",
            "failed, exit 2, 1.2 s",
            "Tool 'nosuchtool' not found.",
            "Fixed the typo and added new.py.",
            "11 steps",
        ):
            assert words in text
    assert shown.text.count("\n-This is teh file.\n+This is the file.\n") == 1
    assert "unknown event" not in shown.text


def test_calls_fold_away_unless_they_failed_or_edited_or_list_tasks() -> None:
    shown = Shown(render_turn(reference_events()).html)
    #        ls     view   view   edit  fail  create fail  bad   none  plan
    assert shown.opened == [False, False, False, True, True, True, True, True, True, True]


def test_nothing_needs_styles_or_scripts() -> None:
    shown = Shown(render_turn(reference_events()).html)
    assert shown.tags.isdisjoint({"style", "script", "link", "img", "iframe"})
    for words in ("✓", "ok", "✗", "failed", "+This is the file.", "-This is teh file."):
        assert words in shown.text


def test_UI_01_untrusted_text_is_shown_as_text() -> None:
    path = '/w/x"><b>.html'
    old = "<p>old</p>\n<img src=x onerror=alert(1)></script><script>alert(2)</script>\n"
    new = old.replace("<p>old</p>", "<p>new & <i>bold</i></p>")
    printed = "<svg onload=alert(3)>\n</textarea><style>*{display:none}</style>\n"
    message = "plain text: see <script>alert(4)</script> and [link](javascript:alert(5))"
    edit = action("file_editor", {"command": "str_replace", "path": path, "old_str": "<p>old</p>"})
    change = {"command": "str_replace", "path": path, "old_content": old, "new_content": new}
    command = action("terminal", {"command": "printf '<svg onload=alert(3)>'"})
    events = [
        edit,
        observed(edit, "edited", **change),
        command,
        observed(command, printed, command="printf", exit_code=0),
        answer(message),
        finished(),
    ]
    shown = render_turn(events)
    for live in ("<img src=x", "<script", "</script", "<svg", "</textarea", "<style"):
        assert live not in shown.html
    html = Shown(shown.html)
    assert not any(link.strip().lower().startswith("javascript") for link in html.links)
    for line in [*new.splitlines(), *printed.splitlines(), 'x"><b>.html', "-<p>old</p>"]:
        assert line in html.text
    assert message in html.text
    lines = shown.text.splitlines()
    assert lines.count("-<p>old</p>") == 1
    assert lines.count("+<p>new & <i>bold</i></p>") == 1
    assert printed.strip() in shown.text and message in shown.text


def test_a_patch_is_shown_as_the_diff_of_each_file() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n-x\n+y\n*** End Patch"
    call = action("apply_patch", {"patch": patch})
    changes = {
        "a.py": {"type": "update", "old_content": "x\n", "new_content": "y\n", "move_path": "b.py"},
        "/w/new.py": {"type": "add", "new_content": "z\n"},
    }
    waiting = Turn.of([call], workspace=PurePath("/w"))
    assert isinstance(waiting.blocks[0], Call)
    assert (waiting.blocks[0].summary, waiting.blocks[0].code) == ("a.py, b.py", patch)
    events = [call, observed(call, "Done!", commit={"changes": changes})]
    turn = Turn.of(events, workspace=PurePath("/w"))
    assert turn.files_changed == ["a.py → b.py", "new.py"]
    shown = render_turn(events, workspace=PurePath("/w"))
    for text in (shown.text, shown.markdown, Shown(shown.html).text):
        assert "2 files, +2 −1" in text and "*** Begin Patch" not in text
        assert "-x" in text and "+y" in text and "+z" in text
        assert "a.py → b.py" in text and "new.py" in text


def test_a_first_empty_line_and_spaces_are_kept() -> None:
    call = action("terminal", {"command": "x"})
    html = render_turn([call, observed(call, "  a\n\n b ", exit_code=0)]).html
    assert "<code" in html and "  a\n\n b " in Shown(html).text


def test_states_are_said_in_words() -> None:
    ran, stopped, asked = (action("terminal", {"command": name}) for name in ("a", "b", "c"))
    rejected = UserRejectObservation(
        rejection_reason="not here",
        action_id="",
        tool_name="terminal",
        tool_call_id=ran.tool_call_id,
    )
    turn = Turn.of([ran, rejected, stopped, failed(stopped, STOPPED_CALL), PauseEvent(), asked])
    states = [block.state for block in turn.blocks if isinstance(block, Call)]
    assert states == ["rejected", "interrupted", "running"]
    turn.add(status_event(Status.WAITING_FOR_CONFIRMATION))
    assert turn.open_calls[0].state == "waiting"
    turn.end()
    assert turn.open_calls == []
    text = render_turn([ran, rejected, stopped, failed(stopped, STOPPED_CALL), PauseEvent()]).text
    assert "⊘ terminal: a (rejected)" in text and "not here" in text
    assert "■ terminal: b (interrupted)" in text and "Stopped by you." in text


@pytest.mark.parametrize("state", get_args(CallState))
def test_a_call_can_be_drawn_in_every_state(state: CallState) -> None:
    call = replace(call_of(action("terminal", {"command": "x"})), state=state)
    shown = render_block(call)
    assert f"({state}" in shown.text and state in Shown(shown.html).text


def test_a_stop_says_what_was_cut_and_a_death_belongs_to_its_own_turn() -> None:
    call = action("terminal", {"command": "sleep 9"})
    cut = "terminal `sleep 9` was stopped, 1 call was not started"
    stop = InterruptEvent(cut=cut)
    text = render_turn([call, failed(call, STOPPED_CALL), stop]).text
    assert "■ terminal: sleep 9 (interrupted)" in text and f"Stopped by you: {cut}." in text
    died = InterruptEvent(source="environment", cut="the kernel died")
    assert "Cut off: the kernel died." in render_turn([call, failed(call, "x"), died]).text
    assert not Turn.of([died]).blocks  # the next turn's view begins with it


def test_a_stopped_tool_that_says_how_far_it_got_is_interrupted() -> None:
    call = action("terminal", {"command": "sleep 9"})
    partial = observed(call, "one\n", is_error=True, exit_code=130)
    turn = Turn.of([call, partial, status_event(Status.PAUSED), PauseEvent()])
    assert [b.state for b in turn.blocks if isinstance(b, Call)] == ["interrupted"]
    broken = action("terminal", {"command": "false"})
    turn = Turn.of([broken, observed(broken, "", exit_code=1), PauseEvent()])
    assert [b.state for b in turn.blocks if isinstance(b, Call)] == ["failed"]


def test_errors_are_one_line_and_costs_are_told() -> None:
    error = ConversationErrorEvent(
        source="environment", code="ModelAuthError", detail="The key was refused.\nRun login."
    )
    priced = LLMCompletionLogEvent(
        filename="f", log_data='{"prompt_tokens": 1000, "completion_tokens": 50, "cost_usd": 0.01}'
    )
    unpriced = LLMCompletionLogEvent(filename="f", log_data='{"prompt_tokens": 5}')
    text = render_turn([error, priced, status_event(Status.ERROR)]).text
    assert "✗ The key was refused. Run login." in text
    assert "ended with an error · 1 step · 0.0 s · 1,050 tokens · $0.0100" in text
    assert "cost unknown" in render_turn([unpriced]).text


def test_an_unknown_event_is_named() -> None:
    event = event_from_json('{"kind": "NovelEvent<b>", "id": "1", "source": "agent"}')
    shown = render_turn([event])
    assert "unknown event: NovelEvent<b>" in shown.text
    assert "<b>" not in shown.html.replace("<b>terminal", "")


def test_long_output_is_cut_with_a_note() -> None:
    call = action("terminal", {"command": "yes"})
    shown = render_turn([call, observed(call, "y\n" * 100_000, exit_code=0)])
    assert "lines left out" in shown.html and "characters are shown" in shown.html
    assert len(shown) < 200_000


def test_a_huge_turn_stays_below_a_megabyte() -> None:
    events: list[Event] = []
    for number in range(1_500):
        call = action("terminal", {"command": f"step {number}"}, thought="<" * 300)
        events += [call, observed(call, f"<{number}>" * 4_000, exit_code=0)]
    shown = render_turn([*events, answer("the end")])
    assert len(shown) < MAX_SAVED_CHARS + 1_000
    assert "the end" in shown.text and "the end" in shown.html


def test_later_messages_of_the_user_are_shown_and_the_first_is_not() -> None:
    text = render_turn([user("first"), answer("a"), user("second"), answer("b")]).text
    assert "first" not in text
    assert re.findall(r"^(?:a|You: second|b)$", text, re.M) == ["a", "You: second", "b"]


def test_condensation_is_one_line_with_the_summary_in_a_fold() -> None:
    condensed = Condensation(
        forgotten_event_ids=["a", "b"], summary="GOAL: <b>mean</b>", llm_response_id="r"
    )
    shown = render_turn([user("go"), condensed, answer("done")], show_prompt=True)
    line = "2 earlier events were summed up for the model; the log keeps them."
    assert line in shown.text.splitlines() and line in shown.markdown
    assert "GOAL" not in shown.text
    assert f'<summary style="cursor:pointer">{line}</summary>' in shown.html
    assert "GOAL: &lt;b&gt;mean&lt;/b&gt;" in shown.html
