"""Which use of a model took how much, and how much of it in this turn?"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from oh_kernel.conversation.metrics import Metrics, ModelCall, recorded_call
from oh_kernel.events import Event, MessageEvent
from oh_kernel.llm.base import Usage


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())


class TokenUsage(_Shape):
    """Tokens of one call, or of all; the names are those of the agent-server API."""

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    context_window: int = 0
    per_turn_token: int = 0
    response_id: str = ""


class Cost(_Shape):
    """US dollars of one call; `timestamp` in seconds since 1970."""

    model: str
    cost: float
    timestamp: float


class ResponseLatency(_Shape):
    """Seconds that one call took."""

    model: str
    latency: float
    response_id: str


class UsageMetrics(_Shape):
    """What one use of a model took so far; `snapshot` is the same without the single calls."""

    model_name: str = "default"
    accumulated_cost: float = 0.0
    max_budget_per_task: float | None = None
    accumulated_token_usage: TokenUsage = TokenUsage()
    costs: tuple[Cost, ...] = ()
    response_latencies: tuple[ResponseLatency, ...] = ()
    token_usages: tuple[TokenUsage, ...] = ()

    @property
    def sums(self) -> Metrics:
        """The same as sums."""
        tokens, calls = self.accumulated_token_usage, len(self.token_usages)
        return Metrics(
            calls=calls,
            prompt_tokens=tokens.prompt_tokens,
            completion_tokens=tokens.completion_tokens,
            cache_read_tokens=tokens.cache_read_tokens,
            cache_write_tokens=tokens.cache_write_tokens,
            reasoning_tokens=tokens.reasoning_tokens,
            cost_usd=self.accumulated_cost,
            unpriced_calls=calls - len(self.costs),
        )

    def snapshot(self) -> dict[str, Any]:
        """As an event of the API holds it."""
        return self.model_dump(exclude={"costs", "response_latencies", "token_usages"})


class ConversationStats(_Shape):
    """What each use of a model took: "agent", "condenser", "title", "critic", ..."""

    usage_to_metrics: dict[str, UsageMetrics] = Field(default_factory=dict)


@dataclass
class Account:
    """What one use took: the sums, and each call with when it was (seconds since 1970)."""

    sums: Metrics = field(default_factory=Metrics)
    calls: list[tuple[ModelCall, float]] = field(default_factory=list)

    def as_metrics(self, budget: float | None) -> UsageMetrics:
        """The account in the API's shape."""
        last = self.calls[-1][0]
        return UsageMetrics(
            model_name=last.model,
            accumulated_cost=self.sums.cost_usd,
            max_budget_per_task=budget,
            accumulated_token_usage=_tokens(last.model, self.sums, last.usage),
            costs=tuple(
                Cost(model=call.model, cost=call.cost_usd, timestamp=at)
                for call, at in self.calls
                if call.cost_usd is not None
            ),
            response_latencies=tuple(
                ResponseLatency(
                    model=call.model, latency=call.latency_s, response_id=call.response_id
                )
                for call, _ in self.calls
            ),
            token_usages=tuple(
                _tokens(call.model, call.usage, call.usage, call.response_id)
                for call, _ in self.calls
            ),
        )


class Accounts:
    """Kept event by event: an account for each use, and the sums of the turn that goes on.

    A turn begins with what the user says while the agent rests. A message to an agent at work
    belongs to the turn it is in, or talking to it would lift its limits.
    """

    def __init__(self) -> None:
        self.by_use: dict[str, Account] = {}
        self.turn = Metrics()

    def add(self, event: Event, *, at_rest: bool) -> None:
        """Take the next event; `at_rest` says whether the agent was at rest then."""
        if at_rest and isinstance(event, MessageEvent) and event.source == "user":
            self.turn = Metrics()
        if (call := recorded_call(event)) is None:
            return
        self.turn = self.turn.plus_call(call)
        account = self.by_use.setdefault(call.use, Account())
        account.sums = account.sums.plus_call(call)
        account.calls.append((call, _seconds(event.timestamp)))

    def stats(self, budget: float | None = None) -> ConversationStats:
        """All accounts; `budget` is the most that a turn may cost."""
        accounts = self.by_use.items()
        return ConversationStats(
            usage_to_metrics={use: one.as_metrics(budget) for use, one in accounts}
        )


def _tokens(model: str, of: Metrics | Usage, last: Usage, response_id: str = "") -> TokenUsage:
    return TokenUsage(
        model=model,
        prompt_tokens=of.prompt_tokens,
        completion_tokens=of.completion_tokens,
        cache_read_tokens=of.cache_read_tokens,
        cache_write_tokens=of.cache_write_tokens,
        reasoning_tokens=of.reasoning_tokens,
        per_turn_token=last.prompt_tokens + last.completion_tokens,
        response_id=response_id,
    )


def _seconds(timestamp: str) -> float:
    """0 for a timestamp of another product that cannot be read."""
    try:
        return datetime.fromisoformat(timestamp).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
