"""A fork goes on from any point of a conversation by itself; titles, side questions, deleting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from oh_kernel.conversation.branching import FORKED, NO_RESULT_HERE
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.passing import Passing
from oh_kernel.conversation.recovery import unanswered
from oh_kernel.conversation.state import recorded_status
from oh_kernel.conversation.titles import shortened
from oh_kernel.errors import (
    ConversationError,
    ConversationInUse,
    ModelGaveNoAnswer,
    ModelUnavailable,
)
from oh_kernel.events import (
    Action,
    ActionEvent,
    Event,
    LLMCompletionLogEvent,
    Message,
    MessageEvent,
    Observation,
    ToolAnnotations,
    event_from_json,
)
from oh_kernel.llm.scripted import ScriptedLLM, Turn
from oh_kernel.loop import run_blocking
from oh_kernel.store import EventStore
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.finish import FinishTool
from tests.conversations import (
    Scripted,
    assert_each_call_answered_once,
    call,
    calls,
    say,
)


class BranchProbeAction(Action):
    """Takes nothing."""


class BranchProbeObservation(Observation):
    """Says how often it was called."""


class BranchProbeExecutor(ToolExecutor[BranchProbeAction, BranchProbeObservation]):
    runs: ClassVar[int] = 0

    async def run(self, action: BranchProbeAction, context: ToolContext) -> BranchProbeObservation:
        type(self).runs += 1
        return BranchProbeObservation.from_text(f"run {self.runs}")


class BranchProbeTool(Tool):
    """A tool that counts."""

    name: ClassVar[str] = "probe"
    prose: ClassVar[str] = "Counts."
    action: ClassVar[type[Action]] = BranchProbeAction
    observation: ClassVar[type[Observation]] = BranchProbeObservation
    executor: ClassVar[type[ToolExecutor[Any, Any]]] = BranchProbeExecutor
    hints: ClassVar[ToolAnnotations] = ToolAnnotations(title="probe")


TOOLS = [BranchProbeTool, FinishTool]
TURNS: list[Turn] = [
    calls(call("probe"), call("probe")),
    say("first answer"),
    say("second answer"),
    say("third answer"),
]


@pytest.fixture
def probed(tmp_path: Path) -> Iterator[Scripted]:
    """A conversation after one turn, in which two calls were run."""
    (tmp_path / "work").mkdir()
    with Scripted(tmp_path / "work", TURNS, tools=TOOLS, policy="never") as scripted:
        assert scripted.ask("count") == "finished"
        yield scripted


def test_a_fork_goes_on_by_itself(probed: Scripted) -> None:
    source = probed.conversation
    before = source.events
    runs = BranchProbeExecutor.runs
    with source.fork() as fork:
        assert fork.id != source.id
        assert fork.status == "idle"
        fork.send_message("and now?")
        assert fork.run() == "finished"
        assert fork.answer == "second answer"
        ids = [event.id for event in fork.events]
        copied = [e.id for e in before if not isinstance(e, LLMCompletionLogEvent)]
        assert ids[: len(copied)] == copied
    assert BranchProbeExecutor.runs == runs
    assert source.events == before
    assert FORKED in str(probed.llm.requests[-1])
    assert_each_call_answered_once(probed.llm.requests[-1])
    source.send_message("here, too")
    assert source.run() == "finished"  # what the fork borrowed is still open


def test_every_event_can_be_forked_from(probed: Scripted) -> None:
    source = probed.conversation
    for event in source.events:
        with source.fork(event.id, title="cut") as fork:
            assert fork.status == "idle"
            assert not unanswered(fork.events)
            assert_each_call_answered_once(fork._core.log.messages())
            times = [each.timestamp for each in fork.events]
            assert times == sorted(times)
            fork.send_message("go")
            assert recorded_status(fork.events[-1]) is None


def test_a_call_cut_from_its_result_is_answered_and_not_run(probed: Scripted) -> None:
    first = next(e for e in probed.conversation.events if isinstance(e, ActionEvent))
    runs = BranchProbeExecutor.runs
    with probed.conversation.fork(first.id) as fork:
        [error] = [e for e in fork.events if e.kind == "AgentErrorEvent"]
        assert getattr(error, "error", "") == NO_RESULT_HERE
        assert getattr(error, "tool_call_id", "") == first.tool_call_id
        fork.send_message("go")
        assert fork.run() == "finished"
    assert BranchProbeExecutor.runs == runs


def test_what_waits_for_a_person_is_not_approved_by_a_fork(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with Scripted(tmp_path / "work", TURNS, tools=TOOLS, policy="always") as scripted:
        runs = BranchProbeExecutor.runs
        assert scripted.ask("count") == "waiting_for_confirmation"
        with scripted.conversation.fork() as fork:
            assert (fork.status, fork.waiting_calls) == ("idle", ())
            with pytest.raises(ConversationError):
                fork.approve([scripted.call_ids[0]])
            fork.send_message("go on")
            assert fork.run() == "finished"
        assert BranchProbeExecutor.runs == runs
        assert len(scripted.conversation.waiting_calls) == 2


def test_the_cost_stays_with_the_conversation_that_made_it(probed: Scripted) -> None:
    source = probed.conversation
    assert source.metrics.calls == 2
    with source.fork() as fork, source.fork(keep_metrics=True) as whole:
        assert fork.metrics.calls == 0
        assert whole.metrics == source.metrics


class ForkWhenCalled:
    """Forks the conversation at each call that is stored. A listener, on the agent thread."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.forks: list[asyncio.Task[Conversation]] = []
        self.refusals: list[str] = []

    def event(self, event: Event) -> None:
        if isinstance(event, ActionEvent):
            self.forks.append(asyncio.ensure_future(self._conversation.afork()))
            with pytest.raises(RuntimeError, match="await the coroutine") as refused:
                self._conversation.fork()
            self.refusals.append(str(refused.value))

    def delta(self, delta: Passing) -> None:
        """Of no interest."""


