"""Calls of tools in the text of a reply: written, read, streamed, and told to the model."""

import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.events import Message, MessageToolCall
from oh_kernel.llm.base import (
    Completion,
    Delta,
    ModelNotice,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
)
from oh_kernel.llm.converted.claims import claimed
from oh_kernel.llm.converted.fences import block_of, first_block
from oh_kernel.llm.converted.grammar import FUNCTION, OURS, Grammar, arguments_of, found, written
from oh_kernel.llm.converted.llm import ConvertedLLM
from oh_kernel.llm.converted.watch import PATIENCE, WatchedLLM
from oh_kernel.llm.converted.ways import CodeBlocks, Tags, Way
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.loop import run_blocking
from tests.conversations import call, calls, say

GRAMMARS = pytest.mark.parametrize("grammar", [OURS, FUNCTION], ids=["ours", "function"])
TERMINAL = ToolSpec(
    "terminal",
    "Runs commands.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "What to run."},
            "timeout": {"type": "integer"},
            "mode": {"type": "string", "enum": ["once", "again"]},
            "tasks": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["command"],
    },
)
IPYTHON = ToolSpec(
    "ipython",
    "Runs Python.",
    {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
TOOLS = (TERMINAL, IPYTHON)


def read_one(text: str) -> dict[str, Any]:
    """The arguments of the one call in `text`."""
    reading = Tags().read(text, TOOLS, was_cut=False)
    assert reading is not None and len(reading.calls) == 1
    arguments: dict[str, Any] = json.loads(reading.calls[0].arguments)
    return arguments


def one(function: str) -> str:
    """A call in the reference's grammar in ours."""
    return (
        function.replace("<function=terminal>", '<call name="terminal">')
        .replace("</function>", "</call>")
        .replace("<parameter=command>", '<parameter name="command">')
    )


KEYS = st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True)
# Texts with the very pieces that could be taken for the end of something.
TRICKY = (
    "</parameter>|</parameter E1>|</function>|</call>|<parameter=x>|<|<function=terminal>|<![CDATA["
    '|]]>|\r\n|\n| |```|5|{}|"|é|E1|null'
)
PIECES = st.sampled_from(TRICKY.split("|"))
TEXTS = st.text(max_size=8) | st.lists(PIECES, max_size=6).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}


def schema_for(arguments: dict[str, Any], known: Sequence[bool]) -> dict[str, Any]:
    """A schema that `arguments` follow; of some parameters it says nothing."""
    types = {
        key: {"type": TYPES.get(type(value), "object")}
        for (key, value), is_known in zip(arguments.items(), known, strict=False)
        if is_known and value is not None
    }
    return {"type": "object", "properties": types}


