"""A conversation that is steered from another process, over its kernel's control channel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import (
    InterruptEvent,
    MessageEvent,
    ObservationEvent,
    UserRejectObservation,
)
from tests.live.agent_kernel import AgentKernel, agent_kernel, asks, wait_until

SLOW = asks(("terminal", {"command": "echo begun > begun; sleep 60"}))
TOUCH = asks(("terminal", {"command": "touch made"}))
DONE = {"content": "done"}


def test_a_request_before_the_first_turn_is_told_what_to_do(tmp_path: Path) -> None:
    with agent_kernel(tmp_path, [DONE]) as agent:
        agent.command("status")
        reply = agent.kernel.request({"action": "status"})
        assert (reply["status"], reply["ename"]) == ("error", "ConversationError")
        assert "%%openhands" in reply["evalue"]


def test_the_state_and_what_is_not_understood(tmp_path: Path) -> None:
    with agent_kernel(tmp_path, [DONE]) as agent:
        agent.ask("hello")
        state = agent.kernel.request({"action": "status"})
        assert state["status"] == "ok"
        assert state["execution_status"] == "finished"
        assert state["events"] == len(agent.events()) and state["waiting_calls"] == []
        for wrong in ({}, {"action": "dance"}, {"action": "send_message"}, {"action": []}):
            reply = agent.kernel.request(wrong)
            assert reply["status"] == "error" and "send_message" in reply["evalue"]
        reply = agent.kernel.request({"action": "approve"})
        assert "finished: approve is not possible" in reply["evalue"]


def while_it_runs(agent: AgentKernel, look: Callable[[], bool], do: Callable[[], Any]) -> None:
    """Have the agent begin, wait for what `look` sees, `do` something, and wait for the end."""
    cell = agent.kernel.start("%%openhands\ngo")
    wait_until(look)
    do()
    agent.kernel.finish(cell)


def test_a_running_agent_is_spoken_to_and_stopped(tmp_path: Path) -> None:
    with agent_kernel(tmp_path, [SLOW, DONE]) as agent:

        def do() -> None:
            state = agent.kernel.request({"action": "send_message", "text": "be quick"})
            assert state["execution_status"] == "running"
            assert agent.kernel.request({"action": "interrupt"})["status"] == "ok"

        while_it_runs(agent, (tmp_path / "work/begun").exists, do)
        assert agent.kernel.request({"action": "status"})["execution_status"] == "paused"
        events = agent.events()
        assert any(isinstance(e, InterruptEvent) and e.cut for e in events)
        said = [e.llm_message.text for e in events if isinstance(e, MessageEvent)]
        assert said == ["go", "be quick"]


def test_a_pause_waits_for_the_step(tmp_path: Path) -> None:
    quick = asks(("terminal", {"command": "touch begun; sleep 1; touch ended"}))
    with agent_kernel(tmp_path, [quick, DONE]) as agent:
        begun = (tmp_path / "work/begun").exists
        while_it_runs(agent, begun, lambda: agent.kernel.request({"action": "pause"}))
        assert (tmp_path / "work/ended").exists()
        assert agent.kernel.request({"action": "status"})["execution_status"] == "paused"
        assert len(agent.server.requests) == 1


def waits(agent: AgentKernel) -> bool:
    """Whether a question waits, as another process sees it."""
    asked_the_model = bool(agent.server.requests)  # by then there is a store to look into
    return asked_the_model and "waiting_for_confirmation" in repr(agent.events()[-1:])


@pytest.mark.parametrize("approved", [True, False])
def test_a_question_that_waits_is_answered(tmp_path: Path, approved: bool) -> None:
    with agent_kernel(tmp_path, [TOUCH, DONE], OPENHANDS_POLICY="always") as agent:

        def do() -> None:
            state = agent.kernel.request({"action": "status"})
            (call,) = state["waiting_calls"]
            assert call["tool_name"] == "terminal" and "touch made" in call["arguments"]
            named = {"call_ids": [call["tool_call_id"]]}
            answer = (
                {"action": "approve", **named}
                if approved
                else {"action": "reject", **named, "reason": "not here"}
            )
            assert agent.kernel.request(answer)["waiting_calls"] == []

        while_it_runs(agent, lambda: waits(agent), do)
        assert (tmp_path / "work/made").exists() is approved
        (result,) = agent.results().values()
        assert isinstance(result, ObservationEvent if approved else UserRejectObservation)
        if isinstance(result, UserRejectObservation):
            assert result.rejection_reason == "not here"
        assert agent.kernel.request({"action": "status"})["execution_status"] == "finished"
