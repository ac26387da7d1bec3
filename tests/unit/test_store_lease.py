"""One writer a conversation: who is refused, with which words, and who may take over (EV-03)."""

import dataclasses
import os
import time
from pathlib import Path

import pytest

from oh_kernel.errors import ConversationInUse
from oh_kernel.events import Message, MessageEvent, TextContent
from oh_kernel.store import EventStore
from oh_kernel.store.lease import TAKE_OVER_S
from oh_kernel.store.lockfile import LockFile, Mark, lock_path, read_mark
from oh_kernel.store.process import Writer


def message(text: str) -> MessageEvent:
    return MessageEvent(
        source="user", llm_message=Message(role="user", content=[TextContent(text=text)])
    )


def pretend(store: EventStore, conversation_id: str, beat_age_s: float, **changes: str) -> None:
    """Have the conversation's row name another writer, last heard of so long ago."""
    writer = dataclasses.replace(Writer.this_process("other-token", "far.ipynb"), **changes)
    row = (writer.token, writer.to_json(), time.time() - beat_age_s, conversation_id)
    sql = "UPDATE conversations SET writer_token=?, writer=?, writer_beat=? WHERE id=?"
    store._database.write(lambda connection: connection.execute(sql, row).rowcount)


ELSEWHERE = {"host": "otherhost", "boot_id": "another-boot"}


def test_second_writer_is_refused_at_once_and_told_who_has_it(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file, label="one.ipynb") as first, EventStore.open(file) as second:
        first.append("c", message("mine"))
        started = time.monotonic()
        with pytest.raises(ConversationInUse) as refusal:
            second.append("c", message("refused"))
        assert time.monotonic() - started < 2
        text = str(refusal.value)
        assert "conversation c" in text.lower() and "one.ipynb" in text
        assert f"process {os.getpid()} on {os.uname().nodename}" in text
        assert "%openhands new" in text
        assert len(list(second.iterate("c"))) == 1
        assert second.append("d", message("another conversation")) == 0
        first.lease("c").release()
        assert second.append("c", message("now")) == 1
        with pytest.raises(ConversationInUse):
            first.append("c", message("refused"))
        with pytest.raises(ConversationInUse):
            first.delete("c")


def test_lease_is_a_context_and_ends_with_the_store(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as second:
        with EventStore.open(file) as first:
            with first.lease("c", label="explicit") as lease:
                assert first.lease("c") is lease
                first.append("c", message("one"))
                lease.beat()
                with pytest.raises(ConversationInUse, match="explicit"):
                    second.lease("c")
            second.lease("c").release()
            first.append("c", message("two"))
        assert second.append("c", message("three")) == 2


def test_store_that_was_dropped_frees_its_conversations(tmp_path: Path) -> None:
    dropped = EventStore.open(tmp_path / "events.db")
    dropped.append("c", message("one"))
    del dropped
    with EventStore.open(tmp_path / "events.db") as store:
        assert store.append("c", message("two")) == 1


def test_writer_on_another_machine_is_believed_while_its_heart_beats(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("one"))
        store.lease("c").release()
        pretend(store, "c", TAKE_OVER_S - 5, **ELSEWHERE)
        with pytest.raises(ConversationInUse, match=r"far\.ipynb .*otherhost.* try again in 45 s"):
            store.append("c", message("refused"))
        pretend(store, "c", TAKE_OVER_S + 1, **ELSEWHERE)
        assert store.append("c", message("two")) == 1


def test_lock_left_by_a_vanished_machine_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as far, EventStore.open(file) as near:
        far.append("c", message("one"))
        pretend(near, "c", 1, **ELSEWHERE)
        with pytest.raises(ConversationInUse):
            near.append("c", message("too early"))
        pretend(near, "c", TAKE_OVER_S + 1, **ELSEWHERE)
        assert near.append("c", message("two")) == 1
        # The one that was only asleep notices at its next beat or append, and writes nothing.
        with pytest.raises(ConversationInUse):
            far.lease("c").beat()
        with pytest.raises(ConversationInUse):
            far.append("c", message("too late"))
        assert near.append("c", message("three")) == 2


def test_row_of_a_dead_process_on_this_machine_does_not_hold(tmp_path: Path) -> None:
    """After a reboot, or a kill, the lock is free whatever the row says, however young its beat."""
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("one"))
        store.lease("c").release()
        pretend(store, "c", 0, boot_id="before the reboot")
        assert store.append("c", message("two")) == 1


def test_process_is_known_by_its_start_time() -> None:
    mine = Writer.this_process("t", "")
    assert mine.is_alive() and not mine.is_elsewhere()
    assert not dataclasses.replace(mine, started="1").is_alive()
    assert not dataclasses.replace(mine, boot_id="before the reboot").is_alive()
    assert dataclasses.replace(mine, host="h", boot_id="b").is_elsewhere()
    assert Writer.from_json(mine.to_json()) == mine
    assert Writer.from_json('{"half": ') is None and Writer.from_json('{"a": 1}') is None


def test_lock_file_removed_by_its_holder_is_not_locked_by_the_next(tmp_path: Path) -> None:
    path = lock_path(tmp_path / "events.db", "a/b\n" * 100)
    assert path.parent == tmp_path / "locks" and len(path.name) < 200
    first = LockFile(path)
    first.write_mark(Mark(3, "store", "c"))
    first.write_next_index(4)
    assert read_mark(path) == Mark(4, "store", "c")
    with pytest.raises(BlockingIOError):
        LockFile(path)
    first.remove()
    second = LockFile(path)
    assert path.exists() and second.locked and read_mark(path) is None
    second.close()


def test_events_lost_with_the_log_are_counted_and_their_indices_not_used_again(
    tmp_path: Path,
) -> None:
    """The mark in the lock file also tells when a store is put back from an older copy."""
    file = tmp_path / "events.db"
    with EventStore.open(file) as store:
        store.append("c", message("one"))
    older = file.read_bytes()
    with EventStore.open(file) as store:
        for text in ("two", "three"):
            store.append("c", message(text))
    file.write_bytes(older)
    with EventStore.open(file) as store:
        assert store.repair_report and store.repair_report.lost == {"c": 2}
        assert "2 events of conversation c are lost" in str(store.repair_report)
        info = store.conversation("c")
        assert info and (info.events, info.events_lost) == (1, 2)
        assert store.append("c", message("four")) == 3
    with EventStore.open(file) as store:
        assert store.repair_report is None


def test_log_that_was_removed_on_purpose_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as store:
        store.append("c", message("one"))
    file.unlink()
    with EventStore.open(file) as store:
        assert store.repair_report is None
        assert store.append("c", message("one again")) == 0


def test_links_to_one_file_are_one_store(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "events.db")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with EventStore.open(tmp_path / "link.db") as store:
        store.append("c", message("one"))
        for name in ("real/events.db", "folder/events.db"):
            with EventStore.open(tmp_path / name) as other:
                assert len(list(other.iterate("c"))) == 1
                with pytest.raises(ConversationInUse):
                    other.append("c", message("two"))
    assert sorted(os.listdir(tmp_path)) == ["folder", "link.db", "real"]
