"""How does a model answer from a recording?

A request is looked up by its canonical form. What is not on the record fails loudly, with the
difference to the closest request that is: an answer to another question would be no answer.
"""

import difflib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from oh_kernel.errors import ModelNotConfigured, ReplayMismatch
from oh_kernel.events import Message
from oh_kernel.llm.base import Completion, Delta, ToolSpec
from oh_kernel.llm.canonical import Canonical
from oh_kernel.llm.record import FORMAT, read
from oh_kernel.llm.scripted import pieces

MAX_DIFF_LINES = 24
MAX_LINE_CHARS = 160


class ReplayLLM:
    """Gives the recorded replies: several for one request in their order, then the last again."""

    takes_images = True

    def __init__(self, path: Path | str, *, workspace: Path | str | None = None) -> None:
        self._path = Path(path)
        self._canonical = Canonical(workspace)
        self._replies: dict[str, list[dict[str, Any]]] = {}
        self._given: dict[str, int] = {}
        for record in _records(self._path):
            self._replies.setdefault(record["request"], []).append(record["reply"])

    @property
    def model(self) -> str:
        return f"replay:{self._path.name}"

    async def warm_up(self) -> None:
        """There is nothing to prepare."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Give what the real model answered to this; raises ReplayMismatch."""
        request = self._canonical.request(messages, tools)
        replies = self._replies.get(request)
        if replies is None:
            raise self._mismatch(request)
        number = self._given.get(request, 0)
        reply = read(replies[min(number, len(replies) - 1)], self._canonical)
        for piece in _pieces(reply.message):
            yield piece
        self._given[request] = number + 1
        yield reply

    def _mismatch(self, request: str) -> ReplayMismatch:
        return ReplayMismatch(
            f"The recording {self._path.name} has no answer to this request. It differs from the "
            f"closest one ({len(self._replies)} recorded):\n{_difference(request, self._replies)}",
            remedy="\nRecord again (oh-kernel record), or choose a real model (option model).",
        )


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
    except (OSError, ValueError) as error:
        raise ModelNotConfigured(f"The recording {path} cannot be read: {error}.") from error
    for record in records:
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ModelNotConfigured(
                f"The recording {path} has another format than {FORMAT}.", remedy="Record again."
            )
    return records


def _pieces(message: Message) -> list[Delta]:
    calls = [(call.name, call.arguments) for call in message.tool_calls or ()]
    return pieces(message.reasoning_content, message.text, calls)


def _difference(request: str, recorded: dict[str, Any]) -> str:
    """A unified diff to the recorded request that agrees with `request` the longest."""
    asked = request.splitlines()
    texts = [text.splitlines() for text in recorded]
    closest = max(texts, key=lambda lines: _agree(lines, asked), default=[])
    lines = list(difflib.unified_diff(closest, asked, "recorded", "asked", lineterm="", n=1))
    shown = [line[:MAX_LINE_CHARS] for line in lines[:MAX_DIFF_LINES]]
    if len(lines) > len(shown):
        shown.append(f"... ({len(lines) - len(shown)} more lines)")
    return "\n".join(shown)


def _agree(first: Sequence[str], second: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return count
    return min(len(first), len(second))
