"""Events: read, kept, written, whatever version or program they come from."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import (
    Action,
    ActionEvent,
    Event,
    Message,
    MessageEvent,
    ObservationEvent,
    TextContent,
    UnknownAction,
    UnknownEvent,
    UnknownObservation,
    event_from_json,
    utc_now,
)
from oh_kernel.events.messages import events_to_messages
from tests.conversations import assert_each_call_answered_once

RECORDED = Path(__file__).parents[1] / "fixtures/reference_conversation/events.jsonl"
LINES = RECORDED.read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", LINES, ids=[json.loads(line)["kind"] for line in LINES])
def test_event_of_the_reference_round_trips_to_equal_json(line: str) -> None:
    event = event_from_json(line)
    assert not isinstance(event, UnknownEvent)
    assert json.loads(event.to_json()) == json.loads(line)
    assert event_from_json(event.to_json()) == event


def test_conversation_of_the_reference_becomes_messages() -> None:
    messages = events_to_messages(event_from_json(line) for line in LINES)
    assert_each_call_answered_once(messages)
    assert [message.role for message in messages[:3]] == ["system", "user", "assistant"]
    assert "Tool 'nosuchtool' not found" in messages[-7].text


def message(**changes: Any) -> str:
    event = MessageEvent(source="user", llm_message=Message.of("user", "hi"))
    return json.dumps({**json.loads(event.to_json()), **changes}, indent=1)


def test_unknown_kind_keeps_its_bytes() -> None:
    text = message(kind="HologramEvent", hue=[1, None], id="h1")
    event = event_from_json(text)
    assert isinstance(event, UnknownEvent)
    assert event.to_json() == text and event.id == "h1" and event.kind == "HologramEvent"


def test_unknown_field_of_a_known_kind_is_kept() -> None:
    event = event_from_json(message(hue=7))
    assert isinstance(event, MessageEvent)
    assert json.loads(event.to_json())["hue"] == 7


def test_value_outside_what_is_known_keeps_its_bytes() -> None:
    text = message(source="hologram")
    event = event_from_json(text)
    assert isinstance(event, UnknownEvent)
    assert event.to_json() == text and event.source == "hologram"


def test_action_of_a_tool_that_is_not_here_is_kept_and_told() -> None:
    call = {"id": "c", "name": "hologram", "arguments": "{}", "origin": "completion"}
    common = {"timestamp": utc_now(), "tool_name": "hologram", "tool_call_id": "c"}
    action = {
        **common,
        "kind": "ActionEvent",
        "id": "a",
        "source": "agent",
        "thought": [],
        "thinking_blocks": [],
        "tool_call": call,
        "llm_response_id": "r",
        "security_risk": "LOW",
        "action": {"kind": "HologramAction", "beams": [3, None]},
    }
    result = {
        **common,
        "kind": "ObservationEvent",
        "id": "o",
        "source": "environment",
        "action_id": "a",
        "observation": {
            "kind": "HologramObservation",
            "content": [{"type": "text", "text": "beam", "cache_prompt": False}],
            "is_error": False,
        },
    }
    events = [event_from_json(json.dumps(data)) for data in (action, result)]
    assert isinstance(events[0], ActionEvent) and isinstance(events[0].action, UnknownAction)
    assert isinstance(events[1], ObservationEvent)
    assert isinstance(events[1].observation, UnknownObservation)
    assert [json.loads(event.to_json()) for event in events] == [action, result]
    user = MessageEvent(source="user", llm_message=Message.of("user", "go"))
    messages = events_to_messages([user, *events])
    assert_each_call_answered_once(messages)
    assert messages[-1].text == "beam"


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "null", '"x"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        event_from_json(text)


def test_half_a_surrogate_pair_is_replaced_and_a_pair_is_joined() -> None:
    event = MessageEvent(source="user", llm_message=Message.of("user", "a\ud83d b\ud83d\ude00"))
    text = event.to_json()
    assert json.loads(text)["llm_message"]["content"][0]["text"] == "a� b😀"
    text.encode("utf-8")
    assert event_from_json(text).to_json() == text


def test_arguments_of_a_model_are_refused_when_unknown_but_events_keep_theirs() -> None:
    class MeasureAction(Action):
        what: str

    with pytest.raises(ValueError, match="unit"):
        MeasureAction.model_validate({"what": "x", "unit": "m"})
    assert TextContent.model_validate({"text": "x", "hue": 7}).model_extra == {"hue": 7}


def test_kind_that_is_taken_by_another_module_is_an_error() -> None:
    taken = {"__module__": "somewhere.else", "__qualname__": "MessageEvent"}
    with pytest.raises(TypeError, match="already taken"):
        type("MessageEvent", (Event,), taken)


def test_class_of_a_notebook_may_be_defined_again() -> None:
    for _ in range(2):
        made = type("GreetAction", (Action,), {"__module__": "__main__"})
        assert Action.registry["GreetAction"] is made


def test_timestamps_have_26_characters_and_never_go_back() -> None:
    stamps = [utc_now() for _ in range(200)]
    assert all(len(stamp) == 26 for stamp in stamps)
    assert stamps == sorted(stamps)
    assert utc_now("2999-01-01T00:00:00.000000") == "2999-01-01T00:00:00.000000"
    assert utc_now() < "2999"  # one conversation from the future does not move the others


def test_event_is_frozen() -> None:
    event = event_from_json(message())
    with pytest.raises(ValueError, match="frozen"):
        event.id = "other"


def test_escape_of_half_a_surrogate_pair_is_read_as_a_replacement() -> None:
    event = event_from_json(message(hue="\ud83d", pair="\ud83d\ude00"))  # json.dumps escapes both
    assert isinstance(event, MessageEvent)
    stored = json.loads(event.to_json())
    assert (stored["hue"], stored["pair"]) == ("\ufffd", "\U0001f600")


def test_unknown_event_with_half_a_surrogate_pair_keeps_its_bytes() -> None:
    text = '{"kind": "HologramEvent", "id": "h", "beam": "\\ud83d"}'
    assert event_from_json(text).to_json() == text


def test_byte_order_mark_before_an_event_is_no_part_of_it() -> None:
    event = event_from_json("\ufeff" + message())
    assert isinstance(event, MessageEvent) and event.to_json().startswith("{")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": ' + "[" * 50_000])
def test_text_that_is_no_json_object_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        event_from_json(text)
