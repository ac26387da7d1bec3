"""A secret is nowhere in the clear: not stored, not shown, not sent; and commands still have it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.conversation.confirmation import Decision, Question
from oh_kernel.conversation.passing import Passing
from oh_kernel.conversation.run import HOLDS_SECRET
from oh_kernel.errors import ConversationError
from oh_kernel.events import Event
from oh_kernel.security.registry import SecretWarning
from oh_kernel.security.secret_sources import LookupSecret
from tests.conversations import Scripted, call, calls, say

TOKEN = "tok_5f3a9c77b1e2"
HIDDEN = "<secret-hidden>"


class Watcher:
    """Keeps all that a view is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def event(self, event: Event) -> None:
        self.seen.append(event.to_json())

    def delta(self, delta: Passing) -> None:
        self.seen.append(getattr(delta, "text", "") or getattr(delta, "arguments", ""))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n"
        f'[remote "origin"]\n\turl = https://{TOKEN}@example.invalid/r.git\n'
    )
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "objects").mkdir()
    (folder / ".git" / "refs").mkdir()
    return folder


def texts_of_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "config":
            yield path, path.read_bytes()


def sent(scripted: Scripted) -> str:
    """All that the model was sent."""
    return "".join(m.model_dump_json() for request in scripted.llm.requests for m in request)


# The code of the case leaves a file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_EV_05(work: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    printing = "print(open('.git/config').read()); raise ValueError('bad "
    literal, pieces = f"{printing}{TOKEN}')", f"{printing}{TOKEN[:8]}' '{TOKEN[8:]}')"
    turns = [
        calls(call("terminal", {"command": "git remote -v"}, "remote")),
        calls(call("file_editor", {"command": "view", "path": f"{work}/.git/config"}, "view")),
        # What the log cannot hold is not run; a value may be put together, though.
        calls(call("ipython", {"code": literal}, "literal")),
        calls(call("ipython", {"code": pieces}, "python")),
        calls(call("grep", {"pattern": "example.invalid", "path": f"{work}/.git"}, "grep")),
        calls(call("terminal", {"command": "echo $DEPLOY_TOKEN | wc -c; echo 17"}, "echo")),
        say("done"),
    ]
    watcher = Watcher()
    secrets = {"DEPLOY_TOKEN": TOKEN, "PIN": "7"}
    with caplog.at_level(logging.DEBUG), pytest.warns(SecretWarning, match="PIN has fewer than 6"):
        first = Scripted(work, turns, tools="default,grep", policy="never", secrets=secrets)
    with first:
        first.conversation.subscribe(watcher)
        assert first.ask(f"push with {TOKEN}") == "finished"
        for call_id in ("remote", "view", "python"):
            text = first.told(call_id).text
            assert f"https://{HIDDEN}@example.invalid/r.git" in text, text
        assert f"ValueError: bad {HIDDEN}" in first.told("python").text
        assert "/.git/config" in first.told("grep").text
        assert first.told("literal").text == HOLDS_SECRET
        assert first.told("echo").text.splitlines()[:2] == ["17", "17"]
        assert "$DEPLOY_TOKEN" in first.llm.requests[0][0].model_dump_json()
        conversation_id = first.conversation.id

    assert TOKEN not in sent(first) and HIDDEN in sent(first)
    assert all(TOKEN not in seen for seen in watcher.seen)
    assert TOKEN not in caplog.text

    # The process ends; the conversation is loaded again.
    again = [*turns[:-1], say("done"), turns[0], say("still there")]
    second = Scripted(
        work, again, tools="default,grep", policy="never", conversation_id=conversation_id
    )
    with second:
        assert second.conversation.missing_secrets == ("DEPLOY_TOKEN", "PIN")
        with pytest.raises(ConversationError, match="DEPLOY_TOKEN, PIN"):
            second.conversation.send_message("once more")
        with pytest.warns(SecretWarning):
            second.conversation.update_secrets(secrets)
        second.conversation.subscribe(watcher)
        assert second.ask("once more") == "finished"
        remotes = [r for i, r in second.results.items() if i.startswith("remote")]
        assert len(remotes) == 2
        assert all(f"{HIDDEN}@example.invalid" in r.to_json() for r in remotes)
    assert TOKEN not in sent(second)
    assert all(TOKEN not in seen for seen in watcher.seen)
    for path, content in texts_of_files(tmp_path):
        assert TOKEN.encode() not in content, path


