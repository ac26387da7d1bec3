"""What becomes of calls whose process died before their result was stored?

They are answered, never done again silently: the model is told what is known and decides.
"""

from collections.abc import Sequence

from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.state import Status
from oh_kernel.events import ActionEvent, AgentErrorEvent, Event, ObservationEvent, ToolResultEvent

MAY_HAVE_RUN = (
    "Interrupted: the kernel died or was restarted while this call was running. It may have run "
    "in part; it was not run again. Check what it did before you go on."
)
NOT_STARTED = (
    "Interrupted: the kernel died or was restarted before this call was started. It was not run."
)


async def answer_open_calls(log: ConversationLog) -> None:
    """Give each call without a result one, and leave the state of running."""
    if log.status is Status.WAITING_FOR_CONFIRMATION:
        return  # they were never started, and still wait for a person
    may_have_run = True  # calls run in order, so only the first open one can have been started
    for call in unanswered(log.events):
        text = MAY_HAVE_RUN if may_have_run else NOT_STARTED
        await log.append(
            AgentErrorEvent(tool_name=call.tool_name, tool_call_id=call.tool_call_id, error=text)
        )
        may_have_run = False
    if log.status is Status.RUNNING:
        await log.set_status(Status.PAUSED)


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
