"""Whatever is done to a conversation, in whatever order: it follows the table of states."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oh_kernel.conversation.calls import rejection
from oh_kernel.conversation.confirmation import Decision, Question
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Passing
from oh_kernel.conversation.recovery import unanswered
from oh_kernel.conversation.state import (
    TABLE,
    Status,
    Trigger,
    check_transition,
    next_status,
    recorded_status,
)
from oh_kernel.errors import ConversationError, ModelRequestRefused, OpenHandsError
from oh_kernel.events import Action, Event, MessageEvent, Observation, ToolAnnotations
from oh_kernel.llm.scripted import ScriptedLLM, Turn
from oh_kernel.loop import spawn
from oh_kernel.store import EventStore
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.finish import FinishTool
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say
from tests.experiments import count


class StateProbeAction(Action):
    """Takes nothing."""


class StateProbeObservation(Observation):
    """Says nothing of its own."""


class StateProbeExecutor(ToolExecutor[StateProbeAction, StateProbeObservation]):
    async def run(self, action: StateProbeAction, context: ToolContext) -> StateProbeObservation:
        return StateProbeObservation.from_text("ok")


class StateProbeTool(Tool):
    """A tool that is asked about and does nothing."""

    name: ClassVar[str] = "probe"
    prose: ClassVar[str] = "Does nothing."
    action: ClassVar[type[Action]] = StateProbeAction
    observation: ClassVar[type[Observation]] = StateProbeObservation
    executor: ClassVar[type[ToolExecutor[Any, Any]]] = StateProbeExecutor
    hints: ClassVar[ToolAnnotations] = ToolAnnotations(title="probe")


REPLIES: dict[str, Turn] = {
    "one call": calls(call("probe")),
    "two calls": calls(call("probe"), call("probe")),
    "bad call": calls(call("nosuch"), call("probe")),
    "finish": calls(call("finish", {"message": "done"}), call("probe")),
    "words": say("done"),
    "refusal": ModelRequestRefused("The model refuses."),
}
AT_REST = (
    "ask",
    "ask",
    "send_message",
    "run",
    "pause",
    "interrupt",
    "approve",
    "reject",
    "approve one",
    "reject one",
    "approve what is not there",
    "load again",
)
WHILE_RUNNING = ("pause", "interrupt", "send", "run", "approve", "reject", "nothing")
ANSWERS = ("nobody", "yes", "no", "yes from elsewhere", "no from elsewhere", "never")
DEEDS_OF = {"approve": Trigger.APPROVE, "reject": Trigger.REJECT}


class Meddler:
    """Does something when a certain event comes. A listener, called on the agent thread."""

    def __init__(self, conversation: Conversation, what: str, at: int) -> None:
        self._conversation, self._what, self._left = conversation, what, at
        self.begun: list[Future[Any]] = []
        self.sent = 0

    def event(self, event: Event) -> None:
        self._left -= 1
        if self._left == 0:
            self._meddle()

    def _meddle(self) -> None:
        core = self._conversation._core
        match self._what:
            case "pause" | "interrupt":
                getattr(self._conversation, self._what)()
            case "send":
                self.sent += 1
                self.begun.append(spawn(core.send("and this", ())))
            case "run":
                self.begun.append(spawn(core.run()))
            case "approve" | "reject":
                yes = self._what == "approve"
                self.begun.append(spawn(core.decide(Decision(approved=yes), None)))

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


class Answers:
    """A person who is asked: here, elsewhere while this one is silent, or not at all."""

    def __init__(self, conversation: Conversation, answer: str) -> None:
        self._conversation, self._answer = conversation, answer

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        decision = Decision(approved=self._answer.startswith("yes"), reason="not now")
        if self._answer in ("yes", "no"):
            return [decision for _ in questions]
        if self._answer == "never":
            self._conversation.interrupt()
        else:
            await self._conversation._core.decide(decision, None)
        await asyncio.Event().wait()
        raise AssertionError("the question is taken back")


class Person:
    """Somebody with a conversation, who closes it and opens it again as they like."""

    def __init__(
        self, folder: Path, store: EventStore, llm: ScriptedLLM, policy: str, answer: str
    ) -> None:
        self._folder, self._store, self._llm, self._policy = folder, store, llm, policy
        self._answer = answer
        self.sent = 0
        self.conversation = self._open(None)

    def _open(self, conversation_id: str | None) -> Conversation:
        conversation = Conversation(
            self._folder,
            llm=self._llm,
            store=self._store,
            conversation_id=conversation_id,
            policy=self._policy,
            tools=[StateProbeTool, FinishTool],
            max_steps=3,
        )
        if self._answer != "nobody":
            conversation.approver = Answers(conversation, self._answer)
        return conversation

    def do(self, what: str, meddling: tuple[str, int]) -> None:
        conversation = self.conversation
        match what:
            case "send_message":
                self._send()
            case "ask":
                self._send()
                self._run(meddling)
            case "run":
                self._run(meddling)
            case "approve one" | "reject one":
                ids = [c.tool_call_id for c in conversation.waiting_calls][:1]
                deed = what.partition(" ")[0]
                conversation.approve(ids) if deed == "approve" else conversation.reject("no", ids)
            case "approve what is not there":
                conversation.approve(["nowhere"])
            case "load again":
                before = [event.to_json() for event in conversation.events]
                approved = conversation._core.log.approved_calls
                conversation.close()
                self.conversation = self._open(conversation.id)
                assert [event.to_json() for event in self.conversation.events] == before
                assert self.conversation._core.log.approved_calls == approved
            case _:
                getattr(conversation, what)()

    def _send(self) -> None:
        self.conversation.send_message("hello")
        self.sent += 1

    def _run(self, meddling: tuple[str, int]) -> None:
        meddler = Meddler(self.conversation, *meddling)
        unsubscribe = self.conversation.subscribe(meddler)
        try:
            self.conversation.run()
        finally:
            unsubscribe()
            self.sent += meddler.sent
            for future in meddler.begun:
                _settled(future)


def _settled(future: Future[Any]) -> None:
    """What was done meanwhile is done, or was refused; nothing else may come of it."""
    try:
        future.result(timeout=30)
    except ConversationError as refusal:
        assert refusal.remedy
    except ModelRequestRefused:
        pass


@settings(
    max_examples=count(80, long=2_000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    replies=st.lists(st.sampled_from(sorted(REPLIES)), min_size=4, max_size=12),
    steps=st.lists(
        st.tuples(st.sampled_from(AT_REST), st.sampled_from(WHILE_RUNNING), st.integers(1, 12)),
        max_size=14,
    ),
    policy=st.sampled_from(["always", "always", "never"]),
    answer=st.sampled_from(ANSWERS),
)
def test_any_sequence_follows_the_table(
    replies: list[str], steps: list[tuple[str, str, int]], policy: str, answer: str
) -> None:
    llm = ScriptedLLM([REPLIES[name] for name in replies])
    with (
        tempfile.TemporaryDirectory() as folder,
        EventStore.open(Path(folder) / "events.sqlite") as store,
    ):
        person = Person(Path(folder), store, llm, policy, answer)
        for what, meddling, at in steps:
            before = person.conversation.status
            try:
                person.do(what, (meddling, at))
            except OpenHandsError as error:
                _check_refusal(error, what, before, person.conversation)
            else:
                _check_row(what, before, person.conversation.status)
            _check_at_rest(person)
        person.conversation.close()
    for request in llm.requests:
        assert_each_call_answered_once(request)


def _check_row(what: str, before: Status, now: Status) -> None:
    """What was not refused is in the table, and led where the table says."""
    if what in ("ask", "run", "load again", "send_message"):
        return  # where a run ends is the model's to say
    trigger = Trigger(what.partition(" ")[0])
    allowed = {TABLE[trigger].get(before)}
    if trigger is Trigger.REJECT:
        allowed.add(TABLE[Trigger.REJECT_LAST].get(before))
    assert now in allowed


def _check_refusal(
    error: OpenHandsError, what: str, before: Status, conversation: Conversation
) -> None:
    """What cannot be done says so and leaves the state alone; a model's failure is recorded."""
    if isinstance(error, ConversationError):
        assert error.remedy
        assert conversation.status is before
    else:
        assert what in ("ask", "run")
        assert conversation.status in (Status.ERROR, Status.IDLE)  # a message may have come since


