"""Field cases about what models send and refuse, through a conversation and over real HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Passing
from oh_kernel.errors import (
    ContextWindowExceeded,
    ModelGaveNoAnswer,
    ModelRateLimited,
    ModelRequestRefused,
    OpenHandsError,
)
from oh_kernel.events import (
    ActionEvent,
    Condensation,
    ConversationErrorEvent,
    Event,
    MessageEvent,
)
from oh_kernel.llm.base import RetryNotice
from oh_kernel.loop import run_blocking
from tests.live.agent_kernel import asks, check_calls_answered, results_of, text_of
from tests.live.model_server import ModelServer, Script

CHAT = "openai:gpt-4o"
ANTHROPIC = "anthropic:claude-sonnet-5"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@contextmanager
def talking(
    work: Path, server: ModelServer, model: str = CHAT, **options: Any
) -> Iterator[Conversation]:
    """A conversation with the model at `server`."""
    base_url = server.url if model == ANTHROPIC else f"{server.url}/v1"
    store = work.parent / "events.sqlite"
    given = {"policy": "never", "store_path": store, **options}
    with Conversation(
        work, model=model, base_url=base_url, api_key="sk-test-1234567890", **given
    ) as conversation:
        yield conversation


def ask(conversation: Conversation, text: str = "go") -> str:
    conversation.send_message(text)
    return str(conversation.run())


def answer(conversation: Conversation) -> str:
    said = [e for e in conversation.events if isinstance(e, MessageEvent) and e.source == "agent"]
    return said[-1].llm_message.text


# LM-03


def test_LM_03_lone_surrogates(work: Path) -> None:
    (work / "dash.txt").write_bytes(b"a \x97 b\n")
    emoji = chr(0x1F600)
    command = "cat dash.txt; printf '\\xed\\xa0\\xbd end\\n'"
    code = "print('x' + chr(0xD83D) + 'y' + chr(0x1F600))"
    script = [
        asks(("terminal", {"command": command})),
        asks(("ipython", {"code": code})),
        {"content": f"ok \ud83d and a good pair {emoji}"},
        {"content": "fine"},
    ]
    with ModelServer(script) as server:
        with talking(work, server) as conversation:
            assert ask(conversation) == "finished"
            assert answer(conversation) == f"ok � and a good pair {emoji}"
            assert ask(conversation, "mine \ud83d is broken") == "finished"
            stored = [event.to_json() for event in conversation.events]
            cid = conversation.id
        bodies = [request.body.decode("utf-8", "strict") for request in server.requests]
        last = json.loads(bodies[-1])["messages"]
    assert all(isinstance(json.loads(body), dict) for body in bodies)
    tools = [message["content"] for message in last if message["role"] == "tool"]
    assert "a � b" in str(tools[0]) and "� end" in str(tools[0])
    assert f"x�y{emoji}" in str(tools[1])
    assert f"ok � and a good pair {emoji}" in str([m for m in last if m["role"] == "assistant"])
    assert "mine � is broken" in str(last[-1]["content"])
    for text in stored:
        text.encode("utf-8", "strict")
    with talking(work, server, conversation_id=cid) as loaded:
        assert [event.to_json() for event in loaded.events] == stored


# LM-04

THINKING = {"type": "thinking", "thinking": "plan\n", "signature": "U0lHMQ=="}
REDACTED = {"type": "redacted_thinking", "data": "ZZZ="}
TEXT = {"type": "text", "text": "two looks"}
TWO_CALLS = [
    {"type": "tool_use", "id": i, "name": "terminal", "input": {"command": f"echo {n}"}}
    for i, n in (("a", 1), ("b", 2))
]


class PauseAfterTwoResults:
    """Stops the agent between its steps. A listener."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._results = 0

    def event(self, event: Event) -> None:
        self._results += event.kind == "ObservationEvent"
        if self._results == 2:
            self._conversation.pause()

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


def test_LM_04_signed_blocks_come_back_unaltered(work: Path) -> None:
    script = [{"blocks": [THINKING, REDACTED, TEXT, *TWO_CALLS]}, {"content": "done"}]
    with ModelServer(script) as server, ModelServer([{"content": "more"}] * 9) as other:
        with talking(work, server, ANTHROPIC) as conversation:
            conversation.subscribe(PauseAfterTwoResults(conversation))
            assert ask(conversation) == "paused"
            cid = conversation.id
        assert len(server.requests) == 1
        with talking(work, server, ANTHROPIC, conversation_id=cid) as loaded:
            assert str(loaded.run()) == "finished"
            settings = loaded.settings.with_(model=CHAT, base_url=f"{other.url}/v1")
            run_blocking(loaded.use(settings))
            assert ask(loaded, "more") == "finished"
            first = next(e for e in loaded.events if isinstance(e, ActionEvent))
        assert [b.model_dump() for b in first.thinking_blocks] == [THINKING, REDACTED]
        _check_own_request(server.requests[1].json["messages"])
        [foreign] = other.requests
    said = json.dumps(foreign.json["messages"][1:])  # our own prompt speaks of thinking, too
    assert not any(part in said for part in ("U0lHMQ==", "ZZZ=", "thinking", "signature", "plan"))
    assert check_calls_answered(foreign.json["messages"]) == ["a", "b"]


