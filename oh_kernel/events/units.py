"""Which events of a history belong together, and so are kept or forgotten together?

A reply's calls and their results; with a model that signs its thinking, all steps from the first
thought to the end of the turn, since providers refuse half of such a chain; and everything from an
open call on, which still has to be answered.
"""

from collections.abc import Container, Sequence
from itertools import pairwise

from oh_kernel.events.base import Event
from oh_kernel.events.kinds import (
    ActionEvent,
    CondensationSummaryEvent,
    MessageEvent,
    ToolResultEvent,
)


def cuts(events: Sequence[Event]) -> list[int]:
    """The places, counted from 0 to `len(events)`, where a history may be cut in two.

    `events` are those that a model is shown, in their order.
    """
    reach = _reach(events)
    found, furthest = [], -1
    for place in range(len(events) + 1):
        if place > furthest:
            found.append(place)
        if place < len(events):
            furthest = max(furthest, reach[place])
    return found


def broken_calls(events: Sequence[Event], forgotten: Container[str]) -> set[str]:
    """Ids of the calls and results whose unit would lose only a part when `forgotten` are."""
    edges = [*cuts(events), len(events)]  # an open reply ends in no cut
    broken: set[str] = set()
    for start, end in pairwise(edges):
        ids = [e.id for e in events[start:end] if isinstance(e, ActionEvent | ToolResultEvent)]
        if any(id_ in forgotten for id_ in ids):
            broken.update(id_ for id_ in ids if id_ not in forgotten)
    return broken


def open_reply(events: Sequence[Event]) -> set[str]:
    """Ids of the calls, and of their results so far, of the last reply while one has no result."""
    reply: list[ActionEvent] = []
    results: list[ToolResultEvent] = []
    for event in reversed(events):
        if isinstance(event, ToolResultEvent):
            results.append(event)
        elif isinstance(event, ActionEvent):
            if reply and event.llm_response_id != reply[0].llm_response_id:
                break
            reply.append(event)
    wanted = {call.tool_call_id for call in reply}
    given = [result for result in results if result.tool_call_id in wanted]
    if len({result.tool_call_id for result in given}) == len(wanted):
        return set()
    return {event.id for event in (*reply, *given)}


def _reach(events: Sequence[Event]) -> list[int]:
    """For each event the last one that belongs with it; itself, if none does."""
    reach = list(range(len(events)))
    answered = {e.tool_call_id: i for i, e in enumerate(events) if isinstance(e, ToolResultEvent)}
    still_open = open_reply(events)
    first_of_reply: dict[str, int] = {}
    chain: int | None = None  # where the thinking of this turn began
    for place, event in enumerate(events):
        if isinstance(event, ActionEvent):
            first = first_of_reply.setdefault(event.llm_response_id, place)
            if chain is None and event.thinking_blocks:
                chain = place
            end = len(events) if event.id in still_open else answered.get(event.tool_call_id, place)
            for start in (first, first if chain is None else chain):
                reach[start] = max(reach[start], end, place)
        elif _ends_chain(event):
            chain = None
    return reach


def _ends_chain(event: Event) -> bool:
    """What the environment says amid the steps goes to the model together with a result."""
    if isinstance(event, MessageEvent):
        return event.source != "environment"
    return isinstance(event, CondensationSummaryEvent)