def _check_at_rest(person: Person) -> None:
    conversation = person.conversation
    now = Status.IDLE
    for event in conversation.events:
        if (then := recorded_status(event)) is not None:
            check_transition(now, then)
            now = then
    assert now is conversation.status is not Status.RUNNING
    open_calls = unanswered(conversation._core.log.events)
    if now is Status.WAITING_FOR_CONFIRMATION:
        assert open_calls
    else:
        assert not open_calls
    said = [e for e in conversation.events if isinstance(e, MessageEvent) and e.source == "user"]
    assert len(said) == person.sent
    times = [event.timestamp for event in conversation.events]
    assert times == sorted(times)


@pytest.mark.parametrize("trigger", Trigger)
@pytest.mark.parametrize("status", Status)
def test_what_is_not_in_the_table_is_refused_with_state_deed_and_remedy(
    status: Status, trigger: Trigger
) -> None:
    if status in TABLE[trigger]:
        assert next_status(status, trigger) is TABLE[trigger][status]
        return
    with pytest.raises(ConversationError) as refusal:
        next_status(status, trigger)
    assert str(trigger) in refusal.value.message
    assert refusal.value.remedy


def test_the_documented_table_is_the_one_in_code() -> None:
    page = (Path(__file__).parents[2] / "docs/architecture.md").read_text("utf-8")
    assert _table_of(page) == {
        (trigger.value, before.value): after.value
        for trigger, row in TABLE.items()
        for before, after in row.items()
    }


