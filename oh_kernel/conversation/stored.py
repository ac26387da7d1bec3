"""What can be done with a conversation as a whole, beside taking turns in it?"""

from pathlib import Path
from typing import TYPE_CHECKING

from oh_kernel.conversation.branching import copy_into
from oh_kernel.conversation.core import Core
from oh_kernel.conversation.deleting import delete
from oh_kernel.conversation.fresh_process import rerun_elsewhere
from oh_kernel.conversation.lookup import newest_conversations
from oh_kernel.conversation.rerun_report import RerunReport
from oh_kernel.conversation.side_questions import asked
from oh_kernel.conversation.titles import generate_title, rename
from oh_kernel.loop import on_agent_loop, run_blocking
from oh_kernel.settings import load_settings
from oh_kernel.store import ConversationInfo

if TYPE_CHECKING:
    from oh_kernel.conversation.conversation import Conversation


class StoredConversation:
    """A conversation that lasts: it can be copied, named, condensed, asked about, deleted.

    Any thread but the agent's may call these; there, and on any event loop, each is awaited by its
    name with an `a` before it. Who runs it says what `_core` is, how `_alike` makes an empty one
    like it, and what `_close` closes.
    """

    _core: Core

    def fork(
        self, from_event: str | None = None, *, title: str | None = None, keep_metrics: bool = False
    ) -> "Conversation":
        """A new conversation that goes on from a copy of this one, to the event with this id.

        By default all of it is copied, but not what its model calls cost. It is idle: calls without
        a result are answered, none is run again and none waits. This one is left as it is, and may
        be running, here or in another process.
        """
        return run_blocking(self._fork(from_event, title, keep_metrics))

    async def afork(
        self, from_event: str | None = None, *, title: str | None = None, keep_metrics: bool = False
    ) -> "Conversation":
        """`fork` for callers on an event loop."""
        return await on_agent_loop(self._fork(from_event, title, keep_metrics))

    def ask_agent(self, question: str) -> str:
        """The model's answer to a question beside the task, also while the agent runs.

        Neither becomes part of the history; only what the call cost is stored.
        """
        return run_blocking(asked(self._core, question))

    async def aask_agent(self, question: str) -> str:
        """`ask_agent` for callers on an event loop."""
        return await on_agent_loop(asked(self._core, question))

    def condense(self) -> None:
        """Have the history made shorter now; while the agent runs, before its next step."""
        run_blocking(self._core.condense())

    async def acondense(self) -> None:
        """`condense` for callers on an event loop."""
        await on_agent_loop(self._core.condense())

    def rerun(self, workspace: str | Path, *, allow_risky: bool = False) -> RerunReport:
        """Carry out the recorded actions again in a fresh `workspace`; what differs, call by call.

        No model is asked, and nothing here is touched: it has a process of its own. Calls that a
        person would be asked about are left out unless `allow_risky`.
        """
        return run_blocking(self._rerun(workspace, allow_risky))

    async def arerun(self, workspace: str | Path, *, allow_risky: bool = False) -> RerunReport:
        """`rerun` for callers on an event loop."""
        return await on_agent_loop(self._rerun(workspace, allow_risky))

    def generate_title(self) -> str:
        """Have the model name the conversation, in 50 characters at most; the new title."""
        return run_blocking(generate_title(self._core))

    async def agenerate_title(self) -> str:
        """`generate_title` for callers on an event loop."""
        return await on_agent_loop(generate_title(self._core))

    def rename(self, title: str) -> None:
        """Give the conversation a title; waits for nothing, so there is no other version of it."""
        rename(self._core, title)

    def delete(self) -> None:
        """Delete the conversation from the store, for good, and close it. Not while it runs."""
        run_blocking(self._delete())

    async def adelete(self) -> None:
        """`delete` for callers on an event loop."""
        await on_agent_loop(self._delete())

    @classmethod
    def list(
        cls, limit: int = 20, *, store_path: str | Path | None = None
    ) -> tuple[ConversationInfo, ...]:
        """The stored conversations used last, newest first."""
        flags = {} if store_path is None else {"store_path": store_path}
        settings = load_settings().with_("Conversation.list(...)", **flags)
        return newest_conversations(settings.store_file, limit)

    def _alike(self) -> "Conversation":
        raise NotImplementedError

    async def _close(self) -> None:
        raise NotImplementedError

    async def _fork(
        self, from_event: str | None, title: str | None, keep_metrics: bool
    ) -> "Conversation":
        fork = self._alike()
        try:
            await copy_into(
                fork._core, self._core, from_event, title=title, keep_metrics=keep_metrics
            )
        except BaseException:
            await fork._close()
            raise
        return fork

    async def _rerun(self, workspace: str | Path, allow_risky: bool) -> RerunReport:
        return await rerun_elsewhere(self._core, Path(workspace), allow_risky=allow_risky)

    async def _delete(self) -> None:
        await delete(self._core)
        await self._close()
