"""Does a model really call its tools? If it only writes so, it is told of them by its prompt."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing

from oh_kernel.events import Message
from oh_kernel.llm.base import (
    LLM,
    Completion,
    Delta,
    ModelNotice,
    RetryNotice,
    TextDelta,
    ToolSpec,
)
from oh_kernel.llm.converted.claims import OPENING, claimed
from oh_kernel.llm.converted.reading import as_completion, as_deltas
from oh_kernel.llm.converted.screen import Screen
from oh_kernel.llm.wrapped import WrappedLLM

PATIENCE = 3
"""After so many replies with calls as text, the prompt tells of the tools instead."""

AS_TEXT = (
    "{model} writes its calls as text instead of making them; they are understood all the same."
)
FROM_NOW_ON = "From now on {model} is told of its tools by the prompt (tool_calls=text)."


class WatchedLLM(WrappedLLM):
    """Asks `inner` with tools as long as that works, and `converted` afterwards.

    `has_tools` is asked once, before the first request: False means that tools would be refused,
    None that nothing is known. Used on the agent thread.
    """

    def __init__(
        self,
        inner: LLM,
        converted: LLM,
        has_tools: Callable[[], Awaitable[bool | None]] | None = None,
    ) -> None:
        super().__init__(inner)
        self._converted = converted
        self._has_tools = has_tools
        self._claims = 0

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask once, in whichever way suits."""
        if await self._is_converted():
            asked = self._converted.stream(messages, tools)
        elif tools:
            asked = self._watched(messages, tools)
        else:
            asked = self._inner.stream(messages, tools)
        async with aclosing(asked) as reply:
            async for part in reply:
                yield part

    async def _is_converted(self) -> bool:
        ask, self._has_tools = self._has_tools, None
        if ask is not None and await ask() is False:
            self._claims = PATIENCE
        return self._claims >= PATIENCE

    async def _watched(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        screen = Screen(OPENING)
        async with aclosing(self._inner.stream(messages, tools)) as reply:
            async for part in reply:
                match part:
                    case Completion():
                        for item in self._end(part, tools, screen):
                            yield item
                    case TextDelta(text=text):
                        if shown := screen.pass_on(text):
                            yield TextDelta(shown)
                    case RetryNotice():
                        screen.forget()
                        yield part
                    case _:
                        yield part

    def _end(
        self, completion: Completion, tools: Sequence[ToolSpec], screen: Screen
    ) -> Iterator[Delta | Completion]:
        message = completion.message
        reading = None if message.tool_calls else claimed(message.text, tools)
        if reading is None:
            if rest := screen.rest():
                yield TextDelta(rest)
            yield completion
            return
        self._claims += 1
        yield from self._notices()
        yield from as_deltas(reading)
        yield as_completion(reading, completion)

    def _notices(self) -> Iterator[ModelNotice]:
        """Said once, and once more when it has consequences."""
        for count, text in ((1, AS_TEXT), (PATIENCE, FROM_NOW_ON)):
            if self._claims == count:
                yield ModelNotice(text.format(model=self.model))
