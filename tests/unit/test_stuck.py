"""When does an agent go in circles, and what is done about it?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.agents.stuck import StuckDetector
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    Event,
    Message,
    MessageEvent,
    MessageToolCall,
    ObservationEvent,
)
from oh_kernel.settings import load_settings
from oh_kernel.tools.ipython import IpythonAction
from oh_kernel.tools.terminal import CmdOutputMetadata, TerminalAction, TerminalObservation
from oh_kernel.views.static import render_turn
from tests.conversations import Scripted, call, calls, say

Pair = tuple[Event, Event]
_ids = iter(range(1_000_000))


def asked(command: str, thought: str = "") -> ActionEvent:
    call_id = f"c{next(_ids)}"
    arguments = TerminalAction(command=command).model_dump_json()
    return ActionEvent.model_validate(
        {
            "thought": [{"text": thought}] if thought else [],
            "action": TerminalAction(command=command),
            "tool_name": "terminal",
            "tool_call_id": call_id,
            "tool_call": MessageToolCall(
                id=call_id, name="terminal", arguments=arguments, origin="completion"
            ),
            "llm_response_id": call_id,
        }
    )


def ran(
    command: str, output: str = "", *, exit_code: int = 0, timeout: bool = False, thought: str = ""
) -> Pair:
    """A command with what it printed."""
    action = asked(command, thought)
    observation = TerminalObservation.from_text(
        output,
        command=command,
        exit_code=exit_code,
        timeout=timeout,
        metadata=CmdOutputMetadata(exit_code=exit_code),
    )
    return action, ObservationEvent(
        observation=observation,
        action_id=action.id,
        tool_name="terminal",
        tool_call_id=action.tool_call_id,
    )


def failed(command: str, error: str) -> Pair:
    """A call that could not be carried out."""
    action = asked(command)
    return action, AgentErrorEvent(
        tool_name="terminal", tool_call_id=action.tool_call_id, error=error
    )


def said(source: str, text: str = "hm") -> MessageEvent:
    role = "assistant" if source == "agent" else "user"
    return MessageEvent.model_validate({"source": source, "llm_message": Message.of(role, text)})


def condensed() -> Condensation:
    return Condensation(llm_response_id="r")


def after(*items: Pair | Event) -> StuckDetector:
    detector = StuckDetector(reading={"read_file"})
    for item in items:
        for event in item if isinstance(item, tuple) else (item,):
            detector.add(event)
    return detector


def is_closed(detector: StuckDetector) -> bool:
    return detector.circle is not None and detector.circle.is_closed


CIRCLES = {
    "same call, same result": [ran("ls", "a") for _ in range(4)],
    "same call, failing each time": [ran("ls", f"{n}", exit_code=2) for n in range(4)],
    "same call, an error each time": [failed("ls", f"{n}") for n in range(4)],
    "messages alone": [said("agent") for _ in range(3)],
    "by turns": [ran("ab"[n % 2], "x") for n in range(6)],
    "condensed again and again": [ran("ls"), condensed(), ran("ls"), condensed(), condensed()],
}


@pytest.mark.parametrize("items", CIRCLES.values(), ids=CIRCLES)
def test_a_circle_is_closed_at_its_threshold_and_not_one_before(items: Sequence[Any]) -> None:
    before = after(*items[:-1])
    assert before.circle is not None and not before.circle.is_closed
    assert is_closed(after(*items))


@pytest.mark.parametrize("items", CIRCLES.values(), ids=CIRCLES)
def test_the_user_ends_a_circle(items: Sequence[Any]) -> None:
    assert after(*items, said("user")).circle is None


def test_something_else_ends_a_circle() -> None:
    assert after(*[ran("ls", "a")] * 1, ran("pwd"), ran("ls", "a"), ran("ls", "a")).circle is None
    assert not is_closed(after(*(ran("ls", f"{n}") for n in range(9))))  # another result each time
    assert not is_closed(after(*(ran(f"ls {n}", "a", exit_code=1) for n in range(9))))


def test_thoughts_times_and_addresses_make_no_difference() -> None:
    outputs = ("1 failed in 0.03s", "1 failed in 1.20s", "1 failed in 12s", "1 failed in 0.1s")
    runs = [ran("pytest", f"<x at 0x7f{n}abcdef> {out}", thought=f"try {n}")
            for n, out in enumerate(outputs)]  # fmt: skip
    assert is_closed(after(*runs))


def test_other_numbers_do() -> None:
    assert after(*(ran("wc -l a", f"{n} a") for n in range(8))).circle is None


def test_waiting_for_a_command_is_no_circle() -> None:
    polls = [ran("", "", exit_code=-1, timeout=True) for _ in range(20)]
    assert after(ran("make", "", exit_code=-1, timeout=True), *polls).circle is None


def test_condensing_with_new_work_in_between_is_no_circle() -> None:
    work = [item for n in range(9) for item in (ran(f"ls {n}", "a"), condensed())]
    assert not is_closed(after(*work))


def test_a_repetition_is_noticed_across_calls_that_only_read() -> None:
    assert after(ran("pytest", "1 failed in 1s"), ran("pytest", "1 failed in 2s")).is_repetition
    assert not after(
        ran("pytest", "x"), ran("sed -i s/a/b/ a.py"), ran("pytest", "x")
    ).is_repetition
    assert not after(ran("pytest", "x"), condensed(), ran("pytest", "x")).is_repetition


def test_an_event_is_looked_at_once_and_little_is_kept() -> None:
    detector = after(*(ran("ls", "a" * 10_000) for _ in range(500)))
    assert not detector._asked and len(detector._done) == 1


# In a conversation


def same(times: int, command: str = "false") -> list[Any]:
    return [calls(call("terminal", {"command": command})) for _ in range(times)]


def told(conversation: Scripted) -> list[str]:
    return [
        event.llm_message.text
        for event in conversation.conversation.events
        if isinstance(event, MessageEvent) and event.source == "environment"
    ]


OPTIONS: dict[str, Any] = {"tools": ["terminal", "read_file"], "policy": "never"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def test_the_agent_is_told_once_then_stopped_and_the_view_says_so(workspace: Path) -> None:
    with Scripted(workspace, same(9), **OPTIONS) as scripted:
        assert scripted.ask() == "stuck"
        words = told(scripted)
        assert len(scripted.results) == 4
        assert ["same call" in words[0], "3 times" in words[1], "4 times" in words[2]] == [True] * 3
        assert 'terminal {"command": "false"}' in words[1]
        assert len(words) == 3
        drawn = render_turn(scripted.conversation.events)
        for text in (drawn.text, drawn.html, drawn.markdown):
            assert "The agent is told: You are going in circles" in text
            assert "Send a message to go on" in text
            assert "You: [" not in text
        sent = scripted.llm.requests[3][-1]
        assert sent.role == "user" and "going in circles" in sent.text


def test_a_message_after_the_stop_begins_anew(workspace: Path) -> None:
    with Scripted(workspace, [*same(7), say("enough")], **OPTIONS) as scripted:
        assert scripted.ask() == "stuck"
        assert scripted.ask("go on") == "finished"
        assert len(scripted.results) == 7


def test_so_does_a_run(workspace: Path) -> None:
    with Scripted(workspace, [*same(6), say("enough")], **OPTIONS) as scripted:
        assert scripted.ask() == "stuck"
        assert str(scripted.conversation.run()) == "finished"


def test_an_agent_that_turns_away_is_not_stopped(workspace: Path) -> None:
    turns = [*same(3), *same(1, "true"), *same(1), say("done")]
    with Scripted(workspace, turns, **OPTIONS) as scripted:
        assert scripted.ask() == "finished"
        assert sum("in circles" in text for text in told(scripted)) == 1


def test_calls_of_one_reply_are_told_of_before_the_run_is_stopped(workspace: Path) -> None:
    batch = calls(*(call("terminal", {"command": "false"}) for _ in range(6)))
    with Scripted(workspace, [batch, say("I see")], **OPTIONS) as scripted:
        assert scripted.ask() == "finished"
        assert "in circles" in told(scripted)[-1]


def test_it_can_be_turned_off(workspace: Path) -> None:
    settings = load_settings({"stuck_detection": "no"}, environ={})
    with Scripted(workspace, [*same(9), say("x")], settings=settings, **OPTIONS) as scripted:
        assert scripted.ask() == "finished"
        assert told(scripted) == []


def test_python_that_fails_counts_too() -> None:
    """An observation that says of itself that it is an error."""
    detector = StuckDetector()
    for n in range(4):
        action = asked("x").model_copy(
            update={"action": IpythonAction(code="1/0"), "tool_call_id": f"i{n}"}
        )
        observation = TerminalObservation.from_text(f"other words {n}", is_error=True, command="x")
        detector.add(action)
        detector.add(
            ObservationEvent(
                observation=observation, action_id=action.id, tool_name="ipython",
                tool_call_id=f"i{n}",
            )
        )  # fmt: skip
    assert is_closed(detector)
