"""Field cases LM-01 to LM-04 and LM-06, as far as they concern the model layer, over real HTTP."""

import asyncio
import json
import time
from itertools import pairwise

import pytest

from oh_kernel.errors import (
    ContextWindowExceeded,
    ModelGaveNoAnswer,
    ModelRateLimited,
    ModelRequestRefused,
)
from oh_kernel.events import Message, MessageToolCall
from oh_kernel.llm import RetryPolicy, open_llm
from tests.live.asking import FAST, HELLO, KEY, ask, read
from tests.live.model_server import ModelServer, Request
from tests.timing import least

CHAT = "openai:gpt-4o"
ANTHROPIC = "anthropic:claude-sonnet-5"
MORE = Message.of("user", "more")


def result(call_id: str, text: str) -> Message:
    return Message.of("tool", text, tool_call_id=call_id, name="terminal")


def stored(message: Message) -> Message:
    """The message as it is after the conversation was stored and loaded."""
    return Message.model_validate_json(message.to_json())


def chat_calls(request: Request) -> list[tuple[str, dict[str, object]]]:
    """Ids and arguments of every call in a chat request, after checking that each is answered."""
    calls = []
    messages = request.messages
    for place, message in enumerate(messages):
        for offset, call in enumerate(message.get("tool_calls") or (), start=1):
            answer = messages[place + offset]
            assert (answer["role"], answer["tool_call_id"]) == ("tool", call["id"])
            arguments = json.loads(call["function"]["arguments"])
            assert isinstance(arguments, dict)
            calls.append((call["id"], arguments))
    return calls


RAW_ARGUMENTS = [
    '{"command": "view", "path": "a.py", "view_range": \n[1, 2]\n}',
    '{"command": "create", "path": "new.py", "file_text": "half',
    '{"command": "echo a\necho b"}',
    '{"command": "view", "path": "a.py", "view_range": "[1, 2]"}',
    '["ls"]',
    "",
    "x" * 5000,
]


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC, "openai-responses:gpt-5"])
@pytest.mark.parametrize("raw", RAW_ARGUMENTS)
def test_LM_01_arguments_in_the_next_request_are_objects(model: str, raw: str) -> None:
    script = [{"tool_calls": [{"name": "terminal", "arguments": raw}]}, {"content": "done"}]
    with ModelServer(script) as server:
        url = server.url if model == ANTHROPIC else server.url + "/v1"
        message = ask(model, url).message
        [call] = message.tool_calls or []
        # Anthropic's API writes nothing for a call without arguments.
        written = raw or ("{}" if model == ANTHROPIC else "")
        assert call.arguments == written, "the log holds what the model wrote"
        answer = ask(model, url, [*HELLO, stored(message), result(call.id, "error")])
        assert answer.text == "done"
        [sent] = list(arguments_of(server.requests[1].json))
    assert isinstance(sent, dict)
    if not is_object(call.arguments):
        assert sent == {"malformed_arguments": raw[:1000]}


def test_LM_06_reply_without_choices_is_asked_for_again() -> None:
    empty = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    with ModelServer([[{"body": json.dumps(empty)}, {"content": "fine"}]]) as server:
        assert ask(CHAT, server.url + "/v1", stream=False).message.text == "fine"


def is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except ValueError:
        return False


def arguments_of(body: object) -> list[object]:
    """The arguments of every call in a request of any of the three APIs."""
    match body:
        case {"function": {"arguments": str(text)}} | {
            "type": "function_call",
            "arguments": str(text),
        }:
            return [json.loads(text)]
        case {"type": "tool_use", "input": value}:
            return [value]
        case dict():
            return [a for value in body.values() for a in arguments_of(value)]
        case list():
            return [a for value in body for a in arguments_of(value)]
        case _:
            return []


