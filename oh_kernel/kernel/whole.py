"""What do the commands do that are about a conversation as a whole: fork, rename, delete, ...?"""

import asyncio
from typing import Protocol

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.lookup import stored_conversation
from oh_kernel.conversation.turns import last_event_of_turn
from oh_kernel.errors import ConversationError, SettingsError
from oh_kernel.events import Condensation
from oh_kernel.kernel.commands import COMMANDS_BY_NAME
from oh_kernel.store import EventStore
from oh_kernel.views.aside import AsideView
from oh_kernel.views.rerun import RerunView


class Session(Protocol):
    """What is asked of the notebook's session."""

    @property
    def conversation(self) -> Conversation | None: ...

    @property
    def store(self) -> EventStore: ...

    async def go_on_with(self, conversation: Conversation) -> None: ...


async def carry_out(command: str, argument: str, session: Session) -> object:
    """Do what `command` says; what it comes to can show itself, or is text."""
    takes = COMMANDS_BY_NAME[command].arguments
    if takes and not takes.startswith("[") and not argument:
        raise SettingsError(f"{command} needs more.", remedy=f"Write %openhands {command} {takes}")
    if command == "delete":
        return await _delete(argument, session)
    if session.conversation is None:
        raise ConversationError(
            "This notebook has no conversation yet.",
            remedy="Begin one with %%openhands, or go on with one: %openhands resume ID.",
        )
    match command:
        case "fork":
            return await _fork(int(argument) if argument else None, session.conversation, session)
        case "rename":
            session.conversation.rename(argument[1:-1])
            return f"The conversation is now called: {argument[1:-1]}"
        case "condense":
            return await _condense(session.conversation)
        case "title":
            return f"The conversation is now called: {await session.conversation.agenerate_title()}"
        case "btw":
            return AsideView(await session.conversation.aask_agent(argument))
        case _:
            assert command == "rerun"
            return RerunView(await session.conversation.arerun(argument))


async def _fork(turn: int | None, source: Conversation, session: Session) -> str:
    source.check_at_rest()  # the notebook leaves it
    at = last_event_of_turn(source.events, turn).id if turn is not None else None
    fork = await source.afork(at)
    await session.go_on_with(fork)
    where = "its end" if turn is None else f"the end of turn {turn}"
    return (
        f"Going on with {fork.id}, a fork of {source.id} from {where}.\n"
        "Files and variables are as they are now; the other one stays in the history."
    )


async def _condense(conversation: Conversation) -> str:
    before = len(conversation.events)
    await conversation.acondense()
    new = conversation.events[before:]
    forgotten = [len(e.forgotten_event_ids) for e in new if isinstance(e, Condensation)]
    if not forgotten:
        return "The history is condensed before the agent's next step."
    return f"Condensed: a summary stands for {forgotten[0]} events, which stay in the log."


async def _delete(given: str, session: Session) -> str:
    info = stored_conversation(session.store, given)
    if session.conversation is not None and session.conversation.id == info.id:
        raise ConversationError(
            f"{info.id} is the conversation of this notebook.",
            remedy="Run %openhands new first, then delete it.",
        )
    await asyncio.to_thread(session.store.delete, info.id)
    about = f" ({info.title})" if info.title else ""
    return (
        f"Deleted {info.id}{about}: {info.events} events, {info.size_bytes / 1000:.1f} KB, and the "
        "outputs that were saved for it. It cannot be brought back."
    )
