"""The magics as a person meets them: in a real kernel, with its completion, help and questions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_kernel.credentials import stored_key
from oh_kernel.kernel.commands import usage
from oh_kernel.store import EventStore
from tests.live.kernel_client import Kernel, running_kernel
from tests.outputs import final_text

DEADLINE_S = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernel")


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Iterator[Kernel]:
    script = folder / "script.json"
    script.write_text(json.dumps([{"content": "The answer is 42."}]))
    settings = folder / "settings" / "config.toml"
    settings.parent.mkdir()
    settings.touch()
    with running_kernel(
        folder,
        OPENHANDS_CONFIG_FILE=str(settings),
        OPENHANDS_STORE_PATH=str(folder / "events.sqlite"),
        XDG_CONFIG_HOME=str(folder / "xdg"),
        OH_SCRIPT=f"scripted:{script}",
    ) as kernel:
        yield kernel


def test_no_model_is_answered_in_three_lines(kernel: Kernel) -> None:
    result = kernel.run("%%openhands\nhello")
    assert result.status == "ok"
    text = final_text(result.messages)  # a status line stood there first
    assert len(text.strip().splitlines()) == 3
    assert "ollama" in text


def test_help_in_every_way(kernel: Kernel) -> None:
    assert usage() in kernel.run("%openhands -h").text
    assert usage() in kernel.run("%%openhands --help\nbody").text
    assert usage() in kernel.run("%openhands").text
    pages = kernel.run("%openhands?").reply["content"]["payload"]
    assert "history [N | WORD]" in pages[0]["data"]["text/plain"]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%openhands statsu", "Did you mean status?"),
        ("%%openhands --modle x\nhi", "There is no flag --modle. Did you mean --model?"),
        ("%openhands config api_key=sk-typed", "Delete it from this cell"),
        ("%openhands config polcy=never", "Did you mean policy?"),
        ("%%openhands --policy often\nhi", "must be one of risky, never, always"),
        ("%openhands resume 0123abcd", "No conversation is stored in"),
    ],
)
def test_a_refusal_is_one_line_and_no_traceback(kernel: Kernel, cell: str, says: str) -> None:
    result = kernel.run(cell)
    assert result.status == "ok" and result.errors == []
    assert says in result.text
    assert len(result.text.strip().splitlines()) == 1
    assert result.of_type("stream") == []


@pytest.mark.parametrize("command", ["status", "history", "cost", "tools", "config", "pause"])
def test_commands_answer_without_a_model(kernel: Kernel, command: str) -> None:
    result = kernel.run(f"%openhands {command}")
    assert (result.status, result.errors) == ("ok", [])
    assert result.text.strip()


def test_percent_config_and_config_agree(kernel: Kernel) -> None:
    kernel.run("%config OpenHands.max_steps = 7")
    assert "7" in kernel.run("%openhands config max_steps").text
    kernel.run("%openhands config max_steps=8")
    assert kernel.run("%config OpenHands.max_steps").text.strip() == "8"


def test_tab(kernel: Kernel) -> None:
    def tab(code: str) -> list[str]:
        content = kernel.client.complete(code, len(code), reply=True, timeout=DEADLINE_S)["content"]
        return [code[: content["cursor_start"]] + match for match in content["matches"]]

    assert tab("%openhands hist") == ["%openhands history"]
    assert tab("%%openhands --policy=ne") == ["%%openhands --policy=never"]
    assert "%%openhands --max-steps" in tab("%%openhands --ma")
    assert "import os" in [match[:9] for match in tab("import os")]


def test_login_asks_the_front_end_without_echo(kernel: Kernel, folder: Path) -> None:
    cell = kernel.start("%openhands login openai", allow_stdin=True)
    question = kernel.client.get_stdin_msg(timeout=DEADLINE_S)
    assert question["content"]["password"] is True
    assert "openai" in question["content"]["prompt"]
    kernel.client.input("sk-typed")
    result = kernel.finish(cell)
    assert "The key for openai is stored" in result.text
    assert "sk-typed" not in json.dumps([message["content"] for message in result.messages])
    places = list(folder.rglob("credentials"))
    assert len(places) == 1
    assert places[0].stat().st_mode & 0o777 == 0o600
    assert stored_key("openai", places[0].parent) == "sk-typed"


def test_login_where_nobody_can_be_asked(kernel: Kernel) -> None:
    result = kernel.run("%openhands login openai", allow_stdin=False)
    assert "Nobody can be asked for a key here." in result.text


def test_a_turn_gives_a_result_and_binds_the_answer(kernel: Kernel) -> None:
    kernel.run(
        "import os; get_ipython().run_line_magic('config', "
        "f\"OpenHands.model = '{os.environ['OH_SCRIPT']}'\")"
    )
    result = kernel.run("%%openhands -o found\nwhat is it?")
    assert (result.status, result.errors) == ("ok", [])
    drawn = result.of_type("update_display_data")[-1]["data"]
    assert all("The answer is 42." in text for text in drawn.values())
    assert "finished · 1 step" in result.text
    assert kernel.run("print(found)").text == "The answer is 42.\n"
    assert "1" in kernel.run("%openhands cost").text
    assert len(kernel.run("%openhands history").text.splitlines()) >= 2


def test_resume_takes_the_first_characters_of_an_id(kernel: Kernel) -> None:
    row = kernel.run("%openhands history").text.splitlines()[1]
    conversation_id = row.split()[0]
    assert conversation_id in kernel.run(f"%openhands resume {conversation_id[:8]}").text
    assert conversation_id in kernel.run("%openhands status").text
    assert "The newest are" in kernel.run("%openhands resume ffffffffffff").text


def test_agents_own_code_cannot_begin_a_turn(tmp_path: Path) -> None:
    inner = "print(get_ipython().run_cell_magic('openhands', '--new', 'inner task'))"
    turns = [
        {"tool_calls": [{"name": "ipython", "arguments": {"code": inner}}]},
        {"content": "outer done"},
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps(turns))
    store = tmp_path / "events.sqlite"
    env = {"OPENHANDS_MODEL": f"scripted:{script}", "OPENHANDS_STORE_PATH": str(store)}
    with running_kernel(tmp_path, **env) as kernel:
        result = kernel.run("%%openhands\nouter task", deadline_s=30)
        text = final_text(result.messages)
        assert "already running" in text and "outer done" in text
    with EventStore.open(store) as opened:
        (info,) = opened.conversations()
        assert not any(
            "inner task" in e.to_json() for e in opened.iterate(info.id) if e.kind == "MessageEvent"
        )
