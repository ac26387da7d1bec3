"""A damaged event log opens all the same, keeps what can be read, and says what is gone (EV-01)."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from oh_kernel.errors import ConversationInUse, StoreError, StoreVersionError
from oh_kernel.events import Message, MessageEvent, TextContent, event_from_json
from oh_kernel.store import EventStore, schema
from oh_kernel.store.carve import Pages
from tests.experiments import measured

PAGE = schema.PAGE_SIZE
Damage = Callable[[Path], None]


def message(text: str) -> MessageEvent:
    return MessageEvent(
        source="user", llm_message=Message(role="user", content=[TextContent(text=text)])
    )


def edit_event(number: int, old: str, new: str) -> str:
    observation = {"kind": "HologramObservation", "old_content": old, "new_content": new}
    event = {"id": f"edit-{number}", "timestamp": "2026-01-01T00:00:00.000000"}
    event |= {"source": "environment", "kind": "ObservationEvent", "tool_name": "file_editor"}
    return json.dumps(event | {"tool_call_id": "c", "action_id": "a", "observation": observation})


def fill(file: Path, *, crash: bool = False, many: int = 600) -> dict[str, list[str]]:
    """Three conversations of 7, `many` and 40 events, and their JSON; a crash leaves the WAL."""
    store = EventStore.open(file)
    texts: dict[str, list[str]] = {"seven": [], "many": [], "edits": []}
    chance = random.Random(7)
    for number in range(7):
        event = message(f"event {number} " + "x" * (20_000 if number == 3 else 300))
        store.append("seven", event)
        texts["seven"].append(event.to_json())
    for number in range(many):
        event = message(f"{number} " + "y" * chance.randrange(2000))
        store.append("many", event)
        texts["many"].append(event.to_json())
        if number % 15 == 0:
            old, new = (f"line {n}\n" * 900 for n in (number, number + 15))
            edit = event_from_json(edit_event(number, old, new))
            store.append("edits", edit)
            texts["edits"].append(edit.to_json())
    if crash:
        for path in (*file.parent.glob(f"{file.name}*"), file.parent / "locks"):
            copy = file.parent / "crashed" / path.name
            copy.parent.mkdir(exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
    store.close()
    return texts


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as target:
        target.seek(at)
        target.write(data)


def cut(file: Path, size: int) -> None:
    with file.open("r+b") as target:
        target.truncate(size)


def wal_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


def cut_wal(file: Path) -> None:
    cut(wal_of(file), wal_of(file).stat().st_size * 2 // 3 + 17)


def remove_wal(file: Path) -> None:
    wal_of(file).unlink()


def bad_wal_frame(file: Path) -> None:
    frame = PAGE + 24
    middle = wal_of(file).stat().st_size // frame // 2 * frame + 32
    overwrite(wal_of(file), middle + 24, b"\xff" * 64)


def zero_last_page(file: Path) -> None:
    overwrite(file, file.stat().st_size - PAGE, bytes(PAGE))


def overwrite_middle_page(file: Path) -> None:
    overwrite(file, file.stat().st_size // PAGE // 2 * PAGE, random.Random(1).randbytes(PAGE))


def zero_first_page(file: Path) -> None:
    overwrite(file, 0, bytes(PAGE))


def zero_schema_roots(file: Path) -> None:
    overwrite(file, PAGE, bytes(9 * PAGE))


def halve(file: Path) -> None:
    cut(file, file.stat().st_size // 2 + 100)


def empty(file: Path) -> None:
    cut(file, 0)


def garbage(file: Path) -> None:
    file.write_bytes(random.Random(2).randbytes(50_000))


def leave_temporary_file(file: Path) -> None:
    file.with_name(file.name + ".repairing").write_bytes(b'SQLite format 3\0{"id": "hal')


CLEAN: list[Damage] = [
    zero_last_page,
    overwrite_middle_page,
    zero_first_page,
    zero_schema_roots,
    halve,
    empty,
    garbage,
    leave_temporary_file,
]
CRASHED: list[Damage] = [*CLEAN, cut_wal, remove_wal, bad_wal_frame]


def contents(store: EventStore) -> dict[str, dict[int, str]]:
    names = [info.id for info in store.conversations()]
    return {name: dict(store.iterate_numbered(name)) for name in names}


def check(file: Path, texts: dict[str, list[str]]) -> int:
    """Open the damaged log and assert all that EV-01 expects; gives how many events are gone."""
    before = {path.name: path.read_bytes() for path in file.parent.glob(f"{file.name}*")}
    with EventStore.open(file) as store:
        found = contents(store)
        report = store.repair_report
        saved = sum(len(events) for events in found.values())
        gone = sum(len(events) for events in texts.values()) - saved
        for name, events in found.items():
            # Nothing renumbered; an edit may have lost its texts, never its event.
            for index, text in events.items():
                same = text == texts[name][index]
                assert same or event_from_json(text).id == event_from_json(texts[name][index]).id
        listed = {info.id: info for info in store.conversations()}
        assert sum(info.events_lost for info in listed.values()) == gone
        if gone:
            assert report is not None and report.events_lost == gone and str(report)
        if report and report.put_aside:
            # The damaged file is there under its new name, as it was.
            assert report.put_aside.read_bytes() == before.get(file.name, b"")
        taken = {name: store.append(name, message("new")) for name in texts if name in listed}
        for name, index in taken.items():
            assert index == len(texts[name])
        after = contents(store)
    with EventStore.open(file) as store:
        assert store.repair_report is None
        assert contents(store) == after
    return gone


@pytest.mark.parametrize("damage", CLEAN, ids=lambda damage: damage.__name__)
def test_EV_01_damage_after_a_clean_close(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "events.db"
    texts = fill(file)
    damage(file)
    gone = check(file, texts)
    total = sum(len(events) for events in texts.values())
    match damage.__name__:
        case "zero_first_page" | "leave_temporary_file":
            assert gone == 0
        case "zero_last_page" | "overwrite_middle_page":
            assert gone <= 60
        case "zero_schema_roots":
            assert gone <= 60
        case "halve":
            assert gone < total * 0.7
        case _:
            assert gone == total


@pytest.mark.parametrize("damage", CRASHED, ids=lambda damage: damage.__name__)
def test_EV_01_damage_after_a_crash(tmp_path: Path, damage: Damage) -> None:
    texts = fill(tmp_path / "events.db", crash=True)
    file = tmp_path / "crashed" / "events.db"
    damage(file)
    gone = check(file, texts)
    total = sum(len(events) for events in texts.values())
    if damage in (leave_temporary_file, zero_first_page):
        assert gone == 0
    elif damage is bad_wal_frame:
        assert gone <= 20
    else:
        assert gone < total


@pytest.mark.parametrize("damage", CRASHED, ids=lambda damage: damage.__name__)
def test_EV_01_seven_events_in_a_crashed_log(tmp_path: Path, damage: Damage) -> None:
    texts = {"seven": fill(tmp_path / "events.db", crash=True, many=0)["seven"]}
    file = tmp_path / "crashed" / "events.db"
    damage(file)
    check(file, texts)


def damage_at_random(folder: Path, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        target = chance.choice(sorted(folder.glob("events.db*")))
        size, how = target.stat().st_size, chance.random()
        at, length = chance.randrange(size + 1), chance.choice([1, 16, 500, PAGE])
        if how < 0.05:
            cut(target, at)
        elif how < 0.1 and target.suffix != ".db":
            target.unlink()
        elif size:
            data = bytes(length) if how < 0.5 else chance.randbytes(length)
            overwrite(target, at // PAGE * PAGE if how < 0.8 else at, data)


def damage_copies_at_random(tmp_path: Path, seeds: range) -> None:
    texts = fill(tmp_path / "events.db", crash=True, many=150)
    for seed in seeds:
        chance = random.Random(seed)
        source = chance.choice([tmp_path, tmp_path / "crashed"])
        copy = tmp_path / "copy"
        shutil.copytree(source / "locks", copy / "locks")
        for path in source.glob("events.db*"):
            shutil.copy(path, copy)
        damage_at_random(copy, chance)
        try:
            check(copy / "events.db", texts)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(copy)


def test_damage_at_random_places(tmp_path: Path) -> None:
    damage_copies_at_random(tmp_path, range(25))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_damage_at_a_thousand_random_places(tmp_path: Path) -> None:
    with measured("damage to the database at random places", tries=1000):
        damage_copies_at_random(tmp_path, range(100, 1100))


def large_log(file: Path, events: int = 400) -> list[str]:
    """A conversation in a file too large to be checked whole when it is opened."""
    with EventStore.open(file) as store:
        made = [message(f"{number} " + "z" * 30_000) for number in range(events)]
        for event in made:
            store.append("large", event)
    assert file.stat().st_size > 8 << 20
    return [event.to_json() for event in made]


def test_damage_met_while_reading_is_repaired_under_the_reader(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    texts = large_log(file)
    overwrite_middle_page(file)
    with EventStore.open(file) as store:
        assert store.repair_report is None
        found = dict(store.iterate_numbered("large"))
        assert all(texts[index] == text for index, text in found.items())
        assert len(texts) - 2 <= len(found) < len(texts)
        assert store.repair_report is not None
        assert store.repair_report.lost == {"large": len(texts) - len(found)}
        assert dict(store.iterate_numbered("large")) == found


def test_text_that_changed_inside_a_row_is_noticed(tmp_path: Path) -> None:
    """SQLite itself does not notice: the page is sound, its content is another."""
    file = tmp_path / "events.db"
    texts = large_log(file)
    overwrite(file, file.read_bytes().rindex(b"zzzz"), b"q")
    with EventStore.open(file) as store:
        found = list(store.iterate_json("large"))
        assert len(found) == len(texts) - 1
        assert set(found) < set(texts)


def test_declaration_that_is_no_text_any_more_is_repaired(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    texts = fill(file, many=20)
    overwrite(file, file.read_bytes().index(b"created_at TEXT"), b"\xff")
    assert check(file, texts) == 0


def test_append_to_a_damaged_file_repairs_it_first(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    texts = large_log(file)
    with EventStore.open(file) as store:
        half = file.stat().st_size // 2
        overwrite(file, half, bytes(half))
        assert store.append("large", message("after the damage")) == len(texts)
        assert store.repair_report is not None and store.repair_report.put_aside
        found = list(store.iterate_json("large"))
        assert len(found) > len(texts) // 3 and set(found[:-1]) < set(texts)


def test_writer_and_reader_follow_when_another_store_repairs_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as writer, EventStore.open(file, read_only=True) as reader:
        for number in range(5):
            writer.append("c", message(str(number)))
        # Straight to the file: the writer's lease and connection stay open meanwhile.
        writer._database.run_outside_transaction("PRAGMA wal_checkpoint(TRUNCATE)")
        overwrite(file, PAGE, bytes(2 * PAGE))
        with EventStore.open(file) as other:
            assert len(list(other.iterate("c"))) == 5
            assert other.repair_report is not None
            with pytest.raises(ConversationInUse):
                other.append("c", message("still refused"))
        assert writer.append("c", message("5")) == 5
        assert len(list(writer.iterate("c"))) == 6
        assert list(reader.iterate("c")) == list(writer.iterate("c"))
    with EventStore.open(file) as store:
        assert len(list(store.iterate("c"))) == 6


def test_file_removed_under_its_writer(tmp_path: Path) -> None:
    """What the log beside it still holds is kept, and no index is given twice."""
    file = tmp_path / "events.db"
    with EventStore.open(file) as writer:
        first = [message(str(number)) for number in range(5)]
        for event in first:
            writer.append("c", event)
        file.unlink()
        assert writer.append("c", message("5")) == 5
        assert list(writer.iterate("c"))[:5] == first
        for path in tmp_path.glob("events.db*"):
            path.unlink()
        assert writer.append("c", message("6")) == 6
        assert len(list(writer.iterate("c"))) == 1
    with EventStore.open(file) as store:
        assert store.append("c", message("7")) == 7


def test_damage_in_rollback_journal_mode(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    events = [message(f"{number} " + "x" * 900) for number in range(100)]
    with EventStore.open(file, journal="delete") as store:
        for event in events:
            store.append("c", event)
    overwrite_middle_page(file)
    with EventStore.open(file, journal="delete") as store:
        found = dict(store.iterate_numbered("c"))
        assert all(events[index].to_json() == text for index, text in found.items())
        assert len(found) > 90 and store.append("c", message("new")) == 100


def test_repair_cut_short_before_the_swap_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    with EventStore.open(file) as store:
        store.append("c", message("kept"))
    file.rename(tmp_path / "events.db.repaired-20260101T000000000000")
    file.write_bytes(b"the damaged one")
    with EventStore.open(file) as store:
        assert len(list(store.iterate("c"))) == 1
    aside = tmp_path / "events.db.damaged-20260101T000000000000"
    assert aside.read_bytes() == b"the damaged one"


def test_carving_a_sound_file_gives_every_row(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    texts = fill(file)
    with Pages(file, wal_of(file), (PAGE,)) as pages:
        events = [row for row in pages.rows() if len(row.values) == schema.EVENT_COLUMNS]
    numbers = {row.number & schema.INDEX_MASK: row for row in events if row.values[1] == b"many"}
    assert sorted(numbers) == list(range(600))
    # Apart from what a split page leaves behind, each row comes once.
    assert len(events) < 1.01 * sum(len(events) for events in texts.values())


def test_newer_version_is_refused_and_older_brought_up_to_date(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    EventStore.open(file).close()
    connection = sqlite3.connect(file, isolation_level=None)
    newer = (*schema.MIGRATIONS, "ALTER TABLE conversations ADD COLUMN hue TEXT;\n")
    assert schema.migrate(connection, newer)
    assert connection.execute("SELECT hue FROM conversations").fetchall() == []
    connection.close()
    refusal = rf"version {len(newer)}.*up to version {len(schema.MIGRATIONS)}"
    with pytest.raises(StoreVersionError, match=refusal):
        EventStore.open(file)
    with pytest.raises(StoreVersionError, match=refusal):
        EventStore.open(file, read_only=True)
    # Damaged or not, what a newer release wrote is not repaired by this one.
    zero_schema_roots(file)
    before = file.read_bytes()
    with pytest.raises((StoreVersionError, StoreError)):
        EventStore.open(file)
    assert file.read_bytes() == before


def test_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        EventStore.open(file)
    assert file.read_bytes() == before


def test_text_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk\n" * 1000)
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no event log but a text file"):
        EventStore.open(path)
    assert path.read_bytes() == before and path.stat().st_mode & 0o777 == 0o644
    assert [name for name in os.listdir(tmp_path) if name != "locks"] == ["notes.txt"]


def test_page_size_of_an_older_file_is_found_without_its_header(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {schema.OLDER_PAGE_SIZES[0]}")
    schema.migrate(connection)
    connection.close()
    texts = fill(file)
    overwrite(file, 0, bytes(100))
    assert check(file, texts) == 0
