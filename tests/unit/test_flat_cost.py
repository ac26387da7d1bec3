"""An event costs the same late in a conversation as at its start: counted, not timed."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.events import Event, event_from_json
from oh_kernel.events.messages import Projection
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.settings import load_settings
from oh_kernel.store import EventStore
from oh_kernel.tools.finish import FinishTool
from oh_kernel.tools.think import ThinkTool
from tests.unit.turns import action, answer, observed, user

EARLY, LATE = 10, 5_000


def work_of(do: Callable[[], object]) -> int:
    """How many functions of Python and C are called while `do` runs."""
    calls = count()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(calls)

    gc.disable()  # collecting what other tests left calls functions too
    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
        gc.enable()
    return next(calls)


def step() -> list[Event]:
    """The events of one step of a conversation that goes on and on."""
    call = action("terminal", {"command": "ls"}, thought="look")
    return [user("go on"), call, observed(call, "a b c"), answer("so it is")]


def costs(add: Callable[[Event], object]) -> tuple[list[int], list[int]]:
    """The work of adding each event of a step, early and late."""
    found: dict[int, list[int]] = {}
    for number in range(LATE // 4 + 1):
        events = step()
        if number in (EARLY // 4, LATE // 4):
            found[number] = [work_of(lambda event=event: add(event)) for event in events]
        else:
            for event in events:
                add(event)
    early, late = found.values()
    return early, late


def test_projection_of_an_event_costs_the_event() -> None:
    projection = Projection()

    def add(event: Event) -> None:
        projection.add(event)
        projection.messages()

    early, late = costs(add)
    assert late == early


def test_messages_are_handed_out_without_making_them_again() -> None:
    projection = Projection(event for _ in range(200) for event in step())
    first, second = projection.messages(), projection.messages()
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert work_of(projection.messages) < 10


def test_log_of_an_event_costs_the_event(tmp_path: Path) -> None:
    """Stored, masked, projected and counted; SQLite's own work is not seen here."""
    with EventStore.open(tmp_path / "events.sqlite") as store:
        log = ConversationLog(store, "c")
        loop = asyncio.new_event_loop()
        early, late = costs(lambda event: loop.run_until_complete(log.append(event)))
        loop.close()
    # A page of the file more or less, and the loop's own housekeeping.
    assert sum(late) <= sum(early) * 1.25 + 40


@pytest.mark.parametrize("size", [10, 100_000])
def test_round_trip_of_an_event_costs_its_fields_not_its_text(size: int) -> None:
    result = step()[2]
    small = result.to_json()
    large = small.replace("a b c", "x" * size)
    event_from_json(small)  # kinds are loaded at first use
    there_and_back = work_of(lambda: event_from_json(large).to_json())
    assert there_and_back <= work_of(lambda: event_from_json(small).to_json()) <= 60


def test_a_step_of_a_run_costs_the_same_early_and_late(tmp_path: Path) -> None:
    """Asking, storing and carrying out; what the model itself does with the history is not ours."""
    steps = 300
    marks: list[int] = []

    class Counting(ScriptedLLM):
        async def stream(self, messages: Any, tools: Any) -> Any:
            turn = think(len(marks)) if len(marks) < steps else {"content": "done"}
            marks.append(next(calls))
            sys.setprofile(None)  # looking for the turn is the model's work
            try:
                async for piece in ScriptedLLM([turn]).stream(messages[:1], tools):
                    yield piece
            finally:
                if len(marks) <= steps:
                    sys.setprofile(note)

    calls = count()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(calls)

    with Conversation(
        tmp_path,
        llm=Counting([]),
        store_path=tmp_path / "events.sqlite",
        tools=[ThinkTool, FinishTool],
        policy="never",
        max_steps=steps + 1,
        settings=load_settings().with_("test", condenser="none"),
    ) as conversation:
        conversation.send_message("go")
        assert str(conversation.run()) == "finished"
    each = [after - before for before, after in itertools.pairwise(marks)]
    early, late = statistics.median(each[10:60]), statistics.median(each[-50:])
    assert 100 < late <= early * 1.2


def think(number: int) -> dict[str, Any]:
    return {"tool_calls": [{"name": "think", "arguments": {"thought": f"thought {number}"}}]}
