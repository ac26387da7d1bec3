"""What may another process ask of this notebook's conversation, over the control channel?

The content of an `openhands_request` is one of the models here; every reply is a `State`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, assert_never

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.errors import ConversationError


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Look(_Request):
    """How the conversation stands."""

    action: Literal["status"]


class Stop(_Request):
    """Before the next step, or now."""

    action: Literal["pause", "interrupt"]


class Say(_Request):
    """A message of the user; an agent that runs sees it at its next step."""

    action: Literal["send_message"]
    text: str = Field(min_length=1)


class Approve(_Request):
    """A yes to waiting calls, all unless named."""

    action: Literal["approve"]
    call_ids: list[str] | None = None


class Reject(_Request):
    """A no to waiting calls, all unless named."""

    action: Literal["reject"]
    call_ids: list[str] | None = None
    reason: str = "User rejected the action"


Request = Annotated[Look | Stop | Say | Approve | Reject, Field(discriminator="action")]
_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)


class WaitingCall(BaseModel):
    """A call that waits for a decision."""

    tool_call_id: str
    tool_name: str
    arguments: str
    security_risk: str


class State(BaseModel):
    """How the conversation stands after a request."""

    conversation_id: str
    execution_status: str
    events: int
    waiting_calls: list[WaitingCall]


async def answered(conversation: Conversation | None, content: Mapping[str, Any]) -> dict[str, Any]:
    """Do what `content` asks, on the agent loop; raises OpenHandsError for what cannot be done."""
    request = _parsed(content)
    if conversation is None:
        raise ConversationError(
            "No conversation runs in this kernel.", remedy="Run a %%openhands cell."
        )
    match request:
        case Look():
            pass
        case Stop(action="pause"):
            conversation.pause()
        case Stop():
            conversation.interrupt()
        case Say(text=text):
            await conversation.asend_message(text)
        case Approve(call_ids=call_ids):
            await conversation.aapprove(call_ids)
        case Reject(call_ids=call_ids, reason=reason):
            await conversation.areject(reason, call_ids)
        case _:
            assert_never(request)
    return state_of(conversation).model_dump()


def _parsed(content: Mapping[str, Any]) -> Request:
    try:
        return _REQUESTS.validate_python(dict(content))
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in wrong["loc"])
        raise ConversationError(
            f"The request is not understood: {where or 'action'}: {wrong['msg']}.",
            remedy="Actions: status, pause, interrupt, send_message, approve, reject.",
        ) from error


def state_of(conversation: Conversation) -> State:
    """How `conversation` stands."""
    waiting = [
        WaitingCall(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            arguments=call.tool_call.arguments,
            security_risk=str(call.security_risk),
        )
        for call in conversation.waiting_calls
    ]
    return State(
        conversation_id=conversation.id,
        execution_status=str(conversation.status),
        events=len(conversation.events),
        waiting_calls=waiting,
    )
