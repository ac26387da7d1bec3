"""The magics: what they hand to the session, what they answer themselves, how they refuse."""

import getpass
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from oh_kernel.credentials import stored_key
from oh_kernel.errors import OpenHandsError, SettingsError
from oh_kernel.kernel.config import add_options, options_of
from oh_kernel.kernel.grammar import Ask, parse
from oh_kernel.kernel.magics import answer
from oh_kernel.kernel.notes import Note, Table, displayed, refused
from oh_kernel.loop import run_blocking
from oh_kernel.options import OPTIONS
from oh_kernel.settings import Settings, config_folder, load_settings
from oh_kernel.views.result import TurnResult


class WrittenDown:
    """A session that answers at once and keeps what it was asked."""

    def __init__(self, **values: object) -> None:
        self.settings: Settings = load_settings(values, environ={}, config_file=Path("none"))
        self.asked: list[tuple[object, ...]] = []

    async def turn(self, prompt: str, *, new: bool, overrides: dict[str, object]) -> TurnResult:
        self.asked.append(("turn", prompt, new, overrides))
        return TurnResult("finished", "42", "c1", steps=1, tokens=10)

    async def new(self) -> object:
        return self._note("new")

    async def resume(self, id: str | None) -> object:
        return self._note("resume", id)

    def status(self) -> object:
        return self._note("status")

    def pause(self) -> object:
        return self._note("pause")

    async def stop(self) -> object:
        return self._note("stop")

    async def history(self, limit: int, text: str = "") -> object:
        return self._note("history", limit, *([text] if text else []))

    def cost(self) -> object:
        return self._note("cost")

    def tools(self) -> object:
        return self._note("tools")

    def trust(self) -> object:
        return self._note("trust")

    async def review(self, n: int | None) -> object:
        return self._note("review", n)

    async def take_secret(self, name: str, value: str, *, keep: bool) -> object:
        return self._note("take_secret", name, value, keep)

    async def forget_secret(self, name: str) -> object:
        return self._note("forget_secret", name)

    def secrets(self) -> object:
        return self._note("secrets")

    async def manage(self, command: str, argument: str) -> object:
        return self._note("manage", command, argument)

    def _note(self, *what: object) -> str:
        self.asked.append(what)
        return f"done: {what[0]}"


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()
    add_options(shell)
    yield shell
    InteractiveShell.clear_instance()


async def ask(session: WrittenDown, line: str, body: str | None = None, shell: Any = None) -> Any:
    return await answer(parse(line, body), session, shell or SimpleNamespace(user_ns={}))


def run(coroutine: Any) -> Any:
    """As the kernel does it: the agent's loop works, the main thread serves it meanwhile."""
    return run_blocking(coroutine, timeout_s=20)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("new", ("new",)),
        ("resume", ("resume", None)),
        ("resume 1a2b", ("resume", "1a2b")),
        ("status", ("status",)),
        ("pause", ("pause",)),
        ("stop", ("stop",)),
        ("history", ("history", 20)),
        ("history 3", ("history", 3)),
        ("history pandas", ("history", 20, "pandas")),
        ('history "read csv" plot', ("history", 20, '"read csv" plot')),
        ('history "3"', ("history", 20, '"3"')),
        ("cost", ("cost",)),
        ("tools", ("tools",)),
        ("trust", ("trust",)),
        ("review", ("review", None)),
        ("review 2", ("review", 2)),
        ("fork 2", ("manage", "fork", "2")),
        ("btw why?", ("manage", "btw", "why?")),
    ],
)
def test_commands_reach_the_session(line: str, asked: tuple[object, ...]) -> None:
    session = WrittenDown()
    shown = run(ask(session, line))
    assert session.asked == [asked]
    assert repr(shown) == f"done: {asked[0]}"


def test_a_prompt_is_a_turn_with_its_flags() -> None:
    session = WrittenDown(model="openai:a")
    shell = SimpleNamespace(user_ns={})
    result = run(ask(session, "--new --max-steps 5 -o found", "do\n", shell))
    assert session.asked == [("turn", "do\n", True, {"max_steps": "5"})]
    assert result.answer == "42"
    assert shell.user_ns == {"found": "42"}


def test_a_wrong_value_of_a_flag_is_refused_before_the_turn() -> None:
    session = WrittenDown(model="openai:a")
    with pytest.raises(SettingsError, match="risky, never, always"):
        run(ask(session, "--policy often do"))
    assert session.asked == []


