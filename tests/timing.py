"""How long does something take on a machine whose neighbours only ever add to a figure?"""

import math
import time
from collections.abc import Callable

TRIES = 20


def least(figure: Callable[[], float], *, enough: float) -> float:
    """The least figure of some tries; none follow one below `enough`."""
    lowest = math.inf
    for _ in range(TRIES):
        lowest = min(lowest, figure())
        if lowest < enough:
            break
    return lowest


def least_s(work: Callable[[], object], *, enough: float) -> float:
    """The fewest seconds that `work` took in some tries."""

    def seconds() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return least(seconds, enough=enough)
