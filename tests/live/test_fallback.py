"""A model that cannot be reached, and the one that is asked instead, over real HTTP."""

from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.errors import ModelAuthError
from oh_kernel.events import LLMCompletionLogEvent
from oh_kernel.llm.base import RetryNotice
from oh_kernel.settings import load_settings
from tests.live.model_server import ModelServer

KEYS = {"OPENAI_API_KEY": "sk-openai-1234567890", "ANTHROPIC_API_KEY": "sk-ant-0987654321"}


class Notices:
    """Keeps what a person would be told while waiting."""

    def __init__(self) -> None:
        self.seen: list[RetryNotice] = []

    def event(self, event: Any) -> None:
        """Events do not matter here."""

    def delta(self, delta: Any) -> None:
        if isinstance(delta, RetryNotice):
            self.seen.append(delta)


def conversation(first: ModelServer, second: ModelServer, tmp_path: Path) -> Conversation:
    environ = {
        **KEYS,
        "OPENAI_BASE_URL": f"{first.url}/v1",
        "ANTHROPIC_BASE_URL": second.url,
        "OPENHANDS_MODEL": "openai:one",
        "OPENHANDS_FALLBACKS": "anthropic:two",
        "OPENHANDS_MAX_RETRIES": "0",
        "OPENHANDS_STORE_PATH": str(tmp_path / "events.sqlite"),
    }
    settings = load_settings(environ=environ, config_file=tmp_path / "none.toml")
    return Conversation(workspace=tmp_path, settings=settings)


def test_the_next_model_is_asked_with_its_own_key_alone(tmp_path: Path) -> None:
    down = [{"fail_for_ever": {"status": 503}}]
    with (
        ModelServer(down) as first,
        ModelServer([{"content": "here I am"}]) as second,
        conversation(first, second, tmp_path) as talk,
    ):
        notices = Notices()
        talk.subscribe(notices)
        talk.send_message("hello")
        assert str(talk.run()) == "finished"
        assert "here I am" in talk.events[-2].to_json()
        assert [notice.reason for notice in notices.seen if "anthropic:two" in notice.reason]
        records = [event for event in talk.events if isinstance(event, LLMCompletionLogEvent)]
        assert [record.model_name for record in records] == ["two"]
        assert talk.metrics.calls == 1
        for server, own, other in (
            (first, "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
            (second, "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
        ):
            (request,) = server.requests
            sent = str(request.headers) + request.body.decode()
            assert KEYS[own] in sent and KEYS[other] not in sent
            assert KEYS[own] not in request.body.decode()


def test_a_refused_key_is_told_and_hides_behind_no_other_model(tmp_path: Path) -> None:
    with (
        ModelServer([{"fail_for_ever": {"status": 401}}]) as first,
        ModelServer([{"content": "here I am"}]) as second,
        conversation(first, second, tmp_path) as talk,
    ):
        talk.send_message("hello")
        with pytest.raises(ModelAuthError):
            talk.run()
        assert not second.requests
        log = "".join(event.to_json() for event in talk.events)
        assert not any(key in log for key in KEYS.values())
