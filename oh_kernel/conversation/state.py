"""Which states can a conversation be in, and what leads from one to the next?"""

from enum import StrEnum

from oh_kernel.errors import ConversationError
from oh_kernel.events import ConversationStateUpdateEvent, Event

STATUS_KEY = "execution_status"


class Status(StrEnum):
    """What the conversation is doing."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING_FOR_CONFIRMATION = "waiting_for_confirmation"
    FINISHED = "finished"
    ERROR = "error"
    STUCK = "stuck"


_NEXT: dict[Status, frozenset[Status]] = {
    Status.IDLE: frozenset({Status.RUNNING, Status.PAUSED}),
    Status.RUNNING: frozenset(
        {
            Status.FINISHED,
            Status.PAUSED,
            Status.WAITING_FOR_CONFIRMATION,
            Status.ERROR,
            Status.STUCK,
        }
    ),
    Status.PAUSED: frozenset({Status.RUNNING, Status.IDLE}),
    Status.WAITING_FOR_CONFIRMATION: frozenset({Status.RUNNING, Status.IDLE, Status.PAUSED}),
    Status.FINISHED: frozenset({Status.IDLE}),
    Status.ERROR: frozenset({Status.RUNNING, Status.IDLE}),
    Status.STUCK: frozenset({Status.RUNNING, Status.IDLE}),
}


def check_transition(now: Status, then: Status) -> None:
    """Raise `ConversationError` unless the table leads from `now` to `then`."""
    if then not in _NEXT[now]:
        ways = ", ".join(sorted(_NEXT[now]))
        raise ConversationError(
            f"A conversation that is {now} cannot become {then}.",
            remedy=f"From {now} it can become: {ways}.",
        )


def status_event(status: Status) -> ConversationStateUpdateEvent:
    """The event that records a new status."""
    return ConversationStateUpdateEvent(key=STATUS_KEY, value=str(status))


def recorded_status(event: Event) -> Status | None:
    """The status that `event` records, if it records one that this version knows."""
    if not isinstance(event, ConversationStateUpdateEvent) or event.key != STATUS_KEY:
        return None
    return Status(event.value) if event.value in list(Status) else None