@GRAMMARS
@given(data=st.data())
def test_any_arguments_come_back_as_they_were(grammar: Grammar, data: st.DataObject) -> None:
    arguments = data.draw(st.dictionaries(KEYS, VALUES, max_size=4))
    schema = schema_for(arguments, data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
    before = data.draw(st.sampled_from(["", "I look.\n", "a < b and b > c\n\n"]))
    once = written(grammar, "terminal", arguments, schema)
    reading = found(f"{before}{once}\n{once}")
    assert reading is not None
    assert reading.before == before
    assert [call.name for call in reading.calls] == ["terminal"] * 2
    for call_ in reading.calls:
        assert call_.is_closed
        assert arguments_of(call_, schema) == arguments


MARKUP = (
    '<function= terminal > <call name= " <parameter= command </parameter> </function> </call> [ ] '
    '[TOOL_CALLS] [ARGS] { } "name": : , ```json ``` ~~~python <|python_tag|> <tool_call> '
    "</tool_call> end=E1 \u00e9"
)
FRAGMENTS = st.sampled_from(["\n", " ", *MARKUP.split(" ")])


@given(text=st.text(max_size=40) | st.lists(FRAGMENTS, max_size=25).map("".join), cut=st.booleans())
def test_no_text_makes_a_reader_fail(text: str, cut: bool) -> None:
    for way in (Tags(), CodeBlocks()):
        reading = way.read(text, TOOLS, was_cut=cut)
        for each in reading.calls if reading else ():
            assert each.name
    claimed(text, TOOLS)


@given(st.lists(FRAGMENTS, max_size=20))
def test_what_is_shown_and_what_is_kept_is_the_whole_reply(pieces: list[str]) -> None:
    """Whatever comes in whatever pieces: a reply without a call is shown to its last letter."""
    text = "".join(pieces)
    deltas, completion = asked(Tags(), [say(text or "x")])
    if not completion.message.tool_calls:
        assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == (text or "x")


@pytest.mark.parametrize("form", [str, one], ids=["function", "ours"])
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("<function=terminal><parameter=command>ls</parameter></function>", "ls"),
        ("<function=terminal>\n<parameter=command>\nls\n</parameter>\n</function>", "ls"),
        ("<function=terminal>\n<parameter=command>\n\nls\n\n</parameter>\n</function>", "\nls\n"),
        ("<function=terminal>\n<parameter=command>ls\n</parameter></function>", "ls"),
        ("<function=terminal>\n<parameter=command>a</parameter>b</parameter>\n</function>",
         "a</parameter>b"),
        ("<function=terminal>\n<parameter=command>if a < b > c: </x></parameter>\n</function>",
         "if a < b > c: </x>"),
        ("<function=terminal><parameter=command><![CDATA[a && b]]></parameter></function>",
         "a && b"),
        ("<function=terminal>\n<parameter=command>ls</parameter>\n</function", "ls"),
        ("<function=terminal>\n<parameter=command>ls</parameter>\n", "ls"),
        ("<function=terminal>\n<parameter=command>\nls\n</parameter", "ls\n</parameter"),
        ("<function=terminal>\n<parameter=command>ls", "ls"),
        ("<function=terminal>\n<parameter=command>ls\n</function>", "ls"),
        ("<function=terminal>\nls -l\n</function>", "ls -l"),
        ('<function=terminal>{"command": "ls"}</function>', "ls"),
        ("<function=terminal>\n<parameter=command>5</parameter></function>", "5"),
    ],
)  # fmt: skip
def test_values_are_read_as_they_were_meant(form: Any, text: str, command: str) -> None:
    assert read_one(form(text)) == {"command": command}


def test_values_have_the_types_of_the_schema() -> None:
    arguments = read_one(
        "<function=terminal>\n<parameter=command>ls</parameter>\n<parameter=timeout>5</parameter>\n"
        '<parameter=tasks>["a", "b"]</parameter>\n<parameter=new>true</parameter>\n</function>'
    )
    assert arguments == {"command": "ls", "timeout": 5, "tasks": ["a", "b"], "new": True}


def test_a_value_that_cannot_be_read_is_left_for_validation_to_name() -> None:
    arguments = read_one("<function=terminal><parameter=timeout>soon</parameter></function>")
    assert arguments == {"timeout": "soon"}


def test_several_calls_and_what_stands_around_them() -> None:
    text = (
        "First I look.\n<function=terminal>\n<parameter=command>ls</parameter>\n</function>\n"
        "<function=ipython>\n<parameter=code>1</parameter>\n</function>\n"
        "EXECUTION RESULT of [terminal]:\nmade up\n"
        "<function=terminal>\n<parameter=command>rm x</parameter>\n</function>"
    )
    reading = Tags().read(text, TOOLS, was_cut=False)
    assert reading is not None
    assert reading.before == "First I look.\n"
    assert [each.name for each in reading.calls] == ["terminal", "ipython"]


def test_a_tag_in_backticks_is_spoken_about() -> None:
    assert Tags().read("Write `<function=terminal>` for it.", TOOLS, was_cut=False) is None


def test_a_call_that_was_cut_off_is_not_readable() -> None:
    reading = Tags().read(
        "<function=terminal>\n<parameter=command>rm -r build", TOOLS, was_cut=True
    )
    assert reading is not None
    with pytest.raises(ValueError):
        json.loads(reading.calls[0].arguments)


