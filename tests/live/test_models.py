"""Models over real HTTP: what is sent for each way of calling tools, for profiles, for uses.

The server speaks Ollama's API as its documentation has it; a real Ollama was not asked.
"""

from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.llm.base import ModelNotice
from oh_kernel.loop import run_blocking
from oh_kernel.settings import load_settings
from tests.live.model_server import ModelServer

CALL = "I look.\n<function=terminal>\n<parameter=command>echo 4$((1+1))</parameter>\n</function>"
CLAIM = '<tool_call>{"name": "terminal", "arguments": {"command": "echo %d"}}</tool_call>'


def conversation(
    tmp_path: Path, environ: dict[str, str], config: str = "", **flags: Any
) -> Conversation:
    file = tmp_path / "config.toml"
    file.write_text(config, "utf-8")
    given = {"policy": "never", "max_retries": 0, "store_path": tmp_path / "events.sqlite", **flags}
    settings = load_settings(given, environ=environ, config_file=file)
    return Conversation(workspace=tmp_path, settings=settings, tools=["terminal", "finish"])


def answer_of(talk: Conversation) -> str:
    talk.send_message("go")
    assert str(talk.run()) == "finished"
    return talk.answer


class Watching:
    """Keeps what a person is shown while it comes."""

    def __init__(self) -> None:
        self.text = ""
        self.notices: list[str] = []

    def event(self, event: Any) -> None:
        """Events do not matter here."""

    def delta(self, delta: Any) -> None:
        if isinstance(delta, ModelNotice):
            self.notices.append(delta.text)
        elif hasattr(delta, "text"):
            self.text += delta.text


def test_ollama_without_tools_is_told_of_them_in_the_prompt(tmp_path: Path) -> None:
    with ModelServer([{"content": CALL}, {"content": "It is 42."}]) as server:
        server.capabilities = ["completion"]
        host = server.url.removeprefix("http://")
        with conversation(tmp_path, {"OLLAMA_HOST": host}, model="ollama:any:1b") as talk:
            watching = Watching()
            talk.subscribe(watching)
            assert answer_of(talk) == "It is 42."
        assert "<function" not in watching.text and "I look." in watching.text
        first, second = (request.json for request in server.requests)
        assert first["model"] == "any:1b" and "tools" not in first
        assert '<call name="TOOL">' in first["messages"][0]["content"]
        assert second["messages"][-1]["role"] == "user"
        assert second["messages"][-1]["content"].startswith("EXECUTION RESULT of [terminal]:\n42")


@pytest.mark.parametrize("capabilities", [["completion", "tools"], None], ids=["said", "unknown"])
def test_ollama_with_tools_is_asked_with_them(
    capabilities: list[str] | None, tmp_path: Path
) -> None:
    call = {"name": "terminal", "arguments": {"command": "echo 4$((1+1))"}}
    with ModelServer([{"tool_calls": [call]}, {"content": "It is 42."}]) as server:
        server.capabilities = capabilities
        environ = {"OLLAMA_BASE_URL": f"{server.url}/v1"}
        with conversation(tmp_path, environ, model="ollama:qwen3") as talk:
            assert answer_of(talk) == "It is 42."
        first, second = (request.json for request in server.requests)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["terminal", "finish"]
        assert second["messages"][-1]["role"] == "tool"


def test_a_family_without_tools_is_known_where_nobody_says_so(tmp_path: Path) -> None:
    with ModelServer([{"content": "hello"}]) as server:
        environ = {"OLLAMA_BASE_URL": f"{server.url}/v1"}
        with conversation(tmp_path, environ, model="ollama:codellama:7b") as talk:
            assert answer_of(talk) == "hello"
        assert "tools" not in server.requests[0].json


