"""How does a history with calls and results become one of texts alone?"""

from collections.abc import Callable, Sequence

from oh_kernel.events import ImageContent, Message, MessageToolCall, TextContent
from oh_kernel.events.content import Content
from oh_kernel.llm.converted.prompt import RESULT
from oh_kernel.llm.sendable import sendable

NO_OUTPUT = "(no output)"


def as_texts(
    messages: Sequence[Message], explained: str, written: Callable[[MessageToolCall], str]
) -> list[Message]:
    """`messages` without calls, with `explained` in the system prompt."""
    texts: list[Message] = []
    for message in sendable(messages):
        if message.role == "tool":
            _say(texts, _result(message))
        elif message.role == "user":
            _say(texts, message.content)
        else:
            texts.append(_with_calls_written(message, written))
    return _with_system(texts, explained) if explained else texts


def _with_calls_written(message: Message, written: Callable[[MessageToolCall], str]) -> Message:
    if not message.tool_calls:
        return message
    calls = "\n".join(written(call) for call in message.tool_calls)
    text = f"{message.text.rstrip()}\n\n{calls}" if message.text.strip() else calls
    # Signed thinking belongs to calls that are no longer there.
    return Message.of("assistant", text, reasoning_content=message.reasoning_content)


def _result(message: Message) -> list[Content]:
    head = RESULT.format(message.name or "tool")
    pictures = [part for part in message.content if isinstance(part, ImageContent)]
    marked = any(part.cache_prompt for part in message.content)
    text = f"{head}\n{message.text or NO_OUTPUT}"
    return [TextContent(text=text, cache_prompt=marked), *pictures]


def _say(texts: list[Message], content: Sequence[Content]) -> None:
    """Add to the user's message, or begin it: strict templates take no two in a row."""
    last = texts[-1] if texts else None
    if last is not None and last.role == "user":
        texts[-1] = last.model_copy(update={"content": [*last.content, *content]})
    else:
        texts.append(Message(role="user", content=list(content)))


def _with_system(texts: list[Message], explained: str) -> list[Message]:
    """`explained` stands behind the static part: both stay the same and may be cached."""
    part = TextContent(text=explained, cache_prompt=True)
    if not texts or texts[0].role != "system":
        return [Message(role="system", content=[part]), *texts]
    first = texts[0]
    content = [*first.content[:1], part, *first.content[1:]]
    return [first.model_copy(update={"content": content}), *texts[1:]]