CLAIMS = {
    "hermes": '<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>',
    "hermes_unclosed": '<tool_call>{"name": "terminal", "arguments": {"command": "ls"}}',
    "fenced": '```json\n{"name": "terminal", "arguments": {"command": "ls"}}\n```',
    "bare": '{"name": "terminal", "parameters": {"command": "ls"}}',
    "function": "<function=terminal>\n<parameter=command>ls</parameter>\n</function>",
    "qwen_coder": "<tool_call>\n<function=terminal>\n<parameter=command>\nls\n</parameter>\n"
    "</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS] [{"name": "terminal", "arguments": {"command": "ls"}}]',
    "mistral_new": '[TOOL_CALLS]terminal[ARGS]{"command": "ls"}',
    "llama": '<|python_tag|>{"name": "terminal", "parameters": {"command": "ls"}}<|eom_id|>',
    "invoke": '<function_calls>\n<invoke name="terminal">\n<parameter name="command">ls'
    "</parameter>\n</invoke>\n</function_calls>",
    "openai": '{"type": "function", "function": {"name": "terminal", '
    '"arguments": "{\\"command\\": \\"ls\\"}"}}',
}


@pytest.mark.parametrize("form", CLAIMS)
def test_calls_in_the_forms_that_servers_miss(form: str) -> None:
    before = "" if form in ("bare", "openai") else "I look.\n"
    reading = claimed(before + CLAIMS[form], TOOLS)
    assert reading is not None
    assert reading.before == before
    assert [(each.name, json.loads(each.arguments)) for each in reading.calls] == [
        ("terminal", {"command": "ls"})
    ]


@pytest.mark.parametrize("form", CLAIMS)
def test_only_whole_calls_of_tools_that_there_are_count(form: str) -> None:
    text = CLAIMS[form]
    assert claimed(text.replace("terminal", "unheard_of"), TOOLS) is None
    if form not in ("function", "qwen_coder", "invoke"):  # their calls end where they are closed
        assert claimed(f"{text} That is how it is done.", TOOLS) is None
    assert claimed(text[: text.index("ls") + 1], TOOLS) is None


def test_two_calls_in_tags() -> None:
    reading = claimed(CLAIMS["hermes"] + "\n" + CLAIMS["hermes"], TOOLS)
    assert reading is not None and len(reading.calls) == 2


# A conversation with such a model


def asked(
    way: Way,
    turns: Sequence[Any],
    history: Sequence[Message] = (),
    tools: Sequence[ToolSpec] = TOOLS,
) -> tuple[list[Delta], Completion]:
    """What comes of one request in this way."""
    return parts_of(ConvertedLLM(ScriptedLLM(turns), way), history or [user("go")], tools)


def parts_of(
    llm: Any, messages: Sequence[Message], tools: Sequence[ToolSpec] = TOOLS
) -> tuple[list[Delta], Completion]:
    async def ask() -> list[Any]:
        async with aclosing(llm.stream(messages, tools)) as reply:
            return [part async for part in reply]

    *deltas, completion = run_blocking(ask())
    return deltas, completion


def user(text: str) -> Message:
    return Message.of("user", text)


