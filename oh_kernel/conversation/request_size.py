"""How many tokens is the next request to be?"""

from collections.abc import Sequence

from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.metrics import recorded_call
from oh_kernel.conversation.models import AGENT
from oh_kernel.events import (
    AgentErrorEvent,
    Condensation,
    Event,
    Message,
    MessageEvent,
    ObservationEvent,
    UserRejectObservation,
)
from oh_kernel.llm.base import ToolSpec
from oh_kernel.llm.tokens import estimated_tokens, message_tokens, text_tokens


def next_request_tokens(log: ConversationLog, tools: Sequence[ToolSpec]) -> int:
    """About how many tokens the agent's next request has.

    What the provider counted last, with an estimate of what came since: this looks at the new
    events only. Where nothing was counted, or the history was condensed, all is estimated.
    """
    added = 0
    for event in reversed(log.events):
        if isinstance(event, Condensation):
            break
        call = recorded_call(event)
        if call is not None and call.use == AGENT:
            if not call.usage.prompt_tokens:
                break
            return call.usage.prompt_tokens + call.usage.completion_tokens + added
        added += _tokens(event)
    return estimated_tokens(log.messages(), tools)


def _tokens(event: Event) -> int:
    """Of what is said or answered; the agent's own words were counted with its reply."""
    match event:
        case MessageEvent(source="agent"):
            return 0
        case MessageEvent():
            extended = sum(text_tokens(part.text) for part in event.extended_content)
            return message_tokens(event.llm_message) + extended
        case ObservationEvent(observation=observation):
            return message_tokens(Message(role="tool", content=observation.for_model()))
        case AgentErrorEvent():
            return text_tokens(event.error)
        case UserRejectObservation():
            return text_tokens(event.rejection_reason)
    return 0
