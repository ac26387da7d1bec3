"""A conversation goes to the reference's layout and comes from there without loss."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.errors import DuplicateEvent, StoreError
from oh_kernel.events import Message, MessageEvent, event_from_json, new_id
from oh_kernel.store import EventStore
from oh_kernel.store.base_state import without_secrets
from oh_kernel.store.interchange import ImportReport, export_folder, import_conversation
from oh_kernel.store.layout import event_in
from tests.reference_layout import (
    RECORDED,
    RECORDED_EVENTS,
    RECORDED_STATE,
    lay_out,
    parsed,
    snapshot,
)


def said(text: str, **more: Any) -> MessageEvent:
    return MessageEvent(source="user", llm_message=Message.of("user", text), **more)


def import_into(file: Path, path: Path) -> ImportReport:
    with EventStore.open(file) as store:
        return import_conversation(store, path)


def export_from(file: Path, conversation_id: str, parent: Path) -> Path:
    with EventStore.open(file, read_only=True) as store:
        info = store.conversation(conversation_id)
        assert info
        return export_folder(store, info, parent)


def test_recorded_conversation_comes_and_goes_without_loss(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in")
    before = snapshot(folder)
    report = import_into(tmp_path / "e.sqlite", folder)
    assert (report.events, report.events_lost, report.left_out) == (26, 0, ())
    assert report.conversation_id == RECORDED_STATE["id"]
    with EventStore.open(tmp_path / "e.sqlite") as store:
        texts = list(store.iterate_json(report.conversation_id))
        assert [json.loads(text) for text in texts] == RECORDED_EVENTS
        assert [json.loads(e.to_json()) for e in store.iterate(report.conversation_id)] == (
            RECORDED_EVENTS
        )
        info = store.conversation(report.conversation_id)
        assert info
        assert (info.workspace, info.status, info.events) == ("/workspace", "finished", 26)
        # The reference's local times are kept as they are.
        assert info.created_at == RECORDED_EVENTS[0]["timestamp"]
    out = export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    assert out.name == folder.name
    assert parsed(out) == parsed(folder)
    assert snapshot(folder) == before
    again = import_into(tmp_path / "second.sqlite", out)
    with EventStore.open(tmp_path / "second.sqlite") as store:
        assert list(store.iterate_json(again.conversation_id)) == texts


def test_own_conversation_comes_back_as_it_went(tmp_path: Path) -> None:
    conversation_id = new_id()
    odd = '{"kind":"HologramEvent",  "id":"h1","timestamp":"some day","source":"x","beam":[1.50]}'
    edit = {"kind": "ObservationEvent", "id": new_id(), "timestamp": "2026-01-01T00:00:00.000000"}
    edit |= {"source": "environment", "tool_name": "t", "tool_call_id": "c", "action_id": "a"}
    edit["observation"] = {"kind": "HologramObservation", "old_content": "o" * 900}  # type: ignore[assignment]  # a value of another type
    with EventStore.open(tmp_path / "e.sqlite") as store:
        for event in (said("é \u2028 \U0001f600 \x00"), event_from_json(odd)):
            store.append(conversation_id, event)
        store.append(conversation_id, event_from_json(json.dumps(edit)))
        store.outputs_of(conversation_id).mkdir(parents=True)
        (store.outputs_of(conversation_id) / "long.txt").write_bytes(b"\xff long")
        texts = list(store.iterate_numbered(conversation_id))
    out = export_from(tmp_path / "e.sqlite", conversation_id, tmp_path / "out")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out / "events").iterdir()} == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    report = import_into(tmp_path / "second.sqlite", out)
    assert report.conversation_id == conversation_id and not report.left_out
    with EventStore.open(tmp_path / "second.sqlite") as store:
        assert list(store.iterate_numbered(conversation_id)) == texts
        kept = store.outputs_of(conversation_id) / "long.txt"
        assert kept.read_bytes() == b"\xff long"


def test_indices_of_lost_events_stay_free(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in")
    for number in (3, 25):
        next((folder / "events").glob(f"event-{number:05d}-*")).write_bytes(b"")
    report = import_into(tmp_path / "e.sqlite", folder)
    assert report.events_lost == 2
    with EventStore.open(tmp_path / "e.sqlite") as store:
        assert store.append(report.conversation_id, said("next")) == 26
        numbers = [number for number, _ in store.iterate_numbered(report.conversation_id)]
    assert numbers == [number for number in range(27) if number not in (3, 25)]
    out = export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    assert import_into(tmp_path / "second.sqlite", out).events_lost == 2


def test_what_was_said_since_is_in_the_state(tmp_path: Path) -> None:
    report = import_into(tmp_path / "e.sqlite", lay_out(tmp_path / "in"))
    last = said("one more")
    with EventStore.open(tmp_path / "e.sqlite") as store:
        store.append(report.conversation_id, last)
        store.set_meta(report.conversation_id, status="paused")
    out = export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    state = json.loads((out / "base_state.json").read_text())
    assert state == {
        **RECORDED_STATE,
        "execution_status": "paused",
        "last_user_message_id": last.id,
    }


def test_secrets_of_a_state_are_not_taken_over(tmp_path: Path) -> None:
    state = json.loads(json.dumps(RECORDED_STATE))
    state["agent"]["llm"]["api_key"] = "sk-very-secret"
    state["agent"]["llm"]["aws_secret_access_key"] = "sk-very-secret"
    state["agent"]["mcp_config"] = {"s": {"env": {"T": "sk-very-secret"}, "command": "run"}}
    source = {"kind": "StaticSecret", "value": "sk-very-secret"}
    state["secret_registry"]["secret_sources"] = {"TOKEN": source}
    report = import_into(tmp_path / "e.sqlite", lay_out(tmp_path / "in", state=state))
    out = export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    for path in tmp_path.rglob("*"):
        if path.is_file() and "in" not in path.relative_to(tmp_path).parts:
            assert b"very-secret" not in path.read_bytes(), path
    kept = json.loads((out / "base_state.json").read_text())
    assert kept["agent"]["mcp_config"]["s"]["command"] == "run"
    assert kept["secret_registry"]["secret_sources"]["TOKEN"]["kind"] == "StaticSecret"
    assert without_secrets(RECORDED_STATE) == RECORDED_STATE


@pytest.mark.parametrize("wicked", ["../../escaped", "/tmp/escaped", "..", 7, None, "a\0b"])
def test_ids_do_not_lead_elsewhere(tmp_path: Path, wicked: Any) -> None:
    folder = lay_out(tmp_path / "in", state={**RECORDED_STATE, "id": wicked})
    report = import_into(tmp_path / "e.sqlite", folder)
    assert report.conversation_id == RECORDED_STATE["id"]  # as the folder is named
    with EventStore.open(tmp_path / "e.sqlite") as store:
        for name in (str(wicked), "plain"):
            store.append(name, said("x", id=f"../{wicked}/.."))
    for name in (str(wicked), "plain"):
        out = export_from(tmp_path / "e.sqlite", name, tmp_path / "out")
        assert out.parent == tmp_path / "out"
        [event] = (out / "events").iterdir()
        assert json.loads(event.read_text())["id"] == f"../{wicked}/.."
        assert import_into(tmp_path / f"{out.name}.sqlite", out).events == 1
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} <= {
        "in",
        "out",
        "locks",
        "outputs",
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in")
    (tmp_path / "private.txt").write_text("private")
    (folder / "observations").mkdir()
    (folder / "observations" / "out.txt").symlink_to(tmp_path / "private.txt")
    (folder / "events" / f"event-00026-{new_id()}.json").symlink_to(tmp_path / "private.txt")
    report = import_into(tmp_path / "e.sqlite", folder)
    assert [one.reason for one in report.left_out] == ["is no event"]
    assert not list((tmp_path / "outputs").rglob("out.txt"))


def test_nothing_is_written_over_and_nothing_half_is_left(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in")
    report = import_into(tmp_path / "e.sqlite", folder)
    with pytest.raises(StoreError, match="is stored already"):
        import_into(tmp_path / "e.sqlite", folder)
    out = export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    before = snapshot(out)
    with pytest.raises(StoreError, match="exists already"):
        export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "out")
    assert snapshot(out) == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be read or written"):
        export_from(tmp_path / "e.sqlite", report.conversation_id, tmp_path / "file")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [out.name]


@pytest.mark.parametrize("kind", ["missing", "empty folder", "no events", "empty file"])
def test_what_holds_no_conversation_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    match kind:
        case "empty folder":
            place.mkdir()
        case "no events":
            (place / "events").mkdir(parents=True)
        case "empty file":
            place.write_text("\n\n")
    with pytest.raises(StoreError, match=r"does not exist|holds no"):
        import_into(tmp_path / "e.sqlite", place)
    with EventStore.open(tmp_path / "e.sqlite") as store:
        assert store.conversations() == []


def test_lines_of_json(tmp_path: Path) -> None:
    report = import_into(tmp_path / "e.sqlite", RECORDED / "events.jsonl")
    assert (report.events, report.events_lost) == (26, 0)
    lines = (RECORDED / "events.jsonl").read_text().splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([*lines[:3], lines[3][:50], "[1]", lines[0], *lines[4:], ""]))
    report = import_into(tmp_path / "second.sqlite", broken)
    assert [one.name for one in report.left_out] == ["line 4", "line 5", "event 5"]
    assert (report.events, report.events_lost) == (25, 3)
    assert "Left out: line 4 is not whole" in str(report)


def test_number_used_twice_loses_no_event(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "in")
    made = {"id": new_id(), "kind": "HologramEvent", "timestamp": "9", "source": "user"}
    (folder / "events" / f"event-00005-{made['id']}.json").write_text(json.dumps(made))
    report = import_into(tmp_path / "e.sqlite", folder)
    assert (report.events, report.events_lost) == (27, 0)
    assert "numbered again" in str(report)
    with EventStore.open(tmp_path / "e.sqlite") as store:
        texts = [json.loads(text) for text in store.iterate_json(report.conversation_id)]
    assert texts == [*RECORDED_EVENTS[:6], made, *RECORDED_EVENTS[6:]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\0\0\0", "is empty"),
        (b'{"id": "a", "ki', "not whole"),
        (b'{"id": "a", "kind": "X", "n": NaN}', "not whole"),
        (b'\xff\xfe{"id"', "not whole"),
        (b"[]", "no id or no kind"),
        (b'{"id": 7, "kind": "X"}', "no id or no kind"),
    ],
)
def test_what_is_no_event_is_said(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        event_in(data)


def test_text_of_an_event_is_kept() -> None:
    text = '{"kind" : "X",\t"id":"a", "n":[1.50,1e3,"\\u00e9\\/"]}'
    assert event_in(b"\xef\xbb\xbf" + text.encode() + b"\r\n").to_json() == text
    assert event_in(b'{\n  "id": "a",\n  "kind": "X"\n}').to_json() == '{ "id": "a", "kind": "X" }'


def test_import_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "e.sqlite"
    twice = [(0, said("a", id="same-id")), (1, said("b", id="same-id"))]
    with EventStore.open(file) as store:
        with pytest.raises(DuplicateEvent):
            store.restore("c", twice, 2, columns={}, meta={})
        assert store.conversations() == []
        store.lease("c").release()  # as one that was cut short leaves it
        store.restore("c", twice[:1], 1, columns={"title": "T"}, meta={})
        info = store.conversation("c")
        assert info and (info.title, info.events) == ("T", 1)
        assert store.append("c", said("next")) == 1
