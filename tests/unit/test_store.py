"""Events come back as they were stored, under consecutive indices, with the facts beside them."""

import asyncio
import json
import os
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from oh_kernel.errors import DuplicateEvent, StoreError
from oh_kernel.events import Message, MessageEvent, TextContent, event_from_json
from oh_kernel.store import EventStore
from oh_kernel.store.blobs import cut, join
from oh_kernel.store.filesystem import filesystem_type, journal_mode_for
from tests.timing import least_s


def message(text: str, **fields: Any) -> MessageEvent:
    content = [TextContent(text=text)]
    return MessageEvent(source="user", llm_message=Message(role="user", content=content), **fields)


@pytest.fixture(params=["wal", "delete"])
def journal(request: pytest.FixtureRequest) -> Literal["wal", "delete"]:
    return request.param  # type: ignore[no-any-return]  # pytest's parameters are untyped


def test_events_come_back_in_order_and_by_id(
    tmp_path: Path, journal: Literal["wal", "delete"]
) -> None:
    events = [message(f"event {number} é \U0001f600 \x00") for number in range(450)]
    with EventStore.open(tmp_path / "events.db", journal=journal) as store:
        assert [store.append("c", event) for event in events] == list(range(450))
        assert list(store.iterate("c")) == events
        assert list(store.iterate("c", 440)) == events[440:]
        assert [index for index, _ in store.iterate_numbered("c", 3, 6)] == [3, 4, 5]
        assert list(store.iterate_json("c")) == [event.to_json() for event in events]
        ids = [events[7].id, "unknown", events[3].id]
        assert store.get("c", ids) == [events[7], None, events[3]]
        assert store.get("other", ids) == [None, None, None]
        assert list(store.iterate("other")) == []
        connection = sqlite3.connect(tmp_path / "events.db")
        assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
        connection.close()
    with EventStore.open(tmp_path / "events.db", journal=journal) as store:
        assert store.append("c", message("later")) == 450
        assert list(store.iterate("c"))[:-1] == events


