"""Field cases about the agent's Python in a live kernel; each test bears its case's name."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path

from oh_kernel.events import ActionEvent, AgentErrorEvent, ObservationEvent
from oh_kernel.store import EventStore
from tests.live.agent_kernel import (
    AgentKernel,
    agent_kernel,
    check_calls_answered,
    python,
    results_of,
    stored_events,
    text_of,
    wait_until,
)
from tests.outputs import final_text

SWALLOWS = """
import time
hits = 0
while hits < {limit}:
    try:
        time.sleep(0.2)
    except BaseException:
        hits += 1
"""
SAYS = {"content": "It does not stop."}


def observation(kernel: AgentKernel, number: int) -> ObservationEvent:
    """The observation of the reply with this number, from 0."""
    found = kernel.results()[f"call_{number}_0"]
    assert isinstance(found, ObservationEvent)
    return found


def seconds_taken(kernel: AgentKernel, number: int) -> float:
    """From the call to its result, by the log."""
    events = kernel.events()
    call_id = f"call_{number}_0"
    first, last = (e.timestamp for e in events if getattr(e, "tool_call_id", "") == call_id)
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def begin_swallowing(kernel: AgentKernel) -> str:
    """Start the cell whose code answers no interrupt, and wait until the agent is done with it.

    An interrupt that comes before stops the agent too, and its script then goes on otherwise.
    """
    cell = kernel.kernel.start("%%openhands\ngo")
    kernel.server.wait_for_requests(2)
    wait_until(lambda: getattr(kernel.events()[-1], "value", None) == "finished")
    [result] = results_of(kernel.events()).values()
    assert isinstance(result, ObservationEvent)
    assert result.observation.is_error
    text = result.observation.text
    assert "timed out after 3 s" in text and "still runs" in text
    assert "Restarting the kernel may be the only way to end it" in text
    assert seconds_taken(kernel, 0) < 8
    return cell


def interrupt_thrice(kernel: AgentKernel) -> None:
    """As a person does, a second apart."""
    for _ in range(3):
        kernel.kernel.interrupt()
        time.sleep(1)  # the pace is the case's


def test_KN_01_swallowed_interrupt_ended_by_a_restart(tmp_path: Path) -> None:
    script = [python(SWALLOWS.format(limit=1000), timeout=3), SAYS, {"content": "ok"}]
    with agent_kernel(tmp_path, script) as kernel:
        begin_swallowing(kernel)
        interrupt_thrice(kernel)
        conversation_id = _conversation_id(kernel)
        kernel.kill()
        server = kernel.server
        with agent_kernel(tmp_path, server) as again:
            assert "Going on with" in again.command(f"resume {conversation_id}")
            assert again.ask("stop that").status == "ok"
            messages = server.requests[-1].json["messages"]
            assert check_calls_answered(messages) == ["call_0_0"]
            assert "stop that" in str(messages[-1]["content"])


def test_KN_01_swallowed_interrupt_that_ends_at_last(tmp_path: Path) -> None:
    script = [
        python(SWALLOWS.format(limit=5), timeout=3),
        SAYS,
        python("print(type(hits).__name__)"),
        {"content": "done"},
    ]
    with agent_kernel(tmp_path, script) as kernel:
        cell = begin_swallowing(kernel)
        interrupt_thrice(kernel)
        kernel.kernel.interrupt()
        shown = kernel.kernel.finish(cell)
        assert "still runs" in final_text(shown.messages)
        assert kernel.ask("stop that").status == "ok"
        assert check_calls_answered(kernel.server.requests[2].json["messages"]) == ["call_0_0"]
        assert observation(kernel, 2).observation.text == "int"


def test_KN_01_calls_behind_a_loop_that_goes_on_are_refused(tmp_path: Path) -> None:
    script = [python(SWALLOWS.format(limit=1000), timeout=1), python("print('queued')"), SAYS]
    with agent_kernel(tmp_path, script) as kernel:
        kernel.kernel.start("%%openhands\ngo")
        kernel.server.wait_for_requests(3)
        refused = observation(kernel, 1).observation
        assert refused.is_error and refused.text.startswith("Nothing was run")
        assert "queued" not in refused.text
        assert seconds_taken(kernel, 1) < 1


def test_KN_01_polite_loop(tmp_path: Path) -> None:
    script = [
        python("bound = 'kept'\nwhile True: pass", timeout=1),
        python("print(bound)"),
        {"content": "done"},
    ]
    with agent_kernel(tmp_path, script) as kernel:
        kernel.ask()
        first = observation(kernel, 0).observation
        assert first.is_error and "timed out after 1 s" in first.text
        assert seconds_taken(kernel, 0) < 8
        assert observation(kernel, 1).observation.text == "kept"


def test_KN_02_code_that_leaves_the_interpreter(tmp_path: Path) -> None:
    script = [
        python("x = 5; _ = open('ran.log', 'a').write('A')"),
        python("import sys; sys.exit(2)"),
        python("exit()"),
        python("raise KeyboardInterrupt"),
        python("import os; print(x, os.getpid())"),
        python("open('ran.log', 'a').write('B'); import os; os._exit(1)"),
        {"content": "carried on"},
    ]
    with agent_kernel(tmp_path, script) as kernel:
        pid = kernel.kernel.run("import os; os.getpid()").text.strip()
        kernel.kernel.start("%%openhands\ngo")
        wait_until(lambda: not kernel.kernel.manager.is_alive(), 30)
        server, store = kernel.server, kernel.store
        _check_steps(store, pid)
        conversation_id = _conversation_id(kernel)
        with agent_kernel(tmp_path, server) as again:
            assert "Going on with" in again.command(f"resume {conversation_id[:8]}")
            result = again.ask("what happened?")
            assert result.status == "ok" and "carried on" in final_text(result.messages)
            died = results_of(stored_events(store, conversation_id))["call_5_0"]
            assert isinstance(died, AgentErrorEvent)
            assert "the kernel died" in died.error and "may have run in part" in died.error
            for request in server.requests:
                check_calls_answered(request.json["messages"])
    assert (tmp_path / "work" / "ran.log").read_bytes() == b"AB"


def _check_steps(store: Path, pid: str) -> None:
    events = stored_events(store)
    calls = [event.tool_call_id for event in events if isinstance(event, ActionEvent)]
    assert calls == [f"call_{n}_0" for n in range(6)]
    found = [event.observation for event in events if isinstance(event, ObservationEvent)]
    assert [one.is_error for one in found] == [False, True, True, True, False]
    assert "SystemExit: 2" in found[1].text
    assert "exit()" in found[2].text
    assert "KeyboardInterrupt" in found[3].text
    assert found[4].text == f"5 {pid}"


def test_KN_03_asyncio_stays_as_it_was(tmp_path: Path) -> None:
    look = (
        "(asyncio.run, asyncio.get_event_loop_policy().__class__, id(asyncio.get_running_loop()))"
    )
    code = """
