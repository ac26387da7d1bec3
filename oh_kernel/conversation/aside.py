"""How is a model asked beside the run: for a summary, a title, a judgement?"""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing

from oh_kernel.conversation.limits import Limits
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.metrics import usage_event
from oh_kernel.errors import ModelError
from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, ToolSpec


class Aside:
    """Asks one question and shows nothing of the answer; its cost is recorded like any other."""

    def __init__(
        self, log: ConversationLog, model_for: Callable[[str], LLM], limits: Limits | None = None
    ) -> None:
        self._log = log
        self._model_for = model_for
        self._limits = limits

    async def ask(
        self, use: str, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> Completion:
        """The reply of the model for `use`; raises `ModelError`, or `LimitReached` before it."""
        if self._limits is not None:
            await self._limits.check_aside(use, messages, tools)
        started = time.monotonic()
        async with aclosing(self._model_for(use).stream(messages, tools)) as parts:
            async for part in parts:
                if isinstance(part, Completion):
                    await self._log.append(usage_event(part, time.monotonic() - started, use))
                    return part
        raise ModelError("The model's reply ended without its end.", remedy="Ask again.")