def _check_own_request(messages: list[dict[str, Any]]) -> None:
    place = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
    blocks = [{k: b[k] for k in b if k != "cache_control"} for b in messages[place]["content"]]
    assert blocks[:3] == [THINKING, REDACTED, TEXT]
    assert [(b["id"], b["name"]) for b in blocks[3:]] == [("a", "terminal"), ("b", "terminal")]
    results = messages[place + 1]["content"]
    assert [(b["type"], b["tool_use_id"]) for b in results[:2]] == [
        ("tool_result", "a"),
        ("tool_result", "b"),
    ]
    assert len(messages) == place + 2


# LM-06

OVERFLOWS = (
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Your input exceeds the context window of this model",
)
EMPTY_TOOL_REASON = {"blocks": [], "finish": "tool_use"}
ONLY_THINKING = {"blocks": [{"type": "thinking", "thinking": "hm", "signature": "U0lHMQ=="}]}


def errors_of(conversation: Conversation) -> list[ConversationErrorEvent]:
    return [e for e in conversation.events if isinstance(e, ConversationErrorEvent)]


def check_failure(
    conversation: Conversation, server: ModelServer, error: type[OpenHandsError], says: str
) -> None:
    """One error event that is clear, no call open, and a later message works."""
    with pytest.raises(error):
        ask(conversation)
    [event] = errors_of(conversation)
    assert event.code == error.__name__ and says in event.detail
    assert str(conversation.status) == "error"
    results_of(list(conversation.events))
    server.script = [{"content": "good"}] * 9
    assert ask(conversation, "again") == "finished"
    assert answer(conversation) == "good"
    check_calls_answered(server.requests[-1].json["messages"])


def test_LM_06_retry_after(work: Path) -> None:
    script = [{"content": "good", "fail": [{"status": 429, "retry_after": 2}]}]
    with ModelServer(script) as server, talking(work, server) as conversation:
        assert ask(conversation) == "finished" and answer(conversation) == "good"
        first, second = server.requests
        assert second.at - first.at >= 2
        assert not errors_of(conversation)


def test_LM_06_hard_400(work: Path) -> None:
    script = [{"fail_for_ever": {"status": 400, "message": "invalid request"}}]
    with ModelServer(script) as server, talking(work, server) as conversation:
        check_failure(conversation, server, ModelRequestRefused, "invalid request")
        assert len(server.requests) == 2


def test_LM_06_limit_for_ever(work: Path) -> None:
    script = [{"fail_for_ever": {"status": 429}}]
    with ModelServer(script) as server, talking(work, server, max_steps=5) as conversation:
        settings = conversation.settings.with_(max_retries=1)
        run_blocking(conversation.use(settings))
        check_failure(conversation, server, ModelRateLimited, "after 2 requests")
        assert len(server.requests) == 3


