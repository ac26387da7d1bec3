"""In which ways can calls stand in the text of a reply: as tags, or as a block of code?"""

import json
import re
from collections.abc import Sequence
from typing import Protocol

from oh_kernel.events import MessageToolCall
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.converted import claims as claims
from oh_kernel.llm.converted import fences as fences
from oh_kernel.llm.converted import grammar as grammar
from oh_kernel.llm.converted.prompt import RESULT, about_code, about_tools
from oh_kernel.llm.converted.reading import Call, Reading
from oh_kernel.llm.converted.screen import Opening
from oh_kernel.llm.sendable import valid_arguments

STOP_WORDS = (RESULT.partition("{")[0],)
"""A model that goes on to the results makes them up."""

# What runs a block, and the name of its argument there.
_RUNNERS = {"python": ("ipython", "code"), "bash": ("terminal", "command")}

# Trained on the reference's own tags, they need no example of them.
_TRAINED = re.compile(r"openhands-lm|devstral|nemotron|qwen3-coder")


class Way(Protocol):
    """How calls are written into texts and found there."""

    opening: Opening

    def explained(self, tools: Sequence[ToolSpec]) -> str:
        """What the model is told."""

    def written(self, call: MessageToolCall, tools: Sequence[ToolSpec]) -> str:
        """A call of the history as the model would have written it."""

    def read(self, text: str, tools: Sequence[ToolSpec], *, was_cut: bool) -> Reading | None:
        """The calls in a reply; of one that reached its length limit, the last may be half."""


class Tags:
    """Calls as tags, in the grammar that suits the model."""

    opening = claims.OPENING

    def __init__(self, model: str = "") -> None:
        self._is_trained = bool(_TRAINED.search(model.lower()))
        self._grammar = grammar.FUNCTION if self._is_trained else grammar.OURS

    def explained(self, tools: Sequence[ToolSpec]) -> str:
        return about_tools(tools, self._grammar, with_example=not self._is_trained)

    def written(self, call: MessageToolCall, tools: Sequence[ToolSpec]) -> str:
        return _in_tags(self._grammar, call, tools)

    def read(self, text: str, tools: Sequence[ToolSpec], *, was_cut: bool) -> Reading | None:
        found = grammar.found(text)
        if found is None:
            return claims.claimed(text, tools)
        calls = [
            Call(one.name, _half(one.body, *one.values.values()))
            if was_cut and not one.is_closed
            else Call(one.name, _as_json(one, tools))
            for one in found.calls
        ]
        return Reading(found.before, tuple(calls))


class CodeBlocks:
    """The first block of Python or shell code in a reply is what is done; there are no others.

    What stands behind it was written without having seen what it does, and is left out.
    """

    opening = fences.OPENING

    def explained(self, tools: Sequence[ToolSpec]) -> str:
        return about_code(tools)

    def written(self, call: MessageToolCall, tools: Sequence[ToolSpec]) -> str:
        arguments = json.loads(valid_arguments(call.arguments))
        for language, (tool, key) in _RUNNERS.items():
            if call.name == tool and isinstance(arguments.get(key), str):
                return fences.block_of(language, arguments[key])
        return _in_tags(grammar.OURS, call, tools)  # of another model, before this one

    def read(self, text: str, tools: Sequence[ToolSpec], *, was_cut: bool) -> Reading | None:
        block = fences.first_block(text)
        name, key = _RUNNERS[block.language] if block else ("", "")
        if block is None or name not in {tool.name for tool in tools}:
            return None
        is_half = was_cut and not block.is_closed
        arguments = json.dumps({key: block.code}, ensure_ascii=False)
        call = Call(name, _half(block.code) if is_half else arguments)
        return Reading(text[: block.start], (call,))


def _in_tags(words: grammar.Grammar, call: MessageToolCall, tools: Sequence[ToolSpec]) -> str:
    arguments = json.loads(valid_arguments(call.arguments))
    return grammar.written(words, call.name, arguments, grammar.schema_of(call.name, tools))


def _as_json(call: grammar.Written, tools: Sequence[ToolSpec]) -> str:
    arguments = grammar.arguments_of(call, grammar.schema_of(call.name, tools))
    return json.dumps(arguments, ensure_ascii=False)


def _half(*texts: str) -> str:
    """Arguments that cannot be read, so that what was cut off is never carried out."""
    return "{" + " ".join(texts)
