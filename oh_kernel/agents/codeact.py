"""Who decides what to do next: a model that acts by calling tools."""

from collections.abc import AsyncGenerator, Callable, Sequence

from oh_kernel.agents.calls import events_of_calls
from oh_kernel.events import Event, Message, MessageEvent
from oh_kernel.llm.base import LLM, Completion, Delta
from oh_kernel.tools.base import Tool


class CodeActAgent:
    """A function of the log: given the messages that stand for it, gives the next events.

    Used on the agent thread. It keeps nothing between steps.
    """

    def __init__(self, llm: LLM, tools: Sequence[type[Tool]]) -> None:
        self.llm = llm
        self.tools = {tool.name: tool for tool in tools}
        self._specs = [tool.spec() for tool in tools]

    def ask(self, messages: Sequence[Message]) -> AsyncGenerator[Delta | Completion, None]:
        """The model's reply as it comes: deltas, then the `Completion`."""
        return self.llm.stream(messages, self._specs)

    def events(self, completion: Completion, unique_id: Callable[[str], str]) -> list[Event]:
        """What a reply means: calls of tools, or a message that ends the turn."""
        if completion.message.tool_calls:
            return events_of_calls(completion, self.tools, unique_id)
        return [
            MessageEvent(
                source="agent",
                llm_message=completion.message,
                llm_response_id=completion.response_id,
            )
        ]
