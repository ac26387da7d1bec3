"""A model is asked again when that may help, and no more often than the policy says."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from oh_kernel.errors import (
    ModelAuthError,
    ModelError,
    ModelGaveNoAnswer,
    ModelRateLimited,
    ModelUnavailable,
)
from oh_kernel.events import Message
from oh_kernel.llm import RetryPolicy, ScriptedLLM
from oh_kernel.llm.base import Completion, RetryNotice
from oh_kernel.llm.failures import clean
from oh_kernel.llm.retry import RetryingLLM

POLICY = RetryPolicy(attempts=5, min_wait_s=0.001, max_wait_s=0.002)
USER = [Message.of("user", "go")]


def ask(llm: RetryingLLM) -> list[Any]:
    async def run() -> list[Any]:
        return [item async for item in llm.stream(USER, [])]

    return asyncio.run(run())


def notices(items: list[Any]) -> list[RetryNotice]:
    return [item for item in items if isinstance(item, RetryNotice)]


def test_failure_for_ever_ends_after_six_requests() -> None:
    inner = ScriptedLLM([ModelUnavailable("down", remedy="Wait.")])
    with pytest.raises(ModelUnavailable, match=r"down \(after 6 requests\)\. Wait\."):
        ask(RetryingLLM(inner, POLICY))
    assert len(inner.requests) == 6


def test_notices_count_the_requests() -> None:
    inner = ScriptedLLM([[ModelUnavailable("a"), ModelRateLimited("b"), {"content": "ok"}]])
    items = ask(RetryingLLM(inner, POLICY))
    assert [(n.attempt, n.max_attempts, n.reason) for n in notices(items)] == [
        (2, 6, "a"),
        (3, 6, "b"),
    ]
    assert items[-1].message.text == "ok"


def test_refusal_is_not_asked_again() -> None:
    inner = ScriptedLLM([ModelAuthError("no")])
    with pytest.raises(ModelAuthError):
        ask(RetryingLLM(inner, POLICY))
    assert len(inner.requests) == 1


def test_waits_double_up_to_a_limit_and_spread() -> None:
    policy = RetryPolicy(min_wait_s=1, max_wait_s=60)
    for attempt, least in enumerate([1, 2, 4, 8, 16, 32, 60, 60], start=1):
        assert least <= policy.wait_s(attempt) <= least * 1.25
    assert policy.wait_s(1, 30.0) == 30
    assert policy.wait_s(1, 0.0) >= 1


def test_empty_replies_are_paid_for_in_the_answer() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1}
    empty = {"content": " ", "usage": usage, "cost_usd": 0.25}
    answer = {"content": "ok", "usage": usage, "cost_usd": 0.5}
    items = ask(RetryingLLM(ScriptedLLM([[empty, empty, answer]]), POLICY))
    completion = items[-1]
    assert isinstance(completion, Completion)
    assert completion.message.text == "ok"
    assert completion.usage.prompt_tokens == 30
    assert completion.cost_usd == 1.0
    assert len(notices(items)) == 2


@pytest.mark.parametrize("turn", [{}, {"content": "\n"}, {"reasoning": "I think"}])
def test_nothing_but_empty_replies(turn: dict[str, str]) -> None:
    inner = ScriptedLLM([turn])
    with pytest.raises(ModelGaveNoAnswer, match="4 requests"):
        ask(RetryingLLM(inner, POLICY))
    assert len(inner.requests) == 4


def test_no_retries_when_the_policy_says_so() -> None:
    inner = ScriptedLLM([ModelUnavailable("down")])
    with pytest.raises(ModelError, match="after 1 request"):
        ask(RetryingLLM(inner, replace(POLICY, attempts=0)))
    assert len(inner.requests) == 1


def test_keys_and_pages_are_kept_out_of_errors() -> None:
    assert clean("bad key abc123def", "abc123def") == "bad key ***"
    assert clean("Incorrect key: sk-proj-****abcd.") == "Incorrect key: ***"
    assert clean("sent 'Bearer abcdefghijklmnop'") == "sent '***'"
    assert clean("the bearer of key_columns") == "the bearer of key_columns"
    assert clean("<!DOCTYPE html><p>x") == "an HTML page instead of an answer"
    assert clean("a task-based\n  risk-free plan") == "a task-based risk-free plan"
