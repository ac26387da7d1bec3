"""What is forgotten of a long history, what stands for it, and when."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.agents.condenser import PRESET, Sizes, Trigger, everything, forgetting
from oh_kernel.agents.summary import MAX_EVENT_CHARS, summary_request, summary_text
from oh_kernel.errors import ConversationError
from oh_kernel.events import (
    Condensation,
    Event,
    LLMCompletionLogEvent,
    Message,
    SystemPromptEvent,
    TextContent,
)
from oh_kernel.events.messages import Projection
from oh_kernel.events.units import cuts
from oh_kernel.llm.base import Completion, Delta, ToolSpec
from oh_kernel.llm.scripted import ScriptedLLM
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say
from tests.unit.test_projection import call as asked
from tests.unit.test_projection import result, said, steps

PROMPT = SystemPromptEvent(system_prompt=TextContent(text="static"), tools=[])
SMALL = Sizes(max_size=12, keep_first=2)


def history(steps_taken: int) -> list[Event]:
    return [PROMPT, said("go"), *steps(*(f"s{n}" for n in range(steps_taken)))]


def ids(events: object) -> list[str]:
    return [event.id for event in events]  # type: ignore[attr-defined]  # any events


def test_defaults_are_those_of_the_reference() -> None:
    assert Sizes() == Sizes(max_size=240, keep_first=2, max_tokens=None, minimum_progress=0.1)
    assert (PRESET.max_size, PRESET.keep_first) == (80, 4)


@pytest.mark.parametrize(("max_size", "keep_first"), [(12, 5), (10, 4), (4, 1)])
def test_start_that_leaves_no_room_is_refused(max_size: int, keep_first: int) -> None:
    with pytest.raises(ValueError, match="keep_first"):
        Sizes(max_size=max_size, keep_first=keep_first)


def test_triggers_in_their_order() -> None:
    sizes = Sizes(max_size=20, max_tokens=1000)
    assert sizes.trigger(20, 1000, None) is None
    assert sizes.trigger(21, 1000, None) is Trigger.EVENTS
    assert sizes.trigger(21, 1001, None) is Trigger.TOKENS
    assert sizes.trigger(1, 600, 500) is Trigger.TOKENS
    assert Sizes().trigger(1, 10**9, None) is None


def test_middle_is_forgotten_and_the_tail_has_its_size() -> None:
    view = history(6)  # 14 events
    found = forgetting(view, Trigger.EVENTS, SMALL)
    assert found is not None and found.offset == 2
    # 12 // 2 - 2 - 1 = 3 are asked to stay; the cut goes up to the next whole step.
    assert ids(found.events) == ids(view[2:12])


def test_half_the_history_stays_on_request() -> None:
    view = history(20)  # 42 events
    found = forgetting(view, Trigger.REQUEST, Sizes())
    assert found is not None
    assert len(view) - len(found.events) - found.offset == 42 // 2 - 2 - 1 - 0


def test_tail_fits_into_half_of_the_tokens() -> None:
    large = [
        e for n in range(10) for e in (asked(f"l{n}", f"r{n}"), result(f"l{n}", "word " * 900))
    ]
    view = [PROMPT, said("go"), *large]
    found = forgetting(view, Trigger.TOKENS, Sizes(), max_tokens=6000)
    assert found is not None
    assert 2 <= len(view) - found.offset - len(found.events) <= 4


def test_batches_and_thinking_stay_whole() -> None:
    batch = [asked("a", "r"), asked("b", "r"), result("a"), result("b")]
    view = [PROMPT, said("go"), *steps("x"), *batch, *steps("y", "z")]
    for size in (8, 10, 12):
        found = forgetting(view, Trigger.EVENTS, Sizes(max_size=size, keep_first=1))
        assert found is not None
        assert {found.offset, found.offset + len(found.events)} <= set(cuts(view))


def test_little_progress_is_no_condensation_when_it_may_wait() -> None:
    chain = [
        e for n in range(30) for e in (asked(f"t{n}", f"r{n}", thinking="hm"), result(f"t{n}"))
    ]
    view = [PROMPT, said("go"), *steps("x"), *chain]
    sizes = Sizes(max_size=20, keep_first=2)
    assert forgetting(view, Trigger.EVENTS, sizes) is None
    found = forgetting(view, Trigger.TOKENS, sizes, max_tokens=10)
    assert found is not None and ids(found.events) == ids(view[1:])


def test_everything_leaves_the_prompt_and_what_is_open() -> None:
    view = [*history(2), asked("w", "rw"), asked("v", "rw"), result("v")]
    found = everything(view)
    assert found is not None and found.offset == 1
    assert ids(found.events) == ids(view[1:6])


def test_nothing_is_forgotten_where_only_a_summary_is_left() -> None:
    view = history(3)
    found = everything(view)
    assert found is not None
    projection = Projection(view)
    projection.add(
        Condensation(
            forgotten_event_ids=ids(found.events),
            summary="S",
            summary_offset=1,
            llm_response_id="r",
        )
    )
    assert everything(projection.view) is None
    assert everything([PROMPT]) is None


@given(st.data())
def test_any_forgetting_leaves_a_request_that_can_be_sent(data: st.DataObject) -> None:
    view: list[Event] = [PROMPT, said("go")]
    for number in range(data.draw(st.integers(0, 15))):
        names = [f"{number}-{i}" for i in range(data.draw(st.integers(1, 3)))]
        thinking = data.draw(st.sampled_from(["", "", "hm"]))
        view += [asked(name, f"r{number}", thinking=thinking) for name in names]
        view += [result(name) for name in data.draw(st.permutations(names))]
        view += [said("more")] * data.draw(st.integers(0, 1))
    trigger = data.draw(st.sampled_from(Trigger))
    sizes = Sizes(max_size=data.draw(st.integers(8, 30)), keep_first=data.draw(st.integers(1, 2)))
    found = forgetting(view, trigger, sizes, max_tokens=data.draw(st.none() | st.integers(1, 500)))
    if found is None:
        assert trigger is Trigger.EVENTS
        return
    condensed = Condensation(
        forgotten_event_ids=ids(found.events),
        summary="S",
        summary_offset=found.offset,
        llm_response_id="r",
    )
    projection = Projection([*view, condensed])
    # Nothing but what was chosen goes: the condenser and the projection see the same units.
    assert len(projection.view) == len(view) - len(found.events) + 1
    assert projection.view[found.offset].id == f"{condensed.id}-summary"
    messages = projection.messages()
    assert_each_call_answered_once(messages)
    assert messages[0].role == "system"


def test_record_is_cut_and_says_who_spoke() -> None:
    view = [said("go"), asked("a"), result("a", "x" * 50_000), said("done", "agent")]
    prompt, record = summary_request(view)
    assert prompt.role == "system" and "GOAL" in prompt.text
    for part in ("[user]\ngo", "[agent]\nterminal({})", "[result]\nxxx", "[agent]\ndone"):
        assert part in record.text
    assert MAX_EVENT_CHARS < len(record.text) < MAX_EVENT_CHARS + 500
    shorter = summary_request(view, 0.8)[1].text
    assert len(shorter) < 0.85 * len(record.text)


def test_first_and_last_message_of_the_user_are_kept_word_for_word() -> None:
    view = [said("first, with 3.14"), *steps("a"), said("middle"), said("last: only *.csv")]
    text = summary_text(view, "GOAL: numbers")
    assert "first, with 3.14" in text and "last: only *.csv" in text and "GOAL: numbers" in text
    assert "middle" not in text and "5 earlier events" in text
    assert "without a summary" in summary_text(view, "")


# In a conversation


def thinks(count: int) -> list[dict[str, object]]:
    return [calls(call("think", {"thought": f"thought {n}"})) for n in range(count)]


def condensations(scripted: Scripted) -> list[Condensation]:
    return [e for e in scripted.conversation.events if isinstance(e, Condensation)]


def with_options(scripted: Scripted, **options: object) -> None:
    conversation = scripted.conversation
    asyncio.run(conversation.use(conversation.settings.with_("test", **options)))


class Summing(ScriptedLLM):
    """A scripted model that also sums up, in words of its own, whatever record it is shown."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        if "<record>" not in messages[-1].text:
            async for part in super().stream(messages, tools):
                yield part
            return
        yield Completion(Message.of("assistant", "GOAL: think"), "summary-1", self.model)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_history_is_condensed_as_soon_as_it_has_too_many_events(workspace: Path) -> None:
    with Scripted(workspace, [*thinks(8), say("done")], Summing) as scripted:
        with_options(scripted, condense_after_events=12)
        assert scripted.ask("think eight times") == "finished"
        [condensed] = condensations(scripted)
        usages = [e for e in scripted.conversation.events if isinstance(e, LLMCompletionLogEvent)]
        assert [u.usage_id for u in usages].count("condenser") == 1
        assert condensed.llm_response_id == "summary-1"
        assert scripted.conversation.metrics.calls == len(usages) == 10
        assert condensed.summary is not None and "GOAL: think" in condensed.summary
        last = scripted.llm.requests[-1]
        assert_each_call_answered_once(last)
        assert last[1].text == "think eight times"  # the first message stays
        assert any("GOAL: think" in message.text for message in last)
        assert len(scripted.kinds) > 20 and "thought 0" in str(scripted.conversation.events)


