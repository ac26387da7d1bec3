"""Without a notebook: a conversation goes on in a later process, and in a fork of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oh_kernel.events import MessageEvent
from tests.live.agent_kernel import stored_events

TURNS = [{"content": "First."}, {"content": "Second."}, {"content": "Third."}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "script.json").write_text(json.dumps(TURNS))
    return tmp_path


def oh(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`oh-kernel` with these words, run outside of the folder that it works in."""
    store = ["--store-path", str(folder / "e.sqlite")]
    command = [sys.executable, "-m", "oh_kernel.cli", words[0], *store, *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == code, done.stderr
    return done


def ask(folder: Path, *words: str) -> str:
    return oh(folder, "run", "--model", f"scripted:{folder}/script.json", *words).stdout


def asked(folder: Path, conversation_id: str | None = None) -> list[str]:
    """The user's messages of a conversation, by default of that used last."""
    events = stored_events(folder / "e.sqlite", conversation_id)
    return [
        event.llm_message.text
        for event in events
        if isinstance(event, MessageEvent) and event.source == "user"
    ]


def listed(folder: Path) -> list[str]:
    from oh_kernel import Conversation

    return [info.id for info in Conversation.list(store_path=folder / "e.sqlite")]


def test_a_later_process_goes_on(folder: Path) -> None:
    assert "First." in ask(folder, "-C", str(folder / "work"), "one")
    [first] = listed(folder)
    assert "Second." in ask(folder, "--resume", first[:8], "two")
    assert asked(folder) == ["one", "two"]
    error = oh(folder, "run", "--model", "scripted:x", "--resume", "ffffffff", "three", code=1)
    assert "No stored conversation begins with ffffffff" in error.stderr


def test_a_fork_goes_on_by_itself(folder: Path) -> None:
    ask(folder, "-C", str(folder / "work"), "one")
    [source] = listed(folder)
    ask(folder, "--resume", source, "two")
    fork = oh(folder, "fork", source[:8], "--turn", "1").stdout.strip()
    assert fork in listed(folder) and fork != source
    assert "Second." in ask(folder, "--resume", fork, "instead")
    assert (asked(folder, source), asked(folder, fork)) == (["one", "two"], ["one", "instead"])
    error = oh(folder, "fork", source, "--turn", "3", code=1)
    assert "There is no turn 3: the conversation has 2." in error.stderr
    error = oh(folder, "fork", source, "--at", "nosuch", code=1)
    assert "There is no event 'nosuch'" in error.stderr
