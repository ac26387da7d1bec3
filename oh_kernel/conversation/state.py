"""Which states can a conversation be in, and what leads from one to the next?

`TABLE` is all of it. Whatever is not in the table is refused with a `ConversationError`.
"""

from collections.abc import Iterable
from enum import StrEnum

from oh_kernel.errors import ConversationError
from oh_kernel.events import ConversationStateUpdateEvent, Event

STATUS_KEY = "execution_status"
APPROVED_KEY = "approved_calls"


class Status(StrEnum):
    """What the conversation is doing."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING_FOR_CONFIRMATION = "waiting_for_confirmation"
    FINISHED = "finished"
    ERROR = "error"
    STUCK = "stuck"
    DELETING = "deleting"


class Trigger(StrEnum):
    """What happens to a conversation: what is done to it first, then what a run comes to."""

    SEND = "send_message"
    RUN = "run"
    PAUSE = "pause"
    INTERRUPT = "interrupt"
    APPROVE = "approve"
    REJECT = "reject"
    REJECT_LAST = "reject of the last call that is left"
    GO_ON = "run, each waiting call decided"
    DELETE = "delete"
    FINISH = "the agent finishes or answers in words"
    ASK = "the policy wants a yes"
    FAIL = "an error"
    GET_STUCK = "the agent goes round in circles"
    REACH_LIMIT = "a limit is reached"
    DIE = "the process died"


_IDLE, _RUNNING, _PAUSED, _WAITING, _FINISHED, _ERROR, _STUCK, _DELETING = Status

TABLE: dict[Trigger, dict[Status, Status]] = {
    Trigger.SEND: {
        _IDLE: _IDLE,
        _RUNNING: _RUNNING,  # seen at the next step
        _PAUSED: _PAUSED,
        _WAITING: _WAITING,  # a refusal, once `run` is called and nothing was decided
        _FINISHED: _IDLE,
        _ERROR: _ERROR,
        _STUCK: _IDLE,
    },
    Trigger.RUN: {
        _IDLE: _RUNNING,
        _PAUSED: _RUNNING,
        _WAITING: _WAITING,  # never a yes
        _FINISHED: _FINISHED,  # nothing new was said
        _ERROR: _RUNNING,
        _STUCK: _RUNNING,
    },
    Trigger.PAUSE: {
        _IDLE: _PAUSED,
        _RUNNING: _PAUSED,  # before the next step
        _PAUSED: _PAUSED,
        _WAITING: _WAITING,
        _FINISHED: _FINISHED,
        _ERROR: _ERROR,
        _STUCK: _STUCK,
    },
    Trigger.INTERRUPT: {
        _IDLE: _IDLE,
        _RUNNING: _PAUSED,
        _PAUSED: _PAUSED,
        _WAITING: _PAUSED,  # the question is taken back
        _FINISHED: _FINISHED,
        _ERROR: _ERROR,
        _STUCK: _STUCK,
    },
    Trigger.APPROVE: {_WAITING: _WAITING},
    Trigger.REJECT: {_WAITING: _WAITING},
    Trigger.REJECT_LAST: {_WAITING: _IDLE},
    Trigger.GO_ON: {_WAITING: _RUNNING},
    Trigger.DELETE: {
        _IDLE: _DELETING,
        _PAUSED: _DELETING,
        _WAITING: _DELETING,
        _FINISHED: _DELETING,
        _ERROR: _DELETING,
        _STUCK: _DELETING,
        _DELETING: _DELETING,  # what was begun can be ended
    },
    Trigger.FINISH: {_RUNNING: _FINISHED},
    Trigger.ASK: {_RUNNING: _WAITING},
    Trigger.FAIL: {_RUNNING: _ERROR, _WAITING: _ERROR},
    Trigger.GET_STUCK: {_RUNNING: _STUCK},
    Trigger.REACH_LIMIT: {_RUNNING: _ERROR},
    Trigger.DIE: {_RUNNING: _PAUSED},
}

_REMEDIES = {
    Trigger.RUN: "Wait for it, or stop it with %openhands stop or the stop button.",
    Trigger.APPROVE: "Only calls that wait can be approved; `waiting_calls` holds them.",
    Trigger.REJECT: "Only calls that wait can be rejected; `waiting_calls` holds them.",
    Trigger.DELETE: "Stop it first, with %openhands stop or `interrupt`.",
}


def next_status(now: Status, trigger: Trigger) -> Status:
    """The state that `trigger` leads to; `ConversationError` if it cannot happen now."""
    then = TABLE[trigger].get(now)
    if then is None:
        raise ConversationError(
            f"The conversation is {_in_words(now)}: {trigger} is not possible.",
            remedy=_remedy(now, trigger),
        )
    return then


def _remedy(now: Status, trigger: Trigger) -> str:
    if now is Status.DELETING:
        return "Delete it, or begin another one."
    possible = ", ".join(other for other, row in TABLE.items() if now in row)
    return _REMEDIES.get(trigger, f"Possible now: {possible}.")


def check_transition(now: Status, then: Status) -> None:
    """Raise `ConversationError` unless something in the table leads from `now` to `then`."""
    ways = {row[now] for row in TABLE.values() if now in row}
    if then not in ways:
        raise ConversationError(
            f"A conversation that is {_in_words(now)} cannot become {then}.",
            remedy=f"It can become: {', '.join(sorted(ways))}.",
        )


def _in_words(status: Status) -> str:
    words = {
        Status.WAITING_FOR_CONFIRMATION: "waiting for a confirmation",
        Status.DELETING: "being deleted",
    }
    return words.get(status, str(status))


def status_event(status: Status) -> ConversationStateUpdateEvent:
    """The event that records a new status."""
    return ConversationStateUpdateEvent(key=STATUS_KEY, value=str(status))


def recorded_status(event: Event) -> Status | None:
    """The status that `event` records, if it records one that this version knows."""
    if not isinstance(event, ConversationStateUpdateEvent) or event.key != STATUS_KEY:
        return None
    return Status(event.value) if event.value in list(Status) else None


def approvals_event(call_ids: Iterable[str]) -> ConversationStateUpdateEvent:
    """The event that records which waiting calls are approved."""
    return ConversationStateUpdateEvent(key=APPROVED_KEY, value=sorted(call_ids))


def recorded_approvals(event: Event) -> frozenset[str] | None:
    """The ids of the approved calls, if `event` records them."""
    if not isinstance(event, ConversationStateUpdateEvent) or event.key != APPROVED_KEY:
        return None
    value = event.value if isinstance(event.value, list) else []
    return frozenset(call_id for call_id in value if isinstance(call_id, str))