import asyncio
await asyncio.sleep(0.05)
t = asyncio.create_task(asyncio.sleep(0.05, result=7))
print(await t)
"""
    slow = {"content": "one two", "delay_s": 5}
    script = [python(code), {"content": "done"}, slow]
    shown: list[str] = []  # a kernel sends what is written to stderr along with the output
    with agent_kernel(tmp_path, script) as kernel:
        kernel.kernel.run(f"import asyncio; await asyncio.sleep(0); before = {look}")
        shown.append(kernel.ask().text)
        first = observation(kernel, 0).observation
        assert first.text == "7" and not first.is_error
        after = f"await asyncio.sleep(0.01); after = {look}; print(before == after)"
        assert kernel.kernel.run(after).text == "True\n"
        cell = kernel.kernel.start("%%openhands\nand again")
        kernel.server.wait_for_requests(3)
        kernel.kernel.interrupt()
        # The reply takes half a minute.
        shown.append(kernel.kernel.finish(cell, deadline_s=20).text)
        started = time.monotonic()
        assert kernel.kernel.run("await asyncio.sleep(0.01); print('alive')").text == "alive\n"
        assert time.monotonic() - started < 2
        assert kernel.kernel.run(after).text == "True\n"
        shown.append(kernel.kernel.run("import gc; gc.collect()").text)
        shown += [kernel.kernel.stray_text, kernel.kernel.stderr]
    assert not re.search("never awaited|was destroyed", "".join(shown))


TICK = """
import threading, time, sys
out0 = (id(sys.stdout), id(sys.stderr))
def tick():
    for i in range(6):
        time.sleep(0.5); print('tick', i, flush=True)
threading.Thread(target=tick).start()
"""


def test_KN_04_output_of_a_thread_that_outlives_its_call(tmp_path: Path) -> None:
    script = [
        python(TICK),
        python("print('second')"),
        python("import time; time.sleep(4); print(out0 == (id(sys.stdout), id(sys.stderr)))"),
        {"content": "done"},
    ]
    with agent_kernel(tmp_path, script) as kernel:
        result = kernel.ask()
        assert seconds_taken(kernel, 0) < 1
        told = [text_of(event) for event in kernel.results().values()]
        second = told[1].splitlines()
        assert "second" in second
        assert all("earlier" in line for line in second if "tick" in line)
        assert "True" in told[2].splitlines()
        streams = [content["text"] for content in result.of_type("stream")]
        everywhere = "".join([*(f"{text}\n" for text in told), *streams, kernel.kernel.stray_text])
        assert [everywhere.count(f"tick {i}\n") for i in range(6)] == [1] * 6
        shown = final_text(result.messages) + "\n" + kernel.kernel.stray_text
        assert [shown.count(f"tick {i}\n") for i in range(6)] == [1] * 6
        mine = kernel.kernel.run("threading.Thread(target=lambda: print('mine')).start()")
        assert "mine" in mine.text + kernel.kernel.gather_stray(lambda t: "mine" in mine.text + t)
        assert not any("mine" in event.to_json() for event in kernel.events())


def _conversation_id(kernel: AgentKernel) -> str:
    with EventStore.open(kernel.store, read_only=True) as store:
        return store.conversations(limit=1)[0].id
