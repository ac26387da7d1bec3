"""What should a person know of a log: what is lost of it, not understood, or cut short?"""

from collections.abc import Sequence

from oh_kernel.conversation.cuts import last_cut
from oh_kernel.events import Event
from oh_kernel.store import EventStore


def remarks(
    store: EventStore, conversation_id: str, events: Sequence[Event], *, unknown_events: int
) -> tuple[str, ...]:
    """A sentence or two for each thing that is not as it should be; none when all is well.

    `events` are those that were read. Fewer than the store counts are told as lost too.
    """
    found = []
    info = store.conversation(conversation_id)
    lost = 0 if info is None else info.events_lost + max(0, info.events - len(events))
    if lost:
        found.append(
            f"{_events(lost)} of this conversation could not be read any more and were left out."
        )
    report = store.repair_report
    if report is not None and report.put_aside:
        found.append(str(report))
    if unknown_events:
        found.append(
            f"{_events(unknown_events)} of this conversation {_are(unknown_events)} of a kind that "
            "this version does not know; kept as written."
        )
    if cut := last_cut(events):
        found.append(cut)
    return tuple(found)


def _events(count: int) -> str:
    return f"{count} event{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