def test_secret_of_a_command_is_gone_with_it(work: Path) -> None:
    turns = [
        calls(call("terminal", {"command": "echo ${#DEPLOY_TOKEN}"}, "named")),
        calls(
            call("terminal", {"command": 'env | grep -c "^DEPLOY"; echo $MY_DEPLOY_TOKEN_2'}, "no")
        ),
        calls(
            call("ipython", {"code": "import os; print('DEPLOY_TOKEN' in os.environ)"}, "python")
        ),
        say("done"),
    ]
    with Scripted(work, turns, policy="never", secrets={"DEPLOY_TOKEN": TOKEN}) as scripted:
        scripted.ask()
        assert scripted.told("named").text.startswith("16")
        assert scripted.told("no").text.startswith("0")
        assert scripted.told("python").text == "False"


def test_secret_that_comes_later_is_told_to_the_model_and_hidden_in_what_it_saw(work: Path) -> None:
    turns = [
        calls(call("terminal", {"command": "cat .git/config"}, "before")),
        say("done"),
        calls(call("terminal", {"command": "echo ${#DEPLOY_TOKEN}"}, "after")),
        say("done"),
    ]
    with Scripted(work, turns, policy="never") as scripted:
        scripted.ask()
        assert TOKEN in sent(scripted)
        system = scripted.llm.requests[0][0]
        with pytest.warns(SecretWarning, match="stored events"):
            scripted.conversation.update_secrets({"DEPLOY_TOKEN": TOKEN})
        scripted.llm.requests.clear()
        scripted.ask()
        assert TOKEN not in sent(scripted)
        assert scripted.llm.requests[0][0] == system  # what a provider has cached stays
        assert "$DEPLOY_TOKEN" in sent(scripted)
        assert scripted.told("after").text.startswith("16")
        with pytest.warns(SecretWarning):
            scripted.conversation.update_secrets({"DEPLOY_TOKEN": None})
        assert not scripted.conversation.secrets
        assert "no secrets any more" in scripted.conversation.events[-1].to_json()


def test_secret_in_pieces_of_a_stream_is_never_shown(work: Path) -> None:
    code = f"for c in {TOKEN[:7]!r}, {TOKEN[7:]!r}, '!':\n    print(c, end='', flush=True)"
    command = f"printf {TOKEN[:5]}; sleep 0.1; printf '\\033[1m{TOKEN[5:]}\\n'"
    turns = [
        calls(
            call("ipython", {"code": code}, "python"), call("terminal", {"command": command}, "t")
        ),
        say(f"The token is {TOKEN}, as {TOKEN} was."),
    ]
    watcher = Watcher()
    with Scripted(work, turns, policy="never", secrets={"DEPLOY_TOKEN": TOKEN}) as scripted:
        scripted.conversation.subscribe(watcher)
        scripted.ask()
        assert TOKEN not in "".join(watcher.seen)
        assert f"The token is {HIDDEN}, as {HIDDEN} was." in "".join(watcher.seen)
        assert scripted.told("python").text.endswith(f"{HIDDEN}!")


def test_picture_of_the_mask_is_not_written_into_files(work: Path) -> None:
    (work / "conf.ini").write_text(f"token = {TOKEN}\nlevel = 1\n")
    masked = f"token = {HIDDEN}\nlevel = 2\n"
    turns = [
        calls(call("file_editor", {"command": "view", "path": f"{work}/conf.ini"}, "view")),
        calls(
            call(
                "file_editor",
                {"command": "create", "path": f"{work}/conf.ini", "file_text": masked},
                "write",
            )
        ),
        calls(
            call(
                "file_editor",
                {
                    "command": "str_replace",
                    "path": f"{work}/conf.ini",
                    "old_str": "level = 1",
                    "new_str": "level = 2",
                },
                "edit",
            )
        ),
        say("done"),
    ]
    with Scripted(work, turns, policy="never", secrets={"DEPLOY_TOKEN": TOKEN}) as scripted:
        scripted.ask()
        assert "stands for a secret" in scripted.told("write").text
        assert (work / "conf.ini").read_text() == f"token = {TOKEN}\nlevel = 2\n"


