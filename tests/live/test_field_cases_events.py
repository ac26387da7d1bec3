"""Field cases about the stored log: events of another version, two writers at once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.errors import ConversationInUse
from oh_kernel.events import (
    AgentErrorEvent,
    Message,
    MessageEvent,
    UnknownEvent,
    event_from_json,
    new_id,
)
from oh_kernel.store import EventStore
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say
from tests.live.agent_kernel import agent_kernel, asks, results_of, stored_events, wait_until
from tests.outputs import final_text


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


# EV-02


def raw(kind: str, source: str = "agent", **fields: Any) -> str:
    """The JSON of an event as another version may have written it, in another order of fields."""
    made = {**fields, "source": source, "id": new_id(), "kind": kind}
    return json.dumps({**made, "timestamp": "2026-01-01T00:00:00.000000"})


def hologram_call() -> list[str]:
    action = {"kind": "HologramAction", "angle": 7}
    observation = {
        "kind": "HologramObservation",
        "content": [{"type": "text", "text": "beam"}],
        "hue": 7,
    }
    made = {"id": "h1", "name": "hologram", "arguments": '{"angle": 7}', "origin": "completion"}
    names = {"tool_name": "hologram", "tool_call_id": "h1"}
    return [
        raw(
            "ActionEvent",
            thought=[],
            action=action,
            tool_call=made,
            llm_response_id="r-h",
            **names,
        ),
        raw(
            "ObservationEvent",
            "environment",
            observation=observation,
            action_id="x",
            **names,
        ),
    ]


def said(source: str = "agent", **more: Any) -> str:
    message = {"role": "assistant", "content": [{"type": "text", "text": "hm"}]}
    return raw("MessageEvent", source, llm_message=message, **more)


VARIANTS: dict[str, list[str]] = {
    "new_kind": [raw("HologramEvent", beam={"hue": [1, 2.50], "é": None})],
    "new_action": hologram_call(),
    "new_field": [said(hue=7)],
    "new_enum": [
        said(source="robot"),
        raw(
            "ConversationStateUpdateEvent", "environment", key="execution_status", value="dreaming"
        ),
    ],
}
UNKNOWN = {"new_kind": 1, "new_action": 2, "new_field": 0, "new_enum": 1}


def store_with(work: Path, file: Path, texts: list[str]) -> str:
    """A conversation of two turns with these events, as they are, between them."""
    conversation_id = new_id()
    options = {"store_path": file, "conversation_id": conversation_id}
    turns = [calls(call("think", {"thought": "t"}, "a")), *[say("yes")] * 9]
    with Scripted(work, turns, **options) as scripted:
        scripted.ask("first")
    with EventStore.open(file) as store:
        for text in texts:
            store.append(conversation_id, UnknownEvent.from_text(text, json.loads(text)))
    with Scripted(work, turns, **options) as scripted:
        scripted.ask("second")
    return conversation_id


@pytest.mark.parametrize("variant", VARIANTS)
def test_EV_02_events_of_another_version(work: Path, tmp_path: Path, variant: str) -> None:
    file = tmp_path / "events.sqlite"
    conversation_id = store_with(work, file, VARIANTS[variant])
    with EventStore.open(file) as store:
        before = list(store.iterate_json(conversation_id))
    place = before.index(VARIANTS[variant][0])
    assert 0 < place < len(before) - 1
    options = {"store_path": file, "conversation_id": conversation_id}
    with Scripted(work, [say("more")] * 9, **options) as loaded:
        events = loaded.conversation.events
        assert [event.id for event in events] == [json.loads(text)["id"] for text in before]
        assert loaded.conversation.unknown_events == UNKNOWN[variant]
        assert loaded.ask("third") == "finished"
        _check_request(variant, loaded)
    with EventStore.open(file) as store:
        assert list(store.iterate_json(conversation_id))[: len(before)] == before
    if variant == "new_field":
        assert json.loads(event_from_json(VARIANTS[variant][0]).to_json())["hue"] == 7


def _check_request(variant: str, loaded: Scripted) -> None:
    request = loaded.llm.requests[-1]
    assert_each_call_answered_once(request)
    spoken = [m.text for m in request if m.role == "user"]
    for text in ("first", "second", "third"):
        assert any(text in message for message in spoken)
    sent = [made.id for m in request for made in m.tool_calls or []]
    assert sent == (["a", "h1"] if variant == "new_action" else ["a"])
    if variant == "new_action":
        assert loaded.told("h1").text == "beam"


def test_EV_02_a_person_is_told_once(work: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.sqlite"
    conversation_id = store_with(work, file, [text for v in VARIANTS.values() for text in v])
    line = "4 events of this conversation are of a kind that this version does not know"
    with agent_kernel(tmp_path, [{"content": "fine"}] * 9, store=file) as kernel:
        assert line in kernel.command(f"resume {conversation_id}")
        assert line in kernel.command("status")
        assert line in final_text(kernel.ask("go on").messages)
        assert line not in final_text(kernel.ask("and on").messages)


# EV-03


@pytest.mark.parametrize("busy_with", ["the model", "a tool"])
def test_EV_03_two_processes_one_conversation(work: Path, tmp_path: Path, busy_with: str) -> None:
    sleep = asks(("terminal", {"command": "echo st''arted; sleep 60"}))
    script = [sleep] if busy_with == "a tool" else [{"content": "slow reply", "delay_s": 20}]
    with agent_kernel(tmp_path, script) as owner:
        owner.kernel.start("%%openhands\ngo")
        owner.server.wait_for_requests(1)
        if busy_with == "a tool":
            wait_until(lambda: "ActionEvent" in [e.kind for e in stored_events(owner.store)])
        with EventStore.open(owner.store, read_only=True) as store:
            conversation_id = store.conversations(limit=1)[0].id
        before = [event.to_json() for event in stored_events(owner.store, conversation_id)]
        options = {"store_path": owner.store, "conversation_id": conversation_id}
        with Scripted(work, [say("x")] * 3, **options) as refused:
            started = time.monotonic()
            with pytest.raises(ConversationInUse) as refusal:
                refused.conversation.send_message("me too")
            assert time.monotonic() - started < 2
            text = str(refusal.value)
            assert conversation_id in text and "in use" in text
        with agent_kernel(tmp_path / "b", [], store=owner.store) as other_notebook:
            other_notebook.command(f"resume {conversation_id}")
            assert "in use" in final_text(other_notebook.ask("me too").messages)
        now = [event.to_json() for event in stored_events(owner.store, conversation_id)]
        assert now == before  # B wrote nothing
        owner.kill()
        started = time.monotonic()
        with Scripted(work, [say("x"), say("let in")] * 3, **options) as other:
            other.conversation.send_message("and now?")
            assert time.monotonic() - started < 5
            assert str(other.conversation.run()) == "finished"
            assert_each_call_answered_once(other.llm.requests[-1])
            found = results_of(list(other.conversation.events))
            assert len(found) == (busy_with == "a tool")
            for result in found.values():
                assert isinstance(result, AgentErrorEvent)
                assert "the kernel died" in result.error
    ids = [event.id for event in stored_events(owner.store, conversation_id)]
    assert len(ids) == len(set(ids))


def test_EV_03_threads_of_one_process(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.sqlite") as store:
        indices: list[int] = []

        def work(thread: int) -> None:
            for number in range(50):
                message = Message.of("user", f"{thread}/{number}")
                indices.append(store.append("c", MessageEvent(source="user", llm_message=message)))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(indices) == list(range(400))
        numbered = list(store.iterate_numbered("c"))
    assert [number for number, _ in numbered] == list(range(400))
    assert all(isinstance(event_from_json(text), MessageEvent) for _, text in numbered)
