"""Ask a model in a test: one coroutine run to its end, and what it gave."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from oh_kernel.events import Message
from oh_kernel.llm import RetryPolicy, open_llm
from oh_kernel.llm.base import (
    LLM,
    Completion,
    Delta,
    RetryNotice,
    TextDelta,
    ToolSpec,
)

KEY = "sk-test-0123456789abcdef"
FAST = RetryPolicy(attempts=3, min_wait_s=0.01, max_wait_s=0.05)
TOOL = ToolSpec(
    "terminal",
    "Run a command.",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "number", "default": 30}},
        "required": ["command"],
    },
)
HELLO = [Message.of("system", "Be short."), Message.of("user", "Hello")]


@dataclass
class Answer:
    """The deltas of a reply and its completion."""

    deltas: list[Delta] = field(default_factory=list)
    completion: Completion | None = None

    @property
    def message(self) -> Message:
        assert self.completion is not None
        return self.completion.message

    @property
    def text(self) -> str:
        """The streamed text, as someone sees it who forgets what came before a retry."""
        retries = [i for i, d in enumerate(self.deltas) if isinstance(d, RetryNotice)]
        rest = self.deltas[retries[-1] + 1 :] if retries else self.deltas
        return "".join(delta.text for delta in rest if isinstance(delta, TextDelta))

    @property
    def notices(self) -> list[RetryNotice]:
        return [d for d in self.deltas if isinstance(d, RetryNotice)]


async def read(
    llm: LLM, messages: Sequence[Message] = HELLO, tools: Sequence[ToolSpec] = (TOOL,)
) -> Answer:
    """A whole reply."""
    answer = Answer()
    async with aclosing(llm.stream(messages, tools)) as reply:
        async for item in reply:
            if isinstance(item, Completion):
                answer.completion = item
            else:
                answer.deltas.append(item)
    return answer


def ask(
    model: str,
    url: str,
    messages: Sequence[Message] = HELLO,
    tools: Sequence[ToolSpec] = (TOOL,),
    *,
    retry: RetryPolicy = FAST,
    timeout_s: float = 30.0,
    api_key: str | None = KEY,
    stream: bool = True,
) -> Answer:
    """Open the model, ask once, close it."""

    async def run() -> Answer:
        llm = open_llm(
            model, base_url=url, api_key=api_key, retry=retry, timeout_s=timeout_s, stream=stream
        )
        try:
            return await read(llm, messages, tools)
        finally:
            await llm.aclose()

    return asyncio.run(run())
