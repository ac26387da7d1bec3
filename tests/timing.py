"""How long does something take on a machine whose neighbours only ever add to a figure?"""

import math
import time
from collections.abc import Callable

TRIES = 20


def least_s(work: Callable[[], object], *, enough: float, tries: int = TRIES) -> float:
    """The fewest seconds that `work` took in some tries; none follow one below `enough`."""
    least = math.inf
    for _ in range(tries):
        started = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - started)
        if least < enough:
            break
    return least
