"""Estimates of tokens are near what tokenizers count, whatever the language."""

import pytest

from oh_kernel.events import ImageContent, Message, MessageToolCall
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.tokens import IMAGE_TOKENS, estimated_tokens, message_tokens, text_tokens

# Counted once with the o200k encoding.
COUNTED = [
    ("The agent reads the log and decides what to do next, step by step.\n" * 10, 160),
    ("def mean(values):\n    return sum(values) / len(values)\n" * 10, 130),
    ('{"name": "terminal", "arguments": {"command": "ls -la"}}\n' * 10, 180),
    ("0.125 3.500 -1.750 12.031\n" * 10, 160),
    ("Der Kernel führt die Zelle aus und zeigt das Ergebnis.\n" * 10, 120),
    ("数据分析需要先读取文件，然后计算平均值。\n" * 10, 110),
    ("データを読み込んで平均値を計算します。\n" * 10, 140),
]


@pytest.mark.parametrize(("text", "counted"), COUNTED)
def test_estimate_is_near_the_count(text: str, counted: int) -> None:
    assert counted * 0.7 < text_tokens(text) < counted * 1.7


def test_request_counts_messages_calls_pictures_and_tools() -> None:
    call = MessageToolCall(id="a", name="terminal", arguments="x" * 400, origin="completion")
    tool = ToolSpec("terminal", "Run a command. " * 20, {"type": "object"})
    picture = ImageContent(image_urls=["data:image/png;base64,", "https://example.org/b.png"])
    asked = Message.of("user", "hello " * 100)
    said = Message(role="assistant", tool_calls=[call])
    shown = Message(role="user", content=[picture])
    assert message_tokens(said) > 100
    assert message_tokens(shown) > 2 * IMAGE_TOKENS
    parts = sum(map(message_tokens, (asked, said, shown)))
    assert estimated_tokens([asked, said, shown]) == parts
    assert estimated_tokens([asked, said, shown], [tool]) > parts + 40


def test_nothing_is_no_tokens() -> None:
    assert estimated_tokens([]) == text_tokens("") == 0
