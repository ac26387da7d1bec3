"""How is the model asked for the next step of a run?"""

import time
from collections.abc import Sequence
from contextlib import aclosing

from oh_kernel.agents.codeact import CodeActAgent
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.metrics import usage_event
from oh_kernel.conversation.models import AGENT
from oh_kernel.conversation.stopping import Stop, Stopped
from oh_kernel.errors import ContextWindowExceeded, ModelError
from oh_kernel.events import Message, MessageEvent
from oh_kernel.llm.base import Completion, RetryNotice, TextDelta


class Asker:
    """Asks the agent's model and shows its reply as it comes. Used on the agent thread."""

    def __init__(
        self,
        log: ConversationLog,
        agent: CodeActAgent,
        stop: Stop,
        attendants: Sequence[Attendant],
    ) -> None:
        self._log = log
        self._agent = agent
        self._stop = stop
        self._attendants = attendants
        self._shown: list[str] = []

    async def ask(self) -> Completion:
        """The model's next reply. What was shown of one that is stopped half way is kept."""
        started = time.monotonic()
        self._shown.clear()
        try:
            completion = await self._stop.reaching(self._stream_made_to_fit())
        except Stopped:
            if text := "".join(self._shown).strip():
                message = Message.of("assistant", text)
                await self._log.append(MessageEvent(source="agent", llm_message=message))
            raise
        finally:
            self._stop.between_attempts = False
        await self._log.append(usage_event(completion, time.monotonic() - started, AGENT))
        return completion

    async def _stream_made_to_fit(self) -> Completion:
        """The reply; as long as a request is too long and can be made shorter, it is."""
        while True:
            try:
                return await self._stream(self._log.messages())
            except ContextWindowExceeded as error:
                self._shown.clear()
                if not await self._made_shorter(error):
                    raise

    async def _made_shorter(self, error: ContextWindowExceeded) -> bool:
        for attendant in self._attendants:
            if await attendant.made_shorter(error):
                return True
        return False

    async def _stream(self, messages: Sequence[Message]) -> Completion:
        async with aclosing(self._agent.ask(messages)) as parts:
            async for part in parts:
                if isinstance(part, Completion):
                    return part
                self._stop.between_attempts = isinstance(part, RetryNotice)
                match part:
                    case TextDelta(text=text):
                        self._shown.append(text)
                    case RetryNotice():
                        self._shown.clear()
                self._log.delta(part)
                if self._stop.between_attempts:
                    self._stop.check_between_steps()
        raise ModelError("The model's reply ended without its end.", remedy="Run the cell again.")