def _table_of(page: str) -> dict[tuple[str, str], str]:
    rows = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    start = next(at for at, row in enumerate(cells) if row[0] == "what happens")
    statuses = cells[start][1:]
    found = {}
    for row in cells[start + 2 :]:
        if len(row) != len(statuses) + 1:
            break
        for before, after in zip(statuses, row[1:], strict=True):
            if after:
                found[row[0].strip("`"), _STATUS.get(before, before)] = _STATUS.get(after, after)
    return found


_STATUS = {"waiting": "waiting_for_confirmation"}


class SpeaksLate:
    """Sends a message some turns of the event loop after the agent's first words."""

    def __init__(self, conversation: Conversation, turns: int) -> None:
        self._conversation, self._turns = conversation, turns
        self.sending: Future[None] | None = None

    def event(self, event: Event) -> None:
        if isinstance(event, MessageEvent) and event.source == "agent" and not self.sending:
            self.sending = spawn(self._speak())

    async def _speak(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        await self._conversation.asend_message("one more thing")

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


@pytest.mark.parametrize("turns", range(30))
def test_a_message_at_the_last_moment_of_a_run_is_answered(tmp_path: Path, turns: int) -> None:
    with Scripted(tmp_path / "work", [say("done"), say("done")]) as scripted:
        late = SpeaksLate(scripted.conversation, turns)
        scripted.conversation.subscribe(late)
        scripted.ask()
        assert late.sending is not None
        late.sending.result(30)
        assert str(scripted.conversation.run()) == "finished"  # if it was not answered already
        assert scripted.llm.requests[-1][-1].text == "one more thing"


def test_a_process_that_died_behind_the_last_answer_leaves_no_empty_question(
    tmp_path: Path,
) -> None:
    turns = [calls(call("probe", id="p")), say("well")]
    options: dict[str, Any] = {"tools": [StateProbeTool, FinishTool], "policy": "always"}
    with Scripted(tmp_path / "work", turns, **options) as scripted:
        assert scripted.ask() == "waiting_for_confirmation"
        (waiting,) = scripted.conversation.waiting_calls
        cid, store = scripted.conversation.id, scripted.conversation.settings.store_file
    with EventStore.open(store) as died:
        died.append(cid, rejection(waiting, "no"))
    with Scripted(tmp_path / "work", turns, conversation_id=cid, **options) as loaded:
        with pytest.raises(ConversationError, match="The conversation is idle"):
            loaded.conversation.approve()
        loaded.conversation.send_message("go on")
        assert str(loaded.conversation.run()) == "finished"
