"""The scripted model gives its turns where they belong, and says when it has no more."""

import asyncio
import json
from pathlib import Path

import pytest

from oh_kernel.errors import ModelNotConfigured, ModelRateLimited, ScriptExhausted
from oh_kernel.events import Message
from oh_kernel.llm import ScriptedLLM, open_llm
from oh_kernel.llm.base import (
    LLM,
    Completion,
    ReasoningDelta,
    RetryNotice,
    TextDelta,
    ToolCallDelta,
)

USER = Message.of("user", "go")


def ask(llm: LLM, *messages: Message) -> list[object]:
    async def run() -> list[object]:
        return [item async for item in llm.stream(messages or [USER], [])]

    return asyncio.run(run())


def text(llm: LLM, *messages: Message) -> str:
    completion = ask(llm, *messages)[-1]
    assert isinstance(completion, Completion)
    return completion.message.text


def replies(count: int) -> list[Message]:
    return [USER, *(m for i in range(count) for m in (Message.of("assistant", f"r{i}"), USER))]


def test_turn_is_streamed_word_by_word() -> None:
    call = {"name": "terminal", "arguments": {"command": "ls"}}
    llm = ScriptedLLM([{"reasoning": "hm", "content": "one two", "tool_calls": [call]}])
    *deltas, completion = ask(llm)
    assert deltas[:3] == [ReasoningDelta("hm"), TextDelta("one"), TextDelta(" two")]
    pieces = [delta.arguments for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert json.loads("".join(pieces)) == {"command": "ls"}
    assert isinstance(completion, Completion)
    [made] = completion.message.tool_calls or []
    assert (made.id, made.name, made.arguments) == ("call_0_0", "terminal", '{"command": "ls"}')
    assert completion.message.reasoning_content == "hm"
    assert completion.finish_reason == "tool_call"


def test_turn_number_is_the_number_of_replies_in_the_history() -> None:
    llm = ScriptedLLM([{"content": f"turn {i}"} for i in range(5)])
    assert [text(llm, *replies(i)) for i in range(5)] == [f"turn {i}" for i in range(5)]


def test_resumed_conversation_goes_on() -> None:
    assert text(ScriptedLLM([{"content": str(i)} for i in range(5)]), *replies(3)) == "3"


def test_same_request_gets_the_same_turn() -> None:
    llm = ScriptedLLM([{"content": str(i)} for i in range(5)])
    assert [text(llm, *replies(2)), text(llm, *replies(2))] == ["2", "2"]


def test_condensed_history_goes_on_with_the_next_turn() -> None:
    llm = ScriptedLLM([{"content": str(i)} for i in range(9)])
    assert text(llm, *replies(4)) == "4"
    summary = Message.of("user", "summary of it all")
    assert text(llm, summary, *replies(2)) == "5"
    assert text(llm, summary, *replies(3)) == "6"


def test_interrupted_reply_is_given_again() -> None:
    llm = ScriptedLLM([{"content": "zero"}, {"content": "one two three"}, {"content": "two"}])

    async def interrupt() -> None:
        stream = llm.stream(replies(1), [])
        await anext(stream)
        await stream.aclose()

    asyncio.run(interrupt())
    assert text(llm, *replies(1), Message.of("user", "go on")) == "one two three"


def test_script_that_runs_out_fails_loudly() -> None:
    with pytest.raises(ScriptExhausted, match=r"has 1 turns and was asked for number 2") as caught:
        ask(ScriptedLLM([{"content": "x"}]), *replies(1))
    assert caught.value.remedy


def test_turns_may_be_functions_errors_and_lists() -> None:
    def answer(messages: object) -> dict[str, str]:
        assert isinstance(messages, list)
        return {"content": f"{len(messages)} messages"}

    llm = ScriptedLLM([[ModelRateLimited("busy"), answer]])
    with pytest.raises(ModelRateLimited):
        ask(llm)
    assert text(llm) == "1 messages"
    assert text(llm) == "1 messages"
    assert len(llm.requests) == 3


def test_file_with_failures_and_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / 'a "quoted" folder'
    turn = {
        "content": "x",
        "tool_calls": [{"name": "terminal", "arguments": {"command": "ls @WORKSPACE@"}}],
        "fail": [{"status": 429, "retry_after": 0}],
    }
    script = tmp_path / "script.json"
    script.write_text(json.dumps([turn]), "utf-8")
    llm = open_llm(f"scripted:{script}", workspace=workspace)
    notice, *_, completion = ask(llm)
    assert isinstance(notice, RetryNotice)
    assert isinstance(completion, Completion)
    [call] = completion.message.tool_calls or []
    assert json.loads(call.arguments) == {"command": f"ls {workspace}"}


@pytest.mark.parametrize("content", [None, "{", '{"content": "x"}', '["x"]'])
def test_unusable_script(tmp_path: Path, content: str | None) -> None:
    script = tmp_path / "script.json"
    if content is not None:
        script.write_text(content, "utf-8")
    with pytest.raises(ModelNotConfigured, match=r"script\.json"):
        open_llm(f"scripted:{script}")
