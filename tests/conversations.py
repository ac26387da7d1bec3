"""A conversation with a scripted model, for tests that look at what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.events import ActionEvent, Message, ToolResultEvent
from oh_kernel.llm.retry import RetryingLLM, RetryPolicy
from oh_kernel.llm.scripted import ScriptedLLM, Turn

NO_WAITING = RetryPolicy(min_wait_s=0.0, max_wait_s=0.0)


def call(name: str, arguments: dict[str, Any] | str | None = None, id: str = "") -> dict[str, Any]:
    """A tool call of a script."""
    made = {"name": name, "arguments": {} if arguments is None else arguments}
    return {**made, "id": id} if id else made


def calls(*made: dict[str, Any], say: str = "") -> dict[str, Any]:
    """A turn of a script that calls tools."""
    return {"content": say, "tool_calls": list(made)}


def say(text: str) -> dict[str, Any]:
    """A turn of a script that is plain text, which ends the turn."""
    return {"content": text}


class Scripted:
    """A conversation whose model follows `turns`; `llm.requests` holds what it was asked."""

    def __init__(
        self,
        workspace: Path,
        turns: Sequence[Turn],
        model: type[ScriptedLLM] = ScriptedLLM,
        **options: Any,
    ) -> None:
        self.llm = model(turns, workspace=workspace)
        options.setdefault("store_path", workspace.parent / "events.sqlite")
        self.conversation = Conversation(
            workspace=workspace, llm=RetryingLLM(self.llm, NO_WAITING), **options
        )

    def __enter__(self) -> "Scripted":
        return self

    def __exit__(self, *_: object) -> None:
        self.conversation.close()

    def ask(self, text: str = "go") -> str:
        """Send a message and run; the status."""
        self.conversation.send_message(text)
        return str(self.conversation.run())

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.conversation.events]

    @property
    def results(self) -> dict[str, ToolResultEvent]:
        """The result of each call, by call id; fails if a call has two."""
        found: dict[str, ToolResultEvent] = {}
        for event in self.conversation.events:
            if isinstance(event, ToolResultEvent):
                assert event.tool_call_id not in found
                found[event.tool_call_id] = event
        return found

    @property
    def call_ids(self) -> list[str]:
        events = self.conversation.events
        return [event.tool_call_id for event in events if isinstance(event, ActionEvent)]

    def told(self, call_id: str) -> Message:
        """What the model was told about a call, in the last request."""
        messages = [m for m in self.llm.requests[-1] if m.tool_call_id == call_id]
        assert len(messages) == 1
        return messages[0]


def assert_each_call_answered_once(messages: Sequence[Message]) -> None:
    """Each call of a request is followed by its result, in order; ids are unique and not empty."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        waiting = [made.id for made in message.tool_calls or []]
        assert all(waiting)
        assert not seen & set(waiting)
        seen.update(waiting)
    assert not waiting, f"calls without a result: {waiting}"