class InterruptInWait:
    """Interrupts while the next try is waited for. A listener."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.at = 0.0

    def event(self, event: Event) -> None:
        """Of no interest."""

    def delta(self, delta: Passing) -> None:
        if isinstance(delta, RetryNotice):
            self.at = time.monotonic()
            self._conversation.interrupt()


def test_LM_06_interrupt_during_the_wait(work: Path) -> None:
    script = [{"fail_for_ever": {"status": 429, "retry_after": 60}}]
    with ModelServer(script) as server, talking(work, server) as conversation:
        interrupts = InterruptInWait(conversation)
        conversation.subscribe(interrupts)
        assert ask(conversation) == "paused"
        assert time.monotonic() - interrupts.at < 1
        assert len(server.requests) == 1
        server.script = [{"content": "good"}]
        assert ask(conversation, "again") == "finished"


def thinks(thought: str) -> dict[str, Any]:
    return asks(("think", {"thought": thought}))


def condensations_of(conversation: Conversation) -> list[Condensation]:
    return [e for e in conversation.events if isinstance(e, Condensation)]


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC])
@pytest.mark.parametrize("message", OVERFLOWS)
def test_LM_06_overflow_worded(work: Path, message: str, model: str) -> None:
    """One condensation, then success, at the first step of a conversation as after some."""
    failure = {"status": 400, "message": message, "type": "invalid_request_error"}
    script: Script = [{"content": "good", "fail": [failure]}]
    with ModelServer(script) as server, talking(work, server, model) as conversation:
        assert ask(conversation) == "finished" and answer(conversation) == "good"
        assert len(condensations_of(conversation)) == 1
        assert len(server.requests) == 3  # too long, the summary, the answer
        assert not errors_of(conversation)
        assert "go" in json.dumps(server.requests[-1].json["messages"])
        check_calls_answered(server.requests[-1].json["messages"])
    # A request without replies is that for the summary; the history then holds one reply.
    good = {"content": "good"}
    late: Script = [[thinks("a"), {"content": "SUM"}], thinks("b"), {"fail": [failure], **good}]
    with ModelServer(late) as server, talking(work, server, model) as conversation:
        assert ask(conversation) == "finished"
        [condensed] = condensations_of(conversation)
        assert "SUM" in str(condensed.summary)
        check_calls_answered(server.requests[-1].json["messages"])
        assert ask(conversation, "again") == "finished"


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC])
@pytest.mark.parametrize("steps", [0, 6])
def test_LM_06_overflow_for_ever(work: Path, model: str, steps: int) -> None:
    """At most 3 condensations, then an error event; a later message works."""
    failure = {"status": 400, "message": OVERFLOWS[0], "type": "invalid_request_error"}
    script: Script = [*(thinks(f"step {n}") for n in range(steps)), {"content": "ok"}]
    with ModelServer(script) as server, talking(work, server, model) as conversation:
        assert ask(conversation) == "finished"
        server.script = [{"fail_for_ever": failure}] * 99
        before = len(server.requests)
        with pytest.raises(ContextWindowExceeded):
            ask(conversation, "more")
        [event] = errors_of(conversation)
        assert event.code == "ContextWindowExceeded" and OVERFLOWS[0] in event.detail
        assert 1 <= len(condensations_of(conversation)) <= 3
        assert len(server.requests) - before <= 3 * 7  # each summary is tried 6 times at most
        assert str(conversation.status) == "error"
        server.script = [{"content": "good"}] * 99
        assert ask(conversation, "again") == "finished"
        assert answer(conversation) == "good"
        check_calls_answered(server.requests[-1].json["messages"])
        assert "more" in json.dumps(server.requests[-1].json["messages"])


def test_LM_06_overflow_without_a_condenser_ends_in_one_clear_error(work: Path) -> None:
    script: Script = [{"fail_for_ever": {"status": 400, "message": OVERFLOWS[1]}}]
    with ModelServer(script) as server, talking(work, server) as conversation:
        settings = conversation.settings.with_("test", condenser="none")
        run_blocking(conversation.use(settings))
        check_failure(conversation, server, ContextWindowExceeded, OVERFLOWS[1])
        assert len(server.requests) == 2


class FailsAfterResult:
    """Has every request fail once a call has its result. A listener."""

    def __init__(self, server: ModelServer, failure: dict[str, Any]) -> None:
        self._server = server
        self._failure = failure

    def event(self, event: Event) -> None:
        if event.kind == "ObservationEvent":
            self._server.script = [{"fail_for_ever": self._failure}] * 9

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


def test_LM_06_overflow_amid_a_turn_leaves_no_call_open(work: Path) -> None:
    failure = {"status": 400, "message": OVERFLOWS[0]}
    with ModelServer([thinks("hm")]) as server, talking(work, server) as conversation:
        conversation.subscribe(FailsAfterResult(server, failure))
        with pytest.raises(ContextWindowExceeded):
            ask(conversation)
        assert [text_of(r) for r in results_of(list(conversation.events)).values()]
        server.script = [{"content": "good"}] * 3
        cid = conversation.id
    with ModelServer([{"content": "good"}] * 9) as server:
        with talking(work, server, conversation_id=cid) as loaded:
            assert ask(loaded, "again") == "finished"
        check_calls_answered(server.requests[-1].json["messages"])


@pytest.mark.parametrize(
    ("model", "turn"), [(CHAT, {"content": ""}), (ANTHROPIC, EMPTY_TOOL_REASON)]
)
def test_LM_06_empty_replies(work: Path, model: str, turn: dict[str, Any]) -> None:
    with ModelServer([turn]) as server, talking(work, server, model) as conversation:
        with pytest.raises(ModelGaveNoAnswer):
            ask(conversation)
        assert len(server.requests) <= 4
        [event] = errors_of(conversation)
        assert event.code == "ModelGaveNoAnswer" and "empty replies" in event.detail
        server.script = [{"content": "good"}]
        assert ask(conversation, "again") == "finished"


def test_LM_06_only_thinking(work: Path) -> None:
    script: Script = [[ONLY_THINKING, {"content": "good"}]]
    with ModelServer(script) as server, talking(work, server, ANTHROPIC) as conversation:
        assert ask(conversation) == "finished"
        assert answer(conversation) == "good"
        assert len(server.requests) == 2
