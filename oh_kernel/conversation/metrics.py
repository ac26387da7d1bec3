"""What did the model calls of a conversation use and cost? Computed from the log."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from oh_kernel.events import Event, LLMCompletionLogEvent
from oh_kernel.llm.base import Completion, Usage


@dataclass(frozen=True)
class ModelCall:
    """One model call as the log has it. `cost_usd` is None where the price is not known."""

    use: str
    model: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    response_id: str = ""
    latency_s: float = 0.0

    @property
    def is_step(self) -> bool:
        """Whether the agent was asked what to do next, and not a model something beside that."""
        return self.use in ("agent", "default")


@dataclass(frozen=True)
class Metrics:
    """Sums over model calls. Tokens as the provider counted them; `cost_usd` in US dollars.

    `steps` counts the calls that were steps of the agent. `unpriced_calls` counts the calls of
    models whose price is unknown; they are not in the cost.
    """

    calls: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def cost_in_words(self) -> str:
        """The cost for a person, who is told when a price is not known."""
        if self.calls and self.unpriced_calls == self.calls:
            return "cost unknown"
        known = f"${self.cost_usd:.4f}"
        return f"at least {known}" if self.unpriced_calls else known

    def plus(self, event: Event) -> "Metrics":
        """These metrics with the model call that `event` records, if it records one."""
        call = recorded_call(event)
        return self if call is None else self.plus_call(call)

    def plus_call(self, call: ModelCall) -> "Metrics":
        """These metrics with one more call."""
        usage = call.usage
        return replace(
            self,
            calls=self.calls + 1,
            steps=self.steps + call.is_step,
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            cache_read_tokens=self.cache_read_tokens + usage.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + usage.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + usage.reasoning_tokens,
            cost_usd=self.cost_usd + (call.cost_usd or 0.0),
            unpriced_calls=self.unpriced_calls + (call.cost_usd is None),
        )


def metrics_of(events: Iterable[Event]) -> Metrics:
    """The sums over `events`."""
    total = Metrics()
    for event in events:
        total = total.plus(event)
    return total


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def recorded_call(event: Event) -> ModelCall | None:
    """The model call that `event` records; one without numbers in the log of another product."""
    if not isinstance(event, LLMCompletionLogEvent):
        return None
    try:
        record = json.loads(event.log_data)
        cost = record.get("cost_usd")
        return ModelCall(
            event.usage_id,
            event.model_name,
            Usage(**{name: int(record.get(name, 0)) for name in _COUNTS}),
            None if cost is None else float(cost),
            str(record.get("response_id", "")),
            float(record.get("latency_s", 0.0)),
        )
    except (ValueError, AttributeError, TypeError):
        return ModelCall(event.usage_id, event.model_name)


def usage_event(completion: Completion, latency_s: float, use: str) -> LLMCompletionLogEvent:
    """The record of one model call for `use`, as `recorded_call` reads it."""
    usage = completion.usage
    record = {
        "response_id": completion.response_id,
        "finish_reason": completion.finish_reason,
        "latency_s": round(latency_s, 3),
        **{name: getattr(usage, name) for name in _COUNTS},
        "cost_usd": completion.cost_usd,
    }
    return LLMCompletionLogEvent(
        filename=f"{completion.response_id}.json",
        log_data=json.dumps({k: v for k, v in record.items() if v is not None}),
        model_name=completion.model,
        usage_id=use,
    )
