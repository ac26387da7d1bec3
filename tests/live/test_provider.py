"""What a provider receives and what becomes of its answers, over HTTP on loopback."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from oh_kernel.errors import (
    ContentPolicyRefused,
    ContextWindowExceeded,
    ModelAuthError,
    ModelError,
    ModelNotConfigured,
    ModelRateLimited,
    ModelRequestRefused,
    ModelUnavailable,
)
from oh_kernel.events import ImageContent, Message, MessageToolCall, TextContent
from oh_kernel.llm import RetryPolicy, open_llm
from oh_kernel.llm.base import ReasoningDelta, TextDelta, ToolCallDelta
from tests.live.asking import HELLO, KEY, TOOL, ask, read
from tests.live.model_server import ModelServer
from tests.timing import least

CHAT = "openai:gpt-4o"
RESPONSES = "openai-responses:gpt-5"
ANTHROPIC = "anthropic:claude-sonnet-5"
EVERY = [CHAT, RESPONSES, ANTHROPIC]
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


def base(model: str, server: ModelServer) -> str:
    return server.url if model == ANTHROPIC else server.url + "/v1"


@pytest.mark.parametrize("model", EVERY)
def test_text_and_calls_arrive_as_deltas_and_as_one_completion(model: str) -> None:
    call = {"name": "terminal", "arguments": {"command": "ls"}}
    with ModelServer([{"content": "Let me look.", "tool_calls": [call, call]}]) as server:
        answer = ask(model, base(model, server))
    assert answer.text == "Let me look." == answer.message.text
    assert len([d for d in answer.deltas if isinstance(d, TextDelta)]) == 3
    for index in (0, 1):
        pieces = [d for d in answer.deltas if isinstance(d, ToolCallDelta) and d.index == index]
        assert {piece.name for piece in pieces} == {"terminal"}
        assert "".join(piece.arguments for piece in pieces) == '{"command": "ls"}'
    calls = answer.message.tool_calls or []
    assert [(c.id, c.name) for c in calls] == [("call_0_0", "terminal"), ("call_0_1", "terminal")]
    assert {c.arguments for c in calls} == {'{"command": "ls"}'}
    assert answer.completion is not None
    assert answer.completion.response_id
    assert answer.completion.usage.prompt_tokens == 100
    assert answer.completion.usage.completion_tokens == 10


@pytest.mark.parametrize("model", EVERY)
def test_key_is_in_the_auth_header_alone(model: str) -> None:
    with ModelServer([{"content": "Hi."}]) as server:
        ask(model, base(model, server))
        [request] = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    rest = [value for name, value in request.headers.items() if name != "authorization"]
    assert not any(KEY in value for value in [*rest, request.path, request.body.decode()])


def test_tools_go_out_as_they_are() -> None:
    with ModelServer([{"content": "Hi."}]) as server:
        ask(CHAT, server.url + "/v1")
        [tool] = server.requests[0].json["tools"]
    assert tool == {
        "type": "function",
        "function": {
            "name": TOOL.name,
            "description": TOOL.description,
            "parameters": TOOL.parameters,
        },
    }


def test_usage_is_asked_for_and_priced() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    with ModelServer([{"content": "Hi.", "usage": usage}]) as server:
        completion = ask(CHAT, server.url + "/v1").completion
        assert server.requests[0].json["stream_options"] == {"include_usage": True}
    assert completion is not None
    assert completion.usage.prompt_tokens == 1000
    assert completion.usage.cache_read_tokens == 400
    assert completion.usage.reasoning_tokens == 30
    assert completion.cost_usd == pytest.approx((600 * 2.5 + 400 * 1.25 + 100 * 10) / 1e6)


def test_unknown_model_has_no_price() -> None:
    with ModelServer([{"content": "Hi."}]) as server:
        completion = ask("openai:my-own-model", server.url + "/v1").completion
    assert completion is not None
    assert completion.cost_usd is None
    assert completion.usage.prompt_tokens == 100


def test_cached_tokens_of_anthropic_count_into_the_prompt() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 5,
        "output_tokens": 7,
    }
    with ModelServer([{"content": "Hi.", "usage": usage}]) as server:
        completion = ask(ANTHROPIC, server.url).completion
    assert completion is not None
    assert completion.usage.prompt_tokens == 105
    assert completion.usage.cache_read_tokens == 90
    assert completion.usage.cache_write_tokens == 5
    assert completion.usage.completion_tokens == 7


def test_system_prompt_is_one_message_and_cache_mark_follows_the_static_part() -> None:
    static = TextContent(text="static", cache_prompt=True)
    messages = [
        Message(role="system", content=[static, TextContent(text="dynamic")]),
        Message.of("user", "Hello"),
    ]
    with ModelServer([{"content": "Hi."}]) as server:
        ask(CHAT, server.url + "/v1", messages)
        ask(ANTHROPIC, server.url, messages)
        chat, anthropic = server.requests
    assert chat.messages[0] == {"role": "system", "content": "static\n\ndynamic"}
    [first, second] = anthropic.json["system"]
    assert first["text"] == "static"
    assert first["cache_control"]["type"] == "ephemeral"
    assert second == {"type": "text", "text": "dynamic"}


def test_no_cache_mark_where_none_was_asked_for() -> None:
    with ModelServer([{"content": "Hi."}]) as server:
        ask(ANTHROPIC, server.url)
        assert b"cache_control" not in server.requests[0].body


def test_cache_mark_of_a_result_is_kept_for_anthropic() -> None:
    marked = Message(
        role="tool",
        content=[TextContent(text="out", cache_prompt=True)],
        tool_call_id="c1",
        name="terminal",
    )
    with ModelServer([{}, {"content": "Hi."}]) as server:
        ask(ANTHROPIC, server.url, [*HELLO, assistant("c1"), marked])
        [result] = server.requests[0].messages[-1]["content"]
    assert result["type"] == "tool_result"
    assert result["cache_control"]["type"] == "ephemeral"


def assistant(*ids: str, text: str = "") -> Message:
    return Message(
        role="assistant",
        content=[TextContent(text=text)] if text else [],
        tool_calls=[
            MessageToolCall(id=i, name="terminal", arguments="{}", origin="completion") for i in ids
        ],
    )


def result(call_id: str, *content: TextContent | ImageContent) -> Message:
    return Message(role="tool", content=list(content), tool_call_id=call_id, name="terminal")


def test_pictures_reach_the_model_and_results_stay_next_to_their_calls() -> None:
    picture = ImageContent(image_urls=[PIXEL])
    messages = [
        *HELLO,
        assistant("c1", "c2"),
        result("c1", TextContent(text="one"), picture),
        result("c2", TextContent(text="two")),
    ]
    with ModelServer([{}, {"content": "Hi."}]) as server:
        ask(CHAT, server.url + "/v1", messages)
        ask(ANTHROPIC, server.url, messages)
        chat, anthropic = server.requests
    roles = [message["role"] for message in chat.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert chat.messages[5]["content"][1]["image_url"]["url"] == PIXEL
    first, second = anthropic.messages[-1]["content"]
    assert [part["type"] for part in first["content"]] == ["text", "image"]
    assert first["content"][1]["source"]["data"] == PIXEL.partition(",")[2]
    assert second["tool_use_id"] == "c2"


def test_pictures_of_the_user_and_unreadable_ones() -> None:
    urls = [PIXEL, "data:image/png;base64,%%%", "https://example.org/a.png"]
    content = [TextContent(text="See"), ImageContent(image_urls=urls)]
    with ModelServer([{"content": "Hi."}]) as server:
        ask(CHAT, server.url + "/v1", [Message(role="user", content=content)])
        parts = server.requests[0].messages[0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text", "image_url"]
    assert "cannot be read" in parts[2]["text"]


def test_reasoning_of_chat_models_is_shown_and_kept_but_not_sent_to_others() -> None:
    with ModelServer([{"reasoning": "hm hm", "content": "Hi."}, {"content": "Bye."}]) as server:
        answer = ask(CHAT, server.url + "/v1")
        assert [d.text for d in answer.deltas if isinstance(d, ReasoningDelta)] == ["hm ", "hm"]
        assert answer.message.reasoning_content == "hm hm"
        ask(CHAT, server.url + "/v1", [*HELLO, answer.message, Message.of("user", "more")])
        assert b"hm hm" not in server.requests[1].body


def test_reasoning_items_of_responses_come_back_encrypted() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I thought"}],
        "encrypted_content": "ZW5jcnlwdGVk",
        "status": "completed",
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "terminal",
        "arguments": "{}",
        "status": "completed",
    }
    with ModelServer([{"items": [item, call]}, {"content": "Bye."}]) as server:
        message = ask(RESPONSES, server.url + "/v1").message
        assert message.responses_reasoning_item is not None
        assert message.responses_reasoning_item.encrypted_content == "ZW5jcnlwdGVk"
        stored = Message.model_validate_json(message.model_dump_json())
        history = [*HELLO, stored, result("c1", TextContent(text="ok"))]
        ask(RESPONSES, server.url + "/v1", history)
        ask(CHAT, server.url + "/v1", history)
        sent, chat = server.requests[1], server.requests[2]
    [reasoning] = [item for item in sent.json["input"] if item.get("type") == "reasoning"]
    assert reasoning["id"] == "rs_1"
    assert reasoning["encrypted_content"] == "ZW5jcnlwdGVk"
    assert reasoning["summary"] == [{"type": "summary_text", "text": "I thought"}]
    assert sent.json["store"] is False
    assert b"ZW5jcnlwdGVk" not in chat.body


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
@pytest.mark.parametrize("model", [CHAT, ANTHROPIC])
def test_passing_failures_are_retried_by_us_alone(status: int, model: str) -> None:
    failures = [{"status": status, "message": "busy"}] * 2
    with ModelServer([{"content": "Hi.", "fail": failures}]) as server:
        answer = ask(model, base(model, server))
        assert len(server.requests) == 3
        assert server.requests[0].body == server.requests[2].body
    assert answer.text == "Hi."
    assert [(n.attempt, n.max_attempts) for n in answer.notices] == [(2, 4), (3, 4)]
    assert str(status) in answer.notices[0].reason
    assert "busy" in answer.notices[0].reason


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(as_date: bool) -> None:
    def in_three_seconds() -> str:
        return format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)

    failures = [{"status": 429, "retry_after": in_three_seconds if as_date else "1"}]
    with ModelServer([{"content": "Hi.", "fail": failures}]) as server:
        answer = ask(CHAT, server.url + "/v1")
        first, second = server.requests
    assert second.at - first.at >= 1
    assert answer.notices[0].wait_s >= 1


def test_longer_wait_than_a_person_would_bear_is_not_waited_for() -> None:
    failures = [{"status": 429, "retry_after": 7200, "message": "daily limit"}]
    with ModelServer([{"content": "Hi.", "fail": failures}]) as server:
        with pytest.raises(ModelRateLimited, match="7200 s") as caught:
            ask(CHAT, server.url + "/v1")
        assert len(server.requests) == 1
    assert "daily limit" in str(caught.value)


@pytest.mark.parametrize("model", EVERY)
def test_stream_that_breaks_is_asked_for_again_from_its_start(model: str) -> None:
    broken = {"content": "one two three four", "cut_after": 4}
    with ModelServer([broken]) as server:
        with pytest.raises(ModelUnavailable, match="after 4 requests"):
            ask(model, base(model, server))
        assert len(server.requests) == 4


def test_text_of_a_broken_stream_is_forgotten() -> None:
    broken = {"content": "one two three", "cut_after": 3}
    with ModelServer([[broken, {"content": "one two three"}]]) as server:
        answer = ask(CHAT, server.url + "/v1")
    assert answer.text == answer.message.text == "one two three"
    streamed = "".join(d.text for d in answer.deltas if isinstance(d, TextDelta))
    assert len(streamed) > len("one two three")


def test_dropped_connection_and_nobody_listening() -> None:
    with ModelServer([{"content": "Hi.", "fail": [{"drop": True}]}]) as server:
        assert ask(CHAT, server.url + "/v1").text == "Hi."
        url = server.url
    with pytest.raises(ModelUnavailable, match="cannot be reached") as caught:
        ask(CHAT, url + "/v1")
    assert f"at {url}/v1:" in caught.value.message
    assert "base URL" in caught.value.remedy


def test_the_address_that_is_told_holds_no_password() -> None:
    with pytest.raises(ModelUnavailable) as caught:
        ask(CHAT, "http://me:hunter2@127.0.0.1:9/v1")
    assert "at http://127.0.0.1:9/v1:" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_silent_server_is_given_up_after_the_timeout() -> None:
    once = RetryPolicy(attempts=0)
    with (
        ModelServer([{"content": "one two", "hang_after": 1}]) as server,
        pytest.raises(ModelUnavailable, match="in time"),
    ):
        ask(CHAT, server.url + "/v1", retry=once, timeout_s=0.3)


def test_nonsense_instead_of_a_reply() -> None:
    pages = [{"status": 502, "body": "<html><body>Bad gateway</body></html>"}] * 4
    with (
        ModelServer([{"fail": pages}]) as server,
        pytest.raises(ModelUnavailable, match="HTML page") as caught,
    ):
        ask(CHAT, server.url + "/v1")
    assert "<html>" not in str(caught.value)
    with ModelServer([{"body": "{not json"}]) as server, pytest.raises(ModelUnavailable):
        ask(CHAT, server.url + "/v1")


REFUSALS: list[tuple[type[ModelError], dict[str, object]]] = [
    (ModelAuthError, {"status": 401, "message": f"Incorrect API key: {KEY}"}),
    (ModelAuthError, {"status": 403, "message": "no access"}),
    (ModelRequestRefused, {"status": 404, "message": "no such model"}),
    (ModelRequestRefused, {"status": 400, "message": "invalid request"}),
    (ModelRequestRefused, {"status": 422, "message": "unprocessable"}),
    (ModelRequestRefused, {"status": 402, "message": "pay first"}),
    (ModelRequestRefused, {"status": 429, "message": "used up", "code": "insufficient_quota"}),
    (ContextWindowExceeded, {"status": 413, "message": "too large"}),
    (ContextWindowExceeded, {"status": 400, "message": "x", "code": "context_length_exceeded"}),
    (
        ContextWindowExceeded,
        {"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    ),
    (
        ContextWindowExceeded,
        {"status": 400, "message": "Your input exceeds the context window of this model"},
    ),
    (
        ContextWindowExceeded,
        {"status": 400, "message": "This model's maximum context length is 8192 tokens."},
    ),
    (ContentPolicyRefused, {"status": 400, "message": "x", "code": "content_policy_violation"}),
    (
        ContentPolicyRefused,
        {"status": 400, "message": "blocked by content filtering policy"},
    ),
]


@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize(("kind", "failure"), REFUSALS)
def test_refusals_are_named_and_not_retried(
    model: str, kind: type[ModelError], failure: dict[str, object]
) -> None:
    if model == ANTHROPIC and "code" in failure:
        failure = {**failure, "type": failure["code"]}
    with ModelServer([{"fail": [failure]}]) as server:
        with pytest.raises(ModelError) as caught:
            ask(model, base(model, server))
        assert len(server.requests) == 1
    assert type(caught.value) is kind
    assert caught.value.remedy
    assert KEY not in str(caught.value)
    assert str(failure["message"])[:9] in str(caught.value)


def test_long_refusal_is_cut() -> None:
    with (
        ModelServer([{"fail": [{"status": 400, "message": "x" * 100_000}]}]) as server,
        pytest.raises(ModelRequestRefused) as caught,
    ):
        ask(CHAT, server.url + "/v1")
    assert len(str(caught.value)) < 1000


def test_error_inside_a_stream() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "full"}}
    body = f"event: error\ndata: {json.dumps(overloaded)}\n\n"
    headers = {"content-type": "text/event-stream"}
    failure = {"status": 200, "body": body, "headers": headers}
    with ModelServer([{"content": "Hi.", "fail": [failure]}]) as server:
        answer = ask(ANTHROPIC, server.url)
        assert len(server.requests) == 2
    assert answer.text == "Hi."
    assert "full" in answer.notices[0].reason


def test_refusal_of_the_model_itself() -> None:
    with ModelServer([{"finish": "content_filter"}]) as server:
        with pytest.raises(ContentPolicyRefused):
            ask(CHAT, server.url + "/v1")
        assert len(server.requests) == 1


# --- stopping ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", EVERY)
def test_stopping_before_the_first_word_closes_the_connection(model: str) -> None:
    with ModelServer([{"content": "one", "hang_after": 0}]) as server:

        async def run() -> None:
            llm = open_llm(model, base_url=base(model, server), api_key=KEY)
            asking = asyncio.create_task(read(llm))
            await asyncio.to_thread(server.wait_for_requests, 1)
            asking.cancel()
            await asyncio.wait([asking])
            assert await asyncio.to_thread(server.requests[0].closed.wait, 30)
            await llm.aclose()

        asyncio.run(run())


@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("how", ["close", "cancel"])
def test_stopping_closes_the_stream_at_once(model: str, how: str) -> None:
    slow = {"content": "one two three four five", "hang_after": 4}

    def stopped() -> float:
        async def run() -> float:
            llm = open_llm(model, base_url=base(model, server), api_key=KEY)
            stream = llm.stream(HELLO, [TOOL])
            assert isinstance(stream, AsyncGenerator)
            await anext(stream)
            started = time.monotonic()
            if how == "close":
                await stream.aclose()
            else:
                rest = asyncio.create_task(_drain(stream))
                await asyncio.sleep(0)
                rest.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await rest
            gone = await asyncio.to_thread(server.requests[0].closed.wait, 30)
            assert gone, "the server never saw its socket closed"
            seconds = time.monotonic() - started
            await llm.aclose()
            return seconds

        with ModelServer([slow]) as server:
            return asyncio.run(run())

    assert least(stopped, enough=1) < 1


async def _drain(stream: AsyncGenerator[object]) -> None:
    async for _ in stream:
        pass


def test_waiting_for_a_retry_can_be_cancelled() -> None:
    failure = {"status": 429, "retry_after": 60}

    def cancelled() -> float:
        async def run() -> float:
            llm = open_llm(CHAT, base_url=server.url + "/v1", api_key=KEY)
            asking = asyncio.create_task(read(llm))
            while not server.requests:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            started = time.monotonic()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            seconds = time.monotonic() - started
            await llm.aclose()
            return seconds

        with ModelServer([{"fail_for_ever": failure}]) as server:
            seconds = asyncio.run(run())
            assert len(server.requests) == 1
            return seconds

    assert least(cancelled, enough=1) < 1


def test_loop_keeps_turning_while_the_library_is_imported() -> None:
    """The agent's loop moves a status line and hears an interrupt meanwhile."""
    code = """
import asyncio, time
from oh_kernel.llm import open_llm
async def main():
    llm = open_llm("openai:x", base_url="http://127.0.0.1:9/v1")
    warm, longest, last = asyncio.create_task(llm.warm_up()), 0.0, time.monotonic()
    while not warm.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    await warm
    await llm.aclose()
    print(longest)
asyncio.run(main())
"""

    def longest() -> float:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        return float(done.stdout)

    assert least(longest, enough=1) < 1


