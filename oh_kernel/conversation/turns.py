"""What is a turn in a log, and what did the agent answer in it?"""

from collections.abc import Sequence
from typing import Any

from oh_kernel.errors import ConversationError
from oh_kernel.events import ActionEvent, Event, MessageEvent, ObservationEvent
from oh_kernel.tools.finish import FinishAction


def turns_of(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each turn; a turn begins with a message of the user."""
    turns: list[list[Event]] = []
    for event in events:
        if isinstance(event, MessageEvent) and event.source == "user":
            turns.append([])
        if turns:
            turns[-1].append(event)
    return turns


def last_event_of_turn(events: Sequence[Event], number: int) -> Event:
    """The event that ends the turn with this number, counted from 1."""
    turns = turns_of(events)
    if not 0 < number <= len(turns):
        raise ConversationError(
            f"There is no turn {number}: the conversation has {len(turns)}.",
            remedy="Leave the number out to take its end.",
        )
    return turns[number - 1][-1]


def answer_of(events: Sequence[Event]) -> str:
    """The agent's last word: what it finished with, or its last message; "" if there is none."""
    for event in reversed(events):
        match event:
            case ObservationEvent(tool_name="finish"):
                return event.observation.text
            case MessageEvent(source="agent"):
                return event.llm_message.text
    return ""


def structured_output_of(events: Sequence[Event]) -> dict[str, Any] | None:
    """The answer as data, if the agent finished with one."""
    for event in reversed(events):
        if isinstance(event, ActionEvent) and isinstance(event.action, FinishAction):
            return event.action.structured_output
    return None
