"""`kill -9` of the kernel at any moment of a run: nothing lost, nothing twice, nothing run again.

A scripted run is killed at moments spread over its length and resumed by its id in a new kernel.
Each tool call appends a letter of its own to a file, so whatever ran twice is seen.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import ActionEvent, AgentErrorEvent, Event, MessageEvent, ToolResultEvent
from oh_kernel.store import EventStore
from tests.conversations import Scripted, assert_each_call_answered_once
from tests.experiments import count, measured
from tests.live.agent_kernel import (
    AgentKernel,
    agent_kernel,
    asks,
    check_calls_answered,
    results_of,
    stored_events,
)
from tests.live.model_server import ModelServer

KILLS = count(20, long=50)
KILLS_AT_EVENTS = count(8, long=60)


def python(letter: str, more: str = "") -> tuple[str, dict[str, Any]]:
    code = f"import os, time\nwith open('ran.log', 'a') as f: _ = f.write({letter!r})\n{more}"
    return ("ipython", {"code": code})


def bash(letter: str, more: str = "") -> tuple[str, dict[str, Any]]:
    return ("terminal", {"command": f"printf {letter} >> ran.log; {more}true"})


def edit(letter: str) -> tuple[str, dict[str, Any]]:
    """Makes a file; its existence is the letter."""
    path = f"@WORK@/{letter}.txt"
    return ("file_editor", {"command": "create", "path": path, "file_text": "x\n" * 2000})


LETTERS = "ABCDEFGHIJKLMNOP"


def script(work: Path) -> list[dict[str, Any]]:
    """Sixteen calls in ten replies: alone and in parallel, quick and slow, then an answer."""
    replies = [
        (python("A"),),
        (bash("B"), python("C", "time.sleep(0.1)")),
        (edit("D"),),
        (bash("E", "sleep 0.1; "), bash("F"), edit("G")),
        (python("H", "print('x' * 20000)"),),
        (edit("I"), python("J")),
        (bash("K", "seq 2000; "),),
        (python("L", "time.sleep(0.05)"), bash("M"), python("N")),
        (edit("O"),),
        (python("P"),),
    ]
    here = str(work)
    turns = [
        asks(*((name, _placed(arguments, here)) for name, arguments in reply), say=f"Step {n}.")
        for n, reply in enumerate(replies)
    ]
    return [*turns, {"content": "All is done."}]


def _placed(arguments: dict[str, Any], work: str) -> dict[str, Any]:
    return {name: str(value).replace("@WORK@", work) for name, value in arguments.items()}


def traces(work: Path) -> list[str]:
    """What the calls left behind, each letter as often as it ran; taken away for the next run."""
    log = work / "ran.log"
    found = list(log.read_text()) if log.exists() else []
    log.unlink(missing_ok=True)
    for path in work.glob("?.txt"):
        found.append(path.stem)
        path.unlink()
    return found


def shape(events: list[Event]) -> list[str]:
    """The log without what differs from run to run."""
    marks = ("tool_call_id", "key", "value")
    return [" ".join([e.kind, *(str(getattr(e, mark, "")) for mark in marks)]) for e in events]


def newest(store: Path) -> str:
    with EventStore.open(store, read_only=True) as opened:
        return opened.conversations(limit=1)[0].id


@dataclass
class Whole:
    """The uninterrupted run."""

    shape: list[str]
    calls: list[str]
    seconds: float


def whole_run(kernel: AgentKernel, work: Path) -> Whole:
    for _ in range(2):  # the first one imports the agent
        traces(work)
        started = time.monotonic()
        assert kernel.ask("go", flags="--new", deadline_s=60).status == "ok"
        seconds = time.monotonic() - started
    assert sorted(traces(work)) == list(LETTERS)
    events = kernel.events()
    calls = [e.tool_call_id for e in events if isinstance(e, ActionEvent)]
    assert len(calls) == len(LETTERS)
    return Whole(shape(events), calls, seconds)


@pytest.mark.repeated
@pytest.mark.timeout(900)
def test_kill_at_any_moment(tmp_path: Path) -> None:
    work = tmp_path / "work"
    dice = random.Random(int(os.environ.get("OH_SEED", "11")))
    places: Counter[str] = Counter()
    with (
        measured("kill -9 of the kernel", kills=KILLS) as figures,
        ModelServer(script(work)) as server,
        ExitStack() as stack,
    ):
        kernel = stack.enter_context(agent_kernel(tmp_path, server))
        whole = whole_run(kernel, work)
        for n in range(KILLS):
            moment = (n + dice.random()) / KILLS * whole.seconds
            conversation_id, before = kill_after(kernel, moment)
            kernel = stack.enter_context(agent_kernel(tmp_path, server))
            after = resume(kernel, conversation_id)
            check_log(before, after, whole)
            check_traces(after, traces(work))
            check_calls_answered(server.requests[-1].json["messages"])
            places[place_of(before)] += 1
        figures.update(sorted(places.items()))


def kill_after(kernel: AgentKernel, seconds: float) -> tuple[str | None, list[Event]]:
    """Kill a run so long after its cell was sent; the conversation and its log, if it had begun."""
    old = newest(kernel.store)
    kernel.kernel.start("%%openhands --new\ngo")
    time.sleep(seconds)  # the moment is what is being tried
    kernel.kill()
    conversation_id = newest(kernel.store)
    if conversation_id == old:
        return None, []
    return conversation_id, stored_events(kernel.store, conversation_id)


def resume(kernel: AgentKernel, conversation_id: str | None) -> list[Event]:
    """Go on in a new kernel; the log at the end of the turn."""
    if conversation_id is not None:
        assert "Going on with" in kernel.command(f"resume {conversation_id}")
    result = kernel.ask("go on", deadline_s=60)
    assert result.status == "ok" and not result.errors
    return kernel.events()


def check_log(before: list[Event], after: list[Event], whole: Whole) -> None:
    """A prefix of the uninterrupted run, as it was, and then the rest."""
    assert shape(before) == whole.shape[: len(before)]
    assert [e.to_json() for e in after[: len(before)]] == [e.to_json() for e in before]
    ids = [event.id for event in after]
    assert len(ids) == len(set(ids))
    stamps = [event.timestamp for event in after]
    assert stamps == sorted(stamps) and all(len(stamp) == 26 for stamp in stamps)
    calls = [event.tool_call_id for event in after if isinstance(event, ActionEvent)]
    lost = [call for call in whole.calls if call not in calls]
    assert calls == [call for call in whole.calls if call not in lost]
    cut = before and isinstance(before[-1], ActionEvent) and before[-1].tool_call_id
    assert all(cut and call.split("_")[1] == cut.split("_")[1] for call in lost)
    assert shape(after)[-1].endswith("finished")
    assert len(answers(after)) == 1 + len(answers(before))


def answers(events: list[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, MessageEvent) and e.source == "agent"]


def check_traces(after: list[Event], found: list[str]) -> None:
    """No call ran twice; what has an observation ran, what is told not to have run did not."""
    assert len(found) == len(set(found)), found
    letters = dict(zip(_all_calls(), LETTERS, strict=True))
    for call_id, result in results_of(after).items():
        if not isinstance(result, AgentErrorEvent):
            assert letters[call_id] in found
        elif "was not run" in result.error and "may have run" not in result.error:
            assert letters[call_id] not in found


def _all_calls() -> list[str]:
    replies = [len(turn.get("tool_calls", [])) for turn in script(Path())]
    return [f"call_{n}_{i}" for n, calls in enumerate(replies) for i in range(calls)]


def place_of(before: list[Event]) -> str:
    """Where the kill struck, by the last thing that was stored."""
    match before[-1] if before else None:
        case None:
            return "before_the_first_event"
        case ActionEvent():
            return "in_a_call"
        case ToolResultEvent():
            return "asking_the_model_after_a_result"
        case _:
            return "elsewhere"


# Between the store and the views: a listener that ends its process when the n-th event is told.
BOMB = """
import os, signal, sys
from oh_kernel import Conversation