def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([{"content": "Hi."}]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        assert ask(CHAT, "http://model.invalid/v1").text == "Hi."
        assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"


def test_variables_of_the_providers_are_left_to_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with ModelServer([{"content": "Hi."}]) as server:
        ask("openai:local", server.url + "/v1", api_key=None)
        assert "somebody" not in str(server.requests[0].headers)
    with pytest.raises(ModelAuthError):
        asyncio.run(read(open_llm("openai:gpt-5")))


def test_base_url_where_none_can_be_set() -> None:
    with pytest.raises(ModelNotConfigured, match="base URL"):
        ask("deepseek:deepseek-chat", "http://127.0.0.1:9")


def test_file_that_hides_a_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "openai.py").write_text("mine = 1\n", "utf-8")
    code = """
import asyncio
from oh_kernel.errors import ShadowedLibrary
from oh_kernel.llm import open_llm
try:
    asyncio.run(open_llm("openai:x", base_url="http://127.0.0.1:9/v1").warm_up())
except ShadowedLibrary as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert str(tmp_path / "openai.py") in done.stdout


# --- names ------------------------------------------------------------------------------------


def test_names_of_models() -> None:
    for name in ("openai:gpt-5", "openai/gpt-5", "anthropic/claude-x", "ollama:qwen3:8b"):
        assert open_llm(name).model == name.replace("/", ":", 1)
    assert open_llm("Qwen/Qwen3", base_url="http://127.0.0.1:9/v1").model == "openai:Qwen/Qwen3"
    for name in ("", "gpt-5", "nobody:gpt-5", "openai:"):
        with pytest.raises(ModelNotConfigured):
            open_llm(name)


def test_missing_key_and_missing_extra_are_said() -> None:
    with pytest.raises(ModelAuthError, match="no key for anthropic") as caught:
        asyncio.run(read(open_llm(ANTHROPIC)))
    assert "%openhands login in a notebook" in caught.value.remedy
    assert "oh-kernel login anthropic in a terminal" in caught.value.remedy
    assert "ANTHROPIC_API_KEY" in caught.value.remedy
    with pytest.raises(ModelNotConfigured) as missing:
        asyncio.run(read(open_llm("groq:llama", api_key="k")))
    assert "pydantic-ai-slim[groq]" in missing.value.remedy


def test_ollama_and_keyless_servers() -> None:
    with ModelServer([{"content": "Hi."}]) as server:
        assert ask("ollama:qwen3", server.url + "/v1", api_key=None).text == "Hi."
        assert ask("openai:local", server.url + "/v1", api_key=None).text == "Hi."
        assert server.requests[0].json["model"] == "qwen3"


@pytest.mark.parametrize(
    ("media_type", "body", "said"),
    [
        ("text/html", f"<html><body>Log in {KEY}</body></html>", "text/html"),
        ("application/json", json.dumps({"error": {"message": f"bad key {KEY}"}}), "bad key ***"),
        ("application/json; charset=utf-8", json.dumps({"choices": []}), "stream=no"),
    ],
)
@pytest.mark.parametrize("model", EVERY)
def test_document_in_place_of_a_stream_is_told_and_not_asked_for_again(
    model: str, media_type: str, body: str, said: str
) -> None:
    answer = {"status": 200, "body": body, "headers": {"content-type": media_type}}
    with ModelServer([{"fail_for_ever": answer}]) as server:
        with pytest.raises(ModelRequestRefused) as caught:
            ask(model, base(model, server))
        assert len(server.requests) == 1
    assert said in str(caught.value) and KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "not a url", "ftp://models.example"])
def test_base_url_that_is_no_address_is_told_at_once(url: str) -> None:
    with pytest.raises(ModelNotConfigured, match="http://"):
        ask(CHAT, url)