class Vault(ThreadingHTTPServer):
    """Answers with a secret to who sends the right header."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Vault)
        self.asked: list[str | None] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"


class _Vault(BaseHTTPRequestHandler):
    server: Vault

    def do_GET(self) -> None:
        self.server.asked.append(self.headers.get("Authorization"))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()
        self.wfile.write(f"{TOKEN}\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the test asks `asked`."""


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_secret_is_looked_up_when_a_command_names_it(work: Path, vault: Vault) -> None:
    key = "vault-key-8812-abc"
    source = LookupSecret(
        url=vault.url, headers={"Authorization": f"Bearer {key}"}, description="for the registry"
    )
    turns = [
        calls(call("terminal", {"command": "echo nothing"}, "none")),
        calls(call("terminal", {"command": "echo $DEPLOY_TOKEN $OTHER"}, "named")),
        calls(call("terminal", {"command": f"echo {key[:9]}''{key[9:]}"}, "key")),
        say("done"),
    ]
    with Scripted(work, turns, policy="never", secrets={"DEPLOY_TOKEN": source}) as scripted:
        scripted.ask()
        assert vault.asked == [f"Bearer {key}"]
        assert scripted.told("named").text.startswith(HIDDEN)
        assert scripted.told("key").text.startswith(HIDDEN)
        assert "for the registry" in scripted.llm.requests[0][0].model_dump_json()
        stored = "".join(event.to_json() for event in scripted.conversation.events)
        assert TOKEN not in stored and key not in stored
        # What is stored of it: where to look, without what is sent there.
        assert vault.url in stored


@pytest.mark.parametrize("status", [404, 302])
def test_lookup_that_fails_is_told_and_rests(work: Path, vault: Vault, status: int) -> None:
    vault.status = status
    source = LookupSecret(url=vault.url, headers={"Authorization": "Bearer vault-key-8812-abc"})
    turns = [
        calls(call("terminal", {"command": "echo [$DEPLOY_TOKEN]"}, "one")),
        calls(call("terminal", {"command": "echo [$DEPLOY_TOKEN] again"}, "two")),
        say("done"),
    ]
    with Scripted(work, turns, policy="never", secrets={"DEPLOY_TOKEN": source}) as scripted:
        scripted.ask()
        assert len(vault.asked) == 1
        for call_id in ("one", "two"):
            assert f"DEPLOY_TOKEN is not set: HTTP {status}" in scripted.told(call_id).text
            assert "[]" in scripted.told(call_id).text


def test_run_takes_a_secret_by_the_name_of_its_variable(work: Path, tmp_path: Path) -> None:
    turns = [
        {"tool_calls": [call("terminal", {"command": "cat .git/config; echo ${#DEPLOY_TOKEN}"})]},
        {"content": "done"},
    ]
    (tmp_path / "script.json").write_text(json.dumps(turns))

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        flags = ["-C", str(work), "--model", f"scripted:{tmp_path}/script.json"]
        store = ["--store-path", str(tmp_path / "run.sqlite")]
        command = [sys.executable, "-m", "oh_kernel.cli", "run", *flags, *store, *words, "push"]
        environment = {**os.environ, **env}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)

    done = run("--json", "--secret", "DEPLOY_TOKEN", DEPLOY_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert f"https://{HIDDEN}@example.invalid" in done.stdout
    short = run("--secret", "PIN", PIN="7")
    assert "The secret PIN has fewer than 6 characters" in short.stderr
    assert "SecretWarning" not in short.stderr
    missing = run("--secret", "NOT_SET_ANYWHERE")
    assert missing.returncode == 1
    assert "NOT_SET_ANYWHERE is not set" in missing.stderr


class Onlooker:
    """Allows everything, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown = ""

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        self.shown += repr(questions)
        return [Decision(approved=True) for _ in questions]


def test_question_about_an_edit_shows_the_file_masked(work: Path) -> None:
    path = work / "conf.ini"
    path.write_text(f"token = {TOKEN}\nlevel = 1\n")
    edit = {"command": "str_replace", "path": str(path), "old_str": "level = 1", "new_str": "x"}
    turns = [
        calls(call("file_editor", {"command": "view", "path": str(path)}, "view")),
        calls(call("file_editor", edit, "edit")),
        say("done"),
    ]
    onlooker = Onlooker()
    options: dict[str, Any] = {
        "policy": "always",
        "approver": onlooker,
        "secrets": {"DEPLOY_TOKEN": TOKEN},
    }
    with Scripted(work, turns, **options) as scripted:
        scripted.ask()
    assert f"token = {HIDDEN}" in onlooker.shown and TOKEN not in onlooker.shown
    assert path.read_text() == f"token = {TOKEN}\nx\n"
