"""A history of any shape becomes a request that every provider takes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.events import Message, MessageToolCall, TextContent
from oh_kernel.llm.sendable import MAX_ID_CHARS, NO_RESULT, sendable, valid_arguments

IDS = st.sampled_from(["", "call_0", "call_0_2", "call_1", "fc|1", "x" * 60, "ü"])
ARGUMENTS = st.one_of(
    st.sampled_from(["", "{}", '["ls"]', '{"a": "half', '{"a": "\\ud83d"}', "null", '{"a": NaN}']),
    st.dictionaries(st.text(), st.text()).map(json.dumps),
    st.text(),
)
CALLS = st.builds(
    MessageToolCall,
    id=IDS,
    name=st.sampled_from(["terminal", "no such tool", ""]),
    arguments=ARGUMENTS,
    origin=st.just("completion"),
)
TEXTS = st.sampled_from(["", " ", "text", "lone \ud83d"]).map(lambda t: [TextContent(text=t)])
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, role=st.just("user"), content=TEXTS),
        st.builds(
            Message,
            role=st.just("assistant"),
            content=TEXTS,
            tool_calls=st.none() | st.lists(CALLS, max_size=3),
        ),
        st.builds(Message, role=st.just("tool"), content=TEXTS, tool_call_id=IDS),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_every_call_is_answered_once_and_directly(messages: list[Message]) -> None:
    sent = sendable(messages)
    seen: set[str] = set()
    position = 0
    while position < len(sent):
        message = sent[position]
        position += 1
        assert message.role != "tool", "a result without its call"
        for call in message.tool_calls or ():
            assert 0 < len(call.id) <= MAX_ID_CHARS
            assert call.id.replace("_", "").replace("-", "").isascii()
            assert call.id not in seen
            assert call.name
            seen.add(call.id)
            assert isinstance(json.loads(call.arguments), dict)
            json.dumps(json.loads(call.arguments), ensure_ascii=False).encode()
            assert sent[position].role == "tool"
            assert sent[position].tool_call_id == call.id
            position += 1
    "".join(message.model_dump_json() for message in sent).encode()


@given(MESSAGES)
def test_same_history_same_request_and_nothing_to_mend_twice(messages: list[Message]) -> None:
    stored = [Message.model_validate_json(message.to_json()) for message in messages]
    assert sendable(messages) == sendable(stored)
    assert sendable(sendable(messages)) == sendable(messages)


@given(MESSAGES, MESSAGES)
def test_longer_history_begins_with_the_request_of_the_shorter(
    first: list[Message], more: list[Message]
) -> None:
    more = [Message.of("assistant", "a new step"), *more]
    assert sendable([*first, *more])[: len(sendable(first))] == sendable(first)


def test_valid_history_is_left_alone() -> None:
    call = MessageToolCall(id="call_1", name="terminal", arguments='{ "a":1 }', origin="completion")
    messages = [
        Message.of("system", "s"),
        Message.of("user", "u"),
        Message(role="assistant", tool_calls=[call]),
        Message.of("tool", "out", tool_call_id="call_1", name="terminal"),
        Message.of("assistant", "done"),
    ]
    assert sendable(messages) == messages


def test_missing_result_is_said_and_orphan_is_dropped() -> None:
    call = MessageToolCall(id="a", name="terminal", arguments="{}", origin="completion")
    sent = sendable(
        [
            Message(role="assistant", tool_calls=[call]),
            Message.of("user", "and then"),
            Message.of("tool", "late", tool_call_id="b"),
        ]
    )
    assert [message.role for message in sent] == ["assistant", "tool", "user"]
    assert sent[1].text == NO_RESULT


def test_broken_arguments_are_quoted_in_part() -> None:
    quoted = json.loads(valid_arguments("x" * 100_000))
    assert quoted == {"malformed_arguments": "x" * 1000}
    assert valid_arguments("[" * 100_000)
    assert json.loads(valid_arguments('{"a": "\\ud83d b"}')) == {"a": "� b"}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_arguments_with_a_number_that_is_no_json_are_quoted(number: str) -> None:
    raw = f'{{"timeout": {number}}}'
    assert json.loads(valid_arguments(raw)) == {"malformed_arguments": raw}
