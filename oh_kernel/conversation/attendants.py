"""Who is heard at the turning points of a run, beside the model?

Limits, the watch for loops, hooks, the condenser, critics: each is an `Attendant` in a module of
its own, and a run asks them all, in order, at the same few points.
"""

from collections.abc import Sequence

from oh_kernel.conversation.state import Status
from oh_kernel.errors import ContextWindowExceeded
from oh_kernel.events import ActionEvent, Event, Message, MessageEvent, ToolResultEvent


class Attendant:
    """Heard at the points of a run; each answer here means "I have nothing to say".

    Used on the agent thread, by one run at a time. May append events to the log; what it raises
    ends the run as an error.
    """

    async def before_step(self) -> Status | None:
        """Before the model is asked; a status ends the run with it."""
        return None

    async def judged(self, event: Event) -> Event:
        """Before what a reply means is stored: the same, perhaps with a judgement on it."""
        return event

    async def result_of(self, call: ActionEvent) -> ToolResultEvent | None:
        """Before a person is asked about `call`: a result, in place of carrying it out."""
        return None

    async def after_call(self, call: ActionEvent, result: Event) -> None:
        """When the result of a call is stored."""

    async def reason_to_go_on(self) -> str | None:
        """When the agent says that it is done: words for the model, if it is not."""
        return None

    async def made_shorter(self, error: ContextWindowExceeded) -> bool:
        """When a request is too long: whether the history was made shorter, to ask again."""
        return False


def heard_at(point: str, attendants: Sequence[Attendant]) -> Sequence[Attendant]:
    """Those that may have something to say at `point`; to ask the others would cost a task each."""
    silent = getattr(Attendant, point)
    return [each for each in attendants if getattr(type(each), point) is not silent]


def environment_message(text: str) -> MessageEvent:
    """What the model is told that neither the user nor a tool says."""
    return MessageEvent(source="environment", llm_message=Message.of("user", text))
