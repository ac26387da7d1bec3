"""Whatever is done to a conversation, at whatever moment: nothing is lost, nothing is done twice.

A story (story.py) is a random plan of what a person does with a conversation that lives in a
process of its own, which is killed now and then, and of what its model answers over HTTP. After
each deed all of it is checked (story_checks.py) against what the test knows.
"""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.experiments import LONG, count, measured
from tests.live.story import play
from tests.live.story_plan import Plan, plan_of, shorter_than
from tests.live.story_process import Nursery

AT_ONCE = 4  # most of the time they wait, for shells and for each other
SHORTENING_S = 120.0
TRIES = 2  # what goes wrong by chance of time may go well the next time


@pytest.mark.repeated
@pytest.mark.timeout(2400)
def test_no_story_goes_wrong() -> None:
    stories = count(20, long=1_000)
    first = random.SystemRandom().randrange(10**9) if LONG else 0
    print(f"stories {first} to {first + stories - 1}")
    seeds = range(first, first + stories)
    with (
        measured("conversations driven at random, with kills", stories=stories, first_seed=first),
        Nursery() as nursery,
    ):
        failures = _failures(seeds, nursery)
        if failures:
            pytest.fail(_told(failures, nursery))


def _failures(seeds: range, nursery: Nursery) -> dict[int, str]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = pool.map(lambda seed: _failure(plan_of(seed), nursery), seeds)
        return {seed: text for seed, text in zip(seeds, outcomes, strict=True) if text}


def _failure(plan: Plan, nursery: Nursery) -> str:
    """What went wrong in this story; "" if all went well."""
    try:
        play(plan, nursery)
    except AssertionError as error:
        return str(error)
    return ""


def _told(failures: dict[int, str], nursery: Nursery) -> str:
    """The failures, the first of them cut down as far as it still goes wrong."""
    seed = next(iter(failures))

    def goes_wrong(plan: Plan) -> str:
        return next((t for _ in range(TRIES) if (t := _failure(plan, nursery))), "")

    shortest = shortened(plan_of(seed), goes_wrong, SHORTENING_S) or failures[seed]
    return (
        f"{len(failures)} stories went wrong: {sorted(failures)}. To play one again: "
        f"python -m tests.live.story {seed}\n{failures[seed]}\n\nCut down:\n{shortest}"
    )


def shortened(plan: Plan, goes_wrong: Callable[[Plan], str], seconds: float) -> str:
    """What goes wrong in the shortest story like `plan` that was found; "" if nothing did."""
    deadline, found = time.monotonic() + seconds, ""
    candidates = shorter_than(plan)
    for shorter in candidates:
        if time.monotonic() > deadline:
            return found
        if text := goes_wrong(shorter):
            return shortened(shorter, goes_wrong, deadline - time.monotonic()) or text
    return found
