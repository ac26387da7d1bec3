"""Events of a turn, written as short as tests need them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from oh_kernel.conversation.state import Status, status_event
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Event,
    Message,
    MessageEvent,
    MessageToolCall,
    ObservationEvent,
    TextContent,
    event_from_json,
)

REFERENCE = Path(__file__).parents[1] / "fixtures" / "reference_conversation" / "events.jsonl"
_numbers = count(1)


def reference_events() -> list[Event]:
    return [event_from_json(line) for line in REFERENCE.read_text().splitlines()]


def user(text: str) -> MessageEvent:
    return MessageEvent(source="user", llm_message=Message.of("user", text))


def answer(text: str) -> MessageEvent:
    return MessageEvent(source="agent", llm_message=Message.of("assistant", text))


def action(tool: str, arguments: dict[str, Any], *, thought: str = "", **more: Any) -> ActionEvent:
    number = next(_numbers)
    stem = "".join(word.capitalize() for word in tool.split("_"))
    return ActionEvent(
        thought=[TextContent(text=thought)] if thought else [],
        action={"kind": f"{stem}Action", **arguments},
        tool_name=tool,
        tool_call_id=f"call_{number}",
        tool_call=MessageToolCall(
            id=f"call_{number}", name=tool, arguments=json.dumps(arguments), origin="completion"
        ),
        **{"llm_response_id": f"reply_{number}", **more},
    )


def observed(call: ActionEvent, text: str, **fields: Any) -> ObservationEvent:
    """The result of the call, at once: however slow the machine, no duration is shown."""
    kind = f"{type_stem(call)}Observation"
    content = [{"type": "text", "text": text}]
    return ObservationEvent(
        observation={"kind": kind, "content": content, **fields},
        action_id=call.id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
        timestamp=call.timestamp,
    )


def failed(call: ActionEvent, error: str) -> AgentErrorEvent:
    return AgentErrorEvent(tool_name=call.tool_name, tool_call_id=call.tool_call_id, error=error)


def type_stem(call: ActionEvent) -> str:
    assert call.action is not None
    return call.action.kind.removesuffix("Action")


def finished() -> Event:
    return status_event(Status.FINISHED)