def test_forks_of_a_running_conversation_are_whole(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with Scripted(tmp_path / "work", TURNS, tools=TOOLS, policy="never") as scripted:
        listener = ForkWhenCalled(scripted.conversation)
        scripted.conversation.subscribe(listener)
        assert scripted.ask("count") == "finished"
        assert len(listener.forks) == len(listener.refusals) == 2

        async def forks() -> list[Conversation]:
            return [await task for task in listener.forks]

        for fork in run_blocking(forks()):
            with fork:
                assert fork.status == "idle"
                assert not unanswered(fork.events)
                assert_each_call_answered_once(fork._core.log.messages())
                fork.send_message("go")
                assert fork.run() == "finished"


def test_a_conversation_that_others_write_can_be_forked(probed: Scripted) -> None:
    source = probed.conversation
    with Conversation(
        source.workspace,
        store_path=source._core.store.path,
        conversation_id=source.id,
        llm=ScriptedLLM(TURNS),
        tools=TOOLS,
    ) as reader:
        with pytest.raises(ConversationInUse):
            reader.send_message("mine")
        source.send_message("later than the reader looked")
        with reader.fork(title="copy") as fork:
            assert "later than the reader looked" in str(fork.events)
            fork.send_message("go")
            assert fork.run() == "finished"


def test_what_is_not_understood_is_copied_byte_for_byte(probed: Scripted) -> None:
    source = probed.conversation
    text = '{"kind": "FutureEvent",  "id": "future-1", "source": "agent", "x": [1,  2]}'
    source._core.store.append(source.id, event_from_json(text))
    with source.fork("future-1") as fork:
        kept = next(event for event in fork.events if event.id == "future-1")
        assert kept.to_json() == text


def test_a_fork_says_where_it_comes_from(probed: Scripted) -> None:
    source = probed.conversation
    store = source._core.store
    with source.fork() as fork, source.fork(title=" mine ") as named:
        info, other = store.conversation(fork.id), store.conversation(named.id)
    assert info is not None and other is not None
    assert (info.title, info.status) == ("count (fork)", "idle")
    assert info.workspace == str(source.workspace)
    assert info.meta["forked_from"]["conversation"] == source.id
    assert other.title == " mine "


def test_what_cannot_be_forked_is_named_and_leaves_nothing(probed: Scripted) -> None:
    store = probed.conversation._core.store
    with pytest.raises(ConversationError, match="no event 'nosuch'"):
        probed.conversation.fork("nosuch")
    assert len(store.conversations()) == 1
    with (
        Conversation(
            probed.conversation.workspace, llm=ScriptedLLM([]), store=store, tools=TOOLS
        ) as empty,
        pytest.raises(ConversationError, match="nothing to fork"),
    ):
        empty.fork()
    assert len(store.conversations()) == 1


def test_every_way_in_has_a_twin_for_event_loops(probed: Scripted) -> None:
    async def main() -> None:
        fork = await probed.conversation.afork(title="twin")
        await fork.asend_message("go")
        assert await fork.arun() == "finished"
        assert await fork.agenerate_title() == "count"
        assert await fork.aask_agent("why?") == "third answer"
        fork.rename("renamed")
        await fork.adelete()
        assert probed.conversation._core.store.conversation(fork.id) is None

    asyncio.run(main())


def test_the_plain_ways_work_inside_a_running_loop(probed: Scripted) -> None:
    async def main() -> None:
        fork = probed.conversation.fork()
        fork.send_message("go")
        assert fork.run() == "finished"
        assert fork.ask_agent("why?") == "third answer"
        assert fork.generate_title() == "count"
        fork.delete()

    asyncio.run(main())


# Questions beside the task


def test_a_side_question_leaves_only_its_cost(probed: Scripted) -> None:
    source = probed.conversation
    before = source.events
    assert source.ask_agent("What did you count?") == "second answer"
    asked = probed.llm.requests[-1]
    assert "What did you count?" in str(asked[-1])
    assert_each_call_answered_once(asked)
    [added] = source.events[len(before) :]
    assert isinstance(added, LLMCompletionLogEvent)
    assert added.usage_id == "ask-agent"
    assert source.status == "finished"
    source.send_message("next")
    source.run()
    assert "What did you count?" not in str(probed.llm.requests[-1])


def test_a_side_question_while_calls_wait(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    def reply(messages: Sequence[Message]) -> Turn:
        is_aside = "beside the task" in str(messages[-1])
        return say("it waits") if is_aside else calls(call("probe"))

    with Scripted(tmp_path / "work", [reply], tools=TOOLS, policy="always") as scripted:
        scripted.ask("count")
        assert scripted.conversation.ask_agent("what now?") == "it waits"
        assert_each_call_answered_once(scripted.llm.requests[-1])
        assert len(scripted.conversation.waiting_calls) == 1


class AskWhenCalled(ForkWhenCalled):
    """Asks beside the task at each call that is stored."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation)
        self.answers: list[asyncio.Task[str]] = []

    def event(self, event: Event) -> None:
        if isinstance(event, ActionEvent):
            self.answers.append(asyncio.ensure_future(self._conversation.aask_agent("how far?")))


def test_a_side_question_while_the_agent_runs(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    def reply(messages: Sequence[Message]) -> Turn:
        assert_each_call_answered_once(messages)
        is_aside = "beside the task" in str(messages[-1])
        return say("quite far") if is_aside else calls(call("probe"), call("probe"))

    turns: list[Turn] = [reply, lambda messages: say("end")]
    with Scripted(tmp_path / "work", turns, tools=TOOLS, policy="never") as scripted:
        listener = AskWhenCalled(scripted.conversation)
        scripted.conversation.subscribe(listener)
        assert scripted.ask("count") == "finished"

        async def answers() -> list[str]:
            return [await task for task in listener.answers]

        found = run_blocking(answers())
        assert len(found) == 2 and set(found) <= {"quite far", "end"}
        assert len(scripted.results) == 2
        assert scripted.conversation.metrics.calls == 4


def test_a_call_is_no_answer_to_a_side_question(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    turns = [say("hello"), calls(call("probe"))]
    with Scripted(tmp_path / "work", turns, tools=TOOLS) as scripted:
        scripted.ask("hi")
        runs = BranchProbeExecutor.runs
        with pytest.raises(ModelGaveNoAnswer, match="wanted to call probe"):
            scripted.conversation.ask_agent("what?")
        assert BranchProbeExecutor.runs == runs
        with pytest.raises(ConversationError, match="question is empty"):
            scripted.conversation.ask_agent("  ")


# Titles, lists, deleting


class Named(ScriptedLLM):
    """A scripted model that goes by another name, as its proxies do."""

    @property
    def model(self) -> str:
        return "openai:scripted"


def titled(folder: Path, message: str, reply: Turn) -> tuple[str, ScriptedLLM]:
    """The title that a model's reply leads to."""
    llm = Named([reply])
    with Conversation(folder, llm=llm, store_path=folder / "e.sqlite", tools=TOOLS) as one:
        one.send_message(message)
        title = one.generate_title()
        info = one._core.store.conversation(one.id)
        assert info is not None and info.title == title
        return title, llm


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Counting rows", "Counting rows"),
        ('Title: "Counting rows."\n\nIt says what it is about.', "Counting rows"),
        ("x " * 60, ("x " * 60)[:47] + "..."),
        ("", "please count"),
    ],
)
def test_the_model_names_a_conversation(tmp_path: Path, reply: str, title: str) -> None:
    found, llm = titled(tmp_path, "please count", say(reply))
    assert found == title
    assert len(llm.requests[0]) == 1


