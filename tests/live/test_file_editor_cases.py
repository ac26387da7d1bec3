"""Field cases FE-07 and FE-08 as conversations, in which a search follows the views and edits."""

import json
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import ObservationEvent
from oh_kernel.store import EventStore
from oh_kernel.tools.file_answers import MAX_CHARS
from tests.conversations import Scripted, call, calls, say

TOOLS = ("file_editor", "grep", "finish")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def turns(work: Path, edits: list[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    steps = [
        call("file_editor", {**edit, "path": str(work / edit["path"])}, f"step{number}")
        for number, edit in enumerate(edits, 1)
    ]
    search = call("grep", {"pattern": pattern, "path": str(work)}, f"step{len(edits) + 1}")
    return [*(calls(step) for step in [*steps, search]), say("done")]


def answers(run: Scripted) -> list[Any]:
    """The observation of each step; each is within the cap wherever it goes."""
    with EventStore.open(run.conversation.settings.store_file, read_only=True) as store:
        stored = [e for e in store.iterate(run.conversation.id) if isinstance(e, ObservationEvent)]
    found = list(run.results.values())
    assert [event.observation for event in stored] == [e.observation for e in found]  # type: ignore[union-attr] - all are observations
    assert all(len(event.observation.text) <= MAX_CHARS for event in stored)
    told = [m for request in run.llm.requests for m in request if m.role == "tool"]
    assert told and all(
        len("".join(getattr(part, "text", "") for part in m.content)) <= MAX_CHARS + 100
        for m in told
    )
    return [event.observation for event in stored]


def test_FE_07_one_huge_line(work: Path) -> None:
    path = work / "data.json"
    original = b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(200_000)) + b"}"
    path.write_bytes(original)
    edits = [
        {"command": "view", "path": "data.json"},
        {"command": "view", "path": "data.json", "view_range": [1, 1]},
        {
            "command": "str_replace",
            "path": "data.json",
            "old_str": '"k150000":150000',
            "new_str": '"k150000":-1',
        },
    ]
    with Scripted(work, turns(work, edits, "k150000"), tools=TOOLS) as run:
        assert run.ask() == "finished"
        *views, edited, found = answers(run)
    for view in views:
        assert not view.is_error and '"k0":0,"k1":1' in view.text
        assert "[line cut: " in view.text
        assert "view_range" not in view.text and "line numbers" not in view.text
    assert not edited.is_error and "-1" in edited.text
    assert path.read_bytes() == original.replace(b'"k150000":150000', b'"k150000":-1')
    assert json.loads(path.read_bytes())["k150000"] == -1
    assert not found.is_error and "data.json" in found.text


def test_FE_08_binary_files_do_not_end_a_conversation(work: Path) -> None:
    contents = {
        "report.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</Length 8>>stream\n"
        b"\x00\x9c\xff\x10\x80\x81\x00\x02\nendstream\nendobj\n",
        "server": b"\x7fELF" + bytes(range(256)) * 4096,
    }
    for name, content in contents.items():
        (work / name).write_bytes(content)
    edits = [
        {"command": "view", "path": "report.pdf"},
        {"command": "view", "path": "server"},
        {"command": "str_replace", "path": "server", "old_str": "ELF", "new_str": "elf"},
    ]
    with Scripted(work, turns(work, edits, "ELF"), tools=TOOLS) as run:
        assert run.ask() == "finished"
        assert run.conversation.answer == "done"
        *refused, found = answers(run)
    for answer, name in zip(refused, ("report.pdf", "server", "server"), strict=True):
        assert answer.is_error and "binary" in answer.text
        assert f"It has {len(contents[name])} bytes." in answer.text
    for answer in (*refused, found):
        assert "\ufffd" not in answer.text
        assert answer.text.replace("\n", "").isprintable()
    assert not found.is_error
    assert {name: (work / name).read_bytes() for name in contents} == contents
