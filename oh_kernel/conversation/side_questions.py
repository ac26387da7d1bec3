"""How is the agent's model asked something about a conversation without it becoming part of it?

The model sees what it would see at its next step, the tools included, so that the provider's cache
of the history is hit. Nothing is run and nothing is kept but what the call cost.
"""

from oh_kernel.conversation.core import Core
from oh_kernel.errors import ConversationError, ModelGaveNoAnswer
from oh_kernel.events import Message

ASK_AGENT = "ask-agent"
QUESTION = (
    "[A question beside the task. Answer it now, in words, from what you know already. Call no "
    "tool: none would be run. Neither the question nor your answer becomes part of the history.]"
    "\n\n{question}"
)


async def asked(core: Core, question: str) -> str:
    """The model's answer. May be asked while the agent runs: it looks at the last whole step."""
    if not question.strip():
        raise ConversationError("The question is empty.", remedy="Write what you want to know.")
    await core.begin_writing()
    asks = Message.of("user", QUESTION.format(question=core.mask(question.strip())))
    tools = [tool.spec() for tool in core.tools]
    completion = await core.aside.ask(ASK_AGENT, [*core.log.messages(), asks], tools)
    answer = core.mask(completion.message.text.strip())
    if not answer:
        called = ", ".join(call.name for call in completion.message.tool_calls or ())
        wanted = f"wanted to call {called}" if called else "said nothing"
        raise ModelGaveNoAnswer(
            f"Asked beside the task, the model {wanted} instead of answering.",
            remedy="Ask in other words, or send it as a message.",
        )
    return answer