def test_a_title_when_the_model_fails_is_the_message(tmp_path: Path) -> None:
    message = "count " * 400
    found, llm = titled(tmp_path, message, ModelUnavailable("gone"))
    assert found == shortened(message) == ("count " * 400)[:47] + "..."
    assert len(found) == 50
    assert len(str(llm.requests[0][0].text)) < 1500


def test_a_script_is_not_asked_for_titles(probed: Scripted) -> None:
    asked = len(probed.llm.requests)
    assert probed.conversation.generate_title() == "count"
    assert len(probed.llm.requests) == asked


def test_a_title_that_a_person_gave_stays(tmp_path: Path) -> None:
    with Scripted(tmp_path, [say("ok")], tools=TOOLS, store_path=tmp_path / "e.db") as scripted:
        scripted.conversation.rename("My\n own")
        scripted.ask("something else")
        [info] = Conversation.list(store_path=tmp_path / "e.db")
        assert (info.title, info.status) == ("My own", "finished")
        with pytest.raises(ConversationError, match="title is empty"):
            scripted.conversation.rename(" ")


def test_no_store_lists_nothing_and_is_not_made(tmp_path: Path) -> None:
    assert Conversation.list(store_path=tmp_path / "none.db") == ()
    assert not (tmp_path / "none.db").exists()


