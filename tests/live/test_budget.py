"""A budget with a model over HTTP, whose price is in the installed list."""

from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.events import ConversationErrorEvent
from oh_kernel.settings import load_settings
from tests.live.model_server import ModelServer

PRICE = (2.5, 10.0)  # of gpt-4o, US dollars for a million tokens


def thinking(n: int) -> dict[str, Any]:
    usage = {"prompt_tokens": 20_000, "completion_tokens": 1_000, "total_tokens": 21_000}
    return {
        "tool_calls": [{"name": "think", "arguments": {"thought": f"thought {n}"}}],
        "usage": usage,
    }


@pytest.mark.parametrize("model", ["openai:gpt-4o", "openai:my-own-model"])
def test_no_request_is_sent_that_could_pass_the_budget(tmp_path: Path, model: str) -> None:
    flags = {"budget": 0.25, "price": "2.5/10"}
    with (
        ModelServer([thinking(n) for n in range(9)]) as server,
        Conversation(
            tmp_path,
            model=model,
            base_url=server.url + "/v1",
            api_key="k-1",
            store_path=tmp_path / "events.sqlite",
            tools=["think", "finish"],
            settings=load_settings(flags, environ={}),
        ) as conversation,
    ):
        conversation.send_message("go")
        assert conversation.run() == "error"
        *_, error = [e for e in conversation.events if isinstance(e, ConversationErrorEvent)]
        assert error.code == "MaxBudgetReached"
        each = (20_000 * PRICE[0] + 1_000 * PRICE[1]) / 1e6
        # 0.06 each: after two, a third costs at most 0.0525 + 0.041, and a fourth would not fit.
        assert len(server.requests) == 3
        assert conversation.metrics.cost_usd == pytest.approx(3 * each)
        assert "limit ($0.2500); accumulated cost $0.1800." in error.detail
