"""Whatever is done to a conversation, in whatever order: it follows the table of states."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Passing
from oh_kernel.conversation.recovery import unanswered
from oh_kernel.conversation.state import Status, check_transition, recorded_status
from oh_kernel.errors import ConversationError, ModelRequestRefused, OpenHandsError
from oh_kernel.events import Action, Event, Observation, ToolAnnotations
from oh_kernel.llm.scripted import ScriptedLLM, Turn
from oh_kernel.store import EventStore
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.finish import FinishTool
from tests.conversations import assert_each_call_answered_once, call, calls, say


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
# What a person does at rest, and what a listener does when the n-th event of a run comes.
AT_REST = (
    "ask",
    "ask",
    "send",
    "run",
    "pause",
    "interrupt",
    "approve",
    "reject",
    "approve one",
    "load again",
)
WHILE_RUNNING = ("pause", "interrupt", "nothing")


class Meddler:
    """Does something when a certain event comes. A listener, called on the agent thread."""

    def __init__(self, conversation: Conversation, what: str, at: int) -> None:
        self._conversation, self._what, self._left = conversation, what, at

    def event(self, event: Event) -> None:
        self._left -= 1
        if self._left == 0 and self._what != "nothing":
            getattr(self._conversation, self._what)()

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


class Person:
    """Somebody with a conversation, who closes it and opens it again as they like."""

    def __init__(self, folder: Path, store: EventStore, llm: ScriptedLLM, policy: str) -> None:
        self._folder, self._store, self._llm, self._policy = folder, store, llm, policy
        self.conversation = self._open(None)

    def _open(self, conversation_id: str | None) -> Conversation:
        return Conversation(
            self._folder,
            llm=self._llm,
            store=self._store,
            conversation_id=conversation_id,
            policy=self._policy,
            tools=[StateProbeTool, FinishTool],
            max_steps=3,
        )

    def do(self, what: str, meddling: tuple[str, int]) -> None:
        conversation = self.conversation
        match what:
            case "send":
                conversation.send_message("hello")
            case "run" | "ask":
                if what == "ask":
                    conversation.send_message("hello")
                unsubscribe = conversation.subscribe(Meddler(conversation, *meddling))
                try:
                    conversation.run()
                finally:
                    unsubscribe()
            case "approve one":
                conversation.approve([c.tool_call_id for c in conversation.waiting_calls][:1])
            case "load again":
                conversation.close()
                self.conversation = self._open(conversation.id)
            case _:
                getattr(conversation, what)()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replies=st.lists(st.sampled_from(sorted(REPLIES)), min_size=4, max_size=12),
    steps=st.lists(
        st.tuples(st.sampled_from(AT_REST), st.sampled_from(WHILE_RUNNING), st.integers(1, 12)),
        max_size=14,
    ),
    policy=st.sampled_from(["always", "never"]),
)
def test_any_sequence_follows_the_table(
    replies: list[str], steps: list[tuple[str, str, int]], policy: str
) -> None:
    llm = ScriptedLLM([REPLIES[name] for name in replies])
    with (
        tempfile.TemporaryDirectory() as folder,
        EventStore.open(Path(folder) / "events.sqlite") as store,
    ):
        person = Person(Path(folder), store, llm, policy)
        for what, meddling, at in steps:
            before = person.conversation.status
            try:
                person.do(what, (meddling, at))
            except OpenHandsError as error:
                _check_refusal(error, before, person.conversation)
            _check_at_rest(person.conversation)
        person.conversation.close()
    for request in llm.requests:
        assert_each_call_answered_once(request)


def _check_refusal(error: OpenHandsError, before: Status, conversation: Conversation) -> None:
    """What cannot be done says so and leaves the state alone; a model's failure is recorded."""
    if isinstance(error, ConversationError):
        assert conversation.status is before
        assert error.remedy
    else:
        assert conversation.status is Status.ERROR


def _check_at_rest(conversation: Conversation) -> None:
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
