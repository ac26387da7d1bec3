"""Which events are there?

The names, types, defaults and required fields are those of the OpenHands agent-server API.
"""

from typing import Any, Literal

from pydantic import Field

from oh_kernel.events.base import Event, EventSource, Wire
from oh_kernel.events.content import (
    Message,
    MessageToolCall,
    ReasoningItemModel,
    TextContent,
    Thinking,
)
from oh_kernel.events.tools import AnyAction, AnyObservation, AnyTool, SecurityRisk


class CriticResult(Wire):
    """A judgement of the agent's work; `score` lies between 0 and 1."""

    score: float = Field(ge=0.0, le=1.0)
    message: str | None
    metadata: dict[str, Any] | None = None


class SystemPromptEvent(Event):
    """What the model is told at the start: the prompt, the tools, and what holds only now."""

    source: EventSource = "agent"
    system_prompt: TextContent
    tools: list[AnyTool]
    dynamic_context: TextContent | None = None


class MessageEvent(Event):
    """A message of the user, the agent or the environment."""

    llm_message: Message
    llm_response_id: str | None = None
    activated_skills: list[str] = Field(default_factory=list)
    extended_content: list[TextContent] = Field(default_factory=list)
    sender: str | None = None
    critic_result: CriticResult | None = None


class ActionEvent(Event):
    """A tool call of the model. Without an `action` it could not be understood and is not run."""

    source: EventSource = "agent"
    thought: list[TextContent]
    reasoning_content: str | None = None
    thinking_blocks: list[Thinking] = Field(default_factory=list)
    responses_reasoning_item: ReasoningItemModel | None = None
    action: AnyAction | None = None
    tool_name: str
    tool_call_id: str
    tool_call: MessageToolCall
    llm_response_id: str
    security_risk: SecurityRisk = SecurityRisk.UNKNOWN
    critic_result: CriticResult | None = None
    summary: str | None = None


class ToolResultEvent(Event, abstract=True):
    """The end of a tool call, whatever it was. Each call has exactly one."""

    tool_name: str
    tool_call_id: str


class ObservationEvent(ToolResultEvent):
    """A tool's answer."""

    source: EventSource = "environment"
    observation: AnyObservation
    action_id: str


class UserRejectObservation(ToolResultEvent):
    """A call that a person or a hook did not allow. Nothing was carried out."""

    source: EventSource = "environment"
    rejection_reason: str = "User rejected the action"
    rejection_source: Literal["user", "hook"] = "user"
    action_id: str


class AgentErrorEvent(ToolResultEvent):
    """A call that could not be carried out, or not to its end; the model is told why."""

    source: EventSource = "agent"
    error: str


class CondensationRequest(Event):
    """Somebody asks that the history be condensed."""

    source: EventSource = "environment"


class Condensation(Event):
    """Events that the model is not shown any more, and the summary that stands for them."""

    source: EventSource = "environment"
    forgotten_event_ids: list[str] = Field(default_factory=list)
    summary: str | None = None
    summary_offset: int | None = Field(default=None, ge=0)
    llm_response_id: str


class CondensationSummaryEvent(Event):
    """The summary as the model sees it; made while projecting, never stored."""

    source: EventSource = "environment"
    summary: str


class ConversationErrorEvent(Event):
    """An error that ended a run. `code` names its class."""

    code: str
    detail: str


class ConversationStateUpdateEvent(Event):
    """A field of the conversation's state has a new value (`full_state`: all of them)."""

    source: EventSource = "environment"
    key: str = Field(default_factory=str)
    value: Any = Field(default_factory=lambda: None)


HookEventType = Literal[
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"
]


class HookExecutionEvent(Event):
    """A hook ran: what it was told, what it said, and what came of it. Only for the log.

    `exit_code` is -1 for a hook that has none: it was stopped, or it is a question to a model.
    """

    source: Literal["hook"] = "hook"  # type: ignore[assignment]  # no other event is of a hook
    hook_event_type: HookEventType
    hook_command: str
    tool_name: str | None = None
    success: bool
    blocked: bool = False
    exit_code: int = -1
    stdout: str = ""
    stderr: str = ""
    reason: str | None = None
    additional_context: str | None = None
    error: str | None = None
    action_id: str | None = None
    message_id: str | None = None
    hook_input: dict[str, Any] | None = None


class PauseEvent(Event):
    """A person asked the agent to stop."""

    source: EventSource = "user"


class InterruptEvent(Event):
    """The agent was stopped at once: by a person, or as its process died (`environment`)."""

    source: EventSource = "user"
    cut: str | None = None
    """What was cut, for a person, such as "terminal `pytest` was stopped"."""


class TokenEvent(Event):
    """The token ids of one model call, for training."""

    prompt_token_ids: list[int]
    response_token_ids: list[int]


class LLMCompletionLogEvent(Event):
    """One model call as it went over the wire, or its usage and cost."""

    source: EventSource = "environment"
    filename: str
    log_data: str
    model_name: str = "unknown"
    usage_id: str = "default"
