"""The messages that a model gets for a log."""

from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    Event,
    Message,
    MessageEvent,
    MessageToolCall,
    SystemPromptEvent,
    TextContent,
    UserRejectObservation,
)
from oh_kernel.events.messages import MAX_RESULT_CHARS, Projection, events_to_messages


def said(text: str, source: str = "user") -> MessageEvent:
    role = "user" if source == "user" else "assistant"
    return MessageEvent(source=source, llm_message=Message.of(role, text))


def call(id: str, reply: str = "r1", thought: str = "") -> ActionEvent:
    return ActionEvent(
        thought=[TextContent(text=thought)] if thought else [],
        tool_name="terminal",
        tool_call_id=id,
        tool_call=MessageToolCall(id=id, name="terminal", arguments="{}", origin="completion"),
        llm_response_id=reply,
    )


def result(id: str, text: str = "done") -> AgentErrorEvent:
    return AgentErrorEvent(tool_name="terminal", tool_call_id=id, error=text)


def shape(events: list[Event]) -> list[str]:
    """The roles of the messages, with the ids of calls and results."""
    lines = []
    for message in events_to_messages(events):
        calls = ",".join(c.id for c in message.tool_calls or [])
        lines.append(f"{message.role}:{calls or message.tool_call_id or message.text}")
    return lines


def test_calls_of_one_reply_become_one_message_with_results_in_call_order() -> None:
    events = [said("go"), call("a", thought="think"), call("b"), result("b"), result("a")]
    assert shape(events) == ["user:go", "assistant:a,b", "tool:a", "tool:b"]


def test_message_amid_a_batch_waits_for_the_results() -> None:
    events = [said("go"), call("a"), call("b"), result("a"), said("wait"), result("b")]
    assert shape(events) == ["user:go", "assistant:a,b", "tool:a", "tool:b", "user:wait"]


def test_result_without_its_call_is_not_sent() -> None:
    assert shape([said("go"), result("gone")]) == ["user:go"]


def test_open_calls_of_an_older_reply_are_left_out() -> None:
    events = [said("go"), call("a"), call("b"), result("b"), call("c", "r2"), result("c")]
    assert shape(events) == ["user:go", "assistant:b", "tool:b", "assistant:c", "tool:c"]


def test_adjacent_messages_of_the_user_become_one() -> None:
    assert shape([said("one"), said("two")]) == ["user:onetwo"]


def test_rejection_is_told_with_its_reason() -> None:
    rejected = UserRejectObservation(
        rejection_reason="not yet", action_id="x", tool_name="terminal", tool_call_id="a"
    )
    messages = events_to_messages([said("go"), call("a"), rejected])
    assert messages[-1].text == "Action rejected: not yet"


def test_no_text_of_a_result_is_longer_than_a_model_is_given() -> None:
    *_, told = events_to_messages([said("go"), call("a"), result("a", "x" * 60_000)])
    (part,) = told.content
    assert isinstance(part, TextContent)
    assert len(part.text) == MAX_RESULT_CHARS
    assert "<response clipped><NOTE>Due to the max output limit" in part.text


def test_system_prompt_stands_first_and_is_cacheable() -> None:
    prompt = SystemPromptEvent(
        system_prompt=TextContent(text="static"), tools=[], dynamic_context=TextContent(text="now")
    )
    first = events_to_messages([prompt, said("hi")])[0]
    assert [part.cache_prompt for part in first.content] == [True, False]


def test_condensation_hides_and_summarises() -> None:
    events = [said("one"), said("two", "agent"), said("three")]
    condensed = Condensation(
        forgotten_event_ids=[events[0].id, events[1].id],
        summary="earlier: one, two",
        summary_offset=0,
        llm_response_id="r",
    )
    assert shape([*events, condensed, said("four", "agent")]) == [
        "user:earlier: one, twothree",
        "assistant:four",
    ]


@given(st.lists(st.integers(0, 5), max_size=40))
def test_each_result_stands_behind_its_call_whatever_the_log(steps: list[int]) -> None:
    events: list[Event] = []
    for n, step in enumerate(steps):
        reply, id = f"r{step % 3}", f"c{step}"
        events.append([call(f"{id}-{n}", reply), result(f"{id}-{n - 1}"), said("m")][n % 3])
    projection = Projection(events)
    open_ids: list[str] = []
    for message in projection.messages():
        if message.role == "tool":
            assert message.tool_call_id == open_ids.pop(0)
        else:
            assert not open_ids
            open_ids = [c.id for c in message.tool_calls or []]
    assert not open_ids
