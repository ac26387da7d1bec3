"""What is a model told of its tools where no other way than its prompt is left?"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.converted.grammar import Grammar, written

RESULT = "EXECUTION RESULT of [{}]:"

_HOW = """\
# Calling tools
Your tools are called by text in your reply, in exactly this form:

{form}

- What you think or tell the user stands before the calls. Several calls may follow each other; \
your reply ends with the last of them.
- A value is written as it is: nothing is escaped, line breaks and indentation count. Lists, \
objects, numbers, true and false are JSON.
- The results come in the next message, each under `{result}`. Never write one yourself.
- A reply without a call ends your turn."""

_EXAMPLE = """\
An example of a call and its result (not part of this conversation):

{call}

{result}
{answer}"""

_CODE = """\
# Acting by code
You act by writing code. Of the tools named above you have these alone:

{languages}

- What you think or tell the user stands before the block. One block a reply: your reply ends with \
it, and what stands behind it is lost.
- What it printed comes in the next message, under `{result}`. Never write that yourself.
- Code that holds three backticks at the beginning of a line goes between four.
- Code that is only to be shown, not run, stands in a block marked ```text.
- A reply without such a block ends your turn: it is your answer to the user."""

_LANGUAGE = {
    "ipython": "A block marked ```python runs in the user's notebook (tool ipython).",
    "terminal": "A block marked ```bash runs in the shell (tool terminal).",
}


def about_tools(tools: Sequence[ToolSpec], grammar: Grammar, *, with_example: bool) -> str:
    """The part of the system prompt that stands in for the tools themselves."""
    form = written(grammar, "TOOL", {"NAME": "VALUE"}, {})
    parts = [_HOW.format(form=form, result=RESULT.format("TOOL"))]
    if with_example and (example := _example(tools, grammar)):
        parts.append(example)
    parts += ["# The tools", *("\n".join(_described(tool)) for tool in tools)]
    return "\n\n".join(parts)


def about_code(tools: Sequence[ToolSpec]) -> str:
    """The same for code blocks; "" without a tool that runs any."""
    names = [tool.name for tool in tools if tool.name in _LANGUAGE]
    if not names:
        return ""
    languages = "\n".join(f"- {_LANGUAGE[name]}" for name in names)
    result = RESULT.format(names[0])
    return _CODE.format(languages=languages, result=result)


def _example(tools: Sequence[ToolSpec], grammar: Grammar) -> str:
    """A call that a model of these tools will need; "" where none is so plain."""
    names = {tool.name for tool in tools}
    if "terminal" in names:
        name, arguments, answer = "terminal", {"command": "ls\nwc -l *.csv"}, "a.csv\n12 a.csv"
    elif "ipython" in names:
        name, arguments, answer = "ipython", {"code": "x = 6 * 7\nprint(x)"}, "42"
    else:
        return ""
    call = written(grammar, name, arguments, {})
    return _EXAMPLE.format(call=call, result=RESULT.format(name), answer=answer)


def _described(tool: ToolSpec) -> Iterator[str]:
    yield f"## {tool.name}"
    yield tool.description
    required = tool.parameters.get("required", ())
    fields = tool.parameters.get("properties", {})
    yield "Parameters:" if fields else "It takes no parameters."
    for name, schema in fields.items():
        yield _parameter(name, schema, is_required=name in required)


def _parameter(name: str, schema: dict[str, Any], *, is_required: bool) -> str:
    kind = schema.get("type", "any")
    need = "required" if is_required else "optional"
    line = f"- {name} ({kind}, {need}): {schema.get('description', '')}".rstrip(": ")
    if choices := schema.get("enum"):
        line += f" One of: {', '.join(map(str, choices))}."
    inner = {key: schema[key] for key in ("items", "properties") if key in schema}
    return f"{line} JSON schema: {json.dumps(inner, ensure_ascii=False)}" if inner else line
