"""What is kept of each edit, in memory and in the store: enough to take the last ten back."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentskills.edit_history import DEPTH, Edit, EditHistory, History, digest
from oh_kernel.store import EventStore
from oh_kernel.store.schema import MIGRATIONS, migrate

contents = st.none() | st.binary(max_size=60) | st.sampled_from([b"aaaa", b"aaaaa", b"a\nb\na\n"])


@given(contents, contents)
def test_an_edit_leads_back_from_the_content_after_it(old: bytes | None, new: bytes | None) -> None:
    edit = Edit.between(old, new)
    assert edit.content_before(new) == old
    assert (edit.before, edit.after) == (digest(old), digest(new))
    assert len(edit.removed) <= len(old or b"") and len(edit.added) <= len(new or b"")


def test_an_edit_of_a_large_file_is_small() -> None:
    old = b"line of text\n" * 500_000
    edit = Edit.between(old, old[:3_000_000] + b"new" + old[3_000_000:])
    assert len(edit.removed) + len(edit.added) < 10


@pytest.fixture(params=["in memory", "in the store"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    if request.param == "in memory":
        yield EditHistory()
        return
    with EventStore.open(tmp_path / "events.db") as store:
        yield store.edits_of("c")


def edit(number: int) -> Edit:
    return Edit.between(b"%d" % number, b"%d" % (number + 1))


def test_the_last_edit_is_the_newest_of_that_file(history: History) -> None:
    one, other = Path("/w/one"), Path("/w/other\udcff")
    for number in range(3):
        history.confirm(one, history.add(one, edit(number)))
    history.confirm(other, history.add(other, Edit.between(None, b"\xff\0", 0o640)))
    last, odd = history.last(one), history.last(other)
    assert last and last.edit == edit(2) and last.done
    assert odd and odd.edit == Edit.between(None, b"\xff\0", 0o640)
    assert history.last(Path("/w/none")) is None


def test_an_edit_is_not_done_until_it_is_confirmed(history: History) -> None:
    path = Path("/w/f")
    number = history.add(path, edit(1))
    kept = history.last(path)
    assert kept and kept.number == number and not kept.done
    history.confirm(path, number)
    kept = history.last(path)
    assert kept and kept.done


def test_ten_edits_of_a_file_are_kept(history: History) -> None:
    path, other = Path("/w/f"), Path("/w/g")
    history.confirm(other, history.add(other, edit(100)))
    for number in range(DEPTH + 5):
        history.confirm(path, history.add(path, edit(number)))
    found = []
    while kept := history.last(path):
        found.append(kept.edit)
        history.drop(path, kept.number)
    assert found == [edit(number) for number in range(DEPTH + 4, 4, -1)]
    assert history.last(other)


def test_edits_outlast_the_store_object_and_go_with_their_conversation(tmp_path: Path) -> None:
    file, path = tmp_path / "events.db", Path("/w/f")
    with EventStore.open(file) as store:
        for name in ("one", "other"):
            store.set_meta(name, title=name)
            history = store.edits_of(name)
            history.confirm(path, history.add(path, edit(1)))
    with EventStore.open(file) as store:
        kept = store.edits_of("one").last(path)
        assert kept and kept.edit == edit(1) and kept.done
        store.delete("one")
        assert store.edits_of("one").last(path) is None
        assert store.edits_of("other").last(path)


def test_a_store_from_before_there_was_a_history_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    connection = sqlite3.connect(file, isolation_level=None)
    migrate(connection, MIGRATIONS[:1])
    connection.close()
    with EventStore.open(file) as store:
        history = store.edits_of("c")
        history.add(Path("/w/f"), edit(1))
        assert history.last(Path("/w/f"))
