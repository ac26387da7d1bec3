"""The command line: what each command does to files, says, and exits with."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from oh_kernel.cli import UNREAD, main
from oh_kernel.commands.install import kernelspec, shipped_kernelspec
from oh_kernel.conversation.lookup import stored_conversation
from oh_kernel.credentials import stored_key
from oh_kernel.errors import ConversationNotFound
from oh_kernel.events import Message, MessageEvent, SystemPromptEvent, TextContent
from oh_kernel.options import OPTIONS
from oh_kernel.store import EventStore
from tests.reference_layout import lay_out


@pytest.fixture
def store_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events.sqlite"
    monkeypatch.setenv("OPENHANDS_STORE_PATH", str(path))
    return path


def stored(path: Path, names: Sequence[str]) -> None:
    with EventStore.open(path) as store:
        for name in names:
            store.append(name, MessageEvent(source="user", llm_message=Message.of("user", name)))


def help_of(*command: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "oh_kernel.cli", *command, "--help"], capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_help_names_every_command() -> None:
    text = help_of()
    commands = ["demo", "run", "lab", "install", "doctor", "export", "prune", "record", "login"]
    assert [name for name in commands if name not in text] == []


def test_run_has_a_flag_for_every_option_but_the_key() -> None:
    text = help_of("run")
    assert [one.flag for one in OPTIONS if one.flag not in text and not one.secret] == []
    assert "--api-key" not in text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from oh_kernel.cli import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pydantic', 'IPython', 'openai', 'traitlets') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("oh-kernel 0.")


def test_wrong_words_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["rum"], ["run", "--modle", "x", "task"], ["export", "--format", "pdf"], []):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_run_without_a_model_says_how_to_set_one(
    capsys: pytest.CaptureFixture[str], store_file: Path
) -> None:
    assert main(["run", "do it"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("No model is set.") == 1
    for words in ("--model openai:", "OPENHANDS_MODEL=", "oh-kernel login openai", "ollama:qwen3"):
        assert words in err
    assert "%openhands" not in err and "this notebook" not in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", " "], "The task is empty."),
        (["run", "--policy", "often", "x"], "risky, never, always"),
        (["run", "--model", "scripted:x", "-C", "no/such", "x"], "There is no folder"),
        (["run", "--model", "opnai:gpt-6-luna", "x"], "Did you mean openai? Name it PROVIDER:NAME"),
        (["prune"], "Nothing says what may go."),
        (["prune", "--keep", "-1"], "A limit is below 0."),
        (["export"], "There is no store at"),
        (["login", "ollama"], "no provider that takes a key"),
    ],
)
def test_errors_name_the_remedy(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], store_file: Path
) -> None:
    assert main(words) == 1
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err


def test_json_keeps_stdout_for_events(tmp_path: Path) -> None:
    """Whatever code or a child of this process prints meanwhile goes to stderr."""
    code = (
        "import os, sys; from oh_kernel.commands.stdout import only_ours\n"
        "with only_ours() as stream:\n"
        "    print('python'); os.system('echo shell'); os.write(1, b'raw\\n')\n"
        "    stream.write('event\\n')\n"
        "print('after')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "event\nafter\n"
    assert sorted(run.stderr.split()) == ["python", "raw", "shell"]


def test_install_writes_an_absolute_interpreter_and_logos(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--prefix", str(tmp_path), "--name", "mine"]) == 0
    folder = tmp_path / "share/jupyter/kernels/mine"
    assert str(folder) in capsys.readouterr().out
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"][0] == sys.executable
    assert "oh_kernel" in spec["argv"]
    assert spec["display_name"] == "Python 3 (OpenHands) [mine]"
    assert {"logo-32x32.png", "logo-64x64.png", "logo-svg.svg"} <= {
        path.name for path in folder.iterdir()
    }
    assert main(["install", "--prefix", str(tmp_path), "--name", "mine"]) == 0, "again is fine"


def test_install_refuses_a_name_that_jupyter_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--prefix", str(tmp_path), "--name", "a/b c"]) == 1
    assert "--name" in capsys.readouterr().err


def test_shipped_kernelspec_keeps_its_name() -> None:
    assert kernelspec("openhands")["display_name"] == "Python 3 (OpenHands)"
    assert kernelspec("x", "Mine")["display_name"] == "Mine"
    assert (shipped_kernelspec() / "kernel.json").is_file()


def test_export_in_all_forms(
    store_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store_file, ["aaaa1111", "bbbb2222"])
    assert main(["export", "aaaa"]) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["kind"] == "MessageEvent"
    for form in ("html", "markdown", "text"):
        assert main(["export", "--format", form, "-o", str(tmp_path / form)]) == 0
        assert "bbbb2222" in (tmp_path / form).read_text()
    assert "1 events of bbbb2222" in capsys.readouterr().out
    assert main(["export", "--format", "md"]) == 0
    assert capsys.readouterr().out == (tmp_path / "markdown").read_text()


def test_export_replaces_a_file_only_when_told(
    store_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store_file, ["one"])
    place = tmp_path / "out.jsonl"
    place.write_text("mine")
    assert main(["export", "one", "-o", str(place)]) == 1
    assert "exists already" in capsys.readouterr().err and place.read_text() == "mine"
    assert main(["export", "one", "-o", str(place), "--force"]) == 0
    assert json.loads(place.read_text())["kind"] == "MessageEvent"
    assert main(["export", "one", "-o", "/dev/null"]) == 0
    assert not list(tmp_path.glob(".*partial*"))


def test_conversation_goes_out_as_a_folder_and_comes_back(
    store_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(tmp_path / "in")
    (folder / "events" / ".DS_Store").write_bytes(b"x")
    assert main(["import", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "26 events taken over" in out and "Left out: .DS_Store is no event." in out
    assert main(["import", str(folder)]) == 1
    assert "is stored already" in capsys.readouterr().err
    assert main(["export", "1111", "--format", "dir", "-o", str(tmp_path / "out")]) == 0
    place = capsys.readouterr().out.split()[-1]
    assert Path(place).name == folder.name
    assert main(["import", place, "--store-path", str(tmp_path / "second.sqlite")]) == 0
    assert "26 events" in capsys.readouterr().out
    assert main(["import", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_prune_deletes_what_is_beyond_the_limits(
    store_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store_file, ["aaaa1111", "bbbb2222", "cccc3333"])
    assert main(["prune", "--keep", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "2 of 3 conversations would go." in out and "aaaa1111" in out
    assert main(["prune", "--keep", "1"]) == 0
    assert "2 conversations deleted" in capsys.readouterr().out
    with EventStore.open(store_file) as store:
        assert [info.id for info in store.conversations()] == ["cccc3333"]


def test_a_conversation_is_found_by_its_first_characters(store_file: Path) -> None:
    nothing = pytest.raises(ConversationNotFound, match="No conversation is stored")
    with EventStore.open(store_file) as store, nothing:
        stored_conversation(store)
    stored(store_file, ["abcd0001", "abcd0002", "abcd"])
    with EventStore.open(store_file) as store:
        assert stored_conversation(store).id == "abcd"
        assert stored_conversation(store, "ABCD0001").id == "abcd0001"
        assert stored_conversation(store, "abcd").id == "abcd"
        with pytest.raises(ConversationNotFound, match="2 conversations begin with abcd0"):
            stored_conversation(store, "abcd0")
        with pytest.raises(ConversationNotFound, match="The newest are abcd"):
            stored_conversation(store, "ffff")


@pytest.mark.parametrize("piped", ["sk-piped\n", "sk-piped", " sk-piped \r\nmore\n"])
def test_login_reads_a_piped_line_silently(piped: str, tmp_path: Path) -> None:
    run = login(tmp_path, piped)
    assert run.returncode == 0 and run.stderr == ""
    assert len(run.stdout.splitlines()) == 1 and "sk-piped" not in run.stdout
    assert stored_key("openai", tmp_path) == "sk-piped"


def test_login_with_nothing_piped_stores_nothing(tmp_path: Path) -> None:
    run = login(tmp_path, "")
    assert run.returncode == 1 and run.stdout == ""
    assert run.stderr.startswith("oh-kernel: No key was given.")
    assert not (tmp_path / "credentials").exists()


def test_login_with_stdin_closed_is_one_line() -> None:
    command = f"'{sys.executable}' -m oh_kernel.cli login openai <&-"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("oh-kernel: No key was given.") and run.stderr.count("\n") == 1


def login(folder: Path, piped: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oh_kernel.cli", "login", "openai"],
        env={**os.environ, "OPENHANDS_CONFIG_FILE": str(folder / "config.toml")},
        input=piped,
        capture_output=True,
        text=True,
    )


def test_lab_passes_options_on() -> None:
    """JupyterLab itself answers, before it would start anything."""
    assert "-- --no-browser" in help_of("lab")
    for words in (["--", "--version"], ["any.ipynb", "--", "--version"]):
        command = [sys.executable, "-m", "oh_kernel.cli", "lab", *words]
        run = subprocess.run(command, capture_output=True, text=True)
        assert (run.returncode, run.stdout.strip()) == (0, version("jupyterlab")), run.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--polcy", "never", "go"], "Did you mean --policy?"),
        (["run", "--max-step=3", "go", "--polisy=never"], "Did you mean --policy?"),
        (["export", "--frmat", "html"], "Did you mean --format?"),
        (["doctor", "more"], "more is not known here."),
    ],
)
def test_unknown_flag_is_told_the_nearest(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(words)
    told = capsys.readouterr().err
    assert refused.value.code == 2 and said in told and told.count("\n") == 1


def test_export_to_where_nothing_can_be_written_is_one_line(
    store_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store_file, ["one"])
    for place in (tmp_path, tmp_path / "no" / "such"):
        assert main(["export", "one", "-o", str(place)]) == 1
        told = capsys.readouterr().err
        assert str(place) in told and told.count("\n") == 1


def test_export_stops_quietly_when_its_reader_does(store_file: Path) -> None:
    stored(store_file, ["one"])
    command = [sys.executable, "-m", "oh_kernel.cli", "export", "one"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == UNREAD


def test_export_begins_with_the_first_message(
    store_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EventStore.open(store_file) as store:
        text = TextContent(text="You are the agent.")
        store.append("one", SystemPromptEvent(source="agent", system_prompt=text, tools=[]))
    stored(store_file, ["one"])
    assert main(["export", "one", "--format", "html"]) == 0
    assert capsys.readouterr().out.count("<hr>") == 1


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_exported_title_does_nothing(
    form: str, store_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store_file, ["one"])
    with EventStore.open(store_file) as store:
        store.set_meta("one", title="\x1b[2J<img src=x onerror=alert(1)>\n# b")
    assert main(["export", "one", "--format", form]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\n# b" not in out
    assert form == "text" or "<img" not in out
