"""How is a call of a tool written as plain text, and read again?

Two grammars, one parser that reads both, whichever of them a model was shown:

    <call name="terminal">              <function=terminal>
    <parameter name="command">          <parameter=command>
    ls -l                               ls -l
    </parameter>                        </parameter>
    </call>                             </function>

A parameter that is a text stands as it is, any other as JSON. One newline behind the opening tag
and one before the closing tag do not belong to the value. A value ends at the first closing tag
behind which the call goes on or ends, so that most texts with tags in them are read whole; for the
rest, and for whatever we write ourselves, there is an end word: `<parameter name="a" end="E1">` is
closed by `</parameter E1>` alone.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oh_kernel.events.text import parsed_json
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.converted.screen import Opening

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Grammar:
    """The words of one way to write calls; `{}` is the place of a name."""

    call: str
    call_end: str
    parameter: str
    parameter_until: str  # with an end word


OURS = Grammar(
    '<call name="{}">', "</call>", '<parameter name="{}">', '<parameter name="{}" end="{}">'
)
FUNCTION = Grammar("<function={}>", "</function>", "<parameter={}>", "<parameter={} end={}>")

_NAME = r"""["']?(?P<{}>[^\s"'<>=/]+)["']?"""
# In backticks, a tag is spoken about.
_CALL = re.compile(
    rf"(?<!`)<(?:function\s*=\s*{_NAME.format('function')}"
    rf"|(?:call|invoke)\s+name\s*=\s*{_NAME.format('call')})\s*/?>"
)
_CALL_END = re.compile(r"</(?:function|call|invoke)\b\s*>?")
_PARAMETER = re.compile(
    rf"<parameter(?:\s*=\s*|\s+name\s*=\s*){_NAME.format('name')}"
    rf"(?:\s+end\s*=\s*{_NAME.format('word')})?\s*>"
)
_PARAMETER_END = re.compile(r"</parameter\s*>")
_GOES_ON = re.compile(r"\s*(?:<parameter\b|</(?:function|call|invoke)\b|\Z)")
# Some models put their calls into one more pair of tags.
_WRAPPERS = re.compile(r"(?:\s*</?(?:tool_calls?|function_calls)>)*\s*")
_WRAPPER_AT_END = re.compile(r"(?:<(?:tool_calls?|function_calls)>\s*)+\Z")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*\Z", re.DOTALL)
_TAG_IN_VALUE = re.compile(r"</?(?:parameter|function|call|invoke)\b|\s*<!\[CDATA\[")

OPENING = Opening(
    re.compile(rf"{_CALL.pattern}|<(?:tool_calls?|function_calls)>"),
    re.compile(r"<[^<>\n]{0,100}\Z"),
)


@dataclass
class Written:
    """A call as it was found; `body` is the text outside of parameters."""

    name: str
    values: dict[str, str] = field(default_factory=dict)
    literal: set[str] = field(default_factory=set)  # those that an end word closed
    body: str = ""
    is_closed: bool = False


@dataclass(frozen=True)
class Found:
    """What a reply consists of. Whatever stands behind the calls is left out."""

    before: str
    calls: tuple[Written, ...]


def written(grammar: Grammar, name: str, arguments: Schema, schema: Schema) -> str:
    """The call as text, which `found` and `arguments_of` read back as the same."""
    lines = [grammar.call.format(name)]
    for key, value in arguments.items():
        text = _value_as_text(value, _type_of(key, schema))
        if text is not None:
            lines.append(_parameter(grammar, key, text))
    return "\n".join([*lines, grammar.call_end])


def found(text: str) -> Found | None:
    """The calls in a reply, one directly behind the other, and what was said before them."""
    first = _CALL.search(text)
    if first is None:
        return None
    calls: list[Written] = []
    opening: re.Match[str] | None = first
    while opening is not None:
        call, end = _read_call(text, opening)
        calls.append(call)
        opening = _CALL.match(text, _end_of(_WRAPPERS, text, end))
    return Found(_WRAPPER_AT_END.sub("", text[: first.start()]), tuple(calls))


def arguments_of(call: Written, schema: Schema) -> dict[str, Any]:
    """The arguments of a call with the types that `schema` gives them, where they can be read so.

    Without any parameter, the text in the call is its JSON, or its one required text.
    """
    if call.values or not call.body.strip():
        return {
            key: _typed(value, _type_of(key, schema), is_literal=key in call.literal)
            for key, value in call.values.items()
        }
    body = _unframed(call.body)
    try:
        parsed = parsed_json(body.strip())
    except ValueError:
        parsed = None
    required = list(schema.get("required", ()))
    if isinstance(parsed, dict):
        return parsed
    if len(required) == 1 and _type_of(required[0], schema) == "string":
        return {required[0]: body}
    return {}


def schema_of(name: str, tools: Sequence[ToolSpec]) -> Schema:
    """The parameters of the tool `name`; nothing is known of one that is not there."""
    return next((tool.parameters for tool in tools if tool.name == name), {})


def _parameter(grammar: Grammar, key: str, text: str) -> str:
    framed = f"\n{text}\n" if "\n" in text else text
    if not _TAG_IN_VALUE.search(text):
        return f"{grammar.parameter.format(key)}{framed}</parameter>"
    word = next(word for word in _words() if word not in text)
    return f"{grammar.parameter_until.format(key, word)}\n{text}\n</parameter {word}>"


def _words() -> Iterator[str]:
    number = 1
    while True:
        yield f"E{number}"
        number += 1


def _read_call(text: str, opening: re.Match[str]) -> tuple[Written, int]:
    """The call that `opening` begins, and where it ends."""
    call = Written(opening["function"] or opening["call"])
    position = opening.end()
    if opening.group().endswith("/>"):
        call.is_closed = True
        return call, position
    while True:
        parameter = _PARAMETER.search(text, position)
        end = _CALL_END.search(text, position)
        following = _CALL.search(text, position)
        step = _nearest(parameter, end, following)
        call.body += text[position : step.start() if step else len(text)]
        if step is None:
            return call, len(text)
        if step is not parameter:
            call.is_closed = True
            return call, step.end() if step is end else step.start()
        position = _read_value(call, text, step)
        if position > len(text):  # the value was never closed
            return call, len(text)


def _nearest(*matches: re.Match[str] | None) -> re.Match[str] | None:
    return min((m for m in matches if m), key=lambda m: m.start(), default=None)


def _read_value(call: Written, text: str, opening: re.Match[str]) -> int:
    """Keep the value of a parameter; where the text goes on, behind its end if it has none."""
    key, word, start = opening["name"], opening["word"], opening.end()
    closing = (
        re.compile(rf"</parameter\s+{re.escape(word)}\s*>").search(text, start) if word else None
    )
    if closing is not None:
        call.literal.add(key)
        call.values[key] = text[start : closing.start()]
        return closing.end()
    for closing in _PARAMETER_END.finditer(text, start):
        if _GOES_ON.match(text, closing.end()):
            call.values[key] = text[start : closing.start()]
            return closing.end()
    end = _CALL_END.search(text, start)  # the closing tag was forgotten
    call.values[key] = text[start : end.start() if end else len(text)]
    return end.start() if end else len(text) + 1


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _type_of(key: str, schema: Schema) -> str:
    """The type of a parameter; "" where it is not one alone."""
    known = schema.get("properties", {}).get(key, {})
    kind = known.get("type", "") if isinstance(known, Mapping) else ""
    return kind if isinstance(kind, str) else ""


def _value_as_text(value: Any, kind: str) -> str | None:
    """What stands between the tags; None leaves the parameter out."""
    if value is None and kind == "string":
        return None
    if isinstance(value, str) and (kind == "string" or not _is_json(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        parsed_json(text.strip())
    except ValueError:
        return False
    return True


def _typed(value: str, kind: str, *, is_literal: bool) -> Any:
    text = _without_frame(value) if is_literal else _unframed(value)
    if kind == "string":
        return text
    try:
        return parsed_json(text.strip())
    except ValueError:
        return text


def _unframed(value: str) -> str:
    cdata = _CDATA.match(value)
    return cdata[1] if cdata else _without_frame(value)


def _without_frame(value: str) -> str:
    """Without the newline behind the opening tag and the one before the closing tag."""
    value = value.removeprefix("\n")
    return value.removesuffix("\n")
