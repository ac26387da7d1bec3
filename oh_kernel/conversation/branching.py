"""How does a conversation go on from a copy of an earlier point of another one?

A fork is a log of its own: the events up to the chosen one, as they are, then what makes the copy
whole. Calls that have no result in it are answered and never run again, and nothing waits for a
person. What belongs to the other conversation stays with it: its model calls and their cost, its
shell, its history of edits to undo.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

from oh_kernel.conversation.core import Core
from oh_kernel.conversation.recovery import unanswered
from oh_kernel.conversation.state import Status, recorded_status, status_event
from oh_kernel.errors import ConversationError
from oh_kernel.events import (
    AgentErrorEvent,
    Event,
    LLMCompletionLogEvent,
    Message,
    MessageEvent,
    utc_now,
)
from oh_kernel.llm.base import Completion, Delta, ToolSpec
from oh_kernel.llm.wrapped import WrappedLLM

NO_RESULT_HERE = (
    "The conversation was forked before this call had a result. It was not run in this fork; in "
    "the conversation that this is a copy of, it may have been. Check before you rely on it."
)
FORKED = (
    "[This is a fork: you go on from a copy of an earlier point of a conversation. Files and "
    "Python variables are as they are now, which may not be as they were at that point, and the "
    "shell session is new. Check before you rely on anything.]"
)


class LentLLM(WrappedLLM):
    """A model that a fork asks and does not close: it belongs to somebody else."""

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """What the model answers."""
        return self._inner.stream(messages, tools)

    async def aclose(self) -> None:
        """Whom it belongs to closes it."""


async def copy_into(
    fork: Core, source: Core, from_event: str | None, *, title: str | None, keep_metrics: bool
) -> None:
    """Fill `fork`, which is empty, from what is stored of `source`, up to and with `from_event`.

    Reads the store, so it does not matter who writes `source` meanwhile.
    """

    def copy() -> None:
        copied = up_to(source.store.iterate(source.id), from_event)
        kept = [e for e in copied if keep_metrics or not isinstance(e, LLMCompletionLogEvent)]
        fork.store.append_all(fork.id, [*kept, *ending(kept)])
        # Free until somebody writes on; whoever does becomes the writer in the usual way.
        fork.store.lease(fork.id).release()
        _describe(fork, source, copied[-1].id, title)

    await asyncio.to_thread(copy)
    fork.log.load()


def up_to(events: Iterable[Event], last: str | None) -> list[Event]:
    """The events up to and with the one whose id is `last`; all of them without one."""
    found: list[Event] = []
    for event in events:
        found.append(event)
        if event.id == last:
            return found
    if last is not None:
        raise ConversationError(
            f"There is no event {last!r} in this conversation.",
            remedy="Give the id of one of its events, or none for all of them.",
        )
    if not found:
        raise ConversationError(
            "There is nothing to fork yet.", remedy="Send a message first, or begin another one."
        )
    return found


def ending(events: Sequence[Event]) -> list[Event]:
    """What has to follow a log that was cut behind `events` for somebody to go on from there."""
    made: list[Event] = [
        AgentErrorEvent(
            tool_name=call.tool_name, tool_call_id=call.tool_call_id, error=NO_RESULT_HERE
        )
        for call in unanswered(events)
    ]
    if _status_of(events) is not Status.IDLE:  # where a fork begins: no step of the table
        made.append(status_event(Status.IDLE))
    made.append(MessageEvent(source="environment", llm_message=Message.of("user", FORKED)))
    last = max((event.timestamp for event in events), default="")
    return [event.model_copy(update={"timestamp": utc_now(last)}) for event in made]


def _status_of(events: Sequence[Event]) -> Status:
    statuses = (recorded_status(event) for event in reversed(events))
    return next((status for status in statuses if status), Status.IDLE)


def _describe(fork: Core, source: Core, at: str, title: str | None) -> None:
    info = source.store.conversation(source.id)
    of = info.title if info and info.title else source.id[:8]
    fork.store.set_meta(
        fork.id,
        title=fork.mask(title) if title else f"{of} (fork)",
        workspace=str(fork.workspace),
        notebook=info.notebook if info else None,
        status=str(Status.IDLE),
        meta={"forked_from": {"conversation": source.id, "event": at}},
    )