def test_deleting_takes_all_of_it(tmp_path: Path) -> None:
    with Scripted(tmp_path, [say("ok")], tools=TOOLS, store_path=tmp_path / "e.db") as scripted:
        scripted.ask()
        statuses: list[object] = []

        class Listener:
            def event(self, event: Event) -> None:
                statuses.append(recorded_status(event))

            def delta(self, delta: Passing) -> None:
                """None comes."""

        scripted.conversation.subscribe(Listener())
        scripted.conversation.delete()
        assert statuses == ["deleting"]
    with EventStore.open(tmp_path / "e.db") as store:
        assert store.conversations() == []


def test_what_another_one_writes_is_not_deleted(probed: Scripted) -> None:
    source = probed.conversation
    with (
        Conversation(
            source.workspace,
            store_path=source._core.store.path,
            conversation_id=source.id,
            llm=ScriptedLLM([]),
            tools=TOOLS,
        ) as other,
        pytest.raises(ConversationInUse),
    ):
        other.delete()
    assert source._core.store.conversation(source.id) is not None


def test_a_running_conversation_is_not_deleted(tmp_path: Path) -> None:
    refused: list[str] = []

    def reply(messages: Sequence[Message]) -> Turn:
        with pytest.raises(RuntimeError, match="await the coroutine"):
            scripted.conversation.delete()
        refused.append("from the agent's own thread")
        return say("ok")

    with Scripted(tmp_path, [reply], tools=TOOLS, store_path=tmp_path / "e.db") as scripted:

        class Deleter:
            tasks: ClassVar[list[asyncio.Task[None]]] = []

            def event(self, event: Event) -> None:
                if isinstance(event, MessageEvent) and event.source == "agent":
                    self.tasks.append(asyncio.ensure_future(scripted.conversation.adelete()))

            def delta(self, delta: Passing) -> None:
                """Of no interest."""

        scripted.conversation.subscribe(Deleter())
        assert scripted.ask() == "finished"
        assert refused
        [task] = Deleter.tasks

        async def ended() -> BaseException | None:
            await asyncio.wait({task})
            return task.exception()

        assert "already running" in str(run_blocking(ended()))
