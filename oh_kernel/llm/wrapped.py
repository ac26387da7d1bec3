"""What do models have in common that stand in front of another model?"""

from oh_kernel.llm.base import LLM


class WrappedLLM:
    """Passes on everything but `stream` to `inner`."""

    def __init__(self, inner: LLM) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def takes_images(self) -> bool:
        return self._inner.takes_images

    async def warm_up(self) -> None:
        """Have the first request start without delay."""
        await self._inner.warm_up()

    async def aclose(self) -> None:
        await self._inner.aclose()
