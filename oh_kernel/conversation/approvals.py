"""What did a person decide about the calls that wait, and have they decided about all of them?"""

import asyncio
from collections.abc import Iterable, Sequence

from oh_kernel.conversation.calls import rejection
from oh_kernel.conversation.confirmation import (
    ANSWERED_BY_MESSAGE,
    Approver,
    Decision,
    Question,
)
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.state import Status, Trigger, approvals_event, next_status
from oh_kernel.errors import ConversationError
from oh_kernel.events import ActionEvent


class Approvals:
    """The decisions about the open calls of a conversation. Used on the agent thread.

    They come from the person that a run asks (`ask`) or from anywhere else (`take`), whichever is
    first. What is approved but not yet carried out is in the log, so it outlives the process.
    """

    def __init__(self, log: ConversationLog) -> None:
        self._log = log
        self._asked: set[str] | None = None  # by the run that goes on, if one asks
        self._all_decided = asyncio.Event()

    @property
    def undecided(self) -> list[ActionEvent]:
        """The calls that wait for a decision. At rest the whole reply waits, as one question."""
        approved = self._log.approved_calls
        return [call for call in self._waiting() if call.tool_call_id not in approved]

    async def take(self, decision: Decision, call_ids: Iterable[str] | None) -> None:
        """A decision about the calls named, or about all that are undecided.

        Until it is carried out, an approved call can still be rejected.
        """
        trigger = Trigger.APPROVE if decision.approved else Trigger.REJECT
        next_status(self._log.status, trigger)
        chosen = self._chosen(call_ids)
        if decision.approved:
            await self._approve(chosen)
        else:
            for call in chosen:
                await self._log.append(rejection(call, decision.reason))
        if self._asked is not None and not self.undecided:
            self._all_decided.set()
        elif self._asked is None and not self._log.open_calls:
            await self._log.happen(Trigger.REJECT_LAST)

    async def ask(self, approver: Approver, questions: Sequence[Question]) -> None:
        """Have all questions decided; those refused have their result then."""
        self._asked = {question.call.tool_call_id for question in questions}
        self._all_decided.clear()
        here = asyncio.ensure_future(approver.decide(questions))
        elsewhere = asyncio.ensure_future(self._all_decided.wait())
        try:
            await asyncio.wait({here, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            if here.done():
                await self._refuse(questions, here.result())
        finally:
            self._asked = None
            here.cancel()
            elsewhere.cancel()
            await asyncio.wait({here, elsewhere})

    async def settled(self) -> bool:
        """Whether every call that waited is decided; a message in its place is a refusal.

        Whatever the policy would ask by now: what waited once is carried out after a yes only.
        """
        undecided = self.undecided
        if undecided and not self._log.user_spoke_since(self._log.last_call):
            return False
        for call in undecided:
            await self._log.append(rejection(call, ANSWERED_BY_MESSAGE))
        return True

    def _waiting(self) -> list[ActionEvent]:
        if self._log.status is not Status.WAITING_FOR_CONFIRMATION:
            return []
        calls = self._log.open_calls
        return [c for c in calls if self._asked is None or c.tool_call_id in self._asked]

    def _chosen(self, call_ids: Iterable[str] | None) -> list[ActionEvent]:
        if call_ids is None:
            return self.undecided
        waiting = {call.tool_call_id: call for call in self._waiting()}
        chosen = dict.fromkeys(call_ids)
        for call_id in chosen:
            if call_id not in waiting:
                raise ConversationError(
                    f"No call {call_id!r} is waiting.",
                    remedy=f"Waiting: {', '.join(waiting) or 'none'}.",
                )
        return [waiting[call_id] for call_id in chosen]

    async def _approve(self, calls: Sequence[ActionEvent]) -> None:
        still_open = {call.tool_call_id for call in self._waiting()} & self._log.approved_calls
        approved = still_open | {call.tool_call_id for call in calls}
        if approved != self._log.approved_calls:
            await self._log.append(approvals_event(approved))

    async def _refuse(self, questions: Sequence[Question], decisions: Sequence[Decision]) -> None:
        """Give the refused calls their result, those left out that were decided elsewhere."""
        undecided = {call.tool_call_id for call in self.undecided}
        for question, decision in zip(questions, decisions, strict=True):
            if not decision.approved and question.call.tool_call_id in undecided:
                await self._log.append(rejection(question.call, decision.reason))
