"""Did a model write a call as text, though it was told of its tools in the proper way?

Some servers do not recognise what their model was trained to write, and hand it on as its answer.
A text is taken for a call only when it names a tool that there is, is complete, and ends the reply.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from oh_kernel.events.text import parsed_json
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.converted import grammar as grammar
from oh_kernel.llm.converted.reading import Call, Reading
from oh_kernel.llm.converted.screen import Opening

_NAMES = ("name", "function", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_FENCE = r"```(?:json|tool_calls?|tool_code)?\s*(?=[\[{])"

OPENING = Opening(
    re.compile(
        rf"{grammar.OPENING.surely.pattern}|\[TOOL_CALLS\]|<\|python_tag\|>"
        rf'|{_FENCE}\[?\s*\{{\s*"(?:type|{"|".join(_NAMES + _ARGUMENTS)})"'
        r'|\A\s*\{\s*"(?:type|name|function|tool)"'
    ),
    re.compile(
        r"(?:<[^<>\n]{0,100}|\[[A-Z_]{0,10}|(?:`{1,3}|```\w*\s*)(?:\[?\s*\{?\s*\"?\w{0,10})"
        r"|\A\s*\{\s*\"?\w{0,10})\Z"
    ),
)

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_ONLY_TAGGED = re.compile(
    r"(?:\s*<tool_call>(?:(?!</tool_call>).)*(?:</tool_call>|\Z))+\s*\Z", re.DOTALL
)
_FENCED = re.compile(rf"{_FENCE}(.*?)\s*```\s*\Z", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*([\w.-]*)\s*(?:\[ARGS\])?\s*(.*)\Z", re.DOTALL)
_PYTHON_TAG = re.compile(r"<\|python_tag\|>\s*(.*?)\s*(?:<\|eo[mt]_id\|>)?\s*\Z", re.DOTALL)
_BARE = re.compile(r"\A\s*(\{.*\})\s*\Z", re.DOTALL)


def claimed(text: str, tools: Sequence[ToolSpec]) -> Reading | None:
    """The calls that `text` ends with, and what was said before them; None where it has none."""
    names = {tool.name for tool in tools}
    for read in (_in_tags, _in_one_of(_FENCED), _of_mistral, _in_one_of(_PYTHON_TAG),
                 _in_one_of(_BARE)):  # fmt: skip
        reading = read(text)
        if reading and reading.calls and all(call.name in names for call in reading.calls):
            return reading
    return _in_grammar(text, tools)


def _in_grammar(text: str, tools: Sequence[ToolSpec]) -> Reading | None:
    """`<function=...>` or `<invoke name=...>`."""
    found = grammar.found(text)
    names = {tool.name for tool in tools}
    if found is None or not all(call.is_closed and call.name in names for call in found.calls):
        return None
    calls = [
        Call(
            call.name,
            json.dumps(
                grammar.arguments_of(call, grammar.schema_of(call.name, tools)),
                ensure_ascii=False,
            ),
        )
        for call in found.calls
    ]
    return Reading(found.before, tuple(calls))


def _in_tags(text: str) -> Reading | None:
    start = text.find("<tool_call>")
    if start < 0 or not _ONLY_TAGGED.match(text, start):
        return None
    calls = [_calls_in(inner) for inner in _TAGGED.findall(text[start:])]
    return _reading(text[:start], calls)


def _in_one_of(form: re.Pattern[str]) -> Callable[[str], Reading | None]:
    def read(text: str) -> Reading | None:
        match = form.search(text)
        return _reading(text[: match.start()], [_calls_in(match[1])]) if match else None

    return read


def _of_mistral(text: str) -> Reading | None:
    """`[TOOL_CALLS] [{...}]`, or one `[TOOL_CALLS]name[ARGS]{...}` behind the other."""
    start = text.find("[TOOL_CALLS]")
    if start < 0:
        return None
    parts = [part for part in re.split(r"(?=\[TOOL_CALLS\])", text[start:]) if part.strip()]
    return _reading(text[:start], [_mistral_part(part) for part in parts])


def _mistral_part(part: str) -> list[Call] | None:
    match = _MISTRAL.match(part)
    if match is None:
        return None
    if not match[1]:
        return _calls_in(match[2])
    arguments = _json(match[2])
    return (
        [Call(match[1], json.dumps(arguments, ensure_ascii=False))]
        if isinstance(arguments, dict)
        else None
    )


def _reading(before: str, groups: Sequence[list[Call] | None]) -> Reading | None:
    """All groups together; None when one of them is not what it looked like."""
    if any(not group for group in groups):
        return None
    return Reading(before, tuple(call for group in groups for call in group or ()))


def _calls_in(text: str) -> list[Call] | None:
    """The call or calls that are written as JSON; None where any is not whole."""
    value = _json(text)
    items = value if isinstance(value, list) else [value]
    calls = [_call_of(item) for item in items]
    return [call for call in calls if call] if calls and all(calls) else None


def _call_of(item: Any) -> Call | None:
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("function"), dict):
        item = item["function"]
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    arguments = next((item[key] for key in _ARGUMENTS if key in item), None)
    if isinstance(arguments, str):
        arguments = _json(arguments)
    if name is None or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def _json(text: str) -> Any:
    """The JSON value that `text` is, raw newlines in strings allowed; None for none."""
    try:
        return parsed_json(text.strip(), strict=False)
    except ValueError:
        return None
