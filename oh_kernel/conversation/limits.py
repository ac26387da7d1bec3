"""May the model be asked once more, for what a turn and a conversation are allowed to take?

The next call is taken at its worst: the whole prompt at the full price, and a long reply. What it
takes in the end is known only afterwards, so a limit is passed by less than one call, if at all.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.models import AGENT
from oh_kernel.conversation.request_size import next_request_tokens
from oh_kernel.conversation.state import Status
from oh_kernel.errors import LimitReached, MaxBudgetReached, MaxTokensReached, PriceUnknown
from oh_kernel.events import ConversationErrorEvent, Message
from oh_kernel.llm.base import LLM, ToolSpec, Usage
from oh_kernel.llm.priced import worst_cost
from oh_kernel.llm.tokens import estimated_tokens
from oh_kernel.settings import Settings

MAX_REPLY_TOKENS = 4_096
"""How long a reply is taken to be at most. Few are longer, and those that think a lot."""

MORE_MONEY = (
    "A new message begins with a new budget; allow more with --budget 1.00, or for the whole "
    "conversation with conversation_budget."
)
MORE_TOKENS = (
    "A new message begins to count anew; allow more with --max-tokens, or for the whole "
    "conversation with conversation_max_tokens."
)
SET_A_PRICE = (
    "Say what a million tokens cost, in and out, as in --price 0.15/0.60, or limit the tokens "
    "instead, as in --max-tokens 200000."
)


@dataclass(frozen=True)
class _Limit:
    """An option that limits something, and what has been used so far."""

    option: str
    most: float
    used: Metrics

    @property
    def where(self) -> str:
        """What a person is told beside the amount, if it is not this turn's."""
        if not self.option.startswith("conversation_"):
            return ""
        return f" This is the limit for the whole conversation ({self.option})."


class Limits:
    """Says no before a call that could pass a limit. Used on the agent thread.

    Every call is checked, whatever its use; the settings may change from turn to turn.
    """

    def __init__(
        self,
        log: ConversationLog,
        model_for: Callable[[str], LLM],
        settings: Callable[[], Settings],
    ) -> None:
        self._log = log
        self._model_for = model_for
        self._settings = settings

    async def check(self, use: str, prompt_tokens: Callable[[], int]) -> None:
        """Raise MaxBudgetReached, MaxTokensReached or PriceUnknown unless the call may be made."""
        money, tokens = list(self._of("budget")), list(self._of("max_tokens"))
        if not money and not tokens:
            return
        worst = Usage(prompt_tokens(), MAX_REPLY_TOKENS)
        for limit in tokens:
            _check_tokens(limit, worst.prompt_tokens + worst.completion_tokens)
        if money:
            cost = await self._worst_cost(use, worst, money[0])
            for limit in money:
                _check_money(limit, cost)

    async def check_aside(
        self, use: str, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> None:
        """`check` for a question beside the run."""
        await self.check(use, lambda: estimated_tokens(messages, tools))

    def _of(self, name: str) -> Iterator[_Limit]:
        """The limits on `name` that are set, the turn's first."""
        settings, turn = self._settings(), self._log.accounts.turn
        both = ((name, turn), (f"conversation_{name}", self._log.metrics))
        for option, used in both:
            if (most := getattr(settings, option)) is not None:
                yield _Limit(option, most, used)

    async def _worst_cost(self, use: str, worst: Usage, limit: _Limit) -> float:
        """At most so many US dollars; the list of prices is read on a thread of its own."""
        model, price = self._model_for(use), self._settings().for_use(use).price
        cost = await asyncio.to_thread(worst_cost, model, worst, price)
        if cost is None:
            raise PriceUnknown(
                f"{limit.option} is {limit.most:g} US dollars, but the price of {model.model} is "
                "not known.",
                remedy=SET_A_PRICE,
            )
        return cost


class LimitsOfRun(Attendant):
    """Ends a run before a step that could pass a limit."""

    def __init__(self, limits: Limits, log: ConversationLog, tools: Sequence[ToolSpec]) -> None:
        self._limits = limits
        self._log = log
        self._tools = tools

    async def before_step(self) -> Status | None:
        """Look at the limits; the reason is stored when one ends the run."""
        try:
            await self._limits.check(AGENT, lambda: next_request_tokens(self._log, self._tools))
        except LimitReached as reached:
            code = type(reached).__name__
            await self._log.append(
                ConversationErrorEvent(source="environment", code=code, detail=reached.message)
            )
            return Status.ERROR
        return None


def _check_tokens(limit: _Limit, worst: int) -> None:
    used = limit.used.tokens
    if used + worst <= limit.most:
        return
    text = f"Agent reached maximum token limit ({limit.most:,.0f}); used {used:,} tokens."
    if used < limit.most:
        text += f" The next call could take {worst:,} more."
    raise MaxTokensReached(text + limit.where, remedy=MORE_TOKENS)


def _check_money(limit: _Limit, worst: float) -> None:
    used = limit.used
    if used.unpriced_calls:
        calls = "1 call" if used.unpriced_calls == 1 else f"{used.unpriced_calls} calls"
        raise PriceUnknown(
            f"{limit.option} is {limit.most:g} US dollars, but {calls} so far had no known price.",
            remedy=SET_A_PRICE + " It counts from a new message or conversation on.",
        )
    if used.cost_usd + worst <= limit.most:
        return
    text = f"Agent reached maximum budget limit (${limit.most:.4f}); "
    text += f"accumulated cost ${used.cost_usd:.4f}."
    if used.cost_usd < limit.most:
        text += f" The next call could cost ${worst:.4f}, which would pass it."
    raise MaxBudgetReached(text + limit.where, remedy=MORE_MONEY)
