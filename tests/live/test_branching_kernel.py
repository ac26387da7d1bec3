"""Forks, side questions, titles and reruns in a real kernel, by magic and from Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import MessageEvent
from oh_kernel.store import EventStore
from tests.live.agent_kernel import (
    AgentKernel,
    agent_kernel,
    check_calls_answered,
    python,
    results_of,
    stored_events,
    text_of,
)
from tests.outputs import final_text

TURNS: list[dict[str, Any]] = [
    python("made = 1"),
    {"content": "First."},
    {"content": "Second."},
    {"content": "Third."},
    {"content": "Fourth."},
]


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[AgentKernel]:
    with agent_kernel(tmp_path, TURNS) as kernel:
        yield kernel


def ids(kernel: AgentKernel) -> list[str]:
    with EventStore.open(kernel.store, read_only=True) as store:
        return [info.id for info in store.conversations()]


def test_the_notebook_goes_on_in_a_fork(kernel: AgentKernel) -> None:
    assert "has no conversation yet" in kernel.command("fork")
    kernel.ask("one")
    kernel.ask("two")
    [source] = ids(kernel)
    said = kernel.command("fork 1")
    fork, other = re.findall(r"[0-9a-f-]{36}", said)
    assert other == source and "from the end of turn 1." in said
    assert "Second." in final_text(kernel.ask("instead of two").messages)
    with EventStore.open(kernel.store, read_only=True) as store:
        told = [
            event.llm_message.text
            for event in store.iterate(fork)
            if isinstance(event, MessageEvent) and event.source == "user"
        ]
        assert told == ["one", "instead of two"]
        assert "instead of two" not in "".join(store.iterate_json(source))
    sent = kernel.server.requests[-1].messages
    check_calls_answered(sent)
    assert "This is a fork" in str(sent)
    assert "kernel was restarted" not in str(sent)
    assert fork in kernel.command("status")
    assert "There is no turn 9: the conversation has 2." in kernel.command("fork 9")


def test_a_side_question_is_answered_beside_the_task(kernel: AgentKernel) -> None:
    kernel.ask("one")
    before = kernel.events()
    result = kernel.kernel.run("%openhands btw what did you make?")
    assert "Second." in final_text(result.messages)
    assert "it is not part of the conversation" in final_text(result.messages)
    [shown] = result.of_type("execute_result")
    assert "<p>Second.</p>" in shown["data"]["text/html"]
    added = kernel.events()[len(before) :]
    assert [event.kind for event in added] == ["LLMCompletionLogEvent"]
    assert kernel.server.requests[-1].json["tools"]


def test_condensing_by_hand(tmp_path: Path) -> None:
    turns = [python(f"x = {n}") for n in range(30)]
    with agent_kernel(tmp_path, [*turns, {"content": "Done."}]) as kernel:
        kernel.ask("count")
        before, whole = len(kernel.events()), len(kernel.server.requests[-1].messages)
        assert "a summary stands for" in kernel.command("condense")
        assert "Condensation" in [event.kind for event in kernel.events()[before:]]
        asked = len(kernel.server.requests)
        kernel.ask("and now?")
        sent = kernel.server.requests[asked].messages
        check_calls_answered(sent)
        assert len(sent) < whole * 2 / 3


def test_titles_and_deleting(kernel: AgentKernel) -> None:
    kernel.ask("one")
    [first] = ids(kernel)
    assert "needs more. Write %openhands delete ID" in kernel.command("delete")
    assert "now called: My own" in kernel.command('rename "My own"')
    assert "My own" in kernel.command("history")
    assert "is the conversation of this notebook" in kernel.command(f"delete {first}")
    kernel.command("new")
    said = kernel.command(f"delete {first[:8]}")
    assert f"Deleted {first} (My own): " in said and "cannot be brought back" in said
    assert ids(kernel) == []
    assert "No conversation is stored" in kernel.command(f"delete {first}")


def test_the_model_gives_a_title(tmp_path: Path) -> None:
    with agent_kernel(tmp_path, [{"content": "Counting files"}]) as kernel:
        kernel.ask("count the files")
        assert "now called: Counting files" in kernel.command("title")
        asked = kernel.server.requests[-1]
        assert len(asked.messages) == 1 and not asked.json.get("tools")


def test_what_another_process_writes_is_not_deleted(tmp_path: Path) -> None:
    with agent_kernel(tmp_path / "a", TURNS) as one:
        one.ask("one")
        [used] = ids(one)
        with agent_kernel(tmp_path / "b", TURNS, store=one.store) as other:
            assert "in use" in other.command(f"delete {used}")
        assert ids(one) == [used]


def test_a_rerun_leaves_the_notebook_alone(kernel: AgentKernel, tmp_path: Path) -> None:
    kernel.ask("one")
    kernel.kernel.run("made = 'by the user'")
    result = kernel.kernel.run(f"%openhands rerun {tmp_path}/again", deadline_s=60)
    assert "1 call: 1 same" in final_text(result.messages)
    assert "<b>1 call: 1 same</b>" in result.of_type("execute_result")[0]["data"]["text/html"]
    assert "by the user" in kernel.kernel.run("made").text


PLAIN = """
from oh_kernel import Conversation
one = Conversation()
one.send_message("go")
print(one.run())
fork = one.fork(title="plain")
fork.send_message("go on")
print(fork.run(), fork.answer)
print(fork.ask_agent("why?"), fork.generate_title())
fork.rename("mine")
print([info.title for info in Conversation.list()])
fork.delete()
one.close()
"""
AWAITED = """
from oh_kernel import Conversation
one = Conversation()
await one.asend_message("go")
print(await one.arun())
fork = await one.afork(title="plain")
await fork.asend_message("go on")
print(await fork.arun(), fork.answer)
print(await fork.aask_agent("why?"), await fork.agenerate_title())
fork.rename("mine")
print([info.title for info in Conversation.list()])
await fork.adelete()
await one.aclose()
"""


@pytest.mark.parametrize("code", [PLAIN, AWAITED], ids=["plain", "awaited"])
def test_a_cell_needs_no_await_and_may_have_it(kernel: AgentKernel, code: str) -> None:
    result = kernel.kernel.run(code)
    assert result.errors == []
    assert result.text.splitlines() == [
        "finished",
        "finished Second.",
        "Third. go",
        "['mine', 'go']",
    ]
    assert "1" in kernel.kernel.run("made").text


def test_the_plain_ways_inside_a_coroutine_of_the_kernel(kernel: AgentKernel) -> None:
    body = "".join(f"    {line}\n" for line in PLAIN.strip().splitlines())
    result = kernel.kernel.run(f"async def main():\n{body}\nawait main()")
    assert result.errors == []
    assert "finished Second." in result.text


def test_a_fork_while_the_agent_runs(tmp_path: Path) -> None:
    """From the agent's own Python, which runs on the main thread in the middle of a turn."""
    code = "\n".join(
        [
            "from oh_kernel import Conversation",
            "running = Conversation(conversation_id=Conversation.list()[0].id)",
            "fork = running.fork()",
            "print(fork.status, len(fork.waiting_calls))",
            "print(fork.events[-3].error[:40])",
        ]
    )
    with agent_kernel(tmp_path, [python(code), {"content": "First."}]) as kernel:
        assert "First." in final_text(kernel.ask("fork yourself").messages)
        with EventStore.open(kernel.store, read_only=True) as store:
            [source] = [i for i in store.conversations() if not i.meta.get("forked_from")]
        [result] = results_of(stored_events(kernel.store, source.id)).values()
        assert "idle 0\nThe conversation was forked before this" in text_of(result)
