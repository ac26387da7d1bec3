"""Which model is asked when the chosen one cannot be reached?"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from oh_kernel.errors import ModelRateLimited, ModelUnavailable
from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, Delta, RetryNotice, ToolSpec


class FallbackLLM:
    """Asks the first of `models`, and the next one where that cannot be reached after its retries.

    Each call begins with the first again. Errors that asking another model would only hide, such as
    a refused key or a request that is too long, are raised.
    """

    def __init__(self, models: Sequence[LLM]) -> None:
        self._models = tuple(models)

    @property
    def model(self) -> str:
        return self._models[0].model

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all, in the order in which they are asked."""
        return tuple(model.model for model in self._models)

    @property
    def takes_images(self) -> bool:
        return all(model.takes_images for model in self._models)

    async def warm_up(self) -> None:
        """Make the first model ready; the others are seldom needed."""
        await self._models[0].warm_up()

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """The reply of the first model that can be reached."""
        last = len(self._models) - 1
        for n, model in enumerate(self._models):
            try:
                async with aclosing(model.stream(messages, tools)) as reply:
                    async for part in reply:
                        yield part
                return
            except (ModelUnavailable, ModelRateLimited) as error:
                if n == last:
                    raise
                reason = f"{error.message} Asking {self._models[n + 1].model} instead"
                yield RetryNotice(attempt=n + 2, max_attempts=last + 1, wait_s=0.0, reason=reason)
