"""When does a conversation's history get condensed, and who sums up what is forgotten?"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache

from oh_kernel.agents.condenser import PRESET, Forgetting, Sizes, Trigger, everything, forgetting
from oh_kernel.agents.summary import SCALE, summary_request, summary_text
from oh_kernel.conversation.aside import Aside
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.models import Models
from oh_kernel.conversation.request_size import next_request_tokens
from oh_kernel.conversation.state import Status
from oh_kernel.errors import (
    ContentPolicyRefused,
    ContextWindowExceeded,
    ConversationError,
    LimitReached,
    ModelError,
    ModelGaveNoAnswer,
    ModelNotConfigured,
)
from oh_kernel.events import Condensation, CondensationRequest, Event
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.tokens import estimated_tokens
from oh_kernel.llm.windows import SHARE, input_limit
from oh_kernel.settings import Settings
from oh_kernel.tools.base import Tool

logger = logging.getLogger(__name__)

CONDENSER = "condenser"
MAX_CONDENSATIONS = 3
"""For one request of the agent that is too long."""
SMALL_REQUEST_TOKENS = 8_000
"""What every model takes that can be an agent: below it, no list of models is read."""
MAX_SHORTENINGS = 5
"""Of a record that is itself too long for the model that is to sum it up."""
_LEAST_SCALE = 0.01


class Condensing(Attendant):
    """Keeps the history short enough. Used on the agent thread.

    A condensation that fails before a step is left for the next one: the step itself may go well.
    """

    def __init__(
        self,
        log: ConversationLog,
        aside: Aside,
        models: Models,
        settings: Callable[[], Settings],
        tools: Callable[[], Sequence[type[Tool]]],
    ) -> None:
        self._log = log
        self._aside = aside
        self._models = models
        self._settings = settings
        self._tools = tools
        self._condensed = 0  # since the step began

    async def before_step(self) -> Status | None:
        """Condense when it is time to; never ends the run."""
        self._condensed = 0
        if self._settings().condenser == "none":
            return None
        try:
            await self._condense_if_due()
        except (ModelError, LimitReached) as error:
            logger.warning("The history was not condensed: %s", error)
        return None

    async def made_shorter(self, error: ContextWindowExceeded) -> bool:
        """Condense since the provider says that the request is too long: each time by more."""
        if self._settings().condenser == "none" or self._condensed >= MAX_CONDENSATIONS:
            return False
        view, tokens = self._log.view, self._estimate()
        is_first = self._condensed == 0
        found = (
            forgetting(view, Trigger.TOKENS, self._sizes, max_tokens=tokens)
            if is_first
            else everything(view)
        )
        if found is None:
            return False
        self._condensed += 1
        await self._condense(found, room=tokens // 2)
        return True

    async def condense_now(self) -> Condensation:
        """Condense because a person asks for it. Not while the agent runs: see `request`."""
        self._check_has_condenser()
        found = forgetting(self._log.view, Trigger.REQUEST, self._sizes)
        if found is None:
            raise ConversationError(
                "There is nothing to condense yet.", remedy="Do so after some steps."
            )
        await self.request()
        return await self._condense(found, await self._limit())

    async def request(self) -> None:
        """Have the history condensed before the next step."""
        self._check_has_condenser()
        await self._log.append(CondensationRequest())

    @property
    def _specs(self) -> list[ToolSpec]:
        return [_spec(tool) for tool in self._tools()]

    @property
    def _sizes(self) -> Sizes:
        settings = self._settings()
        return Sizes(
            max_size=settings.condense_after_events,
            keep_first=PRESET.keep_first,
            max_tokens=settings.condense_after_tokens,
        )

    async def _condense_if_due(self) -> None:
        view, sizes = self._log.view, self._sizes
        tokens = next_request_tokens(self._log, self._specs)
        limit = await self._limit() if tokens > SMALL_REQUEST_TOKENS else None
        trigger = sizes.trigger(len(view), tokens, limit)
        if self._log.condensation_requested:
            trigger = Trigger.REQUEST
        if trigger is None:
            return
        limits = [each for each in (limit, sizes.max_tokens) if each]
        max_tokens = min(limits) if trigger is Trigger.TOKENS else None
        if found := forgetting(view, trigger, sizes, max_tokens=max_tokens):
            await self._condense(found, limit)

    async def _condense(self, found: Forgetting, room: int | None) -> Condensation:
        words, response_id = "", ""
        if self._settings().condenser == "llm":
            words, response_id = await self._summed_up(found.events, room)
        condensation = Condensation(
            forgotten_event_ids=[event.id for event in found.events],
            summary=summary_text(found.events, words),
            summary_offset=found.offset,
            llm_response_id=response_id,
        )
        await self._log.append(condensation)
        return condensation

    async def _summed_up(self, events: Sequence[Event], room: int | None) -> tuple[str, str]:
        """The model's summary and the id of its reply; "" when it cannot or will not give one."""
        scale = _fitting_scale(events, room) if room else 1.0
        for _ in range(1 + MAX_SHORTENINGS):
            try:
                reply = await self._aside.ask(CONDENSER, summary_request(events, scale))
                return reply.message.text, reply.response_id
            except ContextWindowExceeded:
                scale *= SCALE
            except (ModelGaveNoAnswer, ContentPolicyRefused):
                break
        return "", ""

    async def _limit(self) -> int | None:
        """What the agent's model takes, where that is known; reads a long list the first time."""
        if window := self._models.context_window():
            return int(window * SHARE)
        try:
            model = self._models.for_use().model
        except ModelNotConfigured:
            return None
        return await asyncio.to_thread(input_limit, model)

    def _estimate(self) -> int:
        return estimated_tokens(self._log.messages(), self._specs)

    def _check_has_condenser(self) -> None:
        if self._settings().condenser == "none":
            raise ConversationError(
                "This conversation has no condenser.",
                remedy="Choose one: condenser=llm, or condenser=recent.",
            )


@lru_cache(256)
def _spec(tool: type[Tool]) -> ToolSpec:
    """Made once: it takes half a millisecond, and is looked at before every step."""
    return tool.spec()


def _fitting_scale(events: Sequence[Event], room: int) -> float:
    """By how much to shorten each text so that the record is about `room` tokens."""
    scale = 1.0
    while scale > _LEAST_SCALE and estimated_tokens(summary_request(events, scale)) > room:
        scale *= SCALE
    return scale
