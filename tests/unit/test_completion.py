"""Tab: through IPython's own completer, as a front end asks; and the words behind it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from oh_kernel.credentials import store_key
from oh_kernel.events import Message, MessageEvent
from oh_kernel.kernel.commands import COMMANDS
from oh_kernel.kernel.completion import add_completion, complete
from oh_kernel.options import BY_NAME, OPTIONS
from oh_kernel.settings import config_folder
from oh_kernel.store import EventStore
from tests.timing import least_s


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()
    add_completion(shell)
    yield shell
    InteractiveShell.clear_instance()


def offered(before: str) -> list[str]:
    return complete(before)[1]


def tab(shell: Any, text: str) -> list[str]:
    """The whole lines that a front end would make of `text` with the cursor at its end."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(text, len(text)))
    return [text[: one.start] + one.text for one in found if one.type == "openhands"]


def test_flags_and_commands() -> None:
    assert offered("--m") == ["--model", "--max-steps", "--max-tokens"]
    assert offered("--new --con") == ["--continue", "--context"] or offered("--new --con") == [
        "--context",
        "--continue",
    ]
    assert offered("") == [command.name for command in COMMANDS]
    assert offered("h") == ["history", "help"]
    assert offered("do something ") == []
    assert offered("-- st") == []


def test_values_of_flags() -> None:
    assert offered("--policy ") == ["risky", "never", "always", "cautious"]
    assert complete("--context=s") == ("s", ["schema"])
    assert offered("--max-steps ") == []
    assert offered("-o ") == []


def test_settings() -> None:
    assert offered("config max_r") == ["max_retries"]
    assert "api_key" not in offered("config ")
    assert len(offered("config ")) == len(OPTIONS) - 1
    assert complete("config policy=a") == ("a", ["always"])
    assert offered("config stream=") == ["yes", "no"]


def test_models_of_providers_whose_key_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENHANDS_MODEL", "openrouter:mine")
    assert offered("--model open") == ["openrouter:mine"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    store_key("groq", "k", config_folder())
    assert {one.partition(":")[0] for one in offered("--model ")} >= {"anthropic", "groq"}
    assert not [one for one in offered("--model ") if one.startswith("openai:")]


def test_models_that_ollama_has_here(private_home: Path) -> None:
    library = private_home / ".ollama/models/manifests/registry.ollama.ai/library"
    (library / "qwen3").mkdir(parents=True)
    (library / "qwen3" / "8b").touch()
    assert offered("--model ollama") == ["ollama:qwen3:8b"]


def test_the_last_twenty_conversations_within_50_ms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.sqlite"
    monkeypatch.setenv("OPENHANDS_STORE_PATH", str(path))
    assert offered("resume ") == []
    names = [f"{number:08x}-conversation" for number in range(30)]
    with EventStore.open(path) as store:
        for name in names:
            store.append(name, MessageEvent(source="user", llm_message=Message.of("user", "hi")))
        taken_s = least_s(lambda: offered("resume "), enough=0.05)
        assert offered("resume ") == names[:9:-1]
    assert offered("resume 0000001d") == [names[-1]]
    assert taken_s < 0.05


def test_tab_in_a_shell(shell: Any) -> None:
    assert tab(shell, "%openhands hist") == ["%openhands history"]
    assert tab(shell, "%%openhands --max-s") == ["%%openhands --max-steps"]
    assert tab(shell, "%%openhands --policy=al") == ["%%openhands --policy=always"]
    assert tab(shell, "%%openhands --model x --policy ") == [
        f"%%openhands --model x --policy {choice}" for choice in BY_NAME["policy"].choices
    ]


def test_tab_elsewhere_is_not_ours(shell: Any) -> None:
    assert tab(shell, "his") == []
    assert tab(shell, "%%openhands --new\nhis") == []
    assert tab(shell, "x = 1\n%openhands hist") == []
    assert tab(shell, "%openhandsfoo hist") == []


def test_tab_with_a_broken_setting_offers_nothing(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_POLICY", "sometimes")
    assert tab(shell, "%openhands --model ") == []
