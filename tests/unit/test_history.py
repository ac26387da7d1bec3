"""`%openhands history`: the conversations, or the places where a text stands in them."""

from pathlib import Path

from oh_kernel.events import Message, MessageEvent
from oh_kernel.kernel.history import found, listed
from oh_kernel.kernel.notes import Table
from oh_kernel.store import EventStore


def stored(file: Path) -> EventStore:
    store = EventStore.open(file)
    for name, text in (("c1", "read <b>csv</b>\nand plot"), ("c2", "nothing")):
        store.set_meta(name, title=f"About {name} <i>")
        time = "2026-01-02T03:04:05.000000"
        message = Message.of("user", text)
        store.append(name, MessageEvent(source="user", timestamp=time, llm_message=message))
    return store


def test_hit_is_marked_in_text_and_html(tmp_path: Path) -> None:
    with stored(tmp_path / "e.sqlite") as store:
        table = found(store, '"<B>csv" PLOT')
        assert isinstance(table, Table)
        [line] = [line for line in repr(table).splitlines() if "c1" in line]
        assert line.endswith("1     read >><b>csv<<</b> and >>plot<<")
        assert "2026-01-02 03:04" in line and "About c1 <i>" in line
        html = table._repr_html_()
        assert "read <mark>&lt;b&gt;csv</mark>&lt;/b&gt; and <mark>plot</mark>" in html
        assert "<i>" not in html
        assert "resume ID" in repr(table)


def test_nothing_found_is_said(tmp_path: Path) -> None:
    with stored(tmp_path / "e.sqlite") as store:
        assert found(store, "'two words' x") == "No stored conversation says two words and x."


def test_more_than_is_shown_is_said(tmp_path: Path) -> None:
    with stored(tmp_path / "e.sqlite") as store:
        texts = (Message.of("user", f"again {n}") for n in range(25))
        store.append_all("c1", [MessageEvent(source="user", llm_message=text) for text in texts])
        table = found(store, "again")
        assert isinstance(table, Table)
        assert len(table.rows) == 20 and "newest 20 places" in table.caption


def test_list_names_the_store(tmp_path: Path) -> None:
    with stored(tmp_path / "e.sqlite") as store:
        text = repr(listed(store, 20))
        assert "About c2" in text and str(store.path) in text
