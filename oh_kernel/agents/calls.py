"""What does a model's reply mean? Each of its tool calls becomes an event, understood or not.

Models garble calls. What can only mean one thing is mended (`repair.py`), in the log as well; the
rest is answered with an error that says what was wrong, so that the model can try again.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from oh_kernel.agents.repair import first_json, meant_arguments, meant_tool
from oh_kernel.events import (
    Action,
    ActionEvent,
    AgentErrorEvent,
    Event,
    MessageToolCall,
    SecurityRisk,
    TextContent,
)
from oh_kernel.events.text import parsed_json, without_lone_surrogates
from oh_kernel.llm.base import Completion
from oh_kernel.tools.base import Tool
from oh_kernel.tools.patch_grammar import BEGIN

ERROR_CHARS = 1000
QUOTED_CHARS = 800  # of arguments that cannot be read
NAME_CHARS = 100  # of a name that the model made up
CUT_OFF = (
    "Error validating tool '{}': the reply reached its length limit in the middle of this call, so "
    "it was not run. Send it again in smaller parts, one after the other."
)
NOT_RUN_AFTER_FINISH = "Not run: the call came after finish in the same reply."


class BadCall(Exception):
    """A tool call that cannot be carried out; the text is for the model."""


class _Unreadable(BadCall):
    """A call whose arguments are no JSON."""


def events_of_calls(
    completion: Completion,
    tools: Mapping[str, type[Tool]],
    unique_id: Callable[[str], str],
) -> list[Event]:
    """The events of the reply's tool calls: each call's, then an error for each that is not to run.

    `unique_id` gives an id that the conversation has not used yet, the model's own where it can be.
    """
    calls: list[ActionEvent] = []
    errors: list[AgentErrorEvent] = []
    finished = False
    for position, call in enumerate(completion.message.tool_calls or []):
        call = call.model_copy(update={"id": unique_id(call.id)})
        try:
            if finished:
                raise BadCall(NOT_RUN_AFTER_FINISH)
            understood = _understood(call, tools)
            finished = understood.tool == "finish"
        except BadCall as bad:
            understood = _Understood(call, call.name)
            was_cut = isinstance(bad, _Unreadable) and completion.finish_reason == "length"
            error = CUT_OFF.format(call.name[:NAME_CHARS]) if was_cut else str(bad)
            errors.append(AgentErrorEvent(tool_name=call.name, tool_call_id=call.id, error=error))
        calls.append(_action_event(completion, understood, is_first=position == 0))
    return [*calls, *errors]


@dataclass(frozen=True)
class _Understood:
    """What a call means; without an action it could not be understood."""

    call: MessageToolCall
    tool: str
    action: Action | None = None
    risk: SecurityRisk = SecurityRisk.UNKNOWN
    summary: str | None = None


def _action_event(completion: Completion, of: _Understood, *, is_first: bool) -> ActionEvent:
    """The event of one call; what was thought stands once, with the first."""
    message = completion.message
    thought = [part for part in message.content if isinstance(part, TextContent) and part.text]
    return ActionEvent(
        thought=thought if is_first else [],
        reasoning_content=message.reasoning_content if is_first else None,
        thinking_blocks=message.thinking_blocks if is_first else [],
        responses_reasoning_item=message.responses_reasoning_item if is_first else None,
        action=of.action,
        tool_name=of.tool,
        tool_call_id=of.call.id,
        tool_call=of.call,
        llm_response_id=completion.response_id,
        security_risk=of.risk,
        summary=of.summary,
    )


def _understood(call: MessageToolCall, tools: Mapping[str, type[Tool]]) -> _Understood:
    sent = _parsed(call, tools)
    found = meant_tool(call.name, sent, tools)
    if found is None:
        raise BadCall(_not_found(call, tools))
    tool = tools[found[0]]
    schema = tool.arguments()
    arguments = meant_arguments(tool.name, found[1], schema)
    call = _as_meant(call, tool.name, arguments)
    risk = _risk(arguments.pop("security_risk", None))
    has_own_summary = "summary" in schema["properties"]
    summary = None if has_own_summary else arguments.pop("summary", None)
    try:
        action = tool.action_of(arguments)
    except ValueError as error:
        wrong = f"{_in_words(error)}. Parameters provided: {sorted(arguments)}"
        raise BadCall(f"Error validating tool '{tool.name}': {wrong[:ERROR_CHARS]}") from error
    summary = summary if isinstance(summary, str) and summary.strip() else None
    return _Understood(call, tool.name, action, risk, summary)


def _as_meant(call: MessageToolCall, tool: str, arguments: dict[str, Any]) -> MessageToolCall:
    """The call as it is sent back to the model: as it came, unless it had to be mended."""
    try:
        came_so = parsed_json(call.arguments) == arguments
    except ValueError:
        came_so = False
    if came_so and call.name == tool:
        return call
    text = json.dumps(arguments, ensure_ascii=False)
    return call.model_copy(update={"name": tool, "arguments": text})


def _parsed(call: MessageToolCall, tools: Mapping[str, type[Tool]]) -> dict[str, Any]:
    """The arguments as an object."""
    raw = call.arguments.strip() or "{}"  # some send nothing where there are no arguments
    if call.name == "apply_patch" and raw.startswith(BEGIN):
        raw = json.dumps({"patch": raw})  # its text alone, as some models were trained to
    try:
        value = first_json(raw)
        if isinstance(value, str):  # the whole object once more as text
            value = first_json(value)
    except ValueError as error:
        if meant_tool(call.name, {}, tools) is None:
            raise BadCall(_not_found(call, tools)) from error
        quoted = repr(raw[:QUOTED_CHARS])[:QUOTED_CHARS]  # control characters take four each
        raise _Unreadable(
            f"Error validating tool '{call.name[:NAME_CHARS]}': {error}. Arguments: unparseable "
            f"JSON {quoted}. Send the whole call again as one JSON object."
        ) from error
    if not isinstance(value, dict):
        raise BadCall(
            f"Error validating tool '{call.name[:NAME_CHARS]}': the arguments are a JSON "
            f"{type(value).__name__}, not an object."
        )
    mended: dict[str, Any] = without_lone_surrogates(value)
    return mended


def _not_found(call: MessageToolCall, tools: Mapping[str, type[Tool]]) -> str:
    return f"Tool '{call.name[:NAME_CHARS]}' not found. Available: {list(tools)}"


def _risk(value: object) -> SecurityRisk:
    try:
        return SecurityRisk(str(value).upper())
    except ValueError:
        return SecurityRisk.UNKNOWN


def _in_words(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    parts = []
    for item in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step)[:NAME_CHARS] for step in item["loc"]) or "arguments"
        parts.append(f"{where}: {item['msg']}")
    return "; ".join(parts)
