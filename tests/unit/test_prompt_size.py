"""The static prompt and the tools' schemas stay small: they are paid for in every call."""

import json
import re
import warnings
from pathlib import Path

import pytest

from oh_kernel.agents.prompt import dynamic_context, static_prompt
from oh_kernel.tools.base import Tool
from oh_kernel.tools.presets import ALL_TOOLS, PRESETS, tools_named

MAX_TOKENS = 2_500
MAX_TOKENS_GEMINI = 2_800  # four tools in the place of one


def tokens(text: str) -> int:
    with warnings.catch_warnings():
        # It opens its vocabulary by a function that some versions of Python call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def as_sent(tool: type[Tool]) -> str:
    """A tool in the form that chat completions take."""
    spec = tool.spec()
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return json.dumps({"type": "function", "function": function}, separators=(",", ":"))


@pytest.mark.parametrize("preset", PRESETS)
def test_static_prompt_and_schemas_of_a_preset(preset: str) -> None:
    parts = {tool.name: tokens(as_sent(tool)) for tool in tools_named(preset)}
    parts["static prompt"] = tokens(static_prompt(PRESETS[preset]))
    print(parts, sum(parts.values()))
    limit = MAX_TOKENS_GEMINI if preset == "gemini" else MAX_TOKENS
    assert sum(parts.values()) <= limit, parts


@pytest.mark.parametrize("preset", PRESETS)
def test_static_prompt_speaks_of_the_tools_that_are_there_and_of_no_others(preset: str) -> None:
    named = set(re.findall(r"`(\w+)`", static_prompt(PRESETS[preset])))
    assert named & set(ALL_TOOLS) <= set(PRESETS[preset])
    assert "finish" in named


def test_static_prompt_says_what_the_risks_are() -> None:
    text = static_prompt(())
    assert re.search(r"`security_risk`.* LOW .* MEDIUM .* HIGH ", text)


def test_static_prompt_holds_nothing_of_this_machine(tmp_path: Path) -> None:
    text = static_prompt(ALL_TOOLS)
    assert str(tmp_path) not in text
    assert "Date:" not in text


def test_dynamic_part_says_where_and_when(tmp_path: Path) -> None:
    text = dynamic_context(tmp_path)
    assert str(tmp_path) in text and "Python: 3." in text and "pandas" in text
