"""In a conversation: undo after a restart, and whose change of a file it was."""

from pathlib import Path
from typing import Any

import pytest

from tests.conversations import Scripted, call, calls, say


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "f.txt").write_text("one\ntwo\nthree\n")
    return folder


def editor(work: Path, command: str, id: str, name: str = "f.txt", **more: Any) -> dict[str, Any]:
    return call("file_editor", {"command": command, "path": str(work / name), **more}, id)


def replace(work: Path, old: str, new: str, id: str) -> dict[str, Any]:
    return editor(work, "str_replace", id, old_str=old, new_str=new)


def text_of(run: Scripted, id: str) -> str:
    return str(run.results[id].observation.text)  # type: ignore[union-attr] - they are observations


def failed(run: Scripted, id: str) -> bool:
    return bool(run.results[id].observation.is_error)  # type: ignore[union-attr] - as above


def test_edits_are_undone_after_a_restart(work: Path) -> None:
    first = [
        calls(
            replace(work, "one", "1", "a"),
            editor(work, "create", "b", "new.txt", file_text="x\n"),
        ),
        say("done"),
    ]
    with Scripted(work, first) as run:
        run.ask()
        name = run.conversation.id
    (work / "link").symlink_to("f.txt")
    again = [
        calls(
            editor(work, "undo_edit", "c", "link"),
            editor(work, "undo_edit", "d", "new.txt"),
            editor(work, "undo_edit", "e", "f.txt"),
        ),
        say("done"),
    ]
    with Scripted(work, [*first, *again], conversation_id=name) as run:
        run.ask()
        assert not failed(run, "c") and not failed(run, "d")
        assert text_of(run, "e") == f"No edit history found for {work}/f.txt."
    assert (work / "f.txt").read_text() == "one\ntwo\nthree\n"
    assert not (work / "new.txt").exists()


def test_another_conversation_has_its_own_history(work: Path) -> None:
    with Scripted(work, [calls(replace(work, "one", "1", "a")), say("done")]) as run:
        run.ask()
    with Scripted(work, [calls(editor(work, "undo_edit", "b")), say("done")]) as run:
        run.ask()
        assert failed(run, "b")
    assert (work / "f.txt").read_text() == "1\ntwo\nthree\n"


def test_what_the_agents_own_command_changed_is_named_not_refused(work: Path) -> None:
    turns = [
        calls(editor(work, "view", "a")),
        calls(call("terminal", {"command": "sed -i s/three/3/ f.txt"}, "b")),
        calls(replace(work, "one", "1", "c")),
        calls(
            call(
                "ipython", {"code": "with open('f.txt', 'a') as f:\n    print('four', file=f)"}, "d"
            )
        ),
        calls(replace(work, "two", "2", "e")),
        say("done"),
    ]
    with Scripted(work, turns) as run:
        run.ask()
        for id, name in (("c", "terminal"), ("e", "ipython")):
            note = f"{work}/f.txt was changed by your own {name} call since you last saw it."
            assert not failed(run, id) and text_of(run, id).startswith(note)
    assert (work / "f.txt").read_text() == "1\n2\n3\nfour\n"


def test_a_line_number_is_not_trusted_after_any_change(work: Path) -> None:
    insert = editor(work, "insert", "c", insert_line=1, new_str="new")
    turns = [
        calls(editor(work, "view", "a")),
        calls(call("terminal", {"command": "sed -i 1d f.txt"}, "b")),
        calls(insert),
        say("done"),
    ]
    with Scripted(work, turns) as run:
        run.ask()
        assert failed(run, "c") and "-one" in text_of(run, "c")
    assert (work / "f.txt").read_text() == "two\nthree\n"


def test_what_others_changed_between_calls_is_refused_with_a_diff(work: Path) -> None:
    edit = replace(work, "one", "1", "c")
    turns = [
        calls(editor(work, "view", "a")),
        say("Shall I?"),
        calls(call("terminal", {"command": "true"}, "b")),
        calls(edit),
        calls({**edit, "id": "d"}),
        say("done"),
    ]
    with Scripted(work, turns) as run:
        run.ask()
        (work / "f.txt").write_text("one\ntwo\nTHREE\n")
        run.ask()
        assert failed(run, "c")
        assert "-three\n+THREE" in text_of(run, "c")
        assert not failed(run, "d")
    assert (work / "f.txt").read_text() == "1\ntwo\nTHREE\n"
