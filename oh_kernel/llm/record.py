"""How is a real model's answer written down, so that it can be replayed?

One JSON object a line, appended and flushed to disk with each reply: the request in its canonical
form, and the reply with placeholders for local paths. Deltas, failures and keys are not written.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, Delta, ToolSpec, Usage
from oh_kernel.llm.canonical import Canonical
from oh_kernel.llm.wrapped import WrappedLLM

FORMAT = 1


class RecordingLLM(WrappedLLM):
    """Any model, with its replies appended to `path` (readable by its owner alone)."""

    def __init__(
        self, inner: LLM, path: Path | str, *, workspace: Path | str | None = None
    ) -> None:
        super().__init__(inner)
        self._path = Path(path)
        self._canonical = Canonical(workspace)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask the inner model; a whole reply is on disk before it is given."""
        async with aclosing(self._inner.stream(messages, tools)) as reply:
            async for item in reply:
                if isinstance(item, Completion):
                    request = self._canonical.request(messages, tools)
                    await asyncio.to_thread(self._append, request, item)
                yield item

    def _append(self, request: str, reply: Completion) -> None:
        record = {"format": FORMAT, "request": request, "reply": written(reply, self._canonical)}
        line = json.dumps(record, ensure_ascii=False) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)


def written(reply: Completion, canonical: Canonical) -> dict[str, Any]:
    """A reply as JSON, fit to be read elsewhere."""
    message = reply.message.model_dump(mode="json", exclude_none=True)
    for part in message["content"]:
        if part["type"] == "text":
            part["text"] = canonical.portable(part["text"])
    for call in message.get("tool_calls", ()):
        call["arguments"] = canonical.portable(call["arguments"])
    return {
        "message": message,
        "response_id": reply.response_id,
        "model": reply.model,
        "usage": asdict(reply.usage),
        "cost_usd": reply.cost_usd,
        "finish_reason": reply.finish_reason,
    }


def read(reply: dict[str, Any], canonical: Canonical) -> Completion:
    """The reply that was `written`, with the paths of this place. Nothing is paid for it again."""
    message = json.loads(json.dumps(reply["message"]))
    for part in message["content"]:
        if part["type"] == "text":
            part["text"] = canonical.local(part["text"])
    for call in message.get("tool_calls", ()):
        call["arguments"] = canonical.local(call["arguments"], in_json=True)
    return Completion(
        message=Message.model_validate(message),
        response_id=reply["response_id"],
        model=reply["model"],
        usage=Usage(**reply["usage"]),
        cost_usd=0.0,
        finish_reason=reply["finish_reason"],
    )