def shown(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def call_message(*made: tuple[str, dict[str, Any]], say: str = "") -> Message:
    return Message.of(
        "assistant",
        say,
        tool_calls=[
            MessageToolCall(
                id=f"c{i}", name=name, arguments=json.dumps(arguments), origin="completion"
            )
            for i, (name, arguments) in enumerate(made)
        ],
    )


def result(name: str, text: str, id: str = "c0") -> Message:
    return Message.of("tool", text, tool_call_id=id, name=name)


def test_markup_is_never_shown_and_the_call_is_one() -> None:
    text = "I look.\n<function=terminal>\n<parameter=command>ls</parameter>\n</function>"
    deltas, completion = asked(Tags(), [say(text)])
    assert shown(deltas).strip() == "I look."
    assert [d for d in deltas if isinstance(d, ToolCallDelta)] == [
        ToolCallDelta(0, "terminal", '{"command": "ls"}')
    ]
    assert completion.message.text == "I look."
    assert completion.finish_reason == "tool_call"
    made = completion.message.tool_calls
    assert made and (made[0].name, json.loads(made[0].arguments)) == ("terminal", {"command": "ls"})


def test_text_with_angle_brackets_is_shown_to_its_end() -> None:
    deltas, completion = asked(Tags(), [say("if a < b then <b>x</b> and <function")])
    assert shown(deltas) == "if a < b then <b>x</b> and <function"
    assert completion.message.tool_calls is None


@pytest.mark.parametrize("model", ["ollama:gemma3", "openai:devstral-small"])
def test_history_is_text_in_the_grammar_that_the_model_was_shown(model: str) -> None:
    history = [
        Message.of("system", "Be good."),
        user("go"),
        call_message(
            ("terminal", {"command": "ls\npwd"}), ("ipython", {"code": "1"}), say="I look."
        ),
        result("terminal", "a b", "c0"),
        result("ipython", "", "c1"),
        user("and then?"),
    ]
    llm = ScriptedLLM([say("x"), say("done")])
    parts_of(ConvertedLLM(llm, Tags(model)), history)
    system, first, reply, results = llm.requests[0]
    assert [m.role for m in llm.requests[0]] == ["system", "user", "assistant", "user"]
    assert system.text.startswith("Be good.")
    assert "EXECUTION RESULT of [TOOL]:" in system.text
    assert ("An example" in system.text) == ("gemma" in model)
    assert "- command (string, required): What to run." in system.text
    assert "One of: once, again." in system.text
    assert first.text == "go"
    assert reply.tool_calls is None and reply.text.startswith("I look.\n\n<")
    grammar = FUNCTION if "devstral" in model else OURS
    assert grammar.call.format("terminal") in reply.text
    again = Tags(model).read(reply.text, TOOLS, was_cut=False)
    assert again and [json.loads(each.arguments) for each in again.calls] == [
        {"command": "ls\npwd"},
        {"code": "1"},
    ]
    assert [part.text for part in results.content if part.type == "text"] == [
        "EXECUTION RESULT of [terminal]:\na b",
        "EXECUTION RESULT of [ipython]:\n(no output)",
        "and then?",
    ]


def test_without_tools_nothing_is_explained_and_nothing_is_read() -> None:
    llm = ScriptedLLM([say("<function=terminal></function>")])
    _, completion = parts_of(ConvertedLLM(llm, Tags()), [user("go")], ())
    assert [m.role for m in llm.requests[0]] == ["user"]
    assert completion.message.tool_calls is None


# Code blocks


@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        ("```python\nx = 1\n```", "python", "x = 1"),
        ("Look:\n```bash\nls\npwd\n```\nDone.", "bash", "ls\npwd"),
        ("~~~py\nx\n~~~", "python", "x"),
        ("```Python title=a\nx\n```", "python", "x"),
        ("````python\ns = '''\n```\n'''\n````", "python", "s = '''\n```\n'''"),
        ("```text\nno\n```\n```sh\nls\n```", "bash", "ls"),
        ("````markdown\n```python\nno\n```\n````\n```python\nyes\n```", "python", "yes"),
        ("```python\nx = 1", "python", "x = 1"),
        ("  ```python\n  if x:\n      y\n  ```", "python", "if x:\n    y"),
        ("```python\na\n```\n```python\nb\n```", "python", "a"),
        ("```python\r\nx\r\n```\r\n", "python", "x\r"),
    ],
)
def test_the_first_block_that_can_run(text: str, language: str, code: str) -> None:
    block = first_block(text)
    assert block is not None
    assert (block.language, block.code) == (language, code)