def test_calls_that_a_server_missed_are_carried_out_and_told_of(tmp_path: Path) -> None:
    with ModelServer(
        [*({"content": CLAIM % n} for n in range(4)), {"content": "Enough."}]
    ) as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-1234567890"}
        with conversation(tmp_path, environ, model="openai:mine") as talk:
            watching = Watching()
            talk.subscribe(watching)
            assert answer_of(talk) == "Enough."
        assert "tool_call" not in watching.text
        assert len(watching.notices) == 2
        assert ["tools" in request.json for request in server.requests] == [True] * 3 + [False] * 2
        assert "tool" not in {message["role"] for message in server.requests[-1].messages}


def test_code_mode_over_http(tmp_path: Path) -> None:
    block = "I add.\n```bash\necho 4$((1+1))\n```\nIt printed 7."
    with ModelServer([{"content": block}, {"content": "It is 42."}]) as server:
        environ = {"OLLAMA_BASE_URL": f"{server.url}/v1"}
        with conversation(tmp_path, environ, model="ollama:any", tool_calls="code") as talk:
            assert answer_of(talk) == "It is 42."
        second = server.requests[1].json
        assert second["stop"] == ["EXECUTION RESULT of ["]
        assert second["messages"][-2]["content"] == "I add.\n\n```bash\necho 4$((1+1))\n```"


def test_a_profile_is_sent_with_all_that_it_says(tmp_path: Path) -> None:
    with ModelServer([{"content": "hello"}]) as server:
        config = f"""
            [profiles.mine]
            model = "openai:gpt-small"
            base_url = "{server.url}/v1"
            api_key_env = "MINE"
            temperature = 0.25
            max_output_tokens = 77
            price_in = 1.0
            price_out = 10.0
            headers = {{ "X-Team" = "$TEAM" }}
        """
        environ = {"MINE": "mine-1234567890", "TEAM": "team-secret", "OPENAI_API_KEY": "sk-other"}
        with conversation(tmp_path, environ, config, model="mine") as talk:
            assert answer_of(talk) == "hello"
            assert talk.metrics.cost_usd == pytest.approx(100 / 1e6 + 10 * 10 / 1e6)
        request = server.requests[0]
        assert request.headers["authorization"] == "Bearer mine-1234567890"
        assert request.headers["x-team"] == "team-secret"
        assert request.json["temperature"] == 0.25
        assert 77 in (request.json.get("max_tokens"), request.json.get("max_completion_tokens"))


def test_effort_is_asked_for(tmp_path: Path) -> None:
    with ModelServer([{"content": "hello"}]) as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-1234567890"}
        with conversation(tmp_path, environ, model="openai:gpt-5", reasoning_effort="low") as talk:
            assert answer_of(talk) == "hello"
        assert server.requests[0].json["reasoning_effort"] == "low"


def test_a_conversation_goes_on_with_a_model_that_has_no_tools(tmp_path: Path) -> None:
    """And back: what was a call is one again."""
    call = {"name": "terminal", "arguments": {"command": "echo 4$((1+1))"}}
    script = [{"tool_calls": [call]}, {"content": "one"}, {"content": CALL}, {"content": "two"}]
    with ModelServer([*script, {"content": "three"}]) as server:
        environ = {"OLLAMA_BASE_URL": f"{server.url}/v1"}
        with conversation(tmp_path, environ, model="ollama:a", tool_calls="native") as talk:
            native = talk.settings
            assert answer_of(talk) == "one"
            run_blocking(talk.use(native.with_(model="ollama:b", tool_calls="text")))
            assert answer_of(talk) == "two"
            run_blocking(talk.use(native))
            assert answer_of(talk) == "three"
            assert [e.value for e in talk.events if getattr(e, "key", "") == "model"] == [
                "ollama:b",
                "ollama:a",
            ]
        by_text, by_tools = server.requests[2].messages, server.requests[4].messages
        assert {message["role"] for message in by_text} == {"system", "user", "assistant"}
        assert [len(m.get("tool_calls", ())) for m in by_tools if m["role"] == "assistant"] == [
            1,
            0,
            1,
            0,
        ]
