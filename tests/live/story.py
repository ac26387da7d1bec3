"""A story: a conversation is driven by a plan, and looked at after each thing that was done.

`python -m tests.live.story SEED` plays one and shows what happened.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oh_kernel.conversation.state import TABLE, Status, Trigger
from oh_kernel.events import ActionEvent, Event
from oh_kernel.store import EventStore
from tests.live.story_checks import Known, check_copy
from tests.live.story_model import StoryModel, check_request, is_beside
from tests.live.story_plan import Deed, Interlude, Plan, Step, plan_of
from tests.live.story_process import Child, Gone, Nursery, Reply, check_nothing_left

MAX_FORKS = 2
PATIENT_BUDGET = 1_000.0
MODEL = {
    "ContextWindowExceeded",
    "MaxBudgetReached",
    "ModelGaveNoAnswer",
    "ModelRateLimited",
    "ModelRequestRefused",
    "ModelUnavailable",
}
# By what a command may be refused, or fail; all others never are.
MAY_RAISE = {
    "approve": {"ConversationError"},
    "reject": {"ConversationError"},
    "condense": {"ConversationError", *MODEL},
    "ask": MODEL,
    "run": {"ConversationError", *MODEL},
}
WRITES = {"send", "run", "approve", "reject", "ask", "condense"}
TRIGGERS = {
    "send": Trigger.SEND,
    "pause": Trigger.PAUSE,
    "interrupt": Trigger.INTERRUPT,
    "approve": Trigger.APPROVE,
    "reject": Trigger.REJECT,
}


@dataclass(frozen=True)
class Command:
    """Something that the process was told to do."""

    number: int
    do: str
    given: dict[str, Any]


class Story:
    """One story while it is played. Used by one thread."""

    def __init__(self, plan: Plan, nursery: Nursery, folder: Path) -> None:
        self.plan = plan
        self.trace: list[str] = []
        self._nursery = nursery
        self._folder = folder
        self._name = f"{os.getpid()} {folder}"
        self._workspace = folder / "work"
        self._workspace.mkdir()
        self._complaints = folder / "stderr"
        self._complaints.touch()
        self._model = StoryModel(plan.replies, self._workspace)
        self._checked_requests = 0
        self._answers = iter(plan.answers)
        self._all: list[Known] = []
        self._known: Known | None = None  # the conversation that is open
        self._child: Child | None = None
        self._unsettled: list[Command] = []
        self._status, self._waiting = Status.IDLE, list[str]()
        self._is_writer = False
        self._texts = self._forks = 0

    def __enter__(self) -> Self:
        self._model.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is not None:
            with suppress(OSError):
                self._child.kill()
        self._model.__exit__()

    # The story

    def play(self) -> None:
        """All of it, and then each conversation to a good end."""
        for step in self.plan.steps:
            self._step(step)
            self._check()
        self._model.calm = True
        for known in self._all:
            self._to_a_good_end(known)
        self._leave()
        check_nothing_left(self._name)
        complaints = self._complaints.read_text()
        assert not complaints, complaints

    def _step(self, step: Step) -> None:
        if self._child is None:
            self._open(self._known)
        deed = step.if_waiting if self._waiting and step.if_waiting else step.deed
        with suppress(Gone):
            if deed.what == "ask":
                self._do("send", text=self._text())
            if deed.what in ("ask", "run"):
                self._run(step.meanwhile)
            else:
                self._at_rest(deed)

    def _to_a_good_end(self, known: Known) -> None:
        """Whatever was done to it: it can be gone on with, and then all is answered."""
        if self._child is not None:
            self._do("close")
        self._open(known)
        if self._status is Status.WAITING_FOR_CONFIRMATION:
            self._do("reject", ids=None, reason="")
            self._do("interrupt")  # what was approved meanwhile
        self._budget(PATIENT_BUDGET)
        text = self._text()
        self._do("send", text=text)
        assert self._run(()).status == "finished"
        self._check()
        last = next(r for r in reversed(self._model.whole.values()) if not is_beside(r))
        assert text in last.body.decode()

    # What is done

    def _at_rest(self, deed: Deed) -> None:
        match deed.what:
            case "kill":
                self._kill()
            case "reopen":
                self._reopen(in_same_process=deed.number % 2 == 0)
            case "switch":
                self._leave()
                self._open(self._all[deed.number % len(self._all)])
            case "delete":
                self._delete()
            case "raise the budget":
                self._budget(2.0 + deed.number % 3)
            case "rename":
                self._do("rename", title=f"title {deed.number}")
            case "intrude":
                self._intrude()
            case _ if meant := self._meant(deed):
                self._do(meant[0], **meant[1])

    def _meant(self, deed: Deed) -> tuple[str, dict[str, Any]] | None:
        """The command that is the same at rest as during a run."""
        waiting = self._asked
        some = [each for at, each in enumerate(waiting) if deed.number >> at & 1]
        match deed.what:
            case "send":
                return "send", {"text": self._text()}
            case "pause" | "interrupt" | "condense" | "run":
                return deed.what, {}
            case "side question":
                return "ask", {"text": "How is it going?"}
            case "fork" | "fork from an event" if self._forks >= MAX_FORKS:
                return None
            case "fork":
                return "fork", {"event": None}
            case "fork from an event":
                events = self._events(self._open_one)
                return "fork", {"event": events[deed.number % len(events)].id}
            case "approve" | "yes from elsewhere":
                self._open_one.approved |= set(waiting)
                return "approve", {"ids": None}
            case "approve some":
                self._open_one.approved |= set(some)
                return "approve", {"ids": some}
            case "approve what is not there":
                return "approve", {"ids": ["nowhere"]}
            case "reject" | "no from elsewhere":
                return "reject", {"ids": None, "reason": "not that"}
            case "reject some":
                return "reject", {"ids": some, "reason": "not these"}
            case "reject without a reason":
                return "reject", {"ids": None, "reason": ""}
        raise AssertionError(f"nobody can {deed.what}")

    def _run(self, meanwhile: tuple[Interlude, ...]) -> Reply:
        """A run, what is done during it, and the end of all that."""
        child, before = self._living, self._living.news.copy()
        child.asked = None
        run = self._start("run")
        for interlude in meanwhile:
            news, moment = interlude.news, before[interlude.news] + interlude.n
            self._hear(run, until=partial(self._has_heard, news, moment))
            if child.has_replied(run.number):
                break
            child.listen(interlude.wait_s)
            self._interlude(interlude.deed)
        self._hear(run, until=lambda: False)
        reply = child.reply(run.number)
        while self._unsettled:
            command = self._unsettled[0]
            self._hear(command, until=lambda: False)  # it may be a run, too
            self._settle(command)
        self._do("look")
        return reply

    def _has_heard(self, news: str, count: int) -> bool:
        return self._living.news[news] >= count

    def _hear(self, run: Command, until: Callable[[], bool]) -> None:
        """Wait until this holds or the run ends; answer what the person is asked meanwhile."""
        child = self._living

        def has_ended() -> bool:
            return child.has_replied(run.number)

        while not has_ended() and not until():
            child.until(lambda: has_ended() or until() or child.asked is not None)
            if child.asked is not None and not has_ended():
                self._answer()

    def _answer(self) -> None:
        """What the person says who is asked; or somebody does something else meanwhile."""
        asked = self._asked
        deed = next(self._answers, Deed("no"))
        self.trace.append(f"asked about {asked}: {deed.what}")
        if deed.what in ("yes", "no", "some"):
            bits = {"yes": -1, "no": 0, "some": deed.number}[deed.what]
            yes = [bool(bits >> at & 1) for at in range(len(asked))]
            self._open_one.approved |= {each for each, said in zip(asked, yes, strict=True) if said}
            self._start("answer", yes=yes)
        else:
            self._interlude(deed)
            if self._meant_as_answer(deed):
                self._start("interrupt")  # nobody will answer
        self._living.asked = None

    @staticmethod
    def _meant_as_answer(deed: Deed) -> bool:
        answers = ("approve", "reject", "yes from elsewhere", "no from elsewhere", "interrupt")
        return deed.what not in answers

    def _interlude(self, deed: Deed) -> None:
        if deed.what == "kill":
            self._kill()
            raise Gone
        if deed.what == "intrude":
            self._intrude()
        elif meant := self._meant(deed):
            self._start(meant[0], **meant[1])

    def _intrude(self) -> None:
        """Another process wants to write, and is refused as long as this one does."""
        if not self._is_writer:
            return
        other = self._nursery.child(self._name, self._folder)
        other.ask("open", **self._options(self._open_one))
        refusal = other.ask("send", text="let me in")
        self.trace.append(f"intrude -> {refusal.error}")
        assert refusal.error == "ConversationInUse", refusal
        other.leave()

    def _delete(self) -> None:
        if len(self._all) < 2:
            return
        gone = self._open_one
        self._do("delete")
        self._all.remove(gone)
        assert not self._events(gone)
        self._leave()
        self._open(self._all[0])

    def _budget(self, usd: float) -> None:
        """Allow more, where something is allowed."""
        known = self._open_one
        if known.budget is not None:
            known.budget = max(usd, known.budget)
            self._do("budget", usd=known.budget)

    def _text(self) -> str:
        self._texts += 1
        return f"This is message {self._texts}."

    # Processes

    def _open(self, known: Known | None) -> None:
        if self._child is None:
            self._child = self._nursery.child(self._name, self._folder)
        self._known, self._is_writer = known, False
        reply = self._settle(self._start("open", **self._options(known)))
        if known is None:
            self._known = Known(reply.value, self.plan.policy, self.plan.budget)
            self._all.append(self._known)

    def _options(self, known: Known | None) -> dict[str, Any]:
        return {
            "id": known.id if known else None,
            "folder": str(self._folder),
            "url": self._model.url,
            "policy": self.plan.policy,
            "budget": known.budget if known else self.plan.budget,
            "condense_after": self.plan.condense_after,
            "attended": bool(self.plan.answers),
        }

    def _reopen(self, *, in_same_process: bool) -> None:
        if in_same_process:
            self._do("close")
        else:
            self._leave()
        self._open(self._known)

    def _leave(self) -> None:
        if self._child is not None:
            self._child.leave()
        self._child, self._is_writer = None, False

    def _kill(self) -> None:
        self.trace.append("kill")
        child, known = self._living, self._open_one
        child.kill()
        stored = [event.id for event in self._events(known)]
        told = set(child.stored)
        assert [each for each in stored if each in told] == [e for e in child.stored if e in stored]
        for command in list(self._unsettled):
            self._after_death(child, command)
        self._child, self._is_writer, known.is_interrupted = None, False, True

    def _after_death(self, child: Child, command: Command) -> None:
        """What came of a command whose process died: it may have been carried out."""
        self._unsettled.remove(command)
        if child.has_replied(command.number):
            self._take(command, child.reply(command.number))
        elif command.do == "send":
            self._open_one.perhaps_sent.add(command.given["text"])
        elif command.do == "approve":
            self._open_one.approved |= self._calls_so_far()

    # Commands

    def _do(self, do: str, **given: Any) -> Reply:
        """Have something done at rest; the state follows the table."""
        known, before = self._known, self._status
        if known and known.is_interrupted and before is Status.RUNNING:
            before = Status.PAUSED  # as soon as somebody writes
        reply = self._settle(self._start(do, **given))
        if trigger := TRIGGERS.get(do):
            self._check_row(trigger, before, reply)
        return reply

    def _check_row(self, trigger: Trigger, before: Status, reply: Reply) -> None:
        then = {TABLE[trigger].get(before)}
        if trigger is Trigger.REJECT:
            then.add(TABLE[Trigger.REJECT_LAST].get(before))
        if reply.ok:
            assert reply.status in then, f"{trigger} made {reply.status} of {before}"
        else:
            assert None in then or "No call" in reply.text, reply
            assert reply.status in (before, Status.RUNNING)

    def _start(self, do: str, **given: Any) -> Command:
        try:
            command = Command(self._living.tell(do, **given), do, given)
        except Gone:
            raise AssertionError("the process died by itself") from None
        self._unsettled.append(command)
        return command

    def _settle(self, command: Command) -> Reply:
        """The reply to a command, and what follows from it."""
        try:
            reply = self._living.reply(command.number)
        except Gone:
            raise AssertionError("the process died by itself") from None
        self._unsettled.remove(command)
        self._take(command, reply)
        if reply.status:
            self._status, self._waiting = Status(reply.status), reply.waiting
        return reply

    def _take(self, command: Command, reply: Reply) -> None:
        do, given, known = command.do, command.given, self._known
        said = reply.value if reply.ok else f"{reply.error}: {reply.text}"
        shown = "" if do == "open" else f" {given}"
        self.trace.append(f"{do}{shown} -> {said}; {reply.status} {reply.waiting or ''}")
        if not reply.ok:
            assert reply.error in MAY_RAISE.get(do, ()), f"{do}: {reply.text}"
            assert reply.remedy or reply.error != "ConversationError", reply.text
        if known is None:
            return
        if do in WRITES or (do in ("pause", "interrupt") and reply.status != self._status):
            self._is_writer, known.is_interrupted = True, False
        if not reply.ok:
            return
        match do:
            case "send":
                known.sent.append(given["text"])
            case "approve" if given["ids"] is None:
                known.approved |= self._calls_so_far()
            case "fork":
                self._forked(known, reply.value, given["event"])

    def _forked(self, source: Known, fork_id: str, at: str | None) -> None:
        fork = Known(fork_id, source.policy, source.budget)
        events = self._events(fork)
        check_copy(self._events(source), events, at)
        fork.inherited = len(events)
        self._forks += 1
        self._all.append(fork)

    @property
    def _living(self) -> Child:
        assert self._child is not None
        return self._child

    @property
    def _open_one(self) -> Known:
        assert self._known is not None
        return self._known

    @property
    def _asked(self) -> list[str]:
        """The calls that somebody is asked about now, or that wait."""
        asked = self._child.asked if self._child else None
        return self._waiting if asked is None else asked

    # What is looked at

    def _check(self) -> None:
        """All conversations, and what the model was asked, while nothing is done."""
        for known in self._all:
            events = self._events(known)
            status = known.check(events, self._model, self._workspace)
            if known is self._known and self._child is not None:
                assert status is self._status, f"stored {status}, told {self._status}"
        requests = list(self._model.whole.values())
        for request in requests[self._checked_requests :]:
            check_request(request)
        self._checked_requests = len(requests)

    def _events(self, known: Known) -> list[Event]:
        file = self._folder / "events.sqlite"
        if not file.exists():
            return []
        with EventStore.open(file, read_only=True) as store:
            return list(store.iterate(known.id))

    def _calls_so_far(self) -> set[str]:
        events = self._events(self._open_one)
        return {event.tool_call_id for event in events if isinstance(event, ActionEvent)}


def play(plan: Plan, nursery: Nursery) -> list[str]:
    """Play one story: what happened, which an AssertionError tells, too."""
    with tempfile.TemporaryDirectory() as folder, Story(plan, nursery, Path(folder)) as story:
        try:
            story.play()
            return story.trace
        except Exception as error:
            told = "\n  ".join(story.trace)
            raise AssertionError(f"{error!r}\nin {plan}\n  {told}") from error


def main() -> None:
    """Play the stories with these seeds, and tell them."""
    with Nursery() as nursery:
        for seed in sys.argv[1:]:
            told = play(plan_of(int(seed)), nursery)
            print(f"story {seed}", *told, sep="\n  ")


if __name__ == "__main__":
    main()