def test_recent_condenser_asks_no_model_and_says_what_it_left_out(workspace: Path) -> None:
    with Scripted(workspace, [*thinks(8), say("done")]) as scripted:
        with_options(scripted, condenser="recent", condense_after_events=12)
        assert scripted.ask() == "finished"
        [condensed] = condensations(scripted)
        assert "without a summary" in str(condensed.summary)
        assert len(scripted.llm.requests) == 9


def test_no_condenser_keeps_everything(workspace: Path) -> None:
    with Scripted(workspace, [*thinks(8), say("done")]) as scripted:
        with_options(scripted, condenser="none", condense_after_events=12)
        assert scripted.ask() == "finished"
        assert not condensations(scripted)
        with pytest.raises(ConversationError, match="no condenser"):
            scripted.conversation.condense()


def test_tokens_of_a_request_are_a_trigger(workspace: Path) -> None:
    shout = [calls(call("think", {"thought": "word " * 3000})) for _ in range(3)]
    with Scripted(workspace, [*shout, say("done")], Summing) as scripted:
        with_options(scripted, condense_after_tokens=14_000)
        assert scripted.ask() == "finished"
        assert len(condensations(scripted)) == 1
        assert scripted.conversation.answer == "done"


def test_condense_on_request(workspace: Path) -> None:
    with Scripted(workspace, [*thinks(4), say("done"), say("yes")], Summing) as scripted:
        scripted.ask()
        scripted.conversation.condense()
        assert scripted.kinds[-3:] == [
            "CondensationRequest",
            "LLMCompletionLogEvent",
            "Condensation",
        ]
        assert scripted.ask("still there?") == "finished"
        assert any("GOAL: think" in message.text for message in scripted.llm.requests[-1])
        assert_each_call_answered_once(scripted.llm.requests[-1])


def test_condense_with_nothing_there_is_a_clear_error(workspace: Path) -> None:
    with (
        Scripted(workspace, []) as scripted,
        pytest.raises(ConversationError, match="nothing to condense"),
    ):
        scripted.conversation.condense()


def test_condensed_conversation_is_the_same_after_loading(workspace: Path) -> None:
    with Scripted(workspace, [*thinks(6), say("done")], Summing) as scripted:
        with_options(scripted, condense_after_events=12)
        scripted.ask()
        cid = scripted.conversation.id
        shown = scripted.conversation._core.log.messages()
    with Scripted(workspace, [], conversation_id=cid) as loaded:
        assert loaded.conversation._core.log.messages() == shown
