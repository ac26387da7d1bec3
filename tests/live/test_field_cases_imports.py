"""EV-01 and EV-02 on the folder layout of the reference: what damage leaves is taken over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.cli import main
from oh_kernel.events import AgentErrorEvent, new_id
from oh_kernel.store import EventStore
from oh_kernel.store.interchange import ImportReport, export_folder, import_conversation
from tests.conversations import Scripted, assert_each_call_answered_once, say
from tests.live.test_field_cases_events import VARIANTS
from tests.reference_layout import RECORDED_STATE, lay_out, snapshot

ID = RECORDED_STATE["id"]


def made(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    time = f"2026-01-01T00:00:0{number}.000000"
    return {"id": new_id(), "timestamp": time, **fields, "kind": kind}


def seven_events() -> list[dict[str, Any]]:
    """A message, then three calls with their results."""
    text = [{"type": "text", "text": "please"}]
    events = [made("MessageEvent", 0, source="user", llm_message={"role": "user", "content": text})]
    for number in (1, 3, 5):
        names = {"tool_name": "think", "tool_call_id": f"c{number}"}
        arguments = json.dumps({"thought": f"thought {number}"})
        tool_call = {"id": f"c{number}", "name": "think", "arguments": arguments}
        action = {"kind": "ThinkAction", "thought": f"thought {number}"}
        call = made("ActionEvent", number, source="agent", thought=[], action=action, **names)
        call |= {
            "tool_call": {**tool_call, "origin": "completion"},
            "llm_response_id": f"r{number}",
        }
        content = [{"type": "text", "text": f"result of {number}"}]
        observation = {"kind": "ThinkObservation", "content": content}
        result = made("ObservationEvent", number + 1, source="environment", **names)
        events += [call, result | {"observation": observation, "action_id": call["id"]}]
    return events


def event_file(folder: Path, number: int) -> Path:
    [path] = (folder / "events").glob(f"event-{number:05d}-*")
    return path


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def temp_left(folder: Path) -> None:
    last = event_file(folder, 6)
    half = last.read_bytes()[:200]
    (last.parent / f".{last.name}.tmp").write_bytes(half)
    (folder.parent / f".{folder.name}.partial-1").mkdir()  # as an export of ours names it


def foreign(folder: Path) -> None:
    (folder / "events" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (folder / "events" / "empty").mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "half": lambda folder: halved(event_file(folder, 6)),
    "zero": lambda folder: event_file(folder, 6).write_bytes(b""),
    "gap": lambda folder: event_file(folder, 3).unlink(),
    "last_result_gone": lambda folder: event_file(folder, 6).unlink(),
    "temp_left": temp_left,
    "state_half": lambda folder: halved(folder / "base_state.json"),
    "foreign": foreign,
}
MISSING = {"half": 6, "zero": 6, "gap": 3, "last_result_gone": 6}
TOLD = {
    "half": "is not whole",
    "zero": "is empty",
    "gap": "1 event is missing",
    "last_result_gone": "6 events taken over",
    "temp_left": ".tmp is no event",
    "state_half": "base_state.json is not whole",
    "foreign": ".DS_Store is no event",
}


def taken_over(file: Path, folder: Path) -> ImportReport:
    with EventStore.open(file) as store:
        return import_conversation(store, folder)


@pytest.mark.parametrize("variant", DAMAGE)
def test_EV_01_imported_folder(tmp_path: Path, variant: str) -> None:
    events = seven_events()
    folder = lay_out(tmp_path / "in", events)
    DAMAGE[variant](folder)
    before = snapshot(folder)
    file, work = tmp_path / "events.sqlite", tmp_path / "work"
    work.mkdir()

    report = taken_over(file, folder)
    assert TOLD[variant] in str(report) and report.conversation_id == ID
    left = [n for n in range(7) if n != MISSING.get(variant)]
    with EventStore.open(file) as store:
        numbered = list(store.iterate_numbered(ID))
        info = store.conversation(ID)
        outputs = store.outputs_of(ID)
    assert [(n, json.loads(text)) for n, text in numbered] == [(n, events[n]) for n in left]
    known_to_be_lost = variant in ("half", "zero", "gap")
    assert info is not None and info.events_lost == known_to_be_lost
    _check_put_aside(variant, report, outputs, before)
    assert snapshot(folder) == before  # the source is somebody else's: nothing in it is renamed

    turns = [say("answered")] * 9
    with Scripted(work, turns, store_path=file, conversation_id=ID) as loaded:
        assert ("left out" in " ".join(loaded.conversation.remarks)) == known_to_be_lost
        assert loaded.ask("are you there?") == "finished"
        _check_request(variant, loaded)
        final = [event.to_json() for event in loaded.conversation.events]
    with EventStore.open(file) as store:
        numbers = [number for number, _ in store.iterate_numbered(ID)]
    used = 6 if variant == "last_result_gone" else 7  # nothing tells of an event without a trace
    assert numbers == [*left, *range(used, used + len(final) - len(left))]
    with Scripted(work, turns, store_path=file, conversation_id=ID) as again:
        assert [event.to_json() for event in again.conversation.events] == final


def _check_put_aside(
    variant: str, report: ImportReport, outputs: Path, before: dict[str, bytes]
) -> None:
    damaged = {"half": "events/event-00006", "zero": "events/event-00006"}
    name = {**damaged, "state_half": "base_state.json"}.get(variant)
    if name is None:
        assert report.put_aside is None
        return
    [(source, data)] = [(path, data) for path, data in before.items() if path.startswith(name)]
    assert report.put_aside == outputs / "damaged"
    assert (outputs / "damaged" / Path(source).name).read_bytes() == data


def _check_request(variant: str, loaded: Scripted) -> None:
    request = loaded.llm.requests[-1]
    assert_each_call_answered_once(request)
    sent = [call.id for message in request for call in message.tool_calls or []]
    assert sent == [f"c{n}" for n in (1, 3, 5) if not (variant == "gap" and n == 3)]
    assert ("result of 3" in str(request)) == (variant != "gap")
    if MISSING.get(variant) == 6:
        result = loaded.results["c5"]
        assert isinstance(result, AgentErrorEvent) and "nterrupted" in result.error
        assert "nterrupted" in loaded.told("c5").text
    assert "are you there?" in request[-1].text


@pytest.mark.parametrize("variant", VARIANTS)
def test_EV_02_file_of_an_unknown_event_comes_out_as_it_went_in(
    tmp_path: Path, variant: str
) -> None:
    strange = VARIANTS[variant]
    folder = lay_out(tmp_path / "in", [*seven_events(), *map(json.loads, strange)])
    for number, text in enumerate(strange, 7):
        event_file(folder, number).write_text(text, "utf-8")
    file, work = tmp_path / "events.sqlite", tmp_path / "work"
    work.mkdir()
    taken_over(file, folder)
    with Scripted(work, [say("yes")] * 9, store_path=file, conversation_id=ID) as loaded:
        assert loaded.ask("one more turn") == "finished"
        assert_each_call_answered_once(loaded.llm.requests[-1])
    with EventStore.open(file) as store:
        info = store.conversation(ID)
        assert info
        out = export_folder(store, info, tmp_path / "out")
    came, went = snapshot(folder), snapshot(out)
    names = [name for name in came if name.startswith("events/")]
    assert {name: json.loads(went[name]) for name in names} == {
        name: json.loads(came[name]) for name in names
    }
    for number in range(7, 7 + len(strange)):
        assert event_file(out, number).read_bytes() == event_file(folder, number).read_bytes()
    assert len(went) > len(came)


def test_EV_01_command_line_tells_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(tmp_path / "in", seven_events())
    for damage in ("half", "gap", "state_half", "foreign"):
        DAMAGE[damage](folder)
    assert main(["import", str(folder), "--store-path", str(tmp_path / "e.sqlite")]) == 0
    out = capsys.readouterr().out
    for words in ("5 events taken over", "2 events are missing", "base_state.json", ".DS_Store"):
        assert words in out
    assert str(tmp_path / "outputs") in out
