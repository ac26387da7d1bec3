"""Pausing, interrupting, speaking and deciding while the agent works, here or from elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from oh_kernel.conversation.confirmation import Decision, Question
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Passing, ToolOutput
from oh_kernel.errors import ModelUnavailable
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Event,
    InterruptEvent,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    UserRejectObservation,
)
from oh_kernel.llm.base import RetryNotice, TextDelta
from oh_kernel.llm.retry import RetryingLLM, RetryPolicy
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.loop import spawn
from oh_kernel.store import EventStore
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say

ROOT = Path(__file__).parents[2]
SLOW = "echo begun; sleep 60"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


class When:
    """Does something once, when a piece of the conversation comes that `tells`."""

    def __init__(self, tells: Callable[[Event | Passing], bool], do: Callable[[], object]) -> None:
        self._tells, self._do = tells, do
        self.done = False

    def event(self, event: Event) -> None:
        self._look(event)

    def delta(self, delta: Passing) -> None:
        self._look(delta)

    def _look(self, piece: Event | Passing) -> None:
        if not self.done and self._tells(piece):
            self.done = True
            self._do()


def begun(piece: Event | Passing) -> bool:
    return isinstance(piece, ToolOutput) and "begun" in piece.text


def is_text(piece: Event | Passing) -> bool:
    return isinstance(piece, TextDelta)


def is_retry(piece: Event | Passing) -> bool:
    return isinstance(piece, RetryNotice)


def slow_and_another() -> dict[str, object]:
    return calls(
        call("terminal", {"command": SLOW}, "slow"),
        call("terminal", {"command": "touch never"}, "next"),
    )


def test_an_interrupt_says_in_one_line_what_was_cut(work: Path) -> None:
    with Scripted(work, [slow_and_another(), say("well")]) as scripted:
        conversation = scripted.conversation
        conversation.subscribe(When(begun, conversation.interrupt))
        assert scripted.ask() == "paused"
        (stop,) = [e for e in conversation.events if isinstance(e, InterruptEvent)]
        assert stop.source == "user"
        assert stop.cut == f"terminal `{SLOW}` was stopped, 1 call was not started"
        assert conversation.remarks == (f"The last turn was cut: {stop.cut}.",)
        assert set(scripted.results) == {"slow", "next"}
        assert scripted.ask("go on") == "finished"
        assert conversation.remarks  # of the turn before
        assert_each_call_answered_once(scripted.llm.requests[-1])
        assert "begun" in scripted.told("slow").text
        scripted.llm._turns.append(say("again"))
        scripted.ask("and on")
        assert not conversation.remarks
    assert not (work / "never").exists()


def test_an_interrupt_of_the_models_reply_says_so(work: Path) -> None:
    with Scripted(work, [say("a reply of several words"), say("well")]) as scripted:
        conversation = scripted.conversation
        conversation.subscribe(When(is_text, conversation.interrupt))
        assert scripted.ask() == "paused"
        assert conversation.remarks == ("The last turn was cut: the model's reply was stopped.",)
        assert scripted.ask("go on") == "finished"


def test_a_pause_during_the_tools_of_a_step_waits_for_all_of_them(work: Path) -> None:
    both = calls(
        call("terminal", {"command": "echo begun; touch a"}, "a"),
        call("terminal", {"command": "touch b"}, "b"),
    )
    with Scripted(work, [both, say("done")]) as scripted:
        conversation = scripted.conversation
        conversation.subscribe(When(begun, conversation.pause))
        assert scripted.ask() == "paused"
        assert (work / "a").exists() and (work / "b").exists()
        assert isinstance(conversation.events[-2], PauseEvent)
        assert not conversation.remarks  # nothing was cut
        assert len(scripted.llm.requests) == 1
        assert str(conversation.run()) == "finished"


def test_a_pause_takes_effect_while_a_request_waits_to_be_sent_again(work: Path) -> None:
    llm = ScriptedLLM([ModelUnavailable("busy")], workspace=work)
    patient = RetryingLLM(llm, RetryPolicy(min_wait_s=600, max_wait_s=600))
    store = work.parent / "events.sqlite"
    with Conversation(work, llm=patient, store_path=store) as conversation:
        waiting = threading.Event()
        conversation.subscribe(When(is_retry, waiting.set))
        conversation.send_message("go")
        run = spawn(conversation._core.run())
        assert waiting.wait(30)
        conversation.pause()
        assert str(run.result(30)) == "paused"
        assert isinstance(conversation.events[-2], PauseEvent)
        assert len(llm.requests) == 1


def test_a_pause_at_rest_is_kept_over_a_restart(work: Path) -> None:
    with Scripted(work, [say("done")]) as scripted:
        scripted.conversation.send_message("go")
        scripted.conversation.pause()
        scripted.conversation.pause()
        assert scripted.kinds.count("PauseEvent") == 1
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_path
    with Scripted(work, [say("done")], conversation_id=cid, store_path=store) as loaded:
        assert str(loaded.conversation.status) == "paused"
        assert str(loaded.conversation.run()) == "finished"
        requests = len(loaded.llm.requests)
        assert str(loaded.conversation.run()) == "finished"  # nothing new was said
        assert len(loaded.llm.requests) == requests


def test_a_message_while_a_tool_runs_is_kept_and_seen_at_the_next_step(work: Path) -> None:
    turns = [calls(call("terminal", {"command": "echo begun; sleep 0.2"}, "a")), say("done")]
    with Scripted(work, turns) as scripted:
        conversation = scripted.conversation
        sent: list[str] = []

        def speak() -> None:
            spawn(conversation.asend_message("and tell me why"))
            sent.append("message")

        conversation.subscribe(When(begun, speak))
        assert scripted.ask() == "finished"
        assert sent
        request = scripted.llm.requests[-1]
        assert [m.role for m in request[-2:]] == ["tool", "user"]
        assert request[-1].text == "and tell me why"


class Person:
    """Is asked, says so, and answers when `answer` is set."""

    def __init__(self, conversation: Conversation) -> None:
        self.asked = threading.Event()
        self.answer: asyncio.Future[bool] | None = None
        self.taken_back = False
        self._conversation = conversation

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        self.answer = asyncio.get_running_loop().create_future()
        self.asked.set()
        try:
            approved = await self.answer
        except asyncio.CancelledError:
            self.taken_back = True
            raise
        return [Decision(approved=approved, reason="no, thanks") for _ in questions]

    def says(self, approved: bool) -> None:
        assert self.answer is not None
        self.answer.get_loop().call_soon_threadsafe(self.answer.set_result, approved)


def asked_in(scripted: Scripted) -> Person:
    person = Person(scripted.conversation)
    scripted.conversation.approver = person
    return person


def one_call() -> list[dict[str, object]]:
    return [calls(call("terminal", {"command": "touch made"}, "a")), say("done")]


def test_a_message_while_a_question_waits_does_not_answer_it(work: Path) -> None:
    with Scripted(work, one_call(), policy="always") as scripted:
        person = asked_in(scripted)
        scripted.conversation.send_message("go")
        run = spawn(scripted.conversation._core.run())
        assert person.asked.wait(30)
        scripted.conversation.send_message("do not run that")
        assert not (work / "made").exists() and not run.done()
        person.says(False)
        assert str(run.result(30)) == "finished"
        assert scripted.llm.requests[-1][-1].text == "do not run that"
    assert not (work / "made").exists()


@pytest.mark.parametrize("approved", [True, False])
def test_a_question_can_be_answered_from_elsewhere(work: Path, approved: bool) -> None:
    with Scripted(work, one_call(), policy="always") as scripted:
        person = asked_in(scripted)
        scripted.conversation.send_message("go")
        run = spawn(scripted.conversation._core.run())
        assert person.asked.wait(30)
        assert [c.tool_call_id for c in scripted.conversation.waiting_calls] == ["a"]
        if approved:
            scripted.conversation.approve()
        else:
            scripted.conversation.reject("not that")
        assert str(run.result(30)) == "finished"
        assert person.taken_back
        assert isinstance(
            scripted.results["a"], ObservationEvent if approved else UserRejectObservation
        )
    assert (work / "made").exists() is approved


def test_a_pause_while_a_question_waits_takes_effect_after_its_step(work: Path) -> None:
    with Scripted(work, one_call(), policy="always") as scripted:
        person = asked_in(scripted)
        scripted.conversation.send_message("go")
        run = spawn(scripted.conversation._core.run())
        assert person.asked.wait(30)
        scripted.conversation.pause()
        person.says(True)
        assert str(run.result(30)) == "paused"
    assert (work / "made").exists()


def test_an_interrupt_takes_a_waiting_question_back(work: Path) -> None:
    with Scripted(work, one_call(), policy="always") as scripted:
        assert scripted.ask() == "waiting_for_confirmation"
        scripted.conversation.interrupt()
        assert str(scripted.conversation.status) == "paused"
        assert isinstance(scripted.results["a"], AgentErrorEvent)
        assert scripted.conversation.remarks == ("The last turn was cut: 1 call was not started.",)
        assert str(scripted.conversation.run()) == "finished"
    assert not (work / "made").exists()


# In another process

OTHER = """
import sys
from pathlib import Path
from tests.conversations import Scripted, call, calls, say
from tests.live.test_steering import Ready
work, cid, do = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
both = calls(call("terminal", {"command": "rm -r build"}, "a"),
             call("terminal", {"command": "touch ok.txt"}, "b"))