@pytest.mark.parametrize(
    "text", ["no code", "```\nls\n```", "```json\n{}\n```", "Say `python` or ```python```.", "````"]
)
def test_other_blocks_are_not_run(text: str) -> None:
    assert first_block(text) is None


@given(st.text(max_size=40) | st.lists(PIECES, max_size=8).map("".join))
def test_any_code_without_a_fence_of_its_own_comes_back(code: str) -> None:
    code = code.replace("~", "-")
    block = first_block(block_of("python", code))
    assert block is not None and (block.code, block.is_closed) == (code, True)


def test_a_block_is_a_call_and_what_follows_it_is_dropped() -> None:
    text = "I add.\n```python\n1 + 1\n```\nIt printed 3.\n```bash\nls\n```"
    deltas, completion = asked(CodeBlocks(), [say(text)])
    assert shown(deltas).strip() == "I add."
    made = completion.message.tool_calls
    assert made and [(c.name, json.loads(c.arguments)) for c in made] == [
        ("ipython", {"code": "1 + 1"})
    ]
    assert completion.message.text == "I add."


def test_a_block_for_a_tool_that_is_not_there_is_part_of_the_answer() -> None:
    deltas, completion = asked(CodeBlocks(), [say("```bash\nls\n```")], tools=[IPYTHON])
    assert completion.message.tool_calls is None
    assert shown(deltas) == "```bash\nls\n```"


def test_history_of_code_mode_is_blocks() -> None:
    llm = ScriptedLLM([say("x"), say("done")])
    history = [
        user("go"),
        call_message(("ipython", {"code": "s = '```'"}), say="I look."),
        result("ipython", "ok"),
    ]
    parts_of(ConvertedLLM(llm, CodeBlocks()), history)
    system, _, reply, told = llm.requests[0]
    assert "```python" in system.text and "```bash" in system.text
    assert "mode" not in system.text
    assert reply.text == "I look.\n\n````python\ns = '```'\n````"
    assert told.text == "EXECUTION RESULT of [ipython]:\nok"


# Models that claim to have tools


def test_a_claimed_call_is_carried_out_and_said_once() -> None:
    turns = [say("I look.\n" + CLAIMS["hermes"])] * 8
    native, converted = ScriptedLLM(turns), ScriptedLLM(turns)
    llm = WatchedLLM(native, ConvertedLLM(converted, Tags()))
    history = [user("go")]
    notices: list[str] = []
    for _ in range(PATIENCE + 2):
        deltas, completion = parts_of(llm, history)
        assert completion.message.tool_calls and completion.message.text == "I look."
        assert shown(deltas).strip() == "I look."
        notices += [d.text for d in deltas if isinstance(d, ModelNotice)]
        history = [*history, completion.message, result("terminal", "ok", "call_0")]
    assert len(native.requests) == PATIENCE
    assert len(converted.requests) == 2
    assert len(notices) == 2
    assert "understood all the same" in notices[0] and "tool_calls=text" in notices[1]


def test_an_answer_that_looks_like_a_call_stays_an_answer() -> None:
    text = 'Use this:\n```json\n{"name": "Anna", "age": 3}\n```\nThat is all.'
    deltas, completion = parts_of(
        WatchedLLM(ScriptedLLM([say(text)]), ScriptedLLM([])), [user("go")]
    )
    assert completion.message.text == text and completion.message.tool_calls is None
    assert shown(deltas) == text


def test_proper_calls_pass_unchanged() -> None:
    llm = WatchedLLM(ScriptedLLM([calls(call("terminal", {"command": "ls"}))]), ScriptedLLM([]))
    _, completion = parts_of(llm, [user("go")])
    assert completion.message.tool_calls and completion.message.tool_calls[0].id == "call_0_0"


def test_a_model_without_tools_is_never_asked_with_them() -> None:
    async def has_none() -> bool:
        return False

    native, converted = ScriptedLLM([]), ScriptedLLM([say("fine")])
    llm = WatchedLLM(native, converted, has_none)
    assert parts_of(llm, [user("go")])[1].message.text == "fine"
    assert native.requests == []