def test_without_a_model_three_lines_say_how_to_set_one() -> None:
    session = WrittenDown()
    note = run(ask(session, "", "do it"))
    assert session.asked == []
    lines = repr(note).splitlines()
    assert len(lines) == 3
    assert "%openhands config model=" in lines[0] and "login" in lines[0]
    assert "OPENHANDS_MODEL" in lines[1] and "config.toml" in lines[1]
    assert "ollama" in lines[2]
    run(ask(session, "--model openai:a do it"))
    assert session.asked != []


def test_config_shows_and_sets(shell: Any) -> None:
    session = WrittenDown()
    table = run(ask(session, "config", shell=shell))
    assert [row[0] for row in table.rows] == [option.name for option in OPTIONS]
    note = run(ask(session, "config max-steps=7", shell=shell))
    assert repr(note) == "max_steps = 7, until this kernel ends."
    assert session.settings.max_steps == 7
    one = run(ask(session, "config max_steps", shell=shell))
    assert one.rows == [("max_steps", "7", "set in this notebook")]
    run(ask(session, "config allowed_folders=/a, /b", shell=shell))
    assert session.settings.allowed_folders == (Path("/a"), Path("/b"))
    run(ask(session, "config stream=no", shell=shell))
    assert session.settings.stream is False


@pytest.mark.parametrize("wanted", ["planing", "auto,grepp"])
def test_config_refuses_tools_that_are_not_there(wanted: str) -> None:
    session = WrittenDown(model="openai:a")
    with pytest.raises(SettingsError, match="default, gpt5, gemini, planning"):
        run(ask(session, f"config tools={wanted}"))
    assert session.settings.tools == "auto"
    run(ask(session, "config tools=auto,grep"))
    assert session.settings.tools == "auto,grep"


@pytest.mark.parametrize(
    ("model", "nearest"), [("opnai:gpt-6-luna", "openai"), ("antropic/c", "anthropic")]
)
def test_a_model_of_no_known_provider_is_remarked_at_once(
    model: str, nearest: str, shell: Any
) -> None:
    said = repr(run(ask(WrittenDown(), f"config model={model}", shell=shell)))
    assert "cannot be used yet" in said and "set base_url" in said
    assert f"Did you mean {nearest}? Name it PROVIDER:NAME, with one of {nearest}, " in said
    for provider in ("openai", "anthropic", "google", "ollama"):
        assert provider in said


def test_a_model_of_an_own_server_can_be_set_before_its_address_or_after(shell: Any) -> None:
    session = WrittenDown()
    said = repr(run(ask(session, "config model=foo:bar", shell=shell)))
    assert "cannot be used yet" in said and "Did you mean" not in said
    run(ask(session, "config base_url=http://127.0.0.1:9/v1", shell=shell))
    assert (session.settings.model, session.settings.base_url) == (
        "foo:bar",
        "http://127.0.0.1:9/v1",
    )
    session = WrittenDown()
    run(ask(session, "config base_url=http://127.0.0.1:9/v1", shell=shell))
    for model in ("foo:bar", "ollama:qwen3"):
        said = repr(run(ask(session, f"config model={model}", shell=shell)))
        assert said == f"model = {model}, until this kernel ends."


def test_model_shows_and_switches(shell: Any, tmp_path: Path) -> None:
    session = WrittenDown(model="openai:a", models="title=openai:tiny")
    config = tmp_path / "config.toml"
    config.write_text('[profiles.mine]\nmodel = "ollama:qwen3"\ntool_calls = "text"\n')
    session.settings = load_settings({"model": "openai:a"}, environ={}, config_file=config)
    said = repr(run(ask(session, "model mine", shell=shell)))
    assert said == "From the next turn on ollama:qwen3 is asked, until this kernel ends."
    assert (session.settings.model, session.settings.tool_calls) == ("ollama:qwen3", "text")
    assert options_of(shell).model == "ollama:qwen3"
    table = run(ask(session, "model", shell=shell))
    assert table.rows == [("agent", "ollama:qwen3 (profile mine)", "text")]
    assert table.caption == "Profiles: mine."
    run(ask(session, "config max_steps=3", shell=shell))
    assert session.settings.model == "ollama:qwen3"
    assert "Did you mean openai?" in repr(run(ask(session, "model opnai:x", shell=shell)))
    with pytest.raises(SettingsError, match="The profiles are mine"):
        run(ask(session, "model min", shell=shell))


