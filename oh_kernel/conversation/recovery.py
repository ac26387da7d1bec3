"""What becomes of calls whose process died before their result was stored?

They are answered, never done again silently: the model is told what is known and decides.
"""

from collections.abc import Sequence

from oh_kernel.conversation.calls import failure
from oh_kernel.conversation.cuts import cut_in_words
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.state import Status, Trigger
from oh_kernel.events import ActionEvent, Event, InterruptEvent, ObservationEvent, ToolResultEvent

MAY_HAVE_RUN = (
    "Interrupted: the kernel died or was restarted while this call was running. It may have run "
    "in part; it was not run again. Check what it did before you go on."
)
NOT_STARTED = (
    "Interrupted: the kernel died or was restarted before this call was started. It was not run."
)

# For a person.
WAS_RUNNING = "was running when the kernel died or was restarted"
WAS_ASKED = "the kernel died or was restarted while the model was asked"


async def answer_open_calls(log: ConversationLog) -> None:
    """Give each call without a result one, and leave the state of running."""
    if log.status is Status.WAITING_FOR_CONFIRMATION:
        # Those that are open were never started, and still wait for a person.
        if not log.open_calls:  # the last was answered, and the new state not yet stored
            await log.happen(Trigger.REJECT_LAST)
        return
    calls = unanswered(log.events)
    for position, call in enumerate(calls):
        # Calls run in order, so only the first open one can have been started.
        await log.append(failure(call, NOT_STARTED if position else MAY_HAVE_RUN))
    if log.status is Status.RUNNING:
        cut = cut_in_words(next(iter(calls), None), len(calls[1:]), how=WAS_RUNNING)
        await log.append(InterruptEvent(source="environment", cut=cut or WAS_ASKED))
        await log.happen(Trigger.DIE)


def unanswered(events: Sequence[Event]) -> list[ActionEvent]:
    """The calls anywhere in a log that have no result, oldest first."""
    answered: set[str] = set()
    for event in events:
        if isinstance(event, ToolResultEvent):
            answered.add(event.tool_call_id)
        if isinstance(event, ObservationEvent):
            answered.add(event.action_id)
    return [
        event
        for event in events
        if isinstance(event, ActionEvent) and not {event.tool_call_id, event.id} & answered
    ]
