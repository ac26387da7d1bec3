"""What must hold of a conversation, whatever was done to it; read from the store by the test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oh_kernel.conversation.calls import CANCELLED_CALL
from oh_kernel.conversation.metrics import recorded_call
from oh_kernel.conversation.recovery import NOT_STARTED
from oh_kernel.conversation.side_questions import ASK_AGENT
from oh_kernel.conversation.state import TABLE, Status, recorded_status
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    Event,
    LLMCompletionLogEvent,
    MessageEvent,
    ObservationEvent,
    SecurityRisk,
    ToolResultEvent,
    UserRejectObservation,
)
from tests.live.story_model import TOKEN, StoryModel, times_carried_out

NOT_RUN = (CANCELLED_CALL, NOT_STARTED, "Not run", "Error validating", "Tool '")
NEVER_ASKED = ("finish", "think")


@dataclass
class Known:
    """What the test knows of one conversation. `inherited`: events that came with a copy."""

    id: str
    policy: str
    budget: float | None
    inherited: int = 0
    is_interrupted: bool = False  # its process died, and nobody has written since
    lines: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    perhaps_sent: set[str] = field(default_factory=set)
    approved: set[str] = field(default_factory=set)
    waited: set[str] = field(default_factory=set)

    def check(self, events: Sequence[Event], model: StoryModel, workspace: Path) -> Status:
        """Look at all of it, while no run goes on; its state."""
        self._check_nothing_lost(events)
        status = check_states(events)
        open_calls = check_results(events)
        if not self.is_interrupted:
            assert status is not Status.RUNNING
            is_waiting = status is Status.WAITING_FOR_CONFIRMATION
            assert bool(open_calls) == is_waiting, f"{status} with open calls {open_calls}"
        if status is Status.WAITING_FOR_CONFIRMATION:
            self.waited |= set(open_calls)
        self._check_messages(events)
        if status is Status.FINISHED:
            self._check_all_seen(events, model)
        self._check_money(events, model.costs)
        for call in self._own(events):
            if isinstance(call, ActionEvent):
                self._check_done(call, result_of(call, events), workspace)
        return status

    def _own(self, events: Sequence[Event]) -> Sequence[Event]:
        return events[self.inherited :]

    def _check_nothing_lost(self, events: Sequence[Event]) -> None:
        lines = [event.to_json() for event in events]
        assert lines[: len(self.lines)] == self.lines, "what was stored is not what it was"
        self.lines = lines
        assert len({event.id for event in events}) == len(events)
        times = [event.timestamp for event in events]
        assert times == sorted(times)

    def _check_messages(self, events: Sequence[Event]) -> None:
        """Each message stands there once; one whose process died with it, once or not at all."""
        said = [text_of(event) for event in self._own(events) if is_users(event)]
        unsure = [text for text in said if text in self.perhaps_sent]
        assert len(set(unsure)) == len(unsure)
        certain = [text for text in said if text not in self.perhaps_sent]
        assert sorted(certain) == sorted(self.sent)

    def _check_all_seen(self, events: Sequence[Event], model: StoryModel) -> None:
        """At the end of a turn, no message of the user is left that no answered request held."""
        own = self._own(events)
        answered = [call.response_id for event in own if (call := recorded_call(event))]
        forgotten = {
            event_id
            for event in own
            if isinstance(event, Condensation)
            for event_id in event.forgotten_event_ids
        }
        bodies = [model.whole[_number(name)].body.decode() for name in answered]
        for event in own:
            if is_users(event) and event.id not in forgotten:
                text = text_of(event)
                assert any(text in body for body in bodies), f"finished, {text!r} unanswered"

    def _check_money(self, events: Sequence[Event], costs: Mapping[int, float]) -> None:
        """Each call is counted once at its price; none is made when the budget is spent."""
        calls = [call for event in self._own(events) if (call := recorded_call(event))]
        names = [call.response_id for call in calls]
        assert len(set(names)) == len(names)
        spent = 0.0
        for call in calls:
            # What empty replies before it cost is added to the answer's.
            assert call.cost_usd is not None
            assert call.cost_usd >= costs[_number(call.response_id)] - 1e-9
            # A question of the person may be under way at the same time; those are cheap here.
            if call.use != ASK_AGENT:
                assert self.budget is None or spent <= self.budget, f"${spent} were spent before"
                spent += call.cost_usd

    def _check_done(self, call: ActionEvent, result: Event | None, workspace: Path) -> None:
        """What a call did is what its result says, and what somebody allowed."""
        if not (token := TOKEN.search(call.tool_call.arguments)):
            return
        times = times_carried_out(workspace, token[0])
        assert times <= 1, f"{call.tool_call_id} was carried out {times} times"
        if self._needs_yes(call) and call.tool_call_id not in self.approved:
            assert not times, f"{call.tool_call_id} was carried out, and nobody said yes"
            assert not isinstance(result, ObservationEvent)
        match result:
            case None | UserRejectObservation():
                assert not times or (result is None and self.is_interrupted)
            case AgentErrorEvent(error=error) if error.startswith(NOT_RUN):
                assert not times, f"{call.tool_call_id} was carried out: {error}"
            case ObservationEvent() if succeeded(result):
                assert times == 1, f"{call.tool_call_id} was not carried out: {result.to_json()}"

    def _needs_yes(self, call: ActionEvent) -> bool:
        if call.tool_call_id in self.waited:
            return True
        if self.policy == "always":
            return call.tool_name not in NEVER_ASKED
        return self.policy == "risky" and call.security_risk is SecurityRisk.HIGH


def _number(response_id: str) -> int:
    return int(response_id.rpartition("-")[2])


def check_states(events: Sequence[Event]) -> Status:
    """Each state follows from the one before by the table; the last one."""
    now = Status.IDLE
    for event in events:
        if (then := recorded_status(event)) is not None:
            # A fork may begin anywhere and is idle.
            ways = {row[now] for row in TABLE.values() if now in row} | {Status.IDLE}
            assert then in ways, f"{now} became {then}"
            now = then
    return now


def check_results(events: Sequence[Event]) -> list[str]:
    """Each result belongs to a call before it, and no call has two; the ids of those with none."""
    open_calls: list[str] = []
    made: set[str] = set()
    for event in events:
        if isinstance(event, ActionEvent):
            assert event.tool_call_id not in made
            made.add(event.tool_call_id)
            open_calls.append(event.tool_call_id)
        if isinstance(event, ToolResultEvent):
            assert event.tool_call_id in open_calls, f"two results: {event.tool_call_id}"
            open_calls.remove(event.tool_call_id)
    return open_calls


def result_of(call: ActionEvent, events: Sequence[Event]) -> ToolResultEvent | None:
    """The result of `call`, if it has one."""
    for event in events:
        if isinstance(event, ToolResultEvent) and event.tool_call_id == call.tool_call_id:
            return event
    return None


def succeeded(result: ObservationEvent) -> bool:
    """Whether the tool did all that it was asked to."""
    if result.tool_name == "terminal":
        return getattr(result.observation, "exit_code", None) == 0
    return not result.observation.is_error


def is_users(event: Event) -> bool:
    """Whether it is a message of the user."""
    return isinstance(event, MessageEvent) and event.source == "user"


def text_of(event: Event) -> str:
    """What a message says."""
    assert isinstance(event, MessageEvent)
    return event.llm_message.text


def check_copy(source: Sequence[Event], fork: Sequence[Event], at: str | None) -> None:
    """A fork begins as its source does, to the event `at`, but for what model calls cost."""
    kept = [event.to_json() for event in source if not isinstance(event, LLMCompletionLogEvent)]
    own = {event.id for event in source}
    copied = [event.to_json() for event in fork if event.id in own]
    assert [event.to_json() for event in fork[: len(copied)]] == copied
    assert kept[: len(copied)] == copied
    if at is not None:
        upto = source[: [event.id for event in source].index(at) + 1]
        assert len(copied) == sum(not isinstance(e, LLMCompletionLogEvent) for e in upto)
    assert not check_results(fork)
