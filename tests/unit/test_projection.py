"""The messages that a model gets for a log."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationRequest,
    Event,
    Message,
    MessageEvent,
    MessageToolCall,
    SystemPromptEvent,
    TextContent,
    ThinkingBlock,
    UserRejectObservation,
    event_from_json,
)
from oh_kernel.events.messages import MAX_RESULT_CHARS, Projection, events_to_messages
from oh_kernel.events.units import cuts
from tests.conversations import assert_each_call_answered_once

FIXTURES = Path(__file__).parents[1] / "fixtures"


def said(text: str, source: str = "user") -> MessageEvent:
    role = "user" if source == "user" else "assistant"
    return MessageEvent(source=source, llm_message=Message.of(role, text))


def call(id: str, reply: str = "r1", thought: str = "", thinking: str = "") -> ActionEvent:
    return ActionEvent(
        thought=[TextContent(text=thought)] if thought else [],
        thinking_blocks=[ThinkingBlock(thinking=thinking, signature="s")] if thinking else [],
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


def forget(*events: Event, summary: str | None = "SUM", offset: int | None = 1) -> Condensation:
    ids = [event.id for event in events]
    return Condensation(
        forgotten_event_ids=ids, summary=summary, summary_offset=offset, llm_response_id="c"
    )


def steps(*names: str) -> list[Event]:
    """For each name a step of one call with its result."""
    return [e for name in names for e in (call(name, f"reply-{name}"), result(name))]


def test_condensation_hides_and_summarises() -> None:
    events = [said("one"), said("two", "agent"), said("three")]
    condensed = forget(*events[:2], summary="earlier: one, two", offset=0)
    assert shape([*events, condensed, said("four", "agent")]) == [
        "user:earlier: one, twothree",
        "assistant:four",
    ]


def test_summary_stands_at_its_offset_counted_after_removal() -> None:
    events = [said("go"), *steps("a", "b", "c")]
    condensed = forget(*events[1:5], offset=1)
    assert shape([*events, condensed]) == ["user:goSUM", "assistant:c", "tool:c"]
    condensed = forget(*events[1:5], offset=3)
    assert shape([*events, condensed]) == ["user:go", "assistant:c", "tool:c", "user:SUM"]


def test_offset_beyond_the_end_or_amid_a_step_keeps_the_messages_well_formed() -> None:
    events = [said("go"), *steps("a", "b")]
    assert shape([*events, forget(offset=99)])[-1] == "user:SUM"
    assert shape([*events, forget(offset=2)]) == [
        "user:go",
        "assistant:a",
        "tool:a",
        "user:SUM",
        "assistant:b",
        "tool:b",
    ]


def test_condensation_without_a_summary_only_hides() -> None:
    events = [said("go"), *steps("a", "b")]
    shown = shape([*events, forget(*events[1:3], summary=None, offset=None)])
    assert shown == ["user:go", "assistant:b", "tool:b"]


def test_condensation_may_forget_an_earlier_summary() -> None:
    first_events = [said("go"), *steps("a", "b", "c")]
    first = forget(*first_events[1:5], summary="FIRST")
    later = steps("d")
    projection = Projection([*first_events, first, *later])
    assert projection.view[1].id == f"{first.id}-summary"
    second = forget(*projection.view[1:4], summary="SECOND")
    shown = shape([*first_events, first, *later, second])
    assert shown == ["user:goSECOND", "assistant:d", "tool:d"]


def test_unknown_ids_and_events_that_are_never_shown_do_no_harm() -> None:
    events = [said("go"), *steps("a")]
    condensed = forget(said("of elsewhere"), summary=None, offset=None)
    assert shape([*events, condensed]) == shape(events)


def test_batch_that_another_product_split_is_forgotten_whole() -> None:
    batch = [call("a", "r"), call("b", "r"), result("a"), result("b")]
    events = [said("go"), *batch, *steps("c")]
    for lost in batch:
        assert shape([*events, forget(lost)]) == ["user:goSUM", "assistant:c", "tool:c"]


def test_what_the_user_said_amid_a_split_batch_is_kept() -> None:
    events = [said("go"), call("a"), said("and this"), result("a"), *steps("c")]
    assert shape([*events, forget(events[1])])[0] == "user:goSUMand this"


def test_thinking_is_forgotten_with_its_whole_chain_of_steps() -> None:
    chain = [call("a", "r1", thinking="hm"), result("a"), *steps("b", "c")]
    events = [said("go"), *chain, said("done", "agent"), said("more"), *steps("d")]
    shown = shape([*events, forget(chain[4], chain[5])])
    assert shown == ["user:goSUM", "assistant:done", "user:more", "assistant:d", "tool:d"]


def test_open_calls_and_the_system_prompt_are_never_forgotten() -> None:
    prompt = SystemPromptEvent(system_prompt=TextContent(text="static"), tools=[])
    waiting = [call("b", "r2"), call("c", "r2"), result("b")]
    events = [prompt, said("go"), *steps("a"), *waiting]
    projection = Projection([*events, forget(*events)])
    assert [c.tool_call_id for c in projection.open_calls] == ["c"]
    projection.add(result("c"))
    roles = [message.role for message in projection.messages()]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


def test_only_the_first_result_of_a_call_is_sent() -> None:
    events = [said("go"), call("a"), result("a", "first"), result("a", "second"), *steps("b")]
    assert [m.text for m in events_to_messages([*events, forget(*events[5:])])][2:] == ["first"]


def test_request_stands_until_the_next_condensation() -> None:
    projection = Projection([said("go"), CondensationRequest()])
    assert projection.condensation_requested
    projection.add(forget(offset=0))
    assert not projection.condensation_requested


def test_history_is_cut_only_between_steps() -> None:
    batch = [call("a", "r"), call("b", "r"), result("a"), result("b")]
    assert cuts([said("go"), *batch, said("ok", "agent")]) == [0, 1, 5, 6]
    chain = [call("a", "r1", thinking="hm"), result("a"), *steps("b")]
    assert cuts([said("go"), *chain, said("more"), *steps("c")]) == [0, 1, 5, 6, 8]
    assert cuts([*steps("a"), call("b", "r2")]) == [0, 2]
    assert cuts([]) == [0]


def test_conversation_of_the_reference_becomes_these_messages() -> None:
    """Golden: one line a message, as the reference would send them."""
    lines = (FIXTURES / "reference_conversation" / "events.jsonl").read_text().splitlines()
    messages = events_to_messages(event_from_json(line) for line in lines)
    shown = []
    for m in messages:
        calls = [f"{c.id} {c.name}" for c in m.tool_calls or []]
        shown.append([m.role, *calls, *filter(None, [m.tool_call_id]), m.text[:40]])
    golden = FIXTURES / "reference_messages.json"
    assert shown == json.loads(golden.read_text("utf-8"))


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


@given(st.data(), st.integers(1, 12))
def test_any_condensation_leaves_each_result_behind_its_call(data: st.DataObject, n: int) -> None:
    events: list[Event] = [said("go")]
    for number in range(n):
        names = [f"{number}-{i}" for i in range(data.draw(st.integers(1, 3)))]
        thinking = data.draw(st.sampled_from(["", "hm"]))
        events += [call(name, f"r{number}", thinking=thinking) for name in names]
        events += [result(name) for name in data.draw(st.permutations(names))]
        events += [said("more")] * data.draw(st.integers(0, 1))
    ids = [event.id for event in events]
    for _ in range(data.draw(st.integers(1, 3))):
        named = data.draw(st.lists(st.sampled_from([*ids, "unknown"])))
        offset = data.draw(st.integers(0, 40))
        events.append(
            Condensation(
                forgotten_event_ids=named, summary="S", summary_offset=offset, llm_response_id="c"
            )
        )
    assert_each_call_answered_once(events_to_messages(events))
