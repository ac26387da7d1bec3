"""oh-kernel behind the small contract of a set of benchmark scripts, beside other products.

Import it by its module name; each class or function stands for one thing that is timed.
"""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.events import (
    ActionEvent,
    Event,
    Message,
    MessageToolCall,
    ObservationEvent,
    TextContent,
)
from oh_kernel.events.messages import Projection
from oh_kernel.llm.scripted import ScriptedLLM
from oh_kernel.settings import load_settings
from oh_kernel.store import EventStore
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor, FileEditorTool
from oh_kernel.tools.finish import FinishTool
from oh_kernel.tools.glob import GlobAction, GlobExecutor
from oh_kernel.tools.grep import GrepAction, GrepExecutor
from oh_kernel.tools.terminal import (
    TerminalAction,
    TerminalExecutor,
    TerminalObservation,
    TerminalTool,
)
from oh_kernel.tools.think import ThinkTool

BACKENDS = ("pty",)


class Terminal:
    """A bash session: run a command, get its text and exit code."""

    def __init__(self, cwd: str, backend: str = "pty") -> None:
        self._executor = TerminalExecutor(workspace=cwd)

    def run(self, command: str, timeout: float = 60) -> tuple[str, int | None]:
        observation = self._executor(TerminalAction(command=command, timeout=timeout))
        return observation.text, observation.exit_code

    def close(self) -> None:
        self._executor.close()


class Editor:
    """The file editor; the keywords are the action's fields."""

    def __init__(self, root: str) -> None:
        self._executor = FileEditorExecutor(workspace=root)

    def __call__(self, **fields: Any) -> tuple[str, bool, Any]:
        observation = self._executor(FileEditorAction(**fields))
        return observation.text, observation.is_error, observation

    @staticmethod
    def to_llm(observation: Any) -> Any:
        return observation.for_model()


def make_glob(root: str) -> Callable[[str], int]:
    """A search for names; how many files it found."""
    executor = GlobExecutor(workspace=root)
    return lambda pattern: len(executor(GlobAction(pattern=pattern)).files)


def make_grep(root: str) -> Callable[..., int]:
    """A search for text, perhaps only in files of some names; how many files it found."""
    executor = GrepExecutor(workspace=root)
    return lambda pattern, include=None: len(
        executor(GrepAction(pattern=pattern, include=include)).matches
    )


class Log:
    """A stored conversation: append pairs, read, project."""

    def __init__(self, path: str, number: int) -> None:
        self._store = EventStore.open(Path(path) / "events.sqlite")
        self._id = f"bench-{number}"
        self._events = list(self._store.iterate(self._id))
        self._projection = Projection(self._events)

    @staticmethod
    def make_pair(i: int, body: str) -> tuple[Event, Event]:
        command = f"echo step {i}"
        arguments = json.dumps({"command": command})
        call = MessageToolCall(
            id=f"c{i}", name="terminal", arguments=arguments, origin="completion"
        )
        action = ActionEvent(
            thought=[TextContent(text=f"Run step {i}")],
            action=TerminalAction(command=command),
            tool_name="terminal",
            tool_call_id=f"c{i}",
            llm_response_id=f"r{i}",
            tool_call=call,
        )
        result = ObservationEvent(
            tool_name="terminal",
            tool_call_id=f"c{i}",
            action_id=action.id,
            observation=TerminalObservation.from_text(text=body, command=command, exit_code=0),
        )
        return action, result

    def append(self, event: Event) -> None:
        self._store.append(self._id, event)
        self._events.append(event)
        self._projection.add(event)

    def __len__(self) -> int:
        return len(self._events)

    def ids(self, start: int, count: int) -> list[str]:
        return [event.id for event in self._events[start : start + count]]

    def get(self, event_id: str) -> Event | None:
        return self._store.get(self._id, [event_id])[0]

    def read_all(self) -> int:
        return sum(1 for _ in self._store.iterate(self._id))

    def messages(self) -> list[Message]:
        return self._projection.messages()

    def view_cold(self) -> Projection:
        return Projection(self._events)


class _Stamped(ScriptedLLM):
    """Notes when it is asked."""

    def __init__(self, turns: Any, workspace: str) -> None:
        super().__init__(turns, workspace=workspace)
        self.stamps: list[float] = []

    def stream(self, messages: Any, tools: Any) -> Any:
        self.stamps.append(time.perf_counter())
        return super().stream(messages, tools)


def run_agent(
    calls: list[tuple[str, dict[str, Any]]], cwd: str, persist_dir: str | None, backend: str = "pty"
) -> dict[str, Any]:
    """Drive one conversation with a scripted model; when it was asked, and how long all took."""
    turns = [{"tool_calls": [{"name": n, "arguments": a}]} for n, a in calls]
    turns.append({"tool_calls": [{"name": "finish", "arguments": {"message": "done"}}]})
    model = _Stamped(turns, cwd)
    folder = Path(persist_dir or cwd) / f"store-{next(_numbers)}"
    began = time.perf_counter()
    conversation = Conversation(
        workspace=cwd,
        llm=model,
        store_path=folder / "events.sqlite",
        tools=(TerminalTool, FileEditorTool, ThinkTool, FinishTool),
        policy="never",
        max_steps=len(calls) + 5,
        # The same call again and again is what is measured.
        settings=load_settings().with_("run_agent", stuck_detection=False, condenser="none"),
    )
    conversation.send_message("go")
    ready = time.perf_counter()
    status = conversation.run()
    end = time.perf_counter()
    events = len(conversation.events)
    conversation.close()
    return {
        "setup_s": ready - began,
        "run_s": end - ready,
        "stamps": model.stamps,
        "end": end,
        "status": str(status),
        "events": events,
    }


_numbers = itertools.count()
