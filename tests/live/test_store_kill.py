"""No kill of a writer, at any moment, loses an acknowledged event or keeps the log from opening."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oh_kernel.errors import ConversationInUse
from oh_kernel.events import Message, MessageEvent, TextContent
from oh_kernel.store import EventStore
from oh_kernel.store.filesystem import JournalMode
from tests.experiments import measured

WRITER = """
import itertools, os, sys
from oh_kernel.events import Message, MessageEvent, TextContent
from oh_kernel.store import EventStore

store = EventStore.open(sys.argv[1], label="victim.ipynb", journal=sys.argv[2])
for number in itertools.count():
    content = [TextContent(text=f"{number} " + "x" * (number * 37 % 9000))]
    event = MessageEvent(source="user", llm_message=Message(role="user", content=content))
    index = store.append("c", event, full_sync=number % 50 == 49)
    os.write(1, f"{index} {event.id}\\n".encode())
    if len(sys.argv) > 3:
        sys.stdin.readline()
"""


def message(text: str) -> MessageEvent:
    return MessageEvent(
        source="user", llm_message=Message(role="user", content=[TextContent(text=text)])
    )


def start_writer(file: Path, *options: str, journal: str = "wal") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", WRITER, str(file), journal, *options]
    return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
    """What the writer acknowledged until it is killed, so long after its first event."""
    assert process.stdout and process.stdin
    acknowledged = process.stdout.readline()
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        acknowledged += os.read(process.stdout.fileno(), 65536) if left > 0.001 else b""
    process.send_signal(signal.SIGKILL)
    acknowledged += process.stdout.read()
    process.wait(10)
    process.stdout.close()
    process.stdin.close()
    return acknowledged


def kill_again_and_again(
    file: Path, times: int, *, journal: JournalMode = "wal", seed: int = 0
) -> None:
    chance = random.Random(seed)
    known: list[str] = []
    for _ in range(times):
        acknowledged = kill_after(start_writer(file, journal=journal), chance.uniform(0, 0.12))
        lines = acknowledged.decode().rpartition("\n")[0].splitlines()
        with EventStore.open(file, journal=journal) as store:
            stored = [event.id for event in store.iterate("c")]
            assert stored[: len(known)] == known
            for line in lines:
                index, event_id = line.split()
                assert stored[int(index)] == event_id
            # At most the one event that was stored but not yet acknowledged.
            assert len(stored) - len(known) - len(lines) in (0, 1)
            assert store.repair_report is None
            assert store.append("c", message("after the kill")) == len(stored)
            known = [event.id for event in store.iterate("c")]


def test_kill_loses_no_acknowledged_event(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "events.db", 20)


def test_kill_loses_nothing_with_a_rollback_journal(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "events.db", 5, journal="delete")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_kill_five_hundred_times_loses_no_acknowledged_event(tmp_path: Path) -> None:
    with measured("kill -9 of a process that appends", kills=500):
        for seed in range(1, 26):
            kill_again_and_again(tmp_path / f"{seed}.db", 20, seed=seed)


def test_EV_03_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    owner = start_writer(file, "one event at a time")
    assert owner.stdout and owner.stdin
    assert owner.stdout.readline().startswith(b"0 ")
    with EventStore.open(file) as store:
        started = time.monotonic()
        with pytest.raises(ConversationInUse) as refusal:
            store.append("c", message("refused"))
        assert time.monotonic() - started < 2
        assert "victim.ipynb" in str(refusal.value) and str(owner.pid) in str(refusal.value)
        assert len(list(store.iterate("c"))) == 1
        owner.stdin.write(b"\n")
        owner.stdin.flush()
        assert owner.stdout.readline().startswith(b"1 ")
        assert len(list(store.iterate("c"))) == 2
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
        started = time.monotonic()
        assert store.append("c", message("let in")) == 2
        assert time.monotonic() - started < 5
    owner.stdin.close()
    owner.stdout.close()


FORKER = """
import os, sys, time
from oh_kernel.events import PauseEvent
from oh_kernel.store import EventStore

store = EventStore.open(sys.argv[1])
store.append("c", PauseEvent())
if os.fork() == 0:
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(60)
    os._exit(0)
sys.stdin.readline()
"""


def test_forked_worker_does_not_hold_the_conversation(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    command = [sys.executable, "-c", FORKER, str(file)]
    owner = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout and owner.stdin
    worker = int(owner.stdout.readline())
    try:
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
        with EventStore.open(file) as store:
            assert store.append("c", message("let in")) == 1
    finally:
        os.kill(worker, signal.SIGKILL)
        owner.stdin.close()
        owner.stdout.close()


def test_two_processes_write_different_conversations_of_one_file(tmp_path: Path) -> None:
    file = tmp_path / "events.db"
    other = start_writer(file)
    assert other.stdout
    with EventStore.open(file) as store:
        assert other.stdout.readline()
        indices = [store.append("mine", message(str(number))) for number in range(200)]
        acknowledged = kill_after(other, 0)
        assert indices == list(range(200))
        assert len(list(store.iterate("mine"))) == 200
        assert len(list(store.iterate("c"))) >= acknowledged.count(b"\n")
