"""Which model is asked for what, and how: profiles, uses, fallbacks, ways of calling tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.cli import main
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.models import Models, model_of, settings_of_models
from oh_kernel.errors import ModelNotConfigured, SettingsError
from oh_kernel.llm.convert import Kind
from oh_kernel.llm.converted.choice import with_tools
from oh_kernel.llm.fallback import FallbackLLM
from oh_kernel.llm.request_options import RequestOptions
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.loop import run_blocking
from oh_kernel.options import USES
from oh_kernel.settings import Settings, load_settings
from tests.conversations import Scripted, call, calls, say

CONFIG = """
model = "openai:big"
temperature = 0.7
fallbacks = "fast, anthropic:other"

[models]
condenser = "fast"
title = "openai:tiny"

[profiles.fast]
model = "openai:quick"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "FAST_KEY"
temperature = 0.1
tool_calls = "text"
context_window = 8000
price_in = 0.15
price_out = 0.6
headers = { "X-Team" = "data", "X-Gate" = "$GATE" }

[profiles.bare]
model = "openai:mine"
base_url = "http://127.0.0.1:9/v1"

[profiles.plain]
model = "openai:other"
"""
ENVIRON = {
    "OPENAI_API_KEY": "sk-openai-1234567890",
    "FAST_KEY": "fast-secret",
    "GATE": "gate-secret",
}


def settings(tmp_path: Path, config: str = CONFIG, /, **flags: Any) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(config, "utf-8")
    return load_settings(flags, environ=ENVIRON, config_file=file)


def key_of(one: Settings) -> str | None:
    return one.api_key.get_secret_value() if one.api_key else None


# Profiles


def test_a_profile_brings_all_that_belongs_to_its_model(tmp_path: Path) -> None:
    fast = settings(tmp_path, model="fast")
    assert (fast.model, fast.base_url) == ("openai:quick", "http://127.0.0.1:9/v1")
    assert (fast.temperature, fast.tool_calls, fast.price) == (0.1, "text", "0.150000/0.600000")
    assert key_of(fast) == "fast-secret"
    assert fast.headers == {"X-Team": "data", "X-Gate": "gate-secret"}
    assert fast.profile and (fast.profile.name, fast.profile.context_window) == ("fast", 8000)
    assert fast.origin("model") == "profile fast"
    assert fast.secret_values == ["fast-secret", "gate-secret"]


def test_what_is_set_with_the_choice_or_later_goes_before_it(tmp_path: Path) -> None:
    fast = settings(tmp_path, model="fast", temperature=0.9)
    assert fast.temperature == 0.9
    assert fast.with_(temperature=0.4).temperature == 0.4
    assert fast.with_("a flag", max_steps=3).temperature == 0.9


def test_another_model_has_nothing_of_the_profile(tmp_path: Path) -> None:
    other = settings(tmp_path, model="fast").with_(model="openai:big")
    assert (other.temperature, other.tool_calls, other.base_url) == (0.7, "auto", None)
    assert other.profile is None and other.headers == {}
    assert key_of(other) == ENVIRON["OPENAI_API_KEY"]


def test_an_own_address_is_sent_no_key_but_the_one_that_is_named(tmp_path: Path) -> None:
    assert key_of(settings(tmp_path, model="bare")) is None
    assert key_of(settings(tmp_path, model="plain")) == ENVIRON["OPENAI_API_KEY"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('base_url = "http://a/v1"', "has no model"),
        ('model = "openai:a"\ntemprature = 1', "Did you mean temperature?"),
        ('model = "openai:a"\napi_key = "sk-secret"', "holds api_key"),
        ('model = "openai:a"\ncontext_window = "big"', "context_window"),
        ('model = "openai:a"\nprice_in = 1.0', "one price only"),
        ('model = "openai:a"\nheaders = { a = 1 }', "headers"),
        ('model = "openai:a"\nmax_steps = 3', "has 'max_steps'"),
        ('model = "x"', "is its own model"),
    ],
)
def test_a_wrong_profile_is_named(table: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(tmp_path, f"[profiles.x]\n{table}\n")
    assert said in str(raised.value) and "config.toml" in str(raised.value)
    assert "sk-secret" not in str(raised.value)


def test_a_profile_whose_variable_is_missing_is_refused_when_chosen(tmp_path: Path) -> None:
    config = '[profiles.x]\nmodel = "openai:a"\napi_key_env = "NOT_THERE"\n'
    assert settings(tmp_path, config).model is None
    with pytest.raises(SettingsError, match="profile x needs the variable NOT_THERE"):
        settings(tmp_path, config, model="x")


def test_a_wrong_value_in_a_profile_names_the_profile(tmp_path: Path) -> None:
    config = '[profiles.x]\nmodel = "openai:a"\ntool_calls = "telepathy"\n'
    with pytest.raises(SettingsError, match=r"telepathy.*profile x"):
        settings(tmp_path, config, model="x")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:9999", "http://127.0.0.1:9999/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("https://models.example", "https://models.example/v1"),
        ("http://gpu:80/v1/", "http://gpu:80/v1"),
    ],
)
def test_ollama_is_found_by_its_own_variable(host: str, url: str, tmp_path: Path) -> None:
    found = load_settings(
        {"model": "ollama:qwen3"},
        environ={"OLLAMA_HOST": host},
        config_file=tmp_path / "none.toml",
    )
    assert found.base_url == url


# Models by their use


def test_each_use_has_the_model_that_is_named_for_it(tmp_path: Path) -> None:
    models = Models(settings(tmp_path, fallbacks=""), tmp_path)
    assert models.for_use().model == "openai:big"
    assert models.for_use("condenser").model == "openai:quick"
    assert models.for_use("title").model == "openai:tiny"
    assert models.for_use("critic") is models.for_use()
    assert models.price_for("condenser") == "0.150000/0.600000"
    assert models.price_for() is None
    assert (models.context_window("condenser"), models.context_window()) == (8000, None)


def test_models_may_be_a_list_too(tmp_path: Path) -> None:
    one = settings(tmp_path, models="title=fast, ask-agent = openai:a:b")
    assert one.models == ("title=fast", "ask-agent=openai:a:b")
    assert one.for_use("ask-agent").model == "openai:a:b"
    assert one.for_use("condenser") is one


@pytest.mark.parametrize("wrong", ["titel=openai:a", "title", "title="])
def test_a_wrong_use_is_refused_with_all_there_are(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(tmp_path, models=wrong)
    assert all(use in str(raised.value) for use in USES)


def test_keys_of_all_models_are_known_so_that_they_can_be_hidden(tmp_path: Path) -> None:
    hidden = {
        value for one in settings_of_models(settings(tmp_path)) for value in one.secret_values
    }
    assert hidden == {"sk-openai-1234567890", "fast-secret", "gate-secret"}


def test_a_script_is_asked_for_nothing_else_unless_it_is_named(tmp_path: Path) -> None:
    for name in ("agent", "title"):
        (tmp_path / f"{name}.json").write_text(json.dumps([say(name)]))
    script = f"scripted:{tmp_path}/agent.json"
    alone = Models(settings(tmp_path, "", model=script), tmp_path)
    assert alone.for_use().model == "scripted:agent.json"
    with pytest.raises(ModelNotConfigured, match=r"for the agent alone.*models=title="):
        alone.for_use("title")
    named = settings(tmp_path, "", model=script, models=f"title=scripted:{tmp_path}/title.json")
    assert Models(named, tmp_path).for_use("title").model == "scripted:title.json"


def test_a_model_given_as_an_object_is_asked_for_what_has_none_of_its_own(tmp_path: Path) -> None:
    given = ScriptedLLM([])
    models = Models(settings(tmp_path, fallbacks="", models="title=openai:tiny"), tmp_path, given)
    assert models.for_use("condenser").model == given.model
    assert models.for_use("title").model == "openai:tiny"


def test_a_fallback_may_be_a_profile(tmp_path: Path) -> None:
    model = model_of(settings(tmp_path), tmp_path)
    assert isinstance(model, FallbackLLM)
    assert model.models == ("openai:big", "openai:quick", "anthropic:other")


# What a request is sent with


@pytest.mark.parametrize("kind", ["chat", "responses", "anthropic"])
def test_nothing_is_sent_that_nobody_has_set(kind: Kind) -> None:
    assert RequestOptions().for_library(kind) == {}


def test_options_are_those_of_the_model_library() -> None:
    options = RequestOptions(0.0, "none", 100, {"X-A": "b"}, ("STOP",))
    assert options.for_library("chat") == {
        "temperature": 0.0,
        "thinking": False,
        "max_tokens": 100,
        "extra_headers": {"X-A": "b"},
        "stop_sequences": ["STOP"],
    }
    assert "stop_sequences" not in options.for_library("responses")
    assert RequestOptions(reasoning_effort="high").for_library("chat") == {"thinking": "high"}


# Whole conversations


def test_a_conversation_by_tags(tmp_path: Path) -> None:
    """Good calls are carried out, bad ones are told what was wrong with them."""
    script = [
        say("<function=terminal>\n<parameter=command>echo one</parameter>\n</function>"),
        say("<function=terminal>\n<parameter=comand>x</parameter>\n</function>"),
        say("<function=terminal>\n<parameter=command>x</parameter>\n"
            "<parameter=timeout>soon</parameter>\n</function>"),
        say("<function=warp>\n<parameter=to>moon</parameter>\n</function>"),
        say("All done."),
    ]  # fmt: skip
    events, requests = in_mode("text", script, tmp_path)
    told = [message.text for message in requests[-1] if message.role == "user"]
    assert "one" in told[1] and told[1].startswith("EXECUTION RESULT of [terminal]:\n")
    assert "Error validating tool 'terminal'" in told[2] and "comand" in told[2]
    assert "timeout" in told[3]
    assert "Tool 'warp' not found. Available:" in told[4]
    assert events[-2].llm_message.text == "All done."
    assert not any(message.tool_calls for request in requests for message in request)


def test_a_conversation_by_code_blocks(tmp_path: Path) -> None:
    script = [say("I count.\n```bash\necho $((20 + 1))\n```\nIt is 5."), say("It is 21.")]
    events, requests = in_mode("code", script, tmp_path)
    assert requests[-1][-2].text == "I count.\n\n```bash\necho $((20 + 1))\n```"
    assert requests[-1][-1].text.startswith("EXECUTION RESULT of [terminal]:\n21")
    assert events[-2].llm_message.text == "It is 21."


def test_half_a_call_of_a_text_is_never_carried_out(tmp_path: Path) -> None:
    half = "<function=terminal>\n<parameter=command>touch half"
    script = [{**say(half), "finish_reason": "length"}, say("I see.")]
    _, requests = in_mode("text", script, tmp_path)
    assert "length limit in the middle of this call" in requests[-1][-1].text
    assert not (tmp_path / "half").exists()


def test_half_a_call_is_never_carried_out(tmp_path: Path) -> None:
    cut = {**calls(call("terminal", '{"command": "touch half')), "finish_reason": "length"}
    with Scripted(tmp_path / "w", [cut, say("I see.")]) as talk:
        (tmp_path / "w").mkdir()
        assert talk.ask() == "finished"
        assert "length limit in the middle of this call" in talk.told("call_0_0").text
        assert list((tmp_path / "w").iterdir()) == []


def in_mode(mode: str, script: list[Any], tmp_path: Path) -> tuple[Any, Any]:
    """The events and requests of a conversation whose model calls tools in this way."""
    model = ScriptedLLM(script)
    with Conversation(
        workspace=tmp_path,
        llm=with_tools(model, "scripted:x", mode, None),
        tools=["ipython", "terminal", "finish"],
        policy="never",
        store_path=tmp_path / "events.sqlite",
    ) as talk:
        talk.send_message("go")
        assert str(talk.run()) == "finished"
        return talk.events, model.requests


def test_a_switch_of_the_model_is_recorded_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        turns = [say(f"{name} {n}") for n in range(3)]
        (tmp_path / f"{name}.json").write_text(json.dumps(turns))
    one = settings(tmp_path, "", model=f"scripted:{tmp_path}/one.json", workspace=str(tmp_path))
    two = one.with_(model=f"scripted:{tmp_path}/two.json")
    with Conversation(settings=one, store_path=tmp_path / "events.sqlite") as talk:
        for chosen in (one, one, two):
            run_blocking(talk.use(chosen))
            talk.send_message("go")
            assert str(talk.run()) == "finished"
        switches = [e for e in talk.events if getattr(e, "key", "") == "model"]
        assert [switch.value for switch in switches] == ["scripted:two.json"]
        assert talk.answer == "two 2"


def test_what_is_listed_in_a_terminal_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path, CONFIG + 'base_url = "http://me:pass@127.0.0.1:9/v1"\n')
    for name, value in {**ENVIRON, "OPENHANDS_CONFIG_FILE": f"{tmp_path}/config.toml"}.items():
        monkeypatch.setenv(name, value)
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "Model: openai:big" in said and "condenser=fast" in said
    assert "fast   openai:quick" in said and "key from FAST_KEY" in said
    assert "headers X-Team, X-Gate" in said and "price=0.150000/0.600000" in said
    assert "key from OPENAI_API_KEY" in said and "anthropic  " in said
    for secret in ("fast-secret", "gate-secret", "me:pass", ENVIRON["OPENAI_API_KEY"]):
        assert secret not in said
