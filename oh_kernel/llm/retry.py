"""When is a model asked again, and how long do we wait before?"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from oh_kernel.errors import (
    ModelError,
    ModelGaveNoAnswer,
    ModelRateLimited,
    ModelUnavailable,
)
from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, Delta, RetryNotice, ToolSpec
from oh_kernel.llm.pricing import total
from oh_kernel.llm.wrapped import WrappedLLM


@dataclass(frozen=True)
class RetryPolicy:
    """How patient we are. `attempts` counts the retries: 5 make at most 6 requests."""

    attempts: int = 5
    min_wait_s: float = 1.0
    max_wait_s: float = 60.0
    # A provider that asks for more than this is not waited for: its person should decide.
    max_asked_wait_s: float = 300.0
    empty_attempts: int = 3

    def wait_s(self, attempt: int, asked_s: float | None = None) -> float:
        """The pause before retry number `attempt` (from 1).

        It doubles each time; up to a quarter on top keeps many clients from returning at once.
        """
        backoff = min(self.max_wait_s, self.min_wait_s * 2.0 ** (attempt - 1))
        spread = backoff * (1 + random.random() / 4)
        return max(spread, asked_s) if asked_s is not None else spread


class RetryingLLM(WrappedLLM):
    """Asks `inner` until there is an answer, within a `RetryPolicy`.

    Each failure that asking again may mend is told by a `RetryNotice` before the wait. Empty
    replies are failures too; what they cost is added to the answer's usage.
    """

    def __init__(self, inner: LLM, policy: RetryPolicy | None = None) -> None:
        super().__init__(inner)
        self._policy = policy or RetryPolicy()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask, and ask again where that may help."""
        failed, wasted = 0, list[Completion]()
        while True:
            try:
                async with aclosing(self._inner.stream(messages, tools)) as reply:
                    async for item in reply:
                        if not isinstance(item, Completion):
                            yield item
                        elif is_empty(item):
                            wasted.append(item)
                        else:
                            yield _with_waste(item, wasted)
                            return
                notice = self._notice_of_empty(wasted)
            except (ModelRateLimited, ModelUnavailable) as error:
                failed += 1
                notice = self._notice_of(error, failed)
            yield notice
            await asyncio.sleep(notice.wait_s)

    def _notice_of(self, error: ModelError, failed: int) -> RetryNotice:
        """The notice of the next attempt; raises the error when there is to be none."""
        policy = self._policy
        if failed > policy.attempts or (error.retry_after_s or 0) > policy.max_asked_wait_s:
            raise self._final(error, failed) from error
        wait_s = policy.wait_s(failed, error.retry_after_s)
        return RetryNotice(failed + 1, policy.attempts + 1, wait_s, error.message)

    def _final(self, error: ModelError, failed: int) -> ModelError:
        """The error with the number of tries in it, since the person has been waiting for them."""
        asked = error.retry_after_s
        waits = f"; the provider asks to wait {asked:.0f} s" if asked is not None else ""
        tries = "1 request" if failed == 1 else f"{failed} requests"
        final = type(error)(
            f"{error.message.rstrip('.')} (after {tries}{waits}).", remedy=error.remedy
        )
        final.retry_after_s = asked
        return final

    def _notice_of_empty(self, wasted: Sequence[Completion]) -> RetryNotice:
        limit = self._policy.empty_attempts
        if len(wasted) > limit:
            raise ModelGaveNoAnswer(
                f"{self.model} sent nothing but empty replies ({len(wasted)} requests, "
                f"the last one ended with {wasted[-1].finish_reason!r}).",
                remedy="Say it in other words, or choose another model.",
            )
        return RetryNotice(len(wasted) + 1, limit + 1, 0.0, f"{self.model} sent an empty reply.")


def is_empty(completion: Completion) -> bool:
    """Whether a reply holds neither text nor a call: thinking alone is no answer."""
    return not completion.message.text.strip() and not completion.message.tool_calls


def _with_waste(answer: Completion, wasted: Sequence[Completion]) -> Completion:
    """`answer` with the usage and cost of the empty replies before it."""
    for empty in wasted:
        known = answer.cost_usd is not None and empty.cost_usd is not None
        cost = (answer.cost_usd or 0) + (empty.cost_usd or 0) if known else None
        answer = replace(answer, usage=total(answer.usage, empty.usage), cost_usd=cost)
    return answer