def test_LM_02_each_result_follows_its_own_call() -> None:
    def turn(*calls: tuple[str, str]) -> dict[str, object]:
        return {
            "tool_calls": [
                {"id": i, "name": "terminal", "arguments": {"command": c}} for i, c in calls
            ]
        }

    script = [
        turn(("call_0", "one")),
        turn(("call_0", "two")),
        turn(("call_1", "x1"), ("call_1", "x2")),
        turn(("", "x3")),
        {"content": "done"},
    ]
    with ModelServer(script) as server:
        history = list(HELLO)
        for _ in range(4):
            message = ask(CHAT, server.url + "/v1", history).message
            calls = message.tool_calls or []
            commands = [json.loads(call.arguments)["command"] for call in calls]
            results = [result(c.id, f"out of {t}") for c, t in zip(calls, commands, strict=True)]
            history = [stored(m) for m in [*history, message, *results]]
        assert ask(CHAT, server.url + "/v1", history).text == "done"
        requests = server.requests
    for request in requests:
        ids = [call_id for call_id, _ in chat_calls(request)]
        assert all(ids)
        assert len(set(ids)) == len(ids)
    last = requests[-1]
    assert [a["command"] for _, a in chat_calls(last)] == ["one", "two", "x1", "x2", "x3"]
    answers = [m["content"] for m in last.messages if m["role"] == "tool"]
    assert answers == [f"out of {c}" for c in ("one", "two", "x1", "x2", "x3")]
    for shorter, longer in pairwise(requests):
        assert longer.messages[: len(shorter.messages)] == shorter.messages, "one mapping for all"


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC, "openai-responses:gpt-5"])
def test_LM_03_request_bodies_are_strict_utf8(model: str) -> None:
    arguments = '{"code": "print(chr(0xD83D)) # \\ud83d \\ud83d\\ude00"}'
    call = MessageToolCall(id="c", name="ipython", arguments=arguments, origin="completion")
    history = [
        Message.of("user", "mine: \ud83d, fine: \U0001f600"),
        Message(role="assistant", tool_calls=[call]),
        result("c", "a \udc97 b, \ud83d end, \U0001f600"),
        Message.of("user", "go on"),
    ]
    with ModelServer([{}, {"content": "ok \ud83d \ud83d\ude00"}]) as server:
        url = server.url if model == ANTHROPIC else server.url + "/v1"
        message = ask(model, url, history).message
        ask(model, url, [*history, message, MORE])
        first, second = server.requests
    for request in (first, second):
        text = json.dumps(request.json, ensure_ascii=False)
        text.encode("utf-8", "strict")
        assert "mine: �, fine: \U0001f600" in text
        assert "a � b, � end, \U0001f600" in text
        [sent] = arguments_of(request.json)
        assert sent == {"code": "print(chr(0xD83D)) # � \U0001f600"}
    assert message.text == "ok � \U0001f600"
    assert stored(message) == message


def test_LM_04_opaque_blocks_go_back_unaltered_and_to_their_own_provider_alone() -> None:
    thinking = {"type": "thinking", "thinking": "plan\n", "signature": "U0lHMQ=="}
    redacted = {"type": "redacted_thinking", "data": "ZZZ="}
    text = {"type": "text", "text": "two looks"}
    calls = [
        {"type": "tool_use", "id": i, "name": "terminal", "input": {"command": f"echo {n}"}}
        for i, n in (("a", 1), ("b", 2))
    ]
    script = [{"blocks": [thinking, redacted, text, *calls]}, {"content": "done"}]
    with ModelServer(script) as server:
        message = ask(ANTHROPIC, server.url).message
        history = [*HELLO, stored(message), result("a", "1"), result("b", "2")]
        done = ask(ANTHROPIC, server.url, history).message
        later = [stored(m) for m in [*history, done, MORE]]
        for other in (CHAT, "openai-responses:gpt-5", "ollama:qwen3"):
            ask(other, server.url + "/v1", later)
        _, own, *foreign = server.requests
    reply, results = own.messages[-2:]
    assert reply == {"role": "assistant", "content": [thinking, redacted, text, *calls]}
    assert [(r["type"], r["tool_use_id"]) for r in results["content"]] == [
        ("tool_result", "a"),
        ("tool_result", "b"),
    ]
    for request in foreign:
        for opaque in (b"U0lHMQ==", b"ZZZ=", b"thinking", b"signature", b"plan\\n"):
            assert opaque not in request.body
        assert len(arguments_of(request.json)) == 2
        assert request.body.count(b'"a"') == request.body.count(b'"b"') == 2
    assert [block.model_dump() for block in later[2].thinking_blocks] == [thinking, redacted]


