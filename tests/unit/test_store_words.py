"""Text is found in all conversations, in any script and case, and gone with its conversation."""

import os
import random
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.errors import StoreError
from oh_kernel.events import Message, MessageEvent
from oh_kernel.store import EventStore
from oh_kernel.store.hits import Hit, fold, snippet, spans_of
from oh_kernel.store.words import Words


def said(text: str, source: Any = "user", **more: Any) -> MessageEvent:
    role = "user" if source == "user" else "assistant"
    return MessageEvent(source=source, llm_message=Message.of(role, text), **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.sqlite"


def shown(hit: Hit) -> str:
    return "".join(f"[{piece.text}]" if piece.is_hit else piece.text for piece in hit.snippet)


TEXTS = [
    "Load the DataFrame with read_csv and plot it",
    "Die Straße über den Fluß",
    "東京の天気を日本語で説明してください",
    "İstanbul'da hava",
    'a "quoted" AND (odd) NEAR/3 text* ^ -x col:y',
    "100% sure_thing",
    "zero\x00byte and more",
    "Ελληνικά ΣΊΣΥΦΟΣ",
    "👩‍🔬 emoji 🎉🎉🎉 party",
]


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        (["dataframe"], 0),
        (["frame"], 0),  # within a word
        (["it", "read_CSV"], 0),  # all of them, in any order
        (["plot it"], 0),
        (["STRASSE"], 1),
        (["ÜBER"], 1),
        (["fluss"], 1),
        (["日本語"], 2),
        (["天気"], 2),
        (["京"], 2),
        (["istanbul"], None),  # a dotted capital I is another letter
        (['"quoted"'], 4),
        (["AND (odd) NEAR/3"], 4),
        (["text*"], 4),
        (["col:y"], 4),
        (["-x"], 4),
        (["100%"], 5),
        (["sure%thing"], None),
        (["sure-thing"], None),
        (["byte"], 6),
        (["zero\x00byte"], 6),
        (["σίσυφος"], 7),
        (["🎉🎉🎉"], 8),
        (["dataframe", "fluß"], None),  # not in the same event
        (["' OR 1=1 --"], None),
        (['"'], 4),
        ([""], None),
        ([], None),
    ],
)
def test_any_text_is_found(file: Path, wanted: list[str], place: int | None, indexed: bool) -> None:
    with EventStore.open(file) as store:
        store.append_all("c", [said(text) for text in TEXTS])
        if indexed:
            store.find(["anything"])
        hits = store.find(wanted)
        assert [hit.turn - 1 for hit in hits] == ([] if place is None else [place])
    with EventStore.open(file, read_only=True) as store:
        assert store.find(wanted) == hits


def test_hits_are_newest_first_with_title_and_turn(file: Path) -> None:
    with EventStore.open(file) as store:
        for day, name in ((1, "old"), (2, "new")):
            time = f"2026-01-0{day}T00:00:0"
            store.set_meta(name, title=f"About {name}")
            store.append(name, said("first", timestamp=time + "1.000000"))
            store.append(name, said("the needle", "agent", timestamp=time + "2.000000"))
            store.append(name, said("a Needle again", timestamp=time + "3.000000"))
        hits = store.find(["needle"])
        assert [(hit.title, hit.turn, shown(hit)) for hit in hits] == [
            ("About new", 2, "a [Needle] again"),
            ("About new", 1, "the [needle]"),
            ("About old", 2, "a [Needle] again"),
            ("About old", 1, "the [needle]"),
        ]
        assert store.find(["needle"], limit=1) == hits[:1]


def test_what_came_since_the_last_search_is_found(file: Path) -> None:
    with EventStore.open(file) as store:
        for number in range(30):
            store.append("c", said(f"event{number:02d}"))
            assert [hit.turn for hit in store.find([f"event{number:02d}"])] == [number + 1]
        assert len(store.find(["event"], limit=100)) == 30


def test_long_text_is_found_at_both_ends(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("begin " + "x" * 50_000 + " end"))
        assert store.find(["begin"]) and store.find([" end"])


def bytes_beside(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in file.parent.rglob("*") if path.is_file())


@pytest.mark.parametrize("way", ["delete", "prune"])
def test_deleted_conversation_leaves_no_text_in_any_file(file: Path, way: str) -> None:
    with EventStore.open(file) as store:
        store.append_all("kept", [said(f"ordinary words {n}") for n in range(300)])
        store.append_all("gone", [said(f"zanzibarquux {n}") for n in range(300)])
        assert len(store.find(["zanzibarquux"], limit=1000)) == 300
        assert b"zanzibarquux" in bytes_beside(file)
        store.lease("gone").release()
        if way == "delete":
            store.delete("gone")
        else:
            store.lease("kept").release()
            store.append("kept", said("used last"))
            assert store.prune(keep=1).deleted == ("gone",)
        left = bytes_beside(file)
        # Neither the words nor the grams that only they have, which the index is made of.
        assert b"zanzibarquux" not in left and b"zanz" not in left and b"rquux" not in left
        assert store.find(["zanzibarquux"]) == []
        assert len(store.find(["ordinary"], limit=1000)) == 300