again = calls(call("terminal", {"command": "rm -r build"}, "c"),
              call("terminal", {"command": "touch ok.txt"}, "d"))
slow = calls(call("terminal", {"command": "echo begun; sleep 60"}, "slow"),
             call("terminal", {"command": "touch never"}, "next"))
turns = {"slow": [slow]}.get(do, [both, again, say("done")])
with Scripted(work, turns, conversation_id=cid, policy="never" if do == "slow" else "always") as s:
    c = s.conversation
    if do == "slow":
        c.subscribe(Ready(work))
    exec({
        "ask": "s.ask('clean up'); c.send_message('wait, do not remove anything')",
        "run": "c.run()",
        "approve d": "c.approve(['d']); c.run()",
        "reject c and run": "c.reject('not yet', ['c']); c.run()",
        "slow": "s.ask()",
    }[do])
    print(c.status, *[e.tool_call_id for e in c.waiting_calls])
"""


class Ready:
    """Notes in a file that the tool has begun, for who looks from another process."""

    def __init__(self, work: Path) -> None:
        self._file = work / "ready"

    def event(self, event: Event) -> None:
        """Of no interest."""

    def delta(self, delta: Passing) -> None:
        if begun(delta):
            self._file.touch()


def in_another_process(work: Path, do: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", OTHER, str(work), "c-1", do],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_EV_04_approval_is_explicit_in_other_processes_too(work: Path) -> None:
    (work / "build").mkdir()
    (work / "build/keep.txt").write_text("k\n")
    keep, ok = work / "build/keep.txt", work / "ok.txt"

    def untouched() -> bool:
        return keep.exists() and not ok.exists()

    assert in_another_process(work, "ask") == "waiting_for_confirmation a b"
    assert untouched()
    assert in_another_process(work, "run") == "waiting_for_confirmation c d"
    assert untouched()
    events = stored(work)
    refused = [e for e in events if isinstance(e, UserRejectObservation)]
    assert [e.tool_call_id for e in refused] == ["a", "b"]
    assert all("nothing was run" in e.rejection_reason for e in refused)
    assert in_another_process(work, "run") == "waiting_for_confirmation c d"
    assert in_another_process(work, "approve d") == "waiting_for_confirmation c"
    assert in_another_process(work, "run") == "waiting_for_confirmation c"
    assert untouched()
    assert in_another_process(work, "reject c and run") == "finished"
    assert keep.exists() and ok.exists()
    results = {e.tool_call_id: e for e in stored(work) if hasattr(e, "tool_call_id")}
    rejected, done = results["c"], results["d"]
    assert isinstance(rejected, UserRejectObservation) and rejected.rejection_reason == "not yet"
    assert isinstance(done, ObservationEvent) and not done.observation.is_error


def stored(work: Path) -> list[Event]:
    with EventStore.open(work.parent / "events.sqlite", read_only=True) as store:
        return list(store.iterate("c-1"))


def test_a_run_whose_process_died_is_told_in_one_line(work: Path) -> None:
    arguments = [sys.executable, "-c", OTHER, str(work), "c-1", "slow"]
    process = subprocess.Popen(arguments, cwd=ROOT, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (work / "ready").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    with Scripted(work, [say("x"), say("well")], conversation_id="c-1") as loaded:
        loaded.conversation.send_message("what happened?")
        assert str(loaded.conversation.status) == "paused"
        (stop,) = [e for e in loaded.conversation.events if isinstance(e, InterruptEvent)]
        assert stop.source == "environment"
        was_running = "was running when the kernel died or was restarted"
        cut = f"terminal `{SLOW}` {was_running}, 1 call was not started"
        assert loaded.conversation.remarks == (f"The last turn was cut: {cut}.",)
        assert str(loaded.conversation.run()) == "finished"
        assert_each_call_answered_once(loaded.llm.requests[-1])
        said = [e for e in loaded.conversation.events if isinstance(e, MessageEvent)]
        assert "what happened?" in said[1].llm_message.text
        assert sum(isinstance(e, ActionEvent) for e in loaded.conversation.events) == 2
    assert not (work / "never").exists()
