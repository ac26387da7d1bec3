"""A recording answers the same question elsewhere and another day, and no other question."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from oh_kernel.errors import ModelNotConfigured, ReplayMismatch
from oh_kernel.events import ImageContent, Message, MessageToolCall
from oh_kernel.llm import RecordingLLM, ScriptedLLM, open_llm
from oh_kernel.llm.base import LLM, Completion, TextDelta, ToolSpec
from oh_kernel.llm.canonical import Canonical

TOOLS = [ToolSpec("terminal", "Run a command.", {"type": "object"})]


def ask(llm: LLM, messages: list[Message]) -> tuple[str, Completion]:
    async def run() -> list[object]:
        return [item async for item in llm.stream(messages, TOOLS)]

    *deltas, completion = asyncio.run(run())
    assert isinstance(completion, Completion)
    return "".join(d.text for d in deltas if isinstance(d, TextDelta)), completion


def history(workspace: Path, day: str, version: str, call_id: str, took: str) -> list[Message]:
    prompt = (
        f"Date: {day}\nWorking folder: {workspace}\nPython: {version} at /x/bin/python\n"
        f"Packages: numpy {version}, pandas 2.2"
    )
    call = MessageToolCall(
        id=call_id,
        name="terminal",
        arguments=json.dumps({"command": f"ls {workspace}/data"}),
        origin="completion",
    )
    return [
        Message.of("system", prompt),
        Message.of("user", "go"),
        Message(role="assistant", tool_calls=[call]),
        Message.of("tool", f"1 passed in {took}", tool_call_id=call_id),
    ]


def record(folder: Path, messages: list[Message], *turns: dict[str, object]) -> Path:
    path = folder / "record.jsonl"
    inner = ScriptedLLM([list(turns)] * 5)
    llm = RecordingLLM(inner, path, workspace=folder)
    for _ in turns:
        ask(llm, messages)
    return path


def test_replay_in_another_folder_on_another_day(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    call = {"name": "terminal", "arguments": {"command": f"cat {here}/a.txt"}}
    turn: dict[str, object] = {"content": f"I look into {here}.", "tool_calls": [call]}
    path = record(here, history(here, "2026-01-02", "3.11.7", "call_9", "0.12s"), turn)
    assert str(here) not in path.read_text("utf-8")
    llm = open_llm(f"replay:{path}", workspace=there)
    text, completion = ask(llm, history(there, "2027-12-31", "3.13.1", "toolu_01", "3.4 s"))
    assert text == completion.message.text == f"I look into {there}."
    [made] = completion.message.tool_calls or []
    assert json.loads(made.arguments) == {"command": f"cat {there}/a.txt"}
    assert completion.cost_usd == 0


def test_another_question_fails_with_a_diff(tmp_path: Path) -> None:
    path = record(tmp_path, [Message.of("user", "first\nsame")], {"content": "x"})
    with pytest.raises(ReplayMismatch) as caught:
        ask(open_llm(f"replay:{path}"), [Message.of("user", "second\nsame")])
    assert "-first" in str(caught.value)
    assert "+second" in str(caught.value)
    assert "oh-kernel record" in str(caught.value)


def test_diff_stays_short(tmp_path: Path) -> None:
    lines = "\n".join("x" * 1000 for _ in range(500))
    path = record(tmp_path, [Message.of("user", "a")], {"content": "x"})
    with pytest.raises(ReplayMismatch) as caught:
        ask(open_llm(f"replay:{path}"), [Message.of("user", lines)])
    assert len(str(caught.value)) < 6000


def test_answers_to_one_question_come_in_their_order(tmp_path: Path) -> None:
    question = [Message.of("user", "again")]
    path = record(tmp_path, question, {"content": "one"}, {"content": "two"})
    # The scripted model gives the first for a request that is repeated; the file holds both tries.
    recorded = [json.loads(line)["reply"] for line in path.read_text("utf-8").splitlines()]
    texts = [reply["message"]["content"][0]["text"] for reply in recorded]
    llm = open_llm(f"replay:{path}")
    assert [ask(llm, question)[0] for _ in range(3)] == [*texts, texts[-1]]


def test_file_is_private_and_holds_no_key(tmp_path: Path) -> None:
    key = "sk-proj-0123456789abcdef"
    path = record(tmp_path, [Message.of("user", f"my key is {key}")], {"content": f"Got {key}"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key not in path.read_text("utf-8")


def test_unusable_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for content in (None, "{", '{"format": 99}'):
        if content is not None:
            path.write_text(content, "utf-8")
        with pytest.raises(ModelNotConfigured):
            open_llm(f"replay:{path}")


def test_what_matters_is_not_canonicalised_away() -> None:
    canonical = Canonical("/srv/space")
    for text in ("print(42)", "x = 3.14", "rows: 1000", "def f(a, b): ...", "cafe", "deadbeef"):
        assert canonical.text(text) == text
    assert canonical.text("/srv/space/a /srv/spaceship") == "@WORKSPACE@/a /srv/spaceship"
    assert canonical.text("In /srv/space. /srv/space.bak") == "In @WORKSPACE@. /srv/space.bak"
    assert canonical.text("at 2026-11-30T12:00:01.5Z in 3.2 s") == "at <time> in <duration>"
    assert canonical.text("<object at 0x7f00aa11bb>") == "<object at <address>>"


def test_other_pictures_are_another_question() -> None:
    def request(url: str) -> str:
        message = Message(role="user", content=[ImageContent(image_urls=[url])])
        return Canonical().request([message], [])

    assert request("data:image/png;base64,AAAA") != request("data:image/png;base64,BBBB")
