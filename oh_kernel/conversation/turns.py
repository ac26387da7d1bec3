"""What is a turn in a log, and what did the agent answer in it?"""

from collections.abc import Sequence

from oh_kernel.events import Event, MessageEvent, ObservationEvent


def turns_of(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each turn; a turn begins with a message of the user."""
    turns: list[list[Event]] = []
    for event in events:
        if isinstance(event, MessageEvent) and event.source == "user":
            turns.append([])
        if turns:
            turns[-1].append(event)
    return turns


def answer_of(events: Sequence[Event]) -> str:
    """The agent's last word: what it finished with, or its last message; "" if there is none."""
    for event in reversed(events):
        match event:
            case ObservationEvent(tool_name="finish"):
                return event.observation.text
            case MessageEvent(source="agent"):
                return event.llm_message.text
    return ""
