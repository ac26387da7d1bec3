"""The field case EV-01: a log that a crash or a bad disk left damaged loads, and says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.events import AgentErrorEvent
from oh_kernel.store import EventStore
from oh_kernel.store.schema import PAGE_SIZE
from tests.conversations import Scripted, assert_each_call_answered_once, call, calls, say
from tests.live.agent_kernel import agent_kernel, stored_events
from tests.outputs import final_text
from tests.unit.test_store_repair import (
    bad_wal_frame,
    cut_wal,
    empty,
    halve,
    leave_temporary_file,
    overwrite_middle_page,
    remove_wal,
    zero_first_page,
    zero_last_page,
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def foreign(file: Path) -> None:
    """What other programs leave in a folder."""
    (file.parent / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (file.parent / "locks" / "empty").mkdir(parents=True)


def last_result_gone(file: Path) -> None:
    """The commits of the last events never reached the disk, but those of the call did."""
    wal = file.with_name(file.name + "-wal")
    with EventStore.open(file, read_only=True) as store:
        events = len(list(store.iterate(store.conversations(limit=1)[0].id)))
    size, frame = wal.stat().st_size, PAGE_SIZE + 24
    probe = file.parent / "probe"
    while size > 32:
        size -= frame
        shutil.rmtree(probe, ignore_errors=True)
        probe.mkdir()
        for path in file.parent.glob(f"{file.name}*"):
            shutil.copy(path, probe)
        os.truncate(probe / wal.name, size)
        with EventStore.open(probe / file.name, read_only=True) as store:
            left = list(store.iterate(store.conversations(limit=1)[0].id))
        if left[-1].kind == "ActionEvent" and len(left) < events:
            break
    shutil.rmtree(probe)
    os.truncate(wal, size)


def gap(file: Path) -> None:
    """The page with an event in the middle is overwritten."""
    at = file.read_bytes().index(b"b" * 1000)
    with file.open("r+b") as target:
        target.seek(at // PAGE_SIZE * PAGE_SIZE)
        target.write(bytes(PAGE_SIZE))


# Damage to a log whose WAL is still there, and to one that was closed.
CRASHED = {
    "wal_half": cut_wal,
    "wal_gone": remove_wal,
    "wal_frame": bad_wal_frame,
    "last_result_gone": last_result_gone,
}
CLOSED = {
    "gap": gap,
    "last_page_zero": zero_last_page,
    "middle_page": overwrite_middle_page,
    "first_page": zero_first_page,
    "half": halve,
    "zero": empty,
    "temp_left": leave_temporary_file,
    "foreign": foreign,
}
HARMLESS = ("temp_left", "foreign")
MAY_HIT_NOTHING = ("wal_frame", "middle_page", "first_page")  # what is there may be superseded


def big(name: str) -> dict[str, Any]:
    """A call whose event alone fills a page or two."""
    return call("think", {"thought": name * 3000}, id=name)


def store_conversation(work: Path, crashed: bool) -> tuple[Path, str, list[str]]:
    """A finished conversation: file, id, and the JSON of its events; crashed leaves the WAL."""
    turns = [calls(big("a")), calls(big("b")), calls(big("c")), say("all done")]
    file = work.parent / "made" / "events.sqlite"
    with Scripted(work, turns, store_path=file) as scripted:
        assert scripted.ask() == "finished"
        texts = [event.to_json() for event in scripted.conversation.events]
        if crashed:
            shutil.copytree(file.parent, work.parent / "damaged")
    if not crashed:
        shutil.copytree(file.parent, work.parent / "damaged")
    return work.parent / "damaged" / file.name, scripted.conversation.id, texts


@pytest.mark.parametrize("name", [*CRASHED, *CLOSED])
def test_EV_01_damaged_log(work: Path, name: str) -> None:
    file, conversation_id, texts = store_conversation(work, name in CRASHED)
    damage: Callable[[Path], None] = {**CRASHED, **CLOSED}[name]
    damage(file)
    turns = [say("answered")] * 9
    with Scripted(work, turns, store_path=file, conversation_id=conversation_id) as loaded:
        kept = [event.to_json() for event in loaded.conversation.events]
        _check_what_is_kept(name, kept, texts, loaded, file)
        assert loaded.ask("are you there?") == "finished"
        _check_answered(loaded)
        with EventStore.open(file, read_only=True) as store:
            numbers = list(store.iterate_numbered(conversation_id))
        assert [number for number, _ in numbers] == sorted({number for number, _ in numbers})
        new = [number for number, text in numbers if text not in kept]
        assert min(new) >= len(texts)  # no index that was used before
        assert numbers[: len(kept)] == [(texts.index(text), text) for text in kept]
        final = [event.to_json() for event in loaded.conversation.events]
    with Scripted(work, turns, store_path=file, conversation_id=conversation_id) as again:
        assert [event.to_json() for event in again.conversation.events] == final
        assert again.ask("once more") == "finished"


def _check_what_is_kept(
    name: str, kept: list[str], texts: list[str], loaded: Scripted, file: Path
) -> None:
    order = iter(texts)
    assert all(text in order for text in kept)  # none changed, none in another place
    with EventStore.open(file) as store:
        listed = {info.id: info for info in store.conversations(limit=-1)}
    lost = len(texts) - len(kept)
    if name in HARMLESS:
        assert kept == texts and not loaded.conversation.remarks
        return
    if name in MAY_HIT_NOTHING and not lost:
        return
    assert lost, "the damage hit nothing"
    assert str(lost) in " ".join(loaded.conversation.remarks)
    assert listed[loaded.conversation.id].events_lost == lost
    assert listed[loaded.conversation.id].events == len(kept)
    if name in CLOSED and name != "zero":
        assert list(file.parent.glob("*.damaged-*"))


def _check_answered(loaded: Scripted) -> None:
    results = loaded.results
    calls_here = set(loaded.call_ids)
    assert calls_here <= set(results)
    for request in loaded.llm.requests:
        assert_each_call_answered_once(request)
        sent = {c.id for m in request for c in m.tool_calls or []}
        assert sent == calls_here
    if gone := [r for r in results.values() if isinstance(r, AgentErrorEvent)]:
        assert all("Interrupted" in result.error for result in gone)


def test_EV_01_a_person_is_told_in_the_notebook(work: Path, tmp_path: Path) -> None:
    file, conversation_id, texts = store_conversation(work, crashed=False)
    gap(file)
    with agent_kernel(tmp_path, [{"content": "fine"}] * 9, store=file) as kernel:
        resumed = kernel.command(f"resume {conversation_id}")
        assert "left out" in resumed and "was damaged" in resumed
        with EventStore.open(file, read_only=True) as store:
            lost = store.conversations(limit=1)[0].events_lost
        assert f"({lost} lost)" in kernel.command("history")
        assert "left out" in final_text(kernel.ask("hello?").messages)
        assert "left out" not in final_text(kernel.ask("hello again").messages)
    assert len(texts) - lost < len(stored_events(file, conversation_id))
