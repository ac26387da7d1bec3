"""What happens between a message and the end of its turn?

Ask the model, carry out what it asks for, tell it the results, and again, until it answers. Each
step is stored before the next begins; whatever ends the run, every call has a result.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from oh_kernel.agents.codeact import CodeActAgent
from oh_kernel.conversation.approvals import Approvals
from oh_kernel.conversation.asking import Asker
from oh_kernel.conversation.attendants import Attendant, heard_at
from oh_kernel.conversation.calls import CallRunner, failure, rejection
from oh_kernel.conversation.confirmation import NEVER_ASKED, Approver, Gate, Question
from oh_kernel.conversation.cuts import cut_short
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.state import Status, Trigger
from oh_kernel.conversation.stopping import Stop, Stopped
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.errors import OpenHandsError
from oh_kernel.events import (
    ActionEvent,
    ConversationErrorEvent,
    Event,
    Message,
    MessageEvent,
    PauseEvent,
)
from oh_kernel.security.secrets import HIDDEN
from oh_kernel.tools.files import Files

HOLDS_SECRET = (
    "Not run: the call holds a secret value, which is kept out of the log. Have the program read "
    "it from where it is stored instead."
)
HOLDS_MASK = (
    f"Not run: {HIDDEN} stands for a secret in what you are shown; in files and programs there is "
    "something else. Leave that place as it is and edit around it, or name the secret's variable."
)


class Run:
    """One run of a conversation; made, used, paused and interrupted on the agent thread."""

    def __init__(
        self,
        log: ConversationLog,
        agent: CodeActAgent,
        toolbox: Toolbox,
        gate: Gate,
        files: Files,
        approvals: Approvals,
        stop: Stop,
        changing: asyncio.Lock,
        *,
        approver: Approver | None = None,
        attendants: Sequence[Attendant] = (),
        max_steps: int = 100,
    ) -> None:
        self._log = log
        self._agent = agent
        self._toolbox = toolbox
        self._gate = gate
        self._approver = approver
        self._approvals = approvals
        self._attendants = tuple(attendants)
        self._max_steps = max_steps
        self._stop = stop
        self._changing = changing  # held while a message of the user is stored
        self._seen = 0  # how many events there were when the model was last asked
        self._model = Asker(log, agent, stop, self._attendants)
        self._calls = CallRunner(log, toolbox, files, stop, self._attendants)
        self.steps = 0

    async def begin(self) -> None:
        """Become running, if anything is to be done."""
        await self._log.happen(Trigger.GO_ON if await self._has_decisions() else Trigger.RUN)

    async def to_its_end(self) -> Status:
        """Run to the end of the turn; returns how it ended. Errors are recorded, then raised."""
        if self._log.status is not Status.RUNNING:
            return self._log.status
        while True:
            try:
                status = await self._steps()
            except Stopped:
                status = await self._stopped()
            except Exception as error:
                await self._failed(error)
                raise
            if await self._has_ended(status):
                return status

    async def _has_ended(self, status: Status) -> bool:
        """Record how the run ended; not that it is finished when the user spoke just before."""
        async with self._changing:
            if status is Status.FINISHED and self._log.user_spoke_since(self._seen):
                return False
            await self._log.set_status(status)
            return True

    async def _steps(self) -> Status:
        self._seen = self._log.last_call
        approved = self._log.open_calls  # of a reply that waited for a person
        if await self._calls.carry_out(approved) and await self._ends():
            return Status.FINISHED
        while self.steps < self._max_steps:
            self._stop.check_between_steps()
            self._seen = len(self._log.events)  # an attendant may end it for what was said
            for attendant in heard_at("before_step", self._attendants):
                if (status := await self._stop.reaching(attendant.before_step())) is not None:
                    return status
            self.steps += 1
            self._seen = len(self._log.events)
            status = await self._step()
            if status is Status.FINISHED and not await self._ends():
                continue
            if status is not None:
                return status
        await self._log.append(
            ConversationErrorEvent(
                source="environment",
                code="MaxIterationsReached",
                detail=f"Agent reached maximum iterations limit ({self._max_steps}).",
            )
        )
        return Status.ERROR

    async def _ends(self) -> bool:
        """Whether a finished turn ends: not when the user spoke meanwhile or somebody objects."""
        if self._log.user_spoke_since(self._seen):
            return False
        for attendant in heard_at("reason_to_go_on", self._attendants):
            reason = await self._stop.reaching(attendant.reason_to_go_on())
            if reason is not None:
                message = Message.of("user", reason)
                await self._log.append(MessageEvent(source="environment", llm_message=message))
                return False
        return True

    async def _step(self) -> Status | None:
        """One model call with the tool calls it asks for; the status when it ends the turn."""
        completion = await self._model.ask()
        meant = self._agent.events(completion, self._log.unique_call_id)
        events = [await self._judged(event) for event in meant]
        stored = [await self._log.append(event) for event in events]
        for event, kept in zip(events, stored, strict=True):
            if isinstance(event, ActionEvent) and isinstance(kept, ActionEvent):
                await self._refuse_if_masked(event, kept)
        if any(isinstance(event, MessageEvent) for event in stored):
            return Status.FINISHED
        await self._have_answered(self._log.open_calls)
        if (questions := self._gate.questions(self._log.open_calls)) and not await self._asked(
            questions
        ):
            return Status.WAITING_FOR_CONFIRMATION
        finished = await self._calls.carry_out(self._log.open_calls)
        return Status.FINISHED if finished else None

    async def _judged(self, event: Event) -> Event:
        """`event` as it is to be stored; when stopped meanwhile, without a judgement."""
        with suppress(Stopped):
            for attendant in heard_at("judged", self._attendants):
                event = await self._stop.reaching(attendant.judged(event))
        return event

    async def _have_answered(self, calls: Sequence[ActionEvent]) -> None:
        """Let the attendants give results of their own, the first that has one."""
        for call in calls:
            for attendant in heard_at("result_of", self._attendants):
                if result := await self._stop.reaching(attendant.result_of(call)):
                    await self._log.append(result)
                    break

    async def _refuse_if_masked(self, call: ActionEvent, kept: ActionEvent) -> None:
        """What the log does not hold must not be run, and what it holds instead makes no sense."""
        if kept.action != call.action:
            await self._log.append(failure(kept, HOLDS_SECRET))
        elif self._log.hides_secrets and _holds_mask(kept):
            await self._log.append(failure(kept, HOLDS_MASK))

    async def _has_decisions(self) -> bool:
        """Whether the run begins with calls that waited and are all decided."""
        is_waiting = self._log.status is Status.WAITING_FOR_CONFIRMATION
        return is_waiting and await self._approvals.settled()

    async def _asked(self, questions: list[Question]) -> bool:
        """Have all questions decided; False when the run ends here and waits for a person."""
        if self._approver is not None:
            with_previews = [self._toolbox.with_preview(question) for question in questions]
            await self._log.happen(Trigger.ASK)
            await self._stop.reaching(self._approvals.ask(self._approver, with_previews))
            await self._log.happen(Trigger.GO_ON)
            return True
        if self._gate.unattended in ("wait", "fail"):
            return False
        for question in questions:
            decision = self._gate.answer_for_nobody(question)
            if not decision.approved:
                await self._log.append(rejection(question.call, decision.reason))
        return True

    async def _stopped(self) -> Status:
        if self._stop.is_now:
            await cut_short(self._log, self._calls.stopped)
        else:
            await self._log.append(PauseEvent())
        return Status.PAUSED

    async def _failed(self, error: Exception) -> None:
        for call in self._log.open_calls:
            await self._log.append(failure(call, f"Not run: {type(error).__name__}."))
        detail = str(error) if isinstance(error, OpenHandsError) else repr(error)
        await self._log.append(
            ConversationErrorEvent(source="environment", code=type(error).__name__, detail=detail)
        )
        await self._log.happen(Trigger.FAIL)


def _holds_mask(call: ActionEvent) -> bool:
    """Whether a mask would be carried out as if it were text; words to a person may hold one."""
    if call.action is None or call.tool_name in NEVER_ASKED:
        return False
    return HIDDEN in call.action.to_json()
