"""When is a history too long, and which of its events does the model then no longer see?

The first events and the latest ones stay; what lies between is forgotten, in whole units (see
`events/units.py`), and a summary stands in its place. Nothing here asks a model: see `summary.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from oh_kernel.events import CondensationSummaryEvent, Event, SystemPromptEvent
from oh_kernel.events.messages import message_of
from oh_kernel.events.units import cuts, open_reply
from oh_kernel.llm.tokens import message_tokens


class Trigger(Enum):
    """Why a history is condensed. All but the number of events are hard: they must be heeded."""

    REQUEST = "a person asked for it"
    TOKENS = "it is too long for the model"
    EVENTS = "it has many events"


@dataclass(frozen=True)
class Sizes:
    """How long a history may become. The defaults are those of the reference's class."""

    max_size: int = 240
    """Events; more of them are condensed."""
    keep_first: int = 2
    """Events at the start that stay: the system prompt, the first message, perhaps a step."""
    max_tokens: int | None = None
    """Tokens of a request; None: only what the model takes."""
    minimum_progress: float = 0.1
    """The share of the events that must go, or it is not worth a summary."""

    def __post_init__(self) -> None:
        if self.keep_first >= self.max_size // 2 - 1:
            raise ValueError(
                f"keep_first ({self.keep_first}) must be less than half of max_size "
                f"({self.max_size}) minus 1"
            )

    def trigger(self, events: int, tokens: int, model_limit: int | None) -> Trigger | None:
        """Why a history of this many events and tokens is to be condensed now, if it is."""
        limits = [limit for limit in (self.max_tokens, model_limit) if limit]
        if limits and tokens > min(limits):
            return Trigger.TOKENS
        return Trigger.EVENTS if events > self.max_size else None


PRESET = Sizes(max_size=80, keep_first=4)
"""What conversations go by unless told otherwise."""


@dataclass(frozen=True)
class Forgetting:
    """Which events go, and where their summary then stands in what is left."""

    events: tuple[Event, ...]
    offset: int


def forgetting(
    view: Sequence[Event], trigger: Trigger, sizes: Sizes, *, max_tokens: int | None = None
) -> Forgetting | None:
    """What to forget of `view`; None when it is not worth it, or nothing can go.

    `max_tokens` is what the whole may be, where tokens are the trouble; half of it is aimed at.
    """
    found = _middle(view, trigger, sizes, max_tokens)
    if found and len(found.events) >= sizes.minimum_progress * len(view):
        return found
    return None if trigger is Trigger.EVENTS else everything(view)


def everything(view: Sequence[Event]) -> Forgetting | None:
    """All but the system prompt and what is still open; None when only a summary is left."""
    kept = open_reply(view)
    going = [e for e in view if not isinstance(e, SystemPromptEvent) and e.id not in kept]
    if all(isinstance(event, CondensationSummaryEvent) for event in going):
        return None
    return Forgetting(tuple(going), view.index(going[0]))


def _middle(
    view: Sequence[Event], trigger: Trigger, sizes: Sizes, max_tokens: int | None
) -> Forgetting | None:
    """What lies between the first events and the latest ones, from cut to cut."""
    # The latest step stays even where no tail is asked for.
    places = [place for place in cuts(view) if sizes.keep_first <= place < len(view)]
    if not places:
        return None
    start = places[0]
    wanted = len(view) - _tail(view, start, trigger, sizes, max_tokens)
    end = next((place for place in places if place >= wanted), places[-1])
    going = [e for e in view[start:end] if not isinstance(e, SystemPromptEvent)]
    return Forgetting(tuple(going), start) if going else None


def _tail(
    view: Sequence[Event], start: int, trigger: Trigger, sizes: Sizes, max_tokens: int | None
) -> int:
    """How many of the latest events stay: the least that any rule allows."""
    counts = [sizes.max_size // 2 - sizes.keep_first - 1]
    if trigger is Trigger.REQUEST:
        counts.append(len(view) // 2 - sizes.keep_first - 1)
    if max_tokens is not None:
        counts.append(_fitting(view[start:], max_tokens // 2))
    return max(0, min(counts))


def _fitting(events: Sequence[Event], tokens: int) -> int:
    """How many of the latest events are together at most `tokens`."""
    used = 0
    for count, event in enumerate(reversed(events)):
        used += message_tokens(message_of(event))
        if used > tokens:
            return count
    return len(events)
