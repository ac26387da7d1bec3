"""The static prompt and the tools' schemas stay small: they are paid for in every call."""

import json
import warnings

from oh_kernel.agents.prompt import dynamic_context, static_prompt
from oh_kernel.tools.presets import tools_of_preset

MAX_TOKENS = 2_500


def tokens(text: str) -> int:
    with warnings.catch_warnings():
        # It opens its vocabulary by a function that some versions of Python call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def as_sent(tool: type) -> str:
    """A tool in the form that chat completions take."""
    spec = tool.spec()  # type: ignore[attr-defined]  # every member of a preset has it
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return json.dumps({"type": "function", "function": function}, separators=(",", ":"))


def test_static_prompt_and_schemas_of_the_default_preset() -> None:
    parts = {tool.name: tokens(as_sent(tool)) for tool in tools_of_preset("default")}
    parts["static prompt"] = tokens(static_prompt())
    print(parts, sum(parts.values()))
    assert sum(parts.values()) <= MAX_TOKENS, parts


def test_static_prompt_holds_nothing_of_this_machine(tmp_path: object) -> None:
    assert str(tmp_path) not in static_prompt()
    assert "Date:" not in static_prompt()


def test_dynamic_part_says_where_and_when(tmp_path: object) -> None:
    text = dynamic_context(tmp_path)  # type: ignore[arg-type]  # a Path
    assert str(tmp_path) in text and "Python: 3." in text and "pandas" in text
