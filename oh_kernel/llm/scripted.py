"""How does a model answer whose words were written beforehand?

A script is a JSON list of turns, one for each reply:

    {"content": "Let me look.",
     "tool_calls": [{"name": "terminal", "arguments": {"command": "ls"}}],
     "reasoning": "...", "usage": {"prompt_tokens": 100, "completion_tokens": 10},
     "delay_s": 2.0, "finish_reason": "length",
     "fail": [{"status": 429, "retry_after": 1, "message": "..."}]}

All keys are optional. `arguments` may be a string, which is sent as it is (to write broken JSON);
`@WORKSPACE@` in it stands for the workspace. `delay_s` is how long the reply takes to stream.
Entry n of `fail` is what the n-th request for this turn gets instead of the turn.

Which turn answers a request? Turn k answers the request whose history holds k replies, so the same
question asked again (after an interrupt, after a failure) gets the same answer, and a resumed
conversation goes on where it stopped. (A reply cut short by an interrupt counts once any of it is
in the history.) Where the history got shorter because it was condensed, the next turn follows the
one given last. A history without any reply starts the script again.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from oh_kernel.errors import ModelNotConfigured, ScriptExhausted
from oh_kernel.events import Message, MessageToolCall, TextContent
from oh_kernel.llm.base import (
    Completion,
    Delta,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from oh_kernel.llm.failures import for_status

WORKSPACE = "@WORKSPACE@"

# What a script may hold in memory; in a file, a turn is always a JSON object. A list holds what the
# first, second, ... request for the turn gets (the last one again and again).
Turn: TypeAlias = "Mapping[str, Any] | Exception | list[Turn] | Callable[[Sequence[Message]], Turn]"


@dataclass
class _Given:
    """The last request and the turn it got."""

    messages: list[Message]
    replies: int
    index: int
    tries: int = 0
    whole: bool = False  # the reply was streamed to its end


class ScriptedLLM:
    """A real implementation of the protocol that fails loudly when its script runs out.

    `requests` keeps the messages of every request, for tests to look at.
    """

    takes_images = True

    def __init__(
        self,
        turns: Sequence[Turn],
        *,
        name: str = "script",
        workspace: Path | str | None = None,
    ) -> None:
        self._turns = list(turns)
        self._name = name
        self._workspace = str(workspace) if workspace is not None else None
        self._given: _Given | None = None
        self.requests: list[list[Message]] = []

    @classmethod
    def from_file(cls, path: Path | str, *, workspace: Path | str | None = None) -> "ScriptedLLM":
        """Read a script; raises ModelNotConfigured when it cannot be used."""
        try:
            turns = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ModelNotConfigured(f"The script {path} cannot be read: {error}.") from error
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            raise ModelNotConfigured(f"The script {path} is not a JSON list of objects.")
        return cls(turns, name=Path(path).name, workspace=workspace)

    @property
    def model(self) -> str:
        return f"scripted:{self._name}"

    async def warm_up(self) -> None:
        """There is nothing to prepare."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Give the turn that is due."""
        given = self._given = self._place(list(messages))
        self.requests.append(given.messages)
        given.tries += 1
        turn = self._turn(given)
        _raise_failure(turn, given.tries, self.model)
        completion = self._completion(turn, given.index)
        calls = [(call.name, call.arguments) for call in completion.message.tool_calls or ()]
        deltas = pieces(turn.get("reasoning"), turn.get("content"), calls)
        for delta in deltas:
            await asyncio.sleep(turn.get("delay_s", 0) / len(deltas))
            yield delta
        given.whole = True
        yield completion

    def _place(self, messages: list[Message]) -> _Given:
        """Which turn is due, by the rule in the module's docstring."""
        replies = [message.role for message in messages].count("assistant")
        last = self._given
        if last is None or replies == 0:
            index = replies
        elif replies > last.replies:
            index = last.index + replies - last.replies
        else:
            taken = last.whole and messages != last.messages
            index = last.index + 1 if taken else last.index
        given = _Given(messages, replies, index)
        if last and last.index == index and (not last.whole or messages == last.messages):
            given.tries = last.tries
        return given

    def _turn(self, given: _Given) -> Mapping[str, Any]:
        if given.index >= len(self._turns):
            raise ScriptExhausted(
                f"The script {self._name} has {len(self._turns)} turns and was asked for "
                f"number {given.index + 1}.",
                remedy="Choose a real model (option model), or add a turn to the script.",
            )
        turn = self._turns[given.index]
        while not isinstance(turn, Mapping):
            if isinstance(turn, Exception):
                raise turn
            if isinstance(turn, list):
                turn = turn[min(given.tries, len(turn)) - 1]
            else:
                turn = turn(given.messages)
        return turn

    def _expand(self, text: str) -> str:
        if self._workspace is None or WORKSPACE not in text:
            return text
        # The text is JSON, so the path goes in as the inside of a JSON string.
        return text.replace(WORKSPACE, json.dumps(self._workspace, ensure_ascii=False)[1:-1])

    def _completion(self, turn: Mapping[str, Any], index: int) -> Completion:
        calls = [
            MessageToolCall(
                id=call.get("id", f"call_{index}_{i}"),
                name=call["name"],
                arguments=self._expand(_arguments(call)),
                origin="completion",
            )
            for i, call in enumerate(turn.get("tool_calls", ()))
        ]
        text = turn.get("content") or ""
        return Completion(
            message=Message(
                role="assistant",
                content=[TextContent(text=text)] if text else [],
                tool_calls=calls or None,
                reasoning_content=turn.get("reasoning"),
            ),
            response_id=f"scripted-{index}",
            model=self.model,
            usage=Usage(**turn.get("usage", {})),
            cost_usd=turn.get("cost_usd"),
            finish_reason=turn.get("finish_reason", "tool_call" if calls else "stop"),
        )


def _raise_failure(turn: Mapping[str, Any], attempt: int, model: str) -> None:
    failures = turn.get("fail", ())
    if attempt <= len(failures):
        failure = failures[attempt - 1]
        raise for_status(
            failure["status"],
            failure.get("message", "scripted error"),
            model=model,
            retry_after_s=failure.get("retry_after"),
        )


def pieces(
    reasoning: str | None, text: str | None, calls: Sequence[tuple[str, str]]
) -> list[Delta]:
    """A reply word by word; `calls` are names and arguments."""
    deltas: list[Delta] = [ReasoningDelta(word) for word in _words(reasoning)]
    deltas += [TextDelta(word) for word in _words(text)]
    for i, (name, arguments) in enumerate(calls):
        deltas += [ToolCallDelta(i, name, word) for word in ["", *_words(arguments)]]
    return deltas


def _words(text: str | None) -> list[str]:
    """`text` cut before each word, nothing lost."""
    return re.findall(r"\s*\S+|\s+", text or "")


def _arguments(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
