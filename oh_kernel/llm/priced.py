"""Which price has a model that no price list knows?"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, Delta, ToolSpec, Usage
from oh_kernel.llm.pricing import Price, listed_cost
from oh_kernel.llm.wrapped import WrappedLLM


class PricedLLM(WrappedLLM):
    """Puts a price on the replies of `inner` that came without one."""

    def __init__(self, inner: LLM, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """What `inner` says, and what it cost."""
        async with aclosing(self._inner.stream(messages, tools)) as parts:
            async for part in parts:
                if isinstance(part, Completion) and part.cost_usd is None:
                    part = replace(part, cost_usd=self._price.of(part.usage))
                yield part


def priced(model: LLM, price: str | None) -> LLM:
    """`model`, with a price where one was given."""
    return PricedLLM(model, Price.parse(price)) if price else model


def worst_cost(model: LLM, usage: Usage, price: str | None) -> float | None:
    """US dollars that a call with `usage` costs at most, whichever model of a list of fallbacks
    answers; None when that is not known.
    """
    names: Sequence[str] = getattr(model, "models", (model.model,))
    given = Price.parse(price).of(usage) if price else None
    costs = [listed_cost(name, usage) for name in names]
    known = [given if cost is None else cost for cost in costs]
    return None if None in known else max(cost for cost in known if cost is not None)
