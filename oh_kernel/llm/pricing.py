"""What did a call cost?"""

from typing import TYPE_CHECKING

from oh_kernel.llm.base import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage


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
