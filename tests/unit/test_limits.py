"""What a turn and a conversation may take: no call is made that could pass a limit by much."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oh_kernel.conversation.stats import ConversationStats
from oh_kernel.errors import MaxBudgetReached, PriceUnknown, SettingsError
from oh_kernel.events import ConversationErrorEvent, Message, MessageEvent
from oh_kernel.llm.base import Usage
from oh_kernel.llm.fallback import FallbackLLM
from oh_kernel.llm.priced import worst_cost
from oh_kernel.llm.pricing import Price, listed_cost
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.loop import run_blocking
from oh_kernel.settings import load_settings
from oh_kernel.views.static import render_turn
from tests.conversations import Scripted, call, calls, say

DOLLAR_EACH = "1/1"  # a million tokens, in and out


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def using(turn: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
    return {**turn, "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def thinking(n: int, prompt: int = 100_000, completion: int = 10_000) -> dict[str, Any]:
    """A step that does nothing but cost: 0.11 US dollars at a dollar a million."""
    return using(calls(call("think", {"thought": f"thought {n}"})), prompt, completion)


def scripted(workspace: Path, turns: list[Any], **options: Any) -> Scripted:
    flags = {"price": DOLLAR_EACH, "stuck_detection": False, **options}
    return Scripted(
        workspace, turns, settings=load_settings(flags, environ={}), tools=["think", "finish"]
    )


def error_of(conversation: Scripted) -> ConversationErrorEvent:
    *_, last = [
        e for e in conversation.conversation.events if isinstance(e, ConversationErrorEvent)
    ]
    return last


def test_the_worst_of_the_next_call_is_stopped_before_it_is_made(workspace: Path) -> None:
    with scripted(workspace, [thinking(n) for n in range(9)], budget=0.5) as one:
        assert one.ask() == "error"
        error = error_of(one)
        assert error.code == "MaxBudgetReached"
        # The next prompt would hold the last one with its reply, and another reply could follow.
        assert one.conversation.metrics.cost_usd == pytest.approx(0.44)
        assert error.detail.startswith(
            "Agent reached maximum budget limit ($0.5000); accumulated cost $0.4400. "
            "The next call could cost $0.11"
        )
        assert len(one.llm.requests) == 4
        assert "The next call could cost" in render_turn(one.conversation.events).text


def test_a_limit_that_was_passed_says_no_more_than_that(workspace: Path) -> None:
    dear = [thinking(1, 100, 900_000), say("x")]
    with scripted(workspace, dear, budget=0.5) as one:
        assert one.ask() == "error"
        assert error_of(one).detail == (
            "Agent reached maximum budget limit ($0.5000); accumulated cost $0.9001."
        )
        view = render_turn(one.conversation.events)
        assert "allow more with --budget 1.00" in view.text
        assert "allow more with --budget 1.00" in view.html


def test_a_run_with_more_goes_on_where_it_stopped(workspace: Path) -> None:
    turns = [*(thinking(n) for n in range(4)), say("done")]
    with scripted(workspace, turns, budget=0.3) as one:
        assert one.ask() == "error"
        assert str(one.conversation.run()) == "error", "the same budget is still used up"
        assert len(one.llm.requests) == 2
        more = one.conversation.settings.with_("test", budget=1.0)
        run_blocking(one.conversation.use(more))
        assert str(one.conversation.run()) == "finished"
        assert one.conversation.answer == "done"


def test_a_message_begins_a_turn_with_a_budget_of_its_own(workspace: Path) -> None:
    turns = [*(thinking(n) for n in range(4)), say("done")]
    with scripted(workspace, turns, budget=0.4) as one:
        assert one.ask() == "error"
        assert one.ask("go on") == "finished"


def test_a_message_to_an_agent_at_work_lifts_no_limit(workspace: Path) -> None:
    def interrupting(_: Any) -> dict[str, Any]:
        if not sent:
            sent.append(True)
            # On the agent thread, within a step.
            tasks.append(asyncio.ensure_future(one.conversation._core.send("and this", ())))
        return thinking(2)

    sent: list[bool] = []
    tasks: list[Any] = []
    turns: list[Any] = [thinking(0), interrupting, *(thinking(n) for n in range(3, 9))]
    with scripted(workspace, turns, budget=0.5) as one:
        assert one.ask() == "error"
        users = [e for e in one.conversation.events if isinstance(e, MessageEvent)]
        assert len(users) == 2
        assert one.conversation.metrics.cost_usd <= 0.5


def test_a_conversation_has_a_budget_too(workspace: Path) -> None:
    turns = [say("a"), say("b"), say("c")]
    turns = [using(turn, 200_000, 0) for turn in turns]
    with scripted(workspace, turns, conversation_budget=0.5) as one:
        assert [one.ask(), one.ask(), one.ask()] == ["finished", "finished", "error"]
        assert "whole conversation (conversation_budget)" in error_of(one).detail
        assert one.conversation.metrics.cost_usd == pytest.approx(0.4)


@pytest.mark.parametrize("option", ["max_tokens", "conversation_max_tokens"])
def test_tokens_are_limited_alike(workspace: Path, option: str) -> None:
    flags = {"price": None, option: 400_000}
    with scripted(workspace, [thinking(n) for n in range(9)], **flags) as one:
        assert one.ask() == "error"
        assert error_of(one).code == "MaxTokensReached"
        assert "maximum token limit (400,000); used 330,000 tokens." in error_of(one).detail
        assert "The next call could take" not in error_of(one).detail or one.llm.requests
        assert "--max-tokens" in render_turn(one.conversation.events).text


def test_without_a_price_no_budget_can_be_kept(workspace: Path) -> None:
    with scripted(workspace, [say("x")], price=None, budget=1.0) as one:
        with pytest.raises(
            PriceUnknown, match=r"scripted:script is not known.*--price 0\.15/0\.60"
        ):
            one.ask()
        assert one.llm.requests == []
        assert error_of(one).code == "PriceUnknown"
        view = render_turn(one.conversation.events).text
        assert view.count("--price 0.15/0.60") == 1 and "--max-tokens 200000" in view


def test_calls_without_a_price_before_are_told_of(workspace: Path) -> None:
    with scripted(workspace, [say("x"), say("y")], price=None) as one:
        assert one.ask() == "finished"
        priced = one.conversation.settings.with_("test", price="1/1", conversation_budget=1.0)
        run_blocking(one.conversation.use(priced))
        with pytest.raises(PriceUnknown, match="1 call so far had no known price"):
            one.ask()


def test_a_question_beside_the_run_counts_and_is_checked(workspace: Path) -> None:
    turns = [using(say("yes"), 400_000, 0)] * 3
    with scripted(workspace, turns, conversation_budget=0.5) as one:
        one.conversation.send_message("go")
        aside = one.conversation._core.aside
        question = [Message.of("user", "is it?")]
        run_blocking(aside.ask("title", question))
        assert one.conversation.stats.usage_to_metrics["title"].accumulated_cost == 0.4
        long = [Message.of("user", "word " * 100_000)]
        with pytest.raises(MaxBudgetReached):
            run_blocking(aside.ask("title", long))
        assert len(one.llm.requests) == 1


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    budget=st.floats(0.0, 2.0),
    costs=st.lists(st.tuples(st.integers(1, 400_000), st.integers(0, 30_000)), max_size=6),
    runs=st.integers(1, 3),
)
def test_money_never_passes_the_budget_by_more_than_a_call(
    tmp_path_factory: pytest.TempPathFactory,
    budget: float,
    costs: list[tuple[int, int]],
    runs: int,
) -> None:
    folder = tmp_path_factory.mktemp("w") / "w"
    folder.mkdir()
    turns = [thinking(n, *cost) for n, cost in enumerate(costs)]
    with scripted(folder, [*turns, say("end")], budget=budget) as one:
        status = one.ask()
        for _ in range(runs if status == "error" else 0):
            one.conversation.run()
        dearest = max([(p + c) / 1e6 for p, c in costs], default=0.0)
        spent = one.conversation.metrics.cost_usd
        assert spent <= budget + dearest
        assert spent <= budget or error_of(one).code == "MaxBudgetReached"


def test_steps_are_limited_with_the_words_of_the_contract(workspace: Path) -> None:
    with scripted(workspace, [thinking(1), thinking(2), say("x")], max_steps=2) as one:
        assert one.ask() == "error"
        assert error_of(one).detail == "Agent reached maximum iterations limit (2)."
    with scripted(workspace, [thinking(1), say("x")], max_steps=2) as one:
        assert one.ask() == "finished", "the last step finished"


# Prices


def test_prices_of_a_list_and_of_the_settings() -> None:
    usage = Usage(1_000_000, 0)
    assert listed_cost("ollama:qwen3", usage) == listed_cost("local:x.gguf", usage) == 0.0
    assert listed_cost("openai:my-own-model", usage) is None
    assert (listed_cost("openai:gpt-4o", usage) or 0) > 0
    own, known = ScriptedLLM([], name="own"), FallbackLLM([ScriptedLLM([]), ScriptedLLM([])])
    assert worst_cost(own, Usage(1000, 1000), "1/2") == pytest.approx(0.003)
    assert worst_cost(known, usage, None) is None
    assert Price.parse("0.15/0.60").of(Usage(1_000_000, 1_000_000)) == pytest.approx(0.75)


@pytest.mark.parametrize("text", ["cheap", "1", "1/", "-1/2", "1/2/3"])
def test_a_price_is_two_numbers(text: str) -> None:
    with pytest.raises(SettingsError, match=r"two prices, in and out, such as 0\.15/0\.60"):
        load_settings({"price": text}, environ={})


# Stats


def test_stats_have_the_shape_of_the_api(workspace: Path) -> None:
    with scripted(workspace, [thinking(1), say("x")], budget=5.0) as one:
        assert one.ask() == "finished"
        stats = one.conversation.stats
    shape = json.loads(stats.model_dump_json())["usage_to_metrics"]["agent"]
    assert set(shape) == {
        *("model_name", "accumulated_cost", "max_budget_per_task", "accumulated_token_usage"),
        *("costs", "response_latencies", "token_usages"),
    }
    assert (shape["model_name"], shape["max_budget_per_task"]) == ("scripted:script", 5.0)
    assert shape["accumulated_token_usage"] == {
        "model": "scripted:script",
        "prompt_tokens": 100_000,
        "completion_tokens": 10_000,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "context_window": 0,
        "per_turn_token": 0,
        "response_id": "",
    }
    assert [set(cost) for cost in shape["costs"]] == [{"model", "cost", "timestamp"}] * 2
    assert len(shape["response_latencies"]) == len(shape["token_usages"]) == 2
    assert set(stats.usage_to_metrics["agent"].snapshot()) == set(shape) - {
        *("costs", "response_latencies", "token_usages"),
    }
    assert stats.usage_to_metrics["agent"].sums.calls == 2


def test_stats_come_back_with_the_log(workspace: Path) -> None:
    with scripted(workspace, [thinking(1), say("x")]) as one:
        one.ask()
        before, id_ = one.conversation.stats, one.conversation.id
    again = Scripted(workspace, [], conversation_id=id_)
    with again:
        assert isinstance(before, ConversationStats)
        assert again.conversation.stats == before
