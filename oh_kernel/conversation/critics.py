"""What becomes of a judgement: it is stored with the answer, and may send the agent back."""

import logging
from pathlib import Path

from oh_kernel.agents.critics import SUCCESS_THRESHOLD, Critic, Work
from oh_kernel.conversation.aside import Aside
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.errors import LimitReached, ModelError
from oh_kernel.events import ActionEvent, CriticResult, Event, Message, MessageEvent

CRITIC = "critic"
GO_ON = (
    "[Your work was judged before it counts as done: {score:.2f} of 1. {message}\n"
    "Put right what is missing, then finish again; or say why it cannot be done.]"
)

logger = logging.getLogger(__name__)


class CriticOfRun(Attendant):
    """Has each answer of a run judged, and sends the agent back at most `rounds` times."""

    def __init__(
        self, critic: Critic, log: ConversationLog, aside: Aside, workspace: Path, *, rounds: int
    ) -> None:
        self._critic = critic
        self._log = log
        self._aside = aside
        self._workspace = workspace
        self._rounds_left = rounds
        self._result: CriticResult | None = None

    async def judged(self, event: Event) -> Event:
        """`event` with the judgement, if it is an answer and the critic can say something."""
        if not _is_answer(event):
            return event
        assert isinstance(event, ActionEvent | MessageEvent)
        work = Work(self._log.events_for_models, event, self._workspace, self._ask)
        try:
            self._result = await self._critic.judge(work)
        except (ModelError, LimitReached, ValueError) as error:  # work counts without a judgement
            logger.warning("the work could not be judged: %s", error)
            self._result = None
        return event.model_copy(update={"critic_result": self._result})

    async def reason_to_go_on(self) -> str | None:
        """What the critic misses, while it may still be put right."""
        result, self._result = self._result, None
        if result is None or result.score >= SUCCESS_THRESHOLD or not self._rounds_left:
            return None
        self._rounds_left -= 1
        return GO_ON.format(score=result.score, message=result.message or "")

    async def _ask(self, prompt: str) -> str:
        completion = await self._aside.ask(CRITIC, [Message.of("user", prompt)])
        return completion.message.text


def _is_answer(event: Event) -> bool:
    match event:
        case MessageEvent(source="agent"):
            return True
        case ActionEvent(tool_name="finish"):
            return event.action is not None
    return False
