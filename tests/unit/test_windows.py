"""How much a model takes is known for listed models, and leaves room for the reply."""

import pytest

from oh_kernel.llm.windows import input_limit


def test_window_of_a_listed_model_leaves_room_for_the_reply() -> None:
    limit = input_limit("openai:gpt-4o")
    assert limit is not None and 100_000 < limit < 128_000


@pytest.mark.parametrize("model", ["ollama:qwen3", "scripted:x", "openai:no-such-model", "plain"])
def test_window_of_others_is_not_guessed(model: str) -> None:
    assert input_limit(model) is None