class Bomb:
    left = int(sys.argv[4])

    def event(self, event):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def delta(self, delta):
        pass

work, model, store = sys.argv[1:4]
conversation = Conversation(
    work, model=model, store_path=store, conversation_id="c", policy="never"
)
conversation.subscribe(Bomb())
conversation.send_message("go")
conversation.run()
conversation.close()
"""


@pytest.mark.repeated
@pytest.mark.timeout(900)
def test_kill_between_store_and_views(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    answers_file = tmp_path / "script.json"
    answers_file.write_text(json.dumps(script(work)))
    events = run_with_bomb(work, answers_file, tmp_path / "whole.sqlite", at=0)
    assert sorted(traces(work)) == list(LETTERS)
    calls = [e.tool_call_id for e in events if isinstance(e, ActionEvent)]
    whole = Whole(shape(events), calls, 0.0)
    moments = sorted({1 + n * len(events) // KILLS_AT_EVENTS for n in range(KILLS_AT_EVENTS)})
    with measured("kill -9 between the store and the views", kills=len(moments)):
        for at in moments:
            store = tmp_path / f"{at}.sqlite"
            before = run_with_bomb(work, answers_file, store, at=at)
            assert len(before) == at  # stored before anybody is told
            turns = [*script(work), {"content": "Going on."}]  # for a kill behind the answer
            with Scripted(work, turns, store_path=store, conversation_id="c") as scripted:
                assert scripted.ask("go on") == "finished"
                after = list(scripted.conversation.events)
                assert_each_call_answered_once(scripted.llm.requests[-1])
            check_log(before, after, whole)
            check_traces(after, traces(work))


def run_with_bomb(work: Path, answers_file: Path, store: Path, *, at: int) -> list[Event]:
    """Run to the event with this number, from 1, or with 0 to the end; the log then."""
    command = [
        sys.executable,
        "-c",
        BOMB,
        str(work),
        f"scripted:{answers_file}",
        str(store),
        str(at),
    ]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == (-signal.SIGKILL if at else 0), done.stderr.decode()
    return stored_events(store, "c")
