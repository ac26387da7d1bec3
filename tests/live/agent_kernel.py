"""A kernel whose agent asks a scripted model over HTTP, for tests of the whole product."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oh_kernel.events import ActionEvent, Event, ToolResultEvent
from oh_kernel.store import EventStore
from tests.live.kernel_client import DEADLINE_S, Kernel, Result, running_kernel
from tests.live.model_server import ModelServer, Script
from tests.outputs import final_text


def asks(*calls: tuple[str, dict[str, Any]], say: str = "") -> dict[str, Any]:
    """A turn of a script that calls tools."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"content": say, "tool_calls": made}


def python(code: str, **more: Any) -> dict[str, Any]:
    """A turn that runs Python."""
    return asks(("ipython", {"code": code, **more}))


@dataclass
class AgentKernel:
    """A kernel, the model that it asks, and the log that it writes."""

    kernel: Kernel
    server: ModelServer
    store: Path

    def ask(self, text: str = "go", *, flags: str = "", deadline_s: float = DEADLINE_S) -> Result:
        """Run an agent's cell to its end."""
        return self.kernel.run(f"%%openhands {flags}\n{text}", deadline_s=deadline_s)

    def command(self, line: str) -> str:
        """What a line such as `status` answers."""
        return final_text(self.kernel.run(f"%openhands {line}").messages)

    def events(self) -> list[Event]:
        """The log of the conversation used last, read as another process does."""
        return stored_events(self.store)

    def results(self) -> dict[str, Event]:
        """The result of each call by its id; fails unless each has exactly one."""
        return results_of(self.events())

    def kill(self) -> None:
        """End the kernel's process as `kill -9` does."""
        manager = self.kernel.manager
        manager.signal_kernel(signal.SIGKILL)
        wait_until(lambda: not manager.is_alive())


@contextmanager
def agent_kernel(
    folder: Path, server: ModelServer | Script, *, store: Path | None = None, **env: str
) -> Iterator[AgentKernel]:
    """A kernel in `folder`/work that asks `server`, or one that follows this script."""
    work = folder / "work"
    work.mkdir(exist_ok=True, parents=True)
    if not isinstance(server, ModelServer):
        with ModelServer(server) as made, agent_kernel(folder, made, store=store, **env) as kernel:
            yield kernel
        return
    store = store or folder / "events.sqlite"
    given = {
        "OPENHANDS_MODEL": "openai:scripted",
        "OPENHANDS_BASE_URL": f"{server.url}/v1",
        "OPENHANDS_API_KEY": "sk-test-1234567890",
        "OPENHANDS_STORE_PATH": str(store),
        "OPENHANDS_POLICY": "never",
    }
    with running_kernel(folder, cwd=work, **{**given, **env}) as kernel:
        yield AgentKernel(kernel, server, store)


def stored_events(store: Path, conversation_id: str | None = None) -> list[Event]:
    """The events of a conversation, by default of that used last."""
    with EventStore.open(store, read_only=True) as opened:
        if conversation_id is None:
            conversation_id = opened.conversations(limit=1)[0].id
        return list(opened.iterate(conversation_id))


def results_of(events: list[Event]) -> dict[str, Event]:
    """The result of each call by its id; every call has exactly one."""
    called = [event.tool_call_id for event in events if isinstance(event, ActionEvent)]
    answered = [event for event in events if isinstance(event, ToolResultEvent)]
    assert sorted(called) == sorted(event.tool_call_id for event in answered)
    return {event.tool_call_id: event for event in answered}


def text_of(result: Event) -> str:
    """What a result says to the model."""
    observation = getattr(result, "observation", None)
    return str(observation.text if observation else getattr(result, "error", ""))


def check_calls_answered(messages: list[dict[str, Any]]) -> list[str]:
    """Each call of a chat request is answered once, right behind it; gives the ids."""
    waiting: list[str] = []
    seen: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        seen += waiting
    assert not waiting and len(seen) == len(set(seen))
    return seen


def wait_until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Wait for `condition`, which is looked at again and again."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about within the time"
        time.sleep(0.01)