def test_percent_config_tells_of_an_unknown_provider_at_once(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    options = add_options(shell)
    options.model = "opnai:gpt-6-luna"
    assert "Did you mean openai?" in capsys.readouterr().err
    options.model = "openai:gpt-6-luna"
    options.record("model", "unheard:of")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("line", ["config api_key=sk-1", "config api-key='sk-1'"])
def test_a_key_is_refused_with_a_pointer_to_login(line: str) -> None:
    session = WrittenDown(model="openai:a")
    with pytest.raises(SettingsError, match="%openhands login") as refused_:
        run(ask(session, line))
    assert "sk-1" not in str(refused_.value)
    assert session.settings.api_key is None


def test_unknown_settings_get_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="Did you mean max_steps"):
        run(ask(WrittenDown(), "config max_step=3"))


def test_percent_config_reaches_the_settings(shell: Any) -> None:
    session = WrittenDown()
    shell.run_cell("%config OpenHands.model = 'openai:b'\n%config OpenHands.max_steps = 4")
    run(ask(session, "status", shell=shell))
    assert (session.settings.model, session.settings.max_steps) == ("openai:b", 4)
    assert session.settings.origin("model") == "%config OpenHands"
    run(ask(session, "config model=openai:c", shell=shell))
    run(ask(session, "status", shell=shell))
    assert session.settings.model == "openai:c"
    options = options_of(shell)
    assert options is not None
    assert options.trait_values()["model"] == "openai:c"
    assert "api_key" not in options.trait_names()


def test_login_stores_the_key_for_the_next_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A kernel asks its front end in the same way: by a `getpass` of its own while a cell runs."""
    monkeypatch.setenv("HOME", str(tmp_path))  # for other tests there is no key
    monkeypatch.setattr(getpass, "getpass", lambda prompt: " sk-typed \n")
    session = WrittenDown(model="openai:a")
    note = run(ask(session, "login"))
    assert "sk-typed" not in repr(note)
    assert stored_key("openai", config_folder()) == "sk-typed"
    run(ask(session, "login groq"))
    assert stored_key("groq", config_folder()) == "sk-typed"


def test_login_needs_a_provider_and_a_person(shell: Any) -> None:
    with pytest.raises(SettingsError, match="login PROVIDER"):
        run(ask(WrittenDown(), "login"))
    with pytest.raises(SettingsError, match="'ollama:qwen3' is no provider that takes a key"):
        run(ask(WrittenDown(model="ollama:qwen3"), "login"))


def test_what_a_session_returns_is_shown() -> None:
    assert displayed(None) is None
    assert repr(displayed({"model": "a", "cost_usd": 1})).splitlines()[1:] == [
        "model     a",
        "cost usd  1",
    ]
    rows = displayed([{"id": "c1", "title": "<b>"}, {"id": "c22", "title": ""}])
    assert isinstance(rows, Table)
    assert repr(rows) == "id   title\nc1   <b>\nc22"
    assert "<b>" not in rows._repr_html_()


def test_a_table_has_text_on_the_left_and_numbers_on_the_right() -> None:
    shown = Table(("id", "events"), [("c1", 3), ("c22", 11)])._repr_html_()
    assert shown.count("text-align:left") == shown.count("text-align:right") == 3


def test_errors_are_one_line_with_the_remedy() -> None:
    note = refused(OpenHandsError("The model is away.", remedy="Try later."))
    assert repr(note) == "The model is away. Try later."
    assert note.is_error
    assert "<script>" not in Note("<script>")._repr_html_()


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("secret TOKEN", ("take_secret", "TOKEN", "typed", False)),
        ("secret TOKEN keep", ("take_secret", "TOKEN", "typed", True)),
        ("secret TOKEN forget", ("forget_secret", "TOKEN")),
        ("secret", ("secrets",)),
        ("secrets", ("secrets",)),
    ],
)
def test_secret_is_asked_for_and_never_on_the_line(
    shell: Any, monkeypatch: pytest.MonkeyPatch, line: str, asked: tuple[object, ...]
) -> None:
    # What a kernel does while a cell runs: the question goes to the front end.
    monkeypatch.setattr(getpass, "getpass", lambda prompt: "typed ")
    session = WrittenDown()
    run_blocking(answer(parse(line), session, shell))
    assert session.asked == [asked]


def test_what_only_begins_like_a_secret_is_a_prompt() -> None:
    assert isinstance(parse("secret santa: draw the names"), Ask)
