"""What does a call cost, or what could it cost at most?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from oh_kernel.llm.base import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

# Who takes nothing for an answer, beside those whose price is in the list.
_FREE = ("ollama", "local")
# Names of providers where the price list has another one.
LISTED_AS = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "gemini": "google",
    "google-gla": "google",
    "bedrock": "aws",
}


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens in and out."""

    prompt: float
    completion: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the way it is written in the settings.

        >>> Price.parse("0.15/0.60")
        Price(prompt=0.15, completion=0.6)
        """
        prompt, completion = text.split("/")
        return cls(float(prompt), float(completion))

    def of(self, usage: Usage) -> float:
        """What these tokens cost; cached ones are priced like all others."""
        tokens = usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion
        return tokens / 1e6


def listed_cost(model: str, usage: Usage) -> float | None:
    """US dollars for `usage` of `PROVIDER:NAME` by the price list that is installed, or None.

    Cached tokens are priced like all others. The first call reads the list, half a second.
    """
    provider, _, name = model.partition(":")
    if provider in _FREE:
        return 0.0
    from genai_prices import Usage as Amount  # 1.6 MB of prices
    from genai_prices import calc_price

    amount = Amount(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    try:
        found = calc_price(amount, name, provider_id=LISTED_AS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


def usage_of(usage: "RequestUsage") -> Usage:
    """The tokens of a call; the model library counts cached ones into the prompt, as we do."""
    return Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=(usage.details or {}).get("reasoning_tokens", 0),
    )


def cost_of(response: "ModelResponse") -> float | None:
    """US dollars by the price list of genai-prices, or None when it does not know the model."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def total(first: Usage, second: Usage) -> Usage:
    """Both usages together."""
    return Usage(
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        cache_read_tokens=first.cache_read_tokens + second.cache_read_tokens,
        cache_write_tokens=first.cache_write_tokens + second.cache_write_tokens,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
    )
