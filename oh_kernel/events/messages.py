"""Which messages does a model get for the events of a conversation?

Calls of one reply become one assistant message; their results follow it in the order of the calls,
whatever the order of the log; anything said in between waits until they are all there. So each
result stands directly behind its own call, as every provider demands.
"""

from collections.abc import Iterable

from oh_kernel.events.base import Event
from oh_kernel.events.content import Content, Message, TextContent
from oh_kernel.events.kinds import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
    HookExecutionEvent,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    ToolResultEvent,
    UserRejectObservation,
)
from oh_kernel.events.text import clip
from oh_kernel.events.units import broken_calls, open_reply

MAX_RESULT_CHARS = 50_000
"""Of one text in the result of a call; the tools' own limits are below it."""
ERROR_HEADER = "[An error occurred during execution.]\n"


class Projection:
    """The messages for a model, kept up to date event by event.

    `view` holds the events they stand for. Messages are made when they are asked for, of what is
    new: an event costs the event, not the history, and one that is condensed before costs nothing.
    A `Condensation` rebuilds once. Used on one thread.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.blocked: set[str] = set()
        """Ids of messages that hooks keep from the model; known before these are stored."""
        self.view: list[Event] = []
        self.condensation_requested = False
        """Whether a condensation was asked for since the last one."""
        self._clear()
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take the next event of the log."""
        match event:
            case ActionEvent() | ToolResultEvent() | SystemPromptEvent():
                self.view.append(event)
            case MessageEvent() | CondensationSummaryEvent():
                if event.id not in self.blocked:
                    self.view.append(event)
            case HookExecutionEvent(blocked=True, message_id=str(message_id)):
                self.blocked.add(message_id)
            case Condensation():
                self._condense(event)
            case CondensationRequest():
                self.condensation_requested = True

    def messages(self) -> list[Message]:
        """What to send now. Calls that have no result yet are left out, and so is what follows."""
        self._catch_up()
        system = [self._system] if self._system else []
        return [*system, *self._messages]

    @property
    def open_calls(self) -> list[ActionEvent]:
        """The calls of the last reply that have no result yet."""
        self._catch_up()
        return self._unanswered

    def _clear(self) -> None:
        self._projected = 0  # events of the view
        self._system: Message | None = None
        self._messages: list[Message] = []
        self._batch: list[ActionEvent] = []  # of the last reply, until every call has its result
        self._results: dict[str, Message] = {}
        self._waiting: list[Event] = []  # said while calls of the batch are open

    @property
    def _unanswered(self) -> list[ActionEvent]:
        return [call for call in self._batch if call.tool_call_id not in self._results]

    def _catch_up(self) -> None:
        new, self._projected = self.view[self._projected :], len(self.view)
        for event in new:
            self._project(event)

    def _project(self, event: Event) -> None:
        match event:
            case SystemPromptEvent():
                self._system = _system_message(event)
            case ActionEvent():
                self._add_call(event)
            case ToolResultEvent():
                self._add_result(event)
            case MessageEvent() | CondensationSummaryEvent():
                self._say(event)

    def _add_call(self, call: ActionEvent) -> None:
        if self._batch and self._batch[0].llm_response_id != call.llm_response_id:
            # Calls of an older reply are still open (a log that was cut): they cannot be sent.
            self._batch = [c for c in self._batch if c.tool_call_id in self._results]
            self._close_batch()
        self._batch.append(call)

    def _add_result(self, result: ToolResultEvent) -> None:
        if any(call.tool_call_id == result.tool_call_id for call in self._batch):
            self._results.setdefault(result.tool_call_id, _result_message(result))
        if self._batch and not self._unanswered:
            self._close_batch()

    def _close_batch(self) -> None:
        if self._batch:
            self._messages.append(_calls_message(self._batch))
            self._messages += [self._results[call.tool_call_id] for call in self._batch]
        waiting, self._batch, self._results, self._waiting = self._waiting, [], {}, []
        for event in waiting:
            self._say(event)

    def _say(self, event: Event) -> None:
        if self._batch:
            self._waiting.append(event)
            return
        message = _spoken_message(event)
        last = self._messages[-1] if self._messages else None
        if last and last.role == message.role == "user":
            self._messages[-1] = last.model_copy(
                update={"content": [*last.content, *message.content]}
            )
        else:
            self._messages.append(message)

    def _condense(self, condensation: Condensation) -> None:
        """Forget, insert the summary where it belongs, and mend what another product cut in two."""
        prompts = {event.id for event in self.view if isinstance(event, SystemPromptEvent)}
        kept_for_sure = prompts | open_reply(self.view)
        forgotten = set(condensation.forgotten_event_ids) - kept_for_sure
        broken = broken_calls(self.view, forgotten) - kept_for_sure
        kept = [event for event in self.view if event.id not in forgotten]
        if condensation.summary is not None:
            kept.insert(condensation.summary_offset or 0, _summary_event(condensation))
        self.view = [event for event in kept if event.id not in broken]
        self.condensation_requested = False
        self._clear()


def events_to_messages(events: Iterable[Event]) -> list[Message]:
    """The messages for a model that stand for `events`."""
    return Projection(events).messages()


def message_of(event: Event) -> Message:
    """What one event of a view says, whatever stands beside it."""
    match event:
        case SystemPromptEvent():
            return _system_message(event)
        case ActionEvent():
            return _calls_message([event])
        case ToolResultEvent():
            return _result_message(event)
        case _:
            return _spoken_message(event)


def _summary_event(condensation: Condensation) -> CondensationSummaryEvent:
    return CondensationSummaryEvent(
        id=f"{condensation.id}-summary",
        timestamp=condensation.timestamp,
        summary=condensation.summary or "",
    )


def _system_message(event: SystemPromptEvent) -> Message:
    prompt = event.system_prompt.model_copy(update={"cache_prompt": True})
    parts: list[Content] = [prompt]
    if event.dynamic_context:
        parts.append(event.dynamic_context)
    return Message(role="system", content=parts)


def _calls_message(calls: list[ActionEvent]) -> Message:
    first = calls[0]
    return Message(
        role="assistant",
        content=list(first.thought),
        tool_calls=[call.tool_call for call in calls],
        reasoning_content=first.reasoning_content,
        thinking_blocks=first.thinking_blocks,
        responses_reasoning_item=first.responses_reasoning_item,
    )


def _result_message(event: ToolResultEvent) -> Message:
    parts: list[Content]
    match event:
        case ObservationEvent(observation=observation):
            header: list[Content] = [TextContent(text=ERROR_HEADER)] if observation.is_error else []
            parts = [*header, *observation.for_model()]
        case UserRejectObservation():
            parts = [TextContent(text=f"Action rejected: {event.rejection_reason}")]
        case AgentErrorEvent():
            parts = [TextContent(text=event.error)]
        case _:  # a kind of result that an extension defines without words for the model
            parts = [TextContent(text="The call ended without an answer.")]
    return Message(
        role="tool",
        content=[_clipped(part) for part in parts],
        tool_call_id=event.tool_call_id,
        name=event.tool_name,
    )


def _clipped(part: Content) -> Content:
    if isinstance(part, TextContent) and len(part.text) > MAX_RESULT_CHARS:
        return part.model_copy(update={"text": clip(part.text, MAX_RESULT_CHARS)})
    return part


def _spoken_message(event: Event) -> Message:
    if isinstance(event, CondensationSummaryEvent):
        return Message.of("user", event.summary)
    assert isinstance(event, MessageEvent)
    if not event.extended_content:
        return event.llm_message
    content = [*event.llm_message.content, *event.extended_content]
    return event.llm_message.model_copy(update={"content": content})