def test_deletion_by_a_process_that_died_is_made_up_for(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("gone", said("zanzibarquux"))
        store.append("kept", said("ordinary"))
        store.find(["ordinary"])
        copy = (file.parent / "events.sqlite.words").read_bytes()
        store.delete("gone")
        (file.parent / "events.sqlite.words").write_bytes(copy)  # as if it had got no further
        assert store.find(["zanzibarquux"]) == []
        assert b"zanzibarquux" not in bytes_beside(file)


@pytest.mark.parametrize("damage", ["garbage", "half", "empty", "text"])
def test_damaged_texts_are_made_anew(file: Path, damage: str) -> None:
    with EventStore.open(file) as store:
        store.append_all("c", [said(f"needle {n} " + "y" * 3000) for n in range(100)])
        store.find(["needle"])
        side = file.with_name("events.sqlite.words")
        whole = side.read_bytes()
        side.write_bytes(
            {
                "garbage": whole[:4096] + os.urandom(len(whole) - 4096),
                "half": whole[: len(whole) // 2],
                "empty": b"",
                "text": b"no database at all",
            }[damage]
        )
        assert len(store.find(["needle"], limit=1000)) == 100
        assert store.repair_report is None


def test_texts_of_another_log_are_not_used(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("needle"))
        assert store.find(["needle"])
    for path in file.parent.glob("events.sqlite*"):
        if not path.name.endswith(".words"):
            path.unlink()
    with EventStore.open(file) as store:
        store.append("d", said("other"))
        assert store.find(["needle"]) == []
        assert len(store.find(["other"])) == 1


def test_texts_of_another_release_are_made_anew(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("needle"))
        assert len(store.find(["needle"])) == 1
        connection = sqlite3.connect(file.with_name("events.sqlite.words"))
        connection.execute("ALTER TABLE texts RENAME COLUMN turn TO round")
        connection.execute("UPDATE about SET value = '0 ' WHERE key = 'made_for'")
        connection.commit()
        connection.close()
        assert len(store.find(["needle"])) == 1


def test_index_that_is_not_to_be_read_goes_with_its_file(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("needle"))
        store.find(["needle"])
        without = Words(store._database, file.with_name("events.sqlite.words"), index=False)
        assert len(without.find(["needle"], 9)) == 1
        store.delete("c")
        assert b"needle" not in bytes_beside(file)


def test_without_an_index_all_texts_are_read(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append_all("c", [said("Needle"), said("hay")])
        found = Words(store._database, file.with_name("w"), index=False)
        assert [shown(hit) for hit in found.find(["needle"], 9)] == ["[Needle]"]
        store.delete("c")
        found.forget()
        assert b"Needle" not in file.with_name("w").read_bytes()


def test_place_that_cannot_be_used_is_named(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("needle"))
        file.with_name("events.sqlite.words").mkdir()
        with pytest.raises(StoreError, match=r"events\.sqlite\.words"):
            store.find(["needle"])
        assert store.append("c", said("goes on")) == 1


def test_search_and_append_do_not_wait_for_each_other(file: Path) -> None:
    with EventStore.open(file) as store, EventStore.open(file) as other:
        done = threading.Event()

        def write() -> None:
            for number in range(200):
                store.append("c", said(f"needle {number}"))
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen = [0]
        while not done.is_set():
            seen.append(len(other.find(["needle"], limit=1000)))
        writer.join()
        assert seen == sorted(seen)
        assert len(other.find(["needle"], limit=1000)) == 200


def test_file_of_texts_is_private_and_counted(file: Path) -> None:
    with EventStore.open(file) as store:
        store.append("c", said("needle"))
        before = store.size_bytes()
        store.find(["needle"])
        side = file.with_name("events.sqlite.words")
        assert side.stat().st_mode & 0o777 == 0o600
        assert store.size_bytes() == before + side.stat().st_size
    connection = sqlite3.connect(side)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_snippet_shows_the_hit_on_one_line() -> None:
    text = "a" * 100 + "\n\thit\r\n" + "b" * 300 + " hit"
    spans = spans_of(text, ["hit"])
    assert spans is not None and len(spans) == 2
    line = "".join(piece.text for piece in snippet(text, spans))
    assert line.startswith("…") and line.endswith("…") and " hit " in line
    assert len(line) <= 142 and "\n" not in line
    long = "x" * 500
    assert "".join(p.text for p in snippet(long, [(0, 500)])) == long


def test_numbers_of_deleted_texts_are_not_used_again(file: Path) -> None:
    with EventStore.open(file) as store:
        for name in ("first", "second", "third"):
            store.append(name, said(f"needle of {name}"))
            assert [hit.conversation_id for hit in store.find(["needle"])] == [name]
            store.delete(name)


ALPHABET = "aAbßẞſKIıİiéÉe\u0301Σςσ日本語🎉\"'*^-:()%_\\ \n\t\x00\ufeff\u200dﬀ"


def test_any_part_of_any_text_is_found(file: Path) -> None:
    chance = random.Random(20261130)
    texts = ["".join(chance.choices(ALPHABET, k=chance.randrange(1, 40))) for _ in range(300)]
    with EventStore.open(file) as store:
        store.append_all("c", [said(text) for text in texts])
        for text in texts:
            start = chance.randrange(len(text))
            part = text[start : start + chance.randrange(1, 12)]
            found = {hit.turn - 1 for hit in store.find([part], limit=1000)}
            fits = {n for n, other in enumerate(texts) if fold(part) in fold(other)}
            assert found == fits, part


def test_marks_stand_on_what_was_found() -> None:
    chance = random.Random(7)
    for _ in range(500):
        text = "".join(chance.choices(ALPHABET, k=30))
        start = chance.randrange(29)
        word = fold(text[start : start + 3])
        spans = spans_of(text, [word])
        assert spans
        assert all(word in fold(text[begin:end]) for begin, end in spans)
