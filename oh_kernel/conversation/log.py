"""How does an event get from a run into the store, and from there to everybody else?

Store first, then the projection, then the listeners: nobody sees an event that could still be lost.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from oh_kernel.conversation.masked_streams import MaskedStreams
from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.passing import NativeOutput as NativeOutput
from oh_kernel.conversation.passing import Passing as Passing
from oh_kernel.conversation.passing import ToolOutput as ToolOutput
from oh_kernel.conversation.state import (
    Status,
    Trigger,
    check_transition,
    next_status,
    recorded_approvals,
    recorded_status,
    status_event,
)
from oh_kernel.conversation.stats import Accounts
from oh_kernel.events import (
    ActionEvent,
    Event,
    Message,
    MessageEvent,
    ObservationEvent,
    UnknownAction,
    UnknownEvent,
    UnknownObservation,
    utc_now,
)
from oh_kernel.events.messages import Projection
from oh_kernel.security.secrets import SecretMask
from oh_kernel.store import EventStore

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Somebody who watches a conversation. Called on the agent thread; must not block.

    A listener may be slow to show things, absent or broken: the run goes on.
    """

    def event(self, event: Event) -> None:
        """`event` is stored."""

    def delta(self, delta: Passing) -> None:
        """A piece of something that is still on its way; never stored."""


class ConversationLog:
    """The events of one conversation, and what is computed from them as they come.

    Owned by the agent thread; `events` may be copied from any. `last_call` is the position of the
    last call, counted from 0.
    """

    def __init__(
        self, store: EventStore, conversation_id: str, mask: SecretMask | None = None
    ) -> None:
        self.id = conversation_id
        self._store = store
        self._mask = mask or SecretMask()
        self.hides_secrets = False  # from the model, which may take the mask for text of a file
        self._streams = MaskedStreams(self._mask.stream)
        self._listeners: list[Listener] = []
        self._appending = asyncio.Lock()
        self._reset()

    def _reset(self) -> None:
        self.events: list[Event] = []
        self.status = Status.IDLE
        self.approved_calls: frozenset[str] = frozenset()
        self.metrics = Metrics()
        self.accounts = Accounts()
        self.unknown_events = 0
        self._projection = Projection()
        self._call_ids: set[str] = set()
        self.last_call = self._last_user_message = -1
        self._last_timestamp = ""

    def load(self) -> None:
        """Read what the store has, in place of what is here."""
        self._reset()
        with _without_collecting():
            for event in self._store.iterate(self.id):
                self._take(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of events and deltas; call the result to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def append(self, event: Event, *, ends_turn: bool = False) -> Event:
        """Store `event`, secrets masked; returns it as it was stored.

        An event that ends a turn is on the disk, not only with the operating system, on return.
        """
        # One at a time, in the order of the calls; and when whoever waits for it is cancelled, what
        # the store has already is still known here.
        return await asyncio.shield(self._appended(event, ends_turn))

    async def _appended(self, event: Event, ends_turn: bool) -> Event:
        async with self._appending:
            masked = self._mask.event(event)
            self.hides_secrets |= masked is not event
            event = masked
            if event.timestamp < self._last_timestamp:  # or the clock was set back
                event = event.model_copy(update={"timestamp": utc_now(self._last_timestamp)})
            await self._store.append_async(self.id, event, full_sync=ends_turn)
            self._take(event)
            self._tell_of(self._streams.before(event))
            self._tell(lambda listener: listener.event(event))
            return event

    async def set_status(self, status: Status) -> None:
        """Record a new status; `ConversationError` if the table of states has no such step."""
        if status is self.status:
            return
        check_transition(self.status, status)
        await self.append(status_event(status), ends_turn=status is not Status.RUNNING)

    async def happen(self, trigger: Trigger) -> None:
        """Record the state that `trigger` leads to; `ConversationError` if it cannot happen now."""
        await self.set_status(next_status(self.status, trigger))

    def delta(self, delta: Passing) -> None:
        """Tell the listeners of something that is on its way, secrets masked."""
        self._tell_of(self._streams.feed(delta))

    def mask_again(self) -> int:
        """Mask what is here already, after a secret became known; in how many events it stood.

        The model is sent no more of it. What is stored stays as it is.
        """
        events = self.events
        masked = [self._mask.event(event) for event in events]
        changed = sum(new is not old for new, old in zip(masked, events, strict=True))
        if changed:
            self._reset()
            for event in masked:
                self._take(event)
        return changed

    def mask(self, text: str) -> str:
        """`text` without secrets."""
        return self._mask(text)

    def messages(self) -> list[Message]:
        """What a model is to be sent."""
        with _without_collecting():
            return self._projection.messages()

    @property
    def blocked_messages(self) -> set[str]:
        """Ids of messages that hooks keep from the model."""
        return self._projection.blocked

    @property
    def events_for_models(self) -> list[Event]:
        """The log without those messages."""
        blocked = self.blocked_messages
        return [e for e in self.events if e.id not in blocked] if blocked else self.events

    @property
    def view(self) -> Sequence[Event]:
        """The events that the model is shown, summaries among them."""
        return self._projection.view

    @property
    def condensation_requested(self) -> bool:
        """Whether a condensation was asked for and has not come yet."""
        return self._projection.condensation_requested

    @property
    def open_calls(self) -> list[ActionEvent]:
        """The calls of the last reply that have no result."""
        return self._projection.open_calls

    def user_spoke_since(self, position: int) -> bool:
        """Whether the event at `position`, counted from 0, or a later one is the user's message."""
        return self._last_user_message >= position

    def unique_call_id(self, wanted: str) -> str:
        """`wanted`, or something like it that no call of this conversation has used."""
        base = wanted or "call"
        candidate, n = wanted or "call_1", 1
        while candidate in self._call_ids:
            n += 1
            candidate = f"{base}_{n}"
        self._call_ids.add(candidate)
        return candidate

    def _take(self, event: Event) -> None:
        self._note_position(event)
        self.events.append(event)
        self.status = recorded_status(event) or self.status
        if (approved := recorded_approvals(event)) is not None:
            self.approved_calls = approved
        self.metrics = self.metrics.plus(event)
        self.accounts.add(event, at_rest=self.status is not Status.RUNNING)
        self.unknown_events += _is_unknown(event)
        self._projection.add(event)
        self._last_timestamp = max(self._last_timestamp, event.timestamp)
        if isinstance(event, ActionEvent):
            self._call_ids.add(event.tool_call_id)

    def _note_position(self, event: Event) -> None:
        if isinstance(event, ActionEvent):
            self.last_call = len(self.events)
        elif isinstance(event, MessageEvent) and event.source == "user":
            self._last_user_message = len(self.events)

    def _tell_of(self, shown: Iterable[Passing]) -> None:
        for passing in shown:
            self._tell(partial(_tell_delta, passing))

    def _tell(self, tell: Callable[[Listener], None]) -> None:
        for listener in tuple(self._listeners):
            try:
                tell(listener)
            except Exception:  # a broken view must not end the run
                logger.exception("a view of the conversation failed")


def _tell_delta(passing: Passing, listener: Listener) -> None:
    listener.delta(passing)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """While many objects are made that all stay: looking for garbage among them finds none, again
    and again, which is half of the time that opening a long conversation takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_unknown(event: Event) -> bool:
    """Whether the event, or what a tool was asked or answered in it, is not of this version."""
    match event:
        case UnknownEvent():
            return True
        case ActionEvent():
            return isinstance(event.action, UnknownAction)
        case ObservationEvent():
            return isinstance(event.observation, UnknownObservation)
    return False