def test_files_are_private(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "events.db"
    with EventStore.open(file) as store:
        store.append("c", message("hello"))
        for path in file.parent.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_duplicate_event_names_the_index(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        events = [message(str(number)) for number in range(3)]
        for event in events:
            store.append("c", event)
        with pytest.raises(DuplicateEvent, match=rf"{events[1].id}.* conversation c at index 1\."):
            store.append("c", events[1])
        assert store.append("d", events[1]) == 0
        assert store.append("c", message("next")) == 3


def test_append_all_stores_all_or_none(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        events = [message(str(number)) for number in range(3)]
        with pytest.raises(DuplicateEvent):
            store.append_all("c", [*events, events[0]])
        assert list(store.iterate("c")) == []
        store.append_all("c", events)
        store.append_all("c", [])
        assert list(store.iterate("c")) == events
        assert store.append("c", message("next")) == 3


def test_EV_03_eight_threads_append_fifty_events_each(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("before"))

        def append_fifty(thread: int) -> list[int]:
            return [store.append("c", message(f"{thread}:{number}")) for number in range(50)]

        with ThreadPoolExecutor(8) as pool:
            indices = [index for taken in pool.map(append_fifty, range(8)) for index in taken]
        assert sorted(indices) == list(range(1, 401))
        numbered = list(store.iterate_numbered("c"))
        assert [index for index, _ in numbered] == list(range(401))
        texts = {event_from_json(text).to_json() for _, text in numbered}
        assert len(texts) == 401


UNKNOWN = [
    '{"kind": "HologramEvent",  "id":"h1", "timestamp":"2026-01-01T00:00:00.000000",'
    ' "source":"agent", "beam": [1.0, 1e3, "\\u00e9"]}',
    '{"id":"e2","timestamp":"2026-01-01T00:00:00.000000","source":"martian","kind":"PauseEvent"}',
    '{"kind":"HologramEvent","id":"h3","old_content" : "' + 'a\\n\\u0041\\\\\\"' * 90 + '"}',
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_EV_02_unknown_event_survives_byte_for_byte(tmp_path: Path, text: str) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("before"))
        store.append("c", event_from_json(text))
        store.append("c", message("after"))
        assert list(store.iterate_json("c"))[1] == text
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("one more turn"))
        assert list(store.iterate_json("c"))[1] == text
        assert [event.to_json() for event in store.iterate("c")][1] == text
        assert len(list(store.iterate("c"))) == 4


def edit(number: int, old: str | None, new: str) -> str:
    observation = {"kind": "HologramObservation", "content": [], "new_content": new}
    if old is not None:
        observation["old_content"] = old
    event = {
        "kind": "ObservationEvent",
        "id": f"edit-{number}",
        "timestamp": "2026-01-01T00:00:00.000000",
        "source": "environment",
        "tool_name": "file_editor",
        "tool_call_id": f"call-{number}",
        "observation": observation,
        "action_id": f"action-{number}",
    }
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def test_contents_of_edits_are_stored_once(tmp_path: Path) -> None:
    versions = [f'print("é {n}")\t\\\n' * 9000 for n in range(20)]
    texts = [edit(0, None, versions[0])]
    texts += [edit(n, versions[n - 1], versions[n]) for n in range(1, 20)]
    file = tmp_path / "events.db"
    with EventStore.open(file) as store:
        events = [event_from_json(text) for text in texts]
        for event in events:
            store.append("c", event)
        assert list(store.iterate_json("c")) == [event.to_json() for event in events]
        assert list(store.iterate("c")) == events
        info = store.conversation("c")
        assert info
        assert info.size_bytes == sum(len(event.to_json().encode()) for event in events)
    assert file.stat().st_size < 0.6 * sum(len(text.encode()) for text in texts)


def test_cutting_and_joining_give_the_same_bytes() -> None:
    long = '\\"' * 200
    text = json.dumps({"a": '"old_content":"' + "x" * 500, "b": [{"old_content": long}]})
    text = text[:-1] + ', "new_content" :\n "' + "\\u0041\\\\" * 100 + '"}'
    kept, pieces, texts = cut(text.encode())
    assert len(pieces) == 2 and len(kept) < 700
    assert json.loads(kept)["new_content"] == ""
    assert join(kept, pieces, texts.__getitem__) == text.encode()


def test_meta_and_listing(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        for name in ("a", "b", "c"):
            store.append(name, message(name, timestamp=f"2026-01-01T00:00:00.00000{ord(name) % 9}"))
        store.set_meta("a", title="First", notebook="one.ipynb", meta={"x": 1, "y": 2})
        store.set_meta("a", status="finished", meta={"y": None})
        assert [info.id for info in store.conversations()] == ["a", "c", "b"]
        assert [info.id for info in store.conversations(1, 1)] == ["c"]
        [info] = store.conversations(notebook="one.ipynb")
        assert (info.title, info.status, info.meta, info.events) == (
            "First",
            "finished",
            {"x": 1},
            1,
        )
        assert store.last_timestamp("a") == next(store.iterate("a")).timestamp
        assert store.last_timestamp("none") == ""
        assert store.size_bytes() >= (tmp_path / "events.db").stat().st_size


def test_listing_ten_thousand_conversations_is_quick(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        make = (
            "INSERT INTO conversations (id, created_at, updated_at, meta)"
            " SELECT 'c' || value, '', printf('2026-01-01T%06d', value),"
            " json_object('pad', hex(zeroblob(200))) FROM generate_numbers"
        )
        numbers = (
            "WITH RECURSIVE generate_numbers (value) AS"
            " (SELECT 1 UNION ALL SELECT value + 1 FROM generate_numbers WHERE value < 10000) "
        )
        store._database.write(lambda connection: connection.execute(numbers + make).rowcount)
        taken_s = least_s(lambda: store.conversations(20), enough=0.02)
        infos = store.conversations(20)
        assert [info.id for info in infos[:2]] == ["c10000", "c9999"] and len(infos) == 20
        assert taken_s < 0.02


def test_prune_spares_what_is_in_use(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    shared = "shared text\n" * 5000
    with EventStore.open(file) as old:
        for number in range(6):
            old.append(f"c{number}", message("secret-of-" + f"c{number} " * 200))
        old.append("c0", event_from_json(edit(1, None, shared)))
        old.append("c4", event_from_json(edit(2, None, shared)))
        old.append("c1", event_from_json(edit(3, None, "only in c1\n" * 5000)))
    with EventStore.open(file) as user, EventStore.open(file) as store:
        user.append("c2", message("still writing"))
        report = store.prune(keep=2)
        # Used last: c2, then c1, c4, c0, c5, c3.
        assert set(report.deleted) == {"c0", "c3", "c4", "c5"} and report.in_use == ()
        assert report.bytes_after < report.bytes_before
        store.set_meta("c1", title="newer")
        assert store.prune(keep=1).in_use == ("c2",)
        assert store.prune(max_bytes=0).deleted == ("c1",)
        user.append("c2", message("and still"))
        assert len(list(store.iterate("c2"))) == 3
    content = b"".join(path.read_bytes() for path in tmp_path.glob("events.db*"))
    assert b"secret-of-c2" in content
    assert b"secret-of-c1" not in content and b"only in c1" not in content
    assert b"shared text" not in content
    assert [path.name for path in (tmp_path / "locks").iterdir()] == ["events.db.c2.lock"]
    with EventStore.open(file) as store:
        assert store.repair_report is None and [i.id for i in store.conversations()] == ["c2"]


def test_prune_by_age(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        for name in ("old", "new"):
            store.append(name, message(name))
            store.lease(name).release()
        then = (datetime.now(UTC) - timedelta(days=31)).strftime("%Y-%m-%dT%H:%M:%S.%f")
        age = "UPDATE conversations SET updated_at = ? WHERE id = 'old'"
        store._database.write(lambda connection: connection.execute(age, (then,)).rowcount)
        assert store.prune(older_than_days=30).deleted == ("old",)
        assert [info.id for info in store.conversations()] == ["new"]


def test_delete_keeps_the_texts_others_use(tmp_path: Path) -> None:
    text = edit(1, None, "both\n" * 500)
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("a", event_from_json(text))
        store.append("b", event_from_json(text))
        store.delete("a")
        assert store.conversation("a") is None and list(store.iterate("a")) == []
        assert next(store.iterate_json("b")) == event_from_json(text).to_json()
        assert store.append("a", message("begun anew")) == 0


def test_full_sync_is_set_for_one_commit_only(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        statements: list[str] = []
        store.append("c", message("before"))
        store._database.read(lambda connection: connection.set_trace_callback(statements.append))
        store.append("c", message("last of the turn"), full_sync=True)
        asyncio.run(store.append_async("c", message("another last"), full_sync=True))
        order = [s for s in statements if s.startswith(("PRAGMA", "BEGIN", "COMMIT"))]
        once = ["PRAGMA synchronous = FULL", "BEGIN IMMEDIATE", "COMMIT"]
        once.append("PRAGMA synchronous = NORMAL")
        assert order == once * 2


def test_append_async_leaves_the_loop_free_while_another_holds_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as store:
        store.append("c", message("first"))
        holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")

        async def scenario() -> list[float]:
            waiting = asyncio.create_task(store.append_async("c", message("second")))
            gaps, last = [], time.perf_counter()
            while len(gaps) < 100:
                await asyncio.sleep(0.001)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now
            assert not waiting.done()
            holder.execute("COMMIT")
            assert await asyncio.wait_for(waiting, 30) == 1
            return sorted(gaps)

        # A neighbour may hold the machine up once or twice, a wait of ours would with every try.
        assert asyncio.run(scenario())[-3] < 0.25
        holder.close()


def test_reader_sees_what_a_writer_appends_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as writer, EventStore.open(file, read_only=True) as reader:
        for number in range(250):
            writer.append("c", message(str(number)))
        reading = reader.iterate("c")
        next(reading)
        writer.append("c", message("meanwhile"))
        assert len(list(reading)) == 250
        with pytest.raises(StoreError):
            reader.append("c", message("refused"))
    with pytest.raises(StoreError):
        EventStore.open(tmp_path / "none.db", read_only=True)
    with pytest.raises(StoreError, match="not open"):
        writer.append("c", message("closed"))


def test_several_threads_read_and_write_at_once(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        done = threading.Event()

        def read() -> int:
            longest = 0
            while not done.is_set():
                found = [index for index, _ in store.iterate_numbered("c")]
                assert found == list(range(len(found))) and len(found) >= longest
                longest = len(found)
            return longest

        with ThreadPoolExecutor(2) as pool:
            reading = [pool.submit(read) for _ in range(2)]
            for number in range(300):
                store.append("c", message(str(number)))
            done.set()
            assert all(future.result(10) <= 300 for future in reading)


def test_forked_child_neither_uses_nor_spoils_the_store(tmp_path: Path) -> None:
    with EventStore.open(tmp_path / "events.db") as store:
        store.append("c", message("parent"))
        child = os.fork()
        if child == 0:
            try:
                store.append("c", message("child"))
            except StoreError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert store.append("c", message("parent again")) == 1


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    together = threading.Barrier(8)

    def open_and_append(number: int) -> int:
        together.wait(10)
        with EventStore.open(file) as store:
            return store.append(f"c{number}", message("first"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(open_and_append, range(8))) == [0] * 8
    with EventStore.open(file) as store:
        assert len(store.conversations()) == 8 and store.repair_report is None


def test_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match=r"file/events\.db cannot be used.*OPENHANDS_STORE_PATH"):
        EventStore.open(tmp_path / "file" / "events.db")
    with pytest.raises(StoreError, match="cannot be used"):
        EventStore.open(tmp_path)
    (tmp_path / "locks").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot be used"):
        EventStore.open(tmp_path / "events.db")


MOUNTS = """/dev/vda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local\\040disk xfs rw 0 0
sshfs /mnt/far fuse.sshfs rw 0 0
"""


def test_journal_mode_follows_the_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert journal_mode_for(Path("/home/ann/.local"), mounts) == "delete"
    assert journal_mode_for(Path("/mnt/far/x"), mounts) == "delete"
    assert journal_mode_for(Path("/home/local disk/x"), mounts) == "wal"
    assert journal_mode_for(Path("/homework"), mounts) == "wal"
    assert journal_mode_for(Path("/home"), tmp_path / "no such table") == "wal"
    assert filesystem_type(Path("/home/local disk"), mounts) == "xfs"
