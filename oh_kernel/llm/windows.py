"""How many tokens does a model take at most?"""

from functools import lru_cache

from oh_kernel.llm.pricing import LISTED_AS

SHARE = 0.9
"""Of the window that a request may fill: the reply needs room, and tokens are estimated."""


@lru_cache(100)
def input_limit(model: str) -> int | None:
    """How long a request to `PROVIDER:NAME` may be, in tokens; None where that is not known.

    By the list of genai-prices, of which the first call reads more than a megabyte. A server of
    one's own may take less than the model could, which only its refusal tells.
    """
    provider, _, name = model.partition(":")
    from genai_prices import Usage, calc_price  # 1.6 MB of models

    try:
        found = calc_price(Usage(), name, provider_id=LISTED_AS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    window = found.model.context_window
    return int(window * SHARE) if window else None
