"""What does a model's reply mean? Each of its tool calls becomes an event, understood or not.

Models garble calls: a raw newline in a string, a list written as text, a name from another
product. What can only mean one thing is mended; the rest is answered with an error that says
what was wrong, so that the model can try again.
"""

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

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

ERROR_CHARS = 1000
QUOTED_CHARS = 800  # of arguments that cannot be read
NAME_CHARS = 100  # of a name that the model made up
NOT_RUN_AFTER_FINISH = "Not run: the call came after finish in the same reply."

# Names that models know from other agents.
_ALIASES = {
    "bash": "terminal",
    "execute_bash": "terminal",
    "shell": "terminal",
    "str_replace_editor": "file_editor",
    "str_replace_based_edit_tool": "file_editor",
    "python": "ipython",
    "execute_ipython_cell": "ipython",
    "run_ipython": "ipython",
    "execute_python": "ipython",
}


class BadCall(Exception):
    """A tool call that cannot be carried out; the text is for the model."""


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
        action, error, risk, summary = None, "", SecurityRisk.UNKNOWN, None
        try:
            if finished:
                raise BadCall(NOT_RUN_AFTER_FINISH)
            tool = _tool_named(call.name, tools)
            action, risk, summary = _understood(call, tool)
            finished = tool.name == "finish"
            name = tool.name
        except BadCall as bad:
            name, error = call.name, str(bad)
        event = _action_event(completion, call, position, action, name, risk, summary)
        calls.append(event)
        if error:
            errors.append(AgentErrorEvent(tool_name=name, tool_call_id=call.id, error=error))
    return [*calls, *errors]


def _action_event(
    completion: Completion,
    call: MessageToolCall,
    position: int,
    action: Action | None,
    name: str,
    risk: SecurityRisk,
    summary: str | None,
) -> ActionEvent:
    message = completion.message
    first = position == 0  # what was thought stands once, with the first call
    thought = [part for part in message.content if isinstance(part, TextContent) and part.text]
    return ActionEvent(
        thought=thought if first else [],
        reasoning_content=message.reasoning_content if first else None,
        thinking_blocks=message.thinking_blocks if first else [],
        responses_reasoning_item=message.responses_reasoning_item if first else None,
        action=action,
        tool_name=name,
        tool_call_id=call.id,
        tool_call=call,
        llm_response_id=completion.response_id,
        security_risk=risk,
        summary=summary,
    )


def _tool_named(name: str, tools: Mapping[str, type[Tool]]) -> type[Tool]:
    tool = tools.get(name) or tools.get(_ALIASES.get(name, ""))
    if tool is None:
        shown = name[:NAME_CHARS]
        raise BadCall(f"Tool '{shown}' not found. Available: {list(tools)}")
    return tool


def _understood(call: MessageToolCall, tool: type[Tool]) -> tuple[Action, SecurityRisk, str | None]:
    arguments = _parsed(call.arguments, tool.name)
    risk = _risk(arguments.pop("security_risk", None))
    has_own_summary = "summary" in tool.action.model_fields
    summary = None if has_own_summary else arguments.pop("summary", None)
    arguments = {
        name: _decoded(value, tool.action.model_fields.get(name))
        for name, value in arguments.items()
        if value is not None
    }
    try:
        action = tool.action.model_validate(arguments)
    except ValidationError as error:
        wrong = f"{_in_words(error)}. Parameters provided: {sorted(arguments)}"
        raise BadCall(f"Error validating tool '{tool.name}': {wrong[:ERROR_CHARS]}") from error
    text = summary if isinstance(summary, str) and summary.strip() else None
    return action, risk, text


def _parsed(raw: str, tool_name: str) -> dict[str, Any]:
    try:
        # Not strict: models leave raw newlines and tabs in strings, which can only mean themselves.
        value = parsed_json(raw, strict=False)
    except ValueError as error:
        quoted = repr(raw[:QUOTED_CHARS])[:QUOTED_CHARS]  # control characters take four each
        raise BadCall(
            f"Error validating tool '{tool_name}': {error}. Arguments: unparseable JSON "
            f"{quoted}. Send the whole call again as one JSON object."
        ) from error
    if not isinstance(value, dict):
        raise BadCall(
            f"Error validating tool '{tool_name}': the arguments are a JSON "
            f"{type(value).__name__}, not an object."
        )
    mended: dict[str, Any] = without_lone_surrogates(value)
    return mended


def _risk(value: object) -> SecurityRisk:
    try:
        return SecurityRisk(str(value).upper())
    except ValueError:
        return SecurityRisk.UNKNOWN


def _decoded(value: Any, field: FieldInfo | None) -> Any:
    """A list or object that was written as JSON text, where the field takes no text."""
    if field is None or not isinstance(value, str):
        return value
    kinds = {get_origin(branch) or branch for branch in _branches(field.annotation)}
    if str in kinds or not kinds & {list, dict}:
        return value
    try:
        return parsed_json(value, strict=False)
    except ValueError:
        return value


def _branches(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _in_words(error: ValidationError) -> str:
    parts = []
    for item in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step)[:NAME_CHARS] for step in item["loc"]) or "arguments"
        parts.append(f"{where}: {item['msg']}")
    return "; ".join(parts)
