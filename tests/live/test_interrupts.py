"""A person stops a turn: in every state, by signal and by message, and again and again.

In each try the kernel is back within two seconds, `1+1` works, no call is left without a result,
and the next request is one that any provider takes.
"""

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.experiments import count, measured
from tests.live.kernel_client import Kernel, Message, running_kernel
from tests.live.model_server import ModelServer

DEADLINE_S = 2.0
TRIES = count(20, long=40)  # half by signal, half by message
RANDOM_TRIES = count(20, long=500)


def asks(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@dataclass(frozen=True)
class State:
    """A state to be interrupted in: what the model answers, and what shows that it is reached.

    Without a sign it is reached when the model was asked.
    """

    script: list[dict[str, Any]]
    sign: str
    policy: str = "never"
    widgets: bool = False
    stdin: bool = False


PRINT = "print('REA' 'DY', flush=True)"  # the source itself does not hold the sign
STATES = {
    "model stream": State([{"content": "one two three four five", "hang_after": 3}], "two"),
    "model silent": State([{"content": "never", "hang_after": 1}], ""),
    "python loop": State([asks("ipython", code=f"{PRINT}\nwhile True: pass")], "READY"),
    "time.sleep": State([asks("ipython", code=f"import time; {PRINT}; time.sleep(60)")], "READY"),
    "await sleep": State(
        [asks("ipython", code=f"import asyncio; {PRINT}; await asyncio.sleep(60)")], "READY"
    ),
    "bash sleep": State([asks("terminal", command="echo REA''DY; sleep 60")], "READY"),
    "waiting for a click": State(
        [asks("terminal", command="echo x")], "widget-view", policy="always", widgets=True
    ),
    "waiting for a line": State(
        [asks("terminal", command="echo x")], "Run it?", policy="always", stdin=True
    ),
    "between steps": State([asks("think", thought=f"{n}") for n in range(90)], "think"),
}


@contextmanager
def kernel_for(state: State, tmp_path: Path) -> Iterator[tuple[Kernel, ModelServer]]:
    with (
        ModelServer(state.script) as server,
        running_kernel(
            tmp_path,
            OPENHANDS_MODEL="openai:scripted",
            OPENHANDS_BASE_URL=f"{server.url}/v1",
            OPENHANDS_API_KEY="sk-test-1234567890",
            OPENHANDS_STORE_PATH=str(tmp_path / "events.sqlite"),
            OPENHANDS_POLICY=state.policy,
        ) as kernel,
    ):
        if state.widgets:  # as a front end with widgets does when it connects
            kernel.client.comm_info("jupyter.widget.control")
        yield kernel, server


@pytest.mark.repeated
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", STATES)
def test_interrupt_in_every_state(name: str, tmp_path: Path) -> None:
    state, times = STATES[name], []
    with (
        measured(f"interrupt: {name}", tries=TRIES) as figures,
        kernel_for(state, tmp_path) as (kernel, server),
    ):
        for n in range(TRIES):
            times.append(_interrupt(kernel, server, state, ("signal", "message")[n % 2]))
            assert kernel.run("1+1").text == "2\n"
            if name.startswith("model"):
                assert server.requests[-1].closed.wait(30)
        _check_next_turn(kernel, server)
        assert "Task was destroyed" not in kernel.stderr
        assert "never awaited" not in kernel.stderr
        assert max(times) < DEADLINE_S, times
        figures["median_ms"] = round(statistics.median(times) * 1000)
        figures["p90_ms"] = round(sorted(times)[int(len(times) * 0.9)] * 1000)


def _interrupt(kernel: Kernel, server: ModelServer, state: State, how: str) -> float:
    """One try; the time from the interrupt to idle."""
    moments: list[float] = []
    asked_before = len(server.requests)

    def look(message: Message) -> None:
        was_asked = len(server.requests) > asked_before
        if not moments and was_asked and state.sign in str(message["content"]):
            moments.append(time.monotonic())
            kernel.interrupt(how)

    options = {"allow_stdin": state.widgets or state.stdin}
    msg_id = kernel.start("%%openhands --new\ngo", **options)
    on_input = _stdin_watch(kernel, look) if state.stdin else None
    result = kernel.finish(msg_id, on_message=look, on_any=on_input)
    assert moments, f"{state.sign!r} never came: {result.text}"
    took_s = time.monotonic() - moments[0]
    assert [name for name, _ in result.errors] == ["KeyboardInterrupt"]
    return took_s


def _stdin_watch(kernel: Kernel, look: Callable[[Message], None]) -> Callable[[Message], object]:
    """The question comes on a channel of its own; look at it with every message."""

    def watch(_: Message) -> None:
        if kernel.client.stdin_channel.msg_ready():
            look(kernel.client.stdin_channel.get_msg(timeout=1))

    return watch


def _check_next_turn(kernel: Kernel, server: ModelServer) -> None:
    """The conversation goes on; its request has each call answered once."""
    before = len(server.requests)
    server.script = [{"content": "fine"}] * 200
    assert kernel.run("%%openhands\ngo on").status == "ok"
    messages = server.requests[-1].json["messages"]
    assert len(server.requests) == before + 1
    called = [call["id"] for m in messages for call in m.get("tool_calls") or []]
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert called == answered


@pytest.mark.repeated
@pytest.mark.timeout(1800)
def test_random_interrupts_leave_the_kernel_alive(tmp_path: Path) -> None:
    """At any moment of turns that mix streams, Python, bash and edits."""
    work = tmp_path / "work"
    work.mkdir()
    file = str(work / "f.txt")
    create = {"command": "create", "path": file, "file_text": "x\n"}
    step = [
        {"content": "a b c d e f", **asks("ipython", code="sum(range(100000))"), "delay_s": 0.005},
        asks("terminal", command="for i in 1 2 3; do echo $i; sleep 0.02; done"),
        asks("file_editor", **create),
        asks("ipython", code="import time\nfor _ in range(20): time.sleep(0.005)"),
        asks("terminal", command="rm -f f.txt"),
    ]
    dice = random.Random(int(os.environ.get("OH_SEED", "7")))
    with (
        measured("interrupts at random moments", tries=RANDOM_TRIES),
        kernel_for(State(step * 20, ""), tmp_path) as (kernel, server),
    ):
        for _ in range(RANDOM_TRIES):
            msg_id = kernel.start("%%openhands --new\ngo")
            deadline = time.monotonic() + dice.uniform(0.0, 0.8)
            while time.monotonic() < deadline:
                time.sleep(0.005)  # the moment is what is being tried
            kernel.interrupt(dice.choice(["signal", "message"]))
            kernel.finish(msg_id)
            assert kernel.run("1+1").text == "2\n", kernel.stderr
        _check_next_turn(kernel, server)