def test_LM_04_empty_signature_is_never_sent() -> None:
    unsigned = {"type": "thinking", "thinking": "plan", "signature": ""}
    blocks = [unsigned, {"type": "text", "text": "hi"}]
    with ModelServer([{"blocks": blocks}, {"content": "done"}]) as server:
        message = ask(ANTHROPIC, server.url).message
        ask(ANTHROPIC, server.url, [*HELLO, message, MORE])
        assert b"signature" not in server.requests[1].body


def test_LM_06_retry_after() -> None:
    failure = {"status": 429, "retry_after": 2}
    with ModelServer([{"content": "good", "fail": [failure]}]) as server:
        assert ask(CHAT, server.url + "/v1").text == "good"
        first, second = server.requests
    assert second.at - first.at >= 2


def test_LM_06_hard_400() -> None:
    failure = {"status": 400, "message": "invalid request"}
    with ModelServer([{"content": "good", "fail": [failure]}]) as server:
        with pytest.raises(ModelRequestRefused, match="invalid request"):
            ask(CHAT, server.url + "/v1")
        assert len(server.requests) == 1
        assert ask(CHAT, server.url + "/v1").text == "good", "a later message works"


def test_LM_06_limit_for_ever() -> None:
    with ModelServer([{"fail_for_ever": {"status": 429}}]) as server:
        with pytest.raises(ModelRateLimited):
            ask(CHAT, server.url + "/v1")
        assert len(server.requests) == 1 + FAST.attempts


def test_LM_06_limit_for_ever_is_interrupted_within_a_second() -> None:
    def interrupted() -> float:
        async def run() -> float:
            patient = RetryPolicy(min_wait_s=30)
            llm = open_llm(CHAT, base_url=server.url + "/v1", api_key=KEY, retry=patient)
            asking = asyncio.create_task(read(llm))
            await asyncio.to_thread(server.wait_for_requests, 1)
            started = time.monotonic()
            asking.cancel()
            await asyncio.wait([asking])
            assert asking.cancelled()
            await llm.aclose()
            return time.monotonic() - started

        with ModelServer([{"fail_for_ever": {"status": 429}}]) as server:
            return asyncio.run(run())

    assert least(interrupted, enough=1) < 1


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Your input exceeds the context window of this model",
    ],
)
@pytest.mark.parametrize("model", [CHAT, ANTHROPIC])
def test_LM_06_overflow_is_named_at_once(model: str, message: str) -> None:
    failure = {"status": 400, "message": message, "type": "invalid_request_error"}
    with ModelServer([{"content": "good", "fail": [failure]}]) as server:
        url = server.url if model == ANTHROPIC else server.url + "/v1"
        with pytest.raises(ContextWindowExceeded):
            ask(model, url)
        assert len(server.requests) == 1


def test_LM_06_empty_stop() -> None:
    with ModelServer([{"content": ""}]) as server:
        with pytest.raises(ModelGaveNoAnswer):
            ask(CHAT, server.url + "/v1")
        assert len(server.requests) == 4


def test_LM_06_empty_tool_reason() -> None:
    with ModelServer([{"blocks": [], "finish": "tool_use"}]) as server:
        with pytest.raises(ModelGaveNoAnswer):
            ask(ANTHROPIC, server.url)
        assert len(server.requests) == 4


def test_LM_06_only_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "U0lHMQ=="}
    with ModelServer([[{"blocks": [thinking]}, {"content": "good"}]]) as server:
        assert ask(ANTHROPIC, server.url).text == "good"
        assert len(server.requests) == 2
