"""Settings: where values come from, which win, how wrong ones are refused, what stays masked."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from oh_kernel import credentials
from oh_kernel.errors import SettingsError
from oh_kernel.settings import (
    Settings,
    config_folder,
    config_path,
    load_settings,
    misspelt_variables,
)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def load(config_file: Path, flags: dict[str, object] | None = None, /, **environ: str) -> Settings:
    return load_settings(flags, environ=environ, config_file=config_file)


def test_defaults_are_the_safe_choice(config_file: Path) -> None:
    settings = load(config_file)
    assert (settings.policy, settings.unattended, settings.context) == ("risky", "deny", "schema")
    assert settings.model is None
    assert settings.max_steps == 100
    assert settings.origin("max_steps") == "default"


def test_flag_beats_environment_beats_file(config_file: Path) -> None:
    config_file.write_text("max_steps = 7\npolicy = 'always'\nstream = false\n")
    settings = load(
        config_file, {"max_steps": 9}, OPENHANDS_MAX_STEPS="8", OPENHANDS_POLICY="never"
    )
    assert (settings.max_steps, settings.policy, settings.stream) == (9, "never", False)
    assert settings.origin("max_steps") == "a flag"
    assert settings.origin("policy") == "OPENHANDS_POLICY"
    assert settings.origin("stream") == str(config_file)


def test_own_variable_beats_the_older_one(config_file: Path) -> None:
    older = {"LLM_MODEL": "openai:a", "LLM_BASE_URL": "http://a", "LLM_API_KEY": "k"}
    settings = load(config_file, **older, OPENHANDS_MODEL="openai:b")
    assert (settings.model, settings.base_url) == ("openai:b", "http://a")
    assert settings.origin("base_url") == "LLM_BASE_URL"


def test_an_empty_variable_is_none(config_file: Path) -> None:
    assert load(config_file, OPENHANDS_MODEL="", LLM_MODEL="openai:a").model == "openai:a"


def test_the_environment_of_the_process_is_the_default(
    monkeypatch: pytest.MonkeyPatch, config_file: Path
) -> None:
    monkeypatch.setenv("OPENHANDS_MAX_STEPS", "3")
    assert load_settings(config_file=config_file).max_steps == 3


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("gemini:x", "GEMINI_API_KEY"),
        ("groq:x", "GROQ_API_KEY"),
        ("openrouter:anthropic/claude", "OPENROUTER_API_KEY"),
    ],
)
def test_the_key_of_the_models_provider_is_found(
    config_file: Path, model: str, variable: str
) -> None:
    others = {"OPENAI_API_KEY": "no", "ANTHROPIC_API_KEY": "no", "GROQ_API_KEY": "no"}
    settings = load(config_file, {"model": model}, **(others | {variable: "yes"}))
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "yes"
    assert settings.origin("api_key") == variable


def test_a_key_is_not_sent_to_another_provider(config_file: Path) -> None:
    """LLM_API_KEY and LLM_BASE_URL belong to LLM_MODEL; a flag for another model leaves them."""
    environ = {"LLM_MODEL": "openai:a", "LLM_API_KEY": "sk-a", "LLM_BASE_URL": "http://a"}
    settings = load(config_file, **environ)
    assert settings.api_key is not None
    other = settings.with_(model="anthropic:c")
    assert (other.api_key, other.base_url) == (None, None)
    assert other.with_(model="openai:b").base_url == "http://a"
    own = load(config_file, {"model": "anthropic:c"}, **environ, ANTHROPIC_API_KEY="sk-c")
    assert own.api_key is not None
    assert own.api_key.get_secret_value() == "sk-c"


def test_a_key_given_without_a_model_goes_with_any(config_file: Path) -> None:
    settings = load(config_file, {"model": "anthropic:c"}, LLM_API_KEY="k")
    assert settings.origin("api_key") == "LLM_API_KEY"


def test_a_stored_key_is_used_last(config_file: Path) -> None:
    where = credentials.store_key("openai", 'sk-"\\stored', config_file.parent)
    assert Path(where).stat().st_mode & 0o777 == 0o600
    credentials.store_key("groq", "gsk", config_file.parent)
    settings = load(config_file, {"model": "openai:a"})
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == 'sk-"\\stored'
    assert settings.origin("api_key") == "stored by login"
    own = load(config_file, {"model": "openai:a"}, OPENAI_API_KEY="own")
    assert own.origin("api_key") == "OPENAI_API_KEY"


def test_a_key_file_that_others_can_read_is_refused(config_file: Path) -> None:
    path = Path(credentials.store_key("openai", "k", config_file.parent))
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        load(config_file, {"model": "openai:a"})


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ({"policy": "alway"}, ["policy is 'alway'", "risky, never, always", "Did you mean always"]),
        ({"max_steps": "0"}, ["max_steps is '0'", "at least 1 (steps)", "default is 100"]),
        ({"max_steps": "many"}, ["max_steps is 'many'", "a whole number"]),
        ({"timeout_s": "nan"}, ["timeout_s is 'nan'", "(seconds)", "default is 300"]),
        ({"stream": "perhaps"}, ["stream is 'perhaps'", "yes or no", "default is yes"]),
        ({"max_stps": 3}, ["no setting 'max_stps'", "Did you mean max_steps"]),
        ({"colour": 3}, ["no setting 'colour'", "There are: model, base_url"]),
    ],
)
def test_wrong_values_name_value_limits_and_remedy(
    config_file: Path, flags: dict[str, object], parts: list[str]
) -> None:
    with pytest.raises(SettingsError) as refused:
        load(config_file, flags)
    assert [part for part in parts if part not in str(refused.value)] == []


def test_wrong_values_name_their_place(config_file: Path) -> None:
    with pytest.raises(SettingsError, match=r"\(OPENHANDS_POLICY\)"):
        load(config_file, OPENHANDS_POLICY="sometimes")
    config_file.write_text("max-stps = 3\n")
    with pytest.raises(SettingsError, match="Did you mean max_steps"):
        load(config_file)
    config_file.write_text("max_steps = \n")
    with pytest.raises(SettingsError, match=r"config\.toml is not valid TOML"):
        load(config_file)


def test_an_address_without_its_scheme_is_refused(config_file: Path) -> None:
    with pytest.raises(SettingsError, match="begins with http:// or https://"):
        load(config_file, {"base_url": "localhost:11434"})
    local = load(config_file, {"model": "openai:a", "base_url": "http://localhost:11434/v1"})
    assert local.with_(base_url="").base_url is None


def test_a_wrong_key_is_not_printed(config_file: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        load(config_file, {"api_key": ["sk-secret"]})
    assert "sk-secret" not in str(refused.value)


def test_no_key_in_the_file_of_settings(config_file: Path) -> None:
    config_file.write_text("api_key = 'sk-secret'\n")
    with pytest.raises(SettingsError, match="login") as refused:
        load(config_file)
    assert "sk-secret" not in str(refused.value)


def test_secrets_are_masked_in_every_text(config_file: Path) -> None:
    settings = load(config_file, {"model": "openai:a"}, OPENAI_API_KEY="sk-secret")
    texts = [repr(settings), str(settings), settings.shown("api_key"), settings.model_dump_json()]
    assert all("sk-secret" not in text for text in texts)


def test_lists_and_folders(config_file: Path, tmp_path: Path) -> None:
    config_file.write_text('allow = ["terminal:git log", "ipython"]\nworkspace = "~/w"\n')
    settings = load(config_file, {"allowed_folders": f"{tmp_path}, /data"})
    assert settings.allow == ("terminal:git log", "ipython")
    assert settings.allowed_folders == (tmp_path, Path("/data"))
    assert settings.workspace == Path.home() / "w"
    assert settings.shown("allow") == "terminal:git log, ipython"
    assert load(config_file, OPENHANDS_ALLOW="a, b").allow == ("a", "b")


def test_with_gives_a_checked_copy(config_file: Path) -> None:
    settings = load(config_file)
    assert settings.with_(max_steps="5").max_steps == 5
    assert settings.max_steps == 100
    with pytest.raises(SettingsError, match="at least 1"):
        settings.with_(max_steps=0)
    changes: Any = settings
    with pytest.raises(ValidationError):
        changes.max_steps = 5


def test_the_store_is_in_the_jupyter_data_folder(config_file: Path, tmp_path: Path) -> None:
    from jupyter_core.paths import jupyter_data_dir

    expected = Path(jupyter_data_dir()) / "oh-kernel" / "events.sqlite"
    assert load(config_file).store_file == expected
    assert load(config_file, OPENHANDS_STORE_PATH=str(tmp_path / "x")).store_file == tmp_path / "x"


def test_config_file_can_be_named(tmp_path: Path) -> None:
    assert config_path({"OPENHANDS_CONFIG_FILE": str(tmp_path / "c")}) == tmp_path / "c"
    assert config_path({}).name == "config.toml"


def test_a_named_config_file_must_be_there(tmp_path: Path) -> None:
    named = tmp_path / "no" / "such.toml"
    with pytest.raises(SettingsError, match="OPENHANDS_CONFIG_FILE") as refused:
        load_settings(environ={"OPENHANDS_CONFIG_FILE": str(named)})
    assert str(named) in refused.value.message and refused.value.remedy
    named.parent.mkdir()
    named.write_text("max_steps = 7")
    assert load_settings(environ={"OPENHANDS_CONFIG_FILE": str(named)}).max_steps == 7


def test_login_stores_where_the_settings_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_CONFIG_FILE", str(tmp_path / "own" / "config.toml"))
    credentials.store_key("mistral", "k", config_folder())
    config_path().touch()
    assert (tmp_path / "own" / "credentials").exists()
    assert load_settings({"model": "mistral:x"}).origin("api_key") == "stored by login"


def test_misspelt_variables_are_found() -> None:
    found = misspelt_variables({"OPENHANDS_POLCY": "1", "OPENHANDS_MODEL": "m", "OPENHANDS_X": ""})
    assert found == {"OPENHANDS_POLCY": "OPENHANDS_POLICY"}
