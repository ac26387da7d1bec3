"""How is a model asked for calls of tools that has no other way to answer than text?"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion, Delta, RetryNotice, TextDelta, ToolSpec
from oh_kernel.llm.converted.history import as_texts
from oh_kernel.llm.converted.reading import as_completion, as_deltas
from oh_kernel.llm.converted.screen import Screen
from oh_kernel.llm.converted.ways import Way
from oh_kernel.llm.wrapped import WrappedLLM


class ConvertedLLM(WrappedLLM):
    """Tells `inner` of its tools in the prompt, and finds its calls in what it says.

    To everybody else it looks like a model that has tools. The markup of a call is not streamed.
    """

    def __init__(self, inner: LLM, way: Way) -> None:
        super().__init__(inner)
        self._way = way

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask once."""
        explained = self._way.explained(tools) if tools else ""
        texts = as_texts(messages, explained, lambda call: self._way.written(call, tools))
        screen = Screen(self._way.opening)
        async with aclosing(self._inner.stream(texts, ())) as reply:
            async for part in reply:
                match part:
                    case Completion():
                        for item in self._end(part, tools, screen):
                            yield item
                    case TextDelta(text=text) if tools:
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
        """The calls, or what was taken for the beginning of one; then the reply."""
        text, was_cut = completion.message.text, completion.finish_reason == "length"
        has_calls = completion.message.tool_calls or not tools
        reading = None if has_calls else self._way.read(text, tools, was_cut=was_cut)
        if reading is not None:
            yield from as_deltas(reading)
            completion = as_completion(reading, completion)
        elif rest := screen.rest():
            yield TextDelta(rest)
        yield completion
