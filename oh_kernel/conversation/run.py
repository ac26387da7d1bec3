"""What happens between a message and the end of its turn?

Ask the model, carry out what it asks for, tell it the results, and again, until it answers. Each
step is stored before the next begins; whatever ends the run, every call has a result.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from oh_kernel.agents.codeact import CodeActAgent
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.confirmation import (
    ANSWERED_BY_MESSAGE,
    Approver,
    Decision,
    Gate,
    Question,
)
from oh_kernel.conversation.log import ConversationLog, NativeOutput, ToolOutput
from oh_kernel.conversation.metrics import usage_event
from oh_kernel.conversation.models import AGENT
from oh_kernel.conversation.state import Status
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.errors import ContextWindowExceeded, ModelError, OpenHandsError
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    ConversationErrorEvent,
    Event,
    Message,
    MessageEvent,
    Observation,
    ObservationEvent,
    PauseEvent,
    UserRejectObservation,
)
from oh_kernel.llm.base import Completion, RetryNotice, TextDelta
from oh_kernel.tools.base import ToolContext, ToolExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.locks import LockTimeout

T = TypeVar("T")

STOPPED_CALL = "Tool call interrupted before completion. The conversation was paused."
HOLDS_SECRET = (
    "Not run: the call holds a secret value, which is kept out of the log. Have the program read "
    "it from where it is stored instead."
)
CANCELLED_CALL = "Tool call cancelled by interrupt."
# How long a tool that is told to stop may take to say how far it got. Its own deadlines are
# shorter; this one is for a tool that has none.
STOP_GRACE_S = 15.0


class Stopped(Exception):
    """A person stopped the run."""


class Run:
    """One run of a conversation; made, used, paused and interrupted on the agent thread."""

    def __init__(
        self,
        log: ConversationLog,
        agent: CodeActAgent,
        toolbox: Toolbox,
        gate: Gate,
        files: Files,
        *,
        approver: Approver | None = None,
        decisions: dict[str, Decision] | None = None,
        attendants: Sequence[Attendant] = (),
        max_steps: int = 100,
    ) -> None:
        self._log = log
        self._agent = agent
        self._toolbox = toolbox
        self._gate = gate
        self._files = files
        self._approver = approver
        self._decisions = decisions if decisions is not None else {}
        self._attendants = tuple(attendants)
        self._max_steps = max_steps
        self._pausing = False
        self._stopping = False
        self._stop_signal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inner: asyncio.Task[Any] | None = None
        self.steps = 0

    def pause(self) -> None:
        """Stop before the next step."""
        self._pausing = True

    def interrupt(self) -> None:
        """Stop now: end the model's stream, and the tool that runs."""
        if self._stopping:
            return  # cancelling twice would cut short the tool's putting things in order
        self._pausing = self._stopping = True
        self._stop_signal.set_result(None)
        if self._inner is not None:
            self._inner.cancel()

    async def __call__(self) -> Status:
        """Run to the end of the turn; returns how it ended. Errors are recorded, then raised."""
        if self._log.status is Status.FINISHED:
            return Status.FINISHED
        if self._log.status is Status.WAITING_FOR_CONFIRMATION and not await self._settled():
            return Status.WAITING_FOR_CONFIRMATION
        await self._log.set_status(Status.RUNNING)
        try:
            status = await self._steps()
        except Stopped:
            status = await self._stopped()
        except Exception as error:
            await self._failed(error)
            raise
        await self._log.set_status(status)
        return status

    async def _steps(self) -> Status:
        seen = len(self._log.events)
        approved = self._log.open_calls  # of a reply that waited for a person
        if approved and await self._ends(await self._execute(approved), seen):
            return Status.FINISHED
        while self.steps < self._max_steps:
            self._check_stop()
            for attendant in self._attendants:
                if (status := await self._interruptible(attendant.before_step())) is not None:
                    return status
            self.steps += 1
            seen = len(self._log.events)
            status = await self._step()
            if status is not None and (
                status is not Status.FINISHED or await self._ends(status, seen)
            ):
                return status
        await self._log.append(
            ConversationErrorEvent(
                source="environment",
                code="MaxIterationsReached",
                detail=f"Agent reached maximum iterations limit ({self._max_steps}).",
            )
        )
        return Status.ERROR

    async def _ends(self, status: Status | None, seen: int) -> bool:
        """Whether the turn ends with `status`: not when the user spoke or somebody objects."""
        if status is not Status.FINISHED or self._user_spoke_since(seen):
            return False
        for attendant in self._attendants:
            reason = await self._interruptible(attendant.reason_to_go_on())
            if reason is not None:
                message = Message.of("user", reason)
                await self._log.append(MessageEvent(source="environment", llm_message=message))
                return False
        return True

    async def _step(self) -> Status | None:
        """One model call with the tool calls it asks for; the status when it ends the turn."""
        completion = await self._ask()
        events = self._agent.events(completion, self._log.unique_call_id)
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
        return await self._execute(self._log.open_calls)

    async def _have_answered(self, calls: Sequence[ActionEvent]) -> None:
        """Let the attendants give results of their own, the first that has one."""
        for call in calls:
            for attendant in self._attendants:
                if result := await self._interruptible(attendant.result_of(call)):
                    await self._log.append(result)
                    break

    async def _refuse_if_masked(self, call: ActionEvent, kept: ActionEvent) -> None:
        """What the log does not hold must not be run, and what it holds instead makes no sense."""
        if kept.action != call.action:
            await self._log.append(_error(kept, HOLDS_SECRET))

    async def _ask(self) -> Completion:
        """The model's next reply. What was shown of one that is stopped half way is kept."""
        started = time.monotonic()
        shown: list[str] = []
        try:
            completion = await self._interruptible(self._stream_made_to_fit(shown))
        except Stopped:
            if text := "".join(shown).strip():
                message = Message.of("assistant", text)
                await self._log.append(MessageEvent(source="agent", llm_message=message))
            raise
        await self._log.append(usage_event(completion, time.monotonic() - started, AGENT))
        return completion

    async def _stream_made_to_fit(self, shown: list[str]) -> Completion:
        """The reply; as long as a request is too long and can be made shorter, it is."""
        while True:
            try:
                return await self._stream(self._log.messages(), shown)
            except ContextWindowExceeded as error:
                shown.clear()
                if not await self._made_shorter(error):
                    raise

    async def _made_shorter(self, error: ContextWindowExceeded) -> bool:
        for attendant in self._attendants:
            if await attendant.made_shorter(error):
                return True
        return False

    async def _stream(self, messages: Sequence[Message], shown: list[str]) -> Completion:
        async with aclosing(self._agent.ask(messages)) as parts:
            async for part in parts:
                match part:
                    case Completion():
                        return part
                    case TextDelta(text=text):
                        shown.append(text)
                    case RetryNotice():
                        shown.clear()
                self._log.delta(part)
        raise ModelError("The model's reply ended without its end.", remedy="Run the cell again.")

    async def _execute(self, calls: Sequence[ActionEvent]) -> Status | None:
        """Carry out `calls` in order; a call that finishes the turn is the last of its reply."""
        status = None
        for call in calls:
            if self._stopping:
                await self._log.append(_error(call, CANCELLED_CALL))
                continue
            result = await self._log.append(await self._result(call))
            with suppress(Stopped):  # the other calls still get their results
                for attendant in self._attendants:
                    await self._interruptible(attendant.after_call(call, result))
            if call.tool_name == "finish" and isinstance(result, ObservationEvent):
                status = Status.FINISHED
        self._check_interrupt()
        return status

    async def _result(self, call: ActionEvent) -> Event:
        executor = self._toolbox.executor(call.tool_name)
        if call.action is None or executor is None:
            return _error(call, f"Error executing tool '{call.tool_name}': it is not here any more")
        context = ToolContext(
            workspace=self._toolbox.workspace,
            call_id=call.tool_call_id,
            show=lambda text: self._log.delta(ToolOutput(call.tool_call_id, text)),
            make_room=lambda: self._log.delta(NativeOutput(call.tool_call_id)),
        )
        try:
            observation = await self._interruptible(self._answer(executor, call, context))
        except Stopped:
            return _error(call, STOPPED_CALL)
        except LockTimeout as error:
            return _error(call, str(error))
        except Exception as error:
            return _error(call, f"Error executing tool '{call.tool_name}': {error}")
        return _observed(call, observation)

    async def _answer(
        self, executor: ToolExecutor[Any, Any], call: ActionEvent, context: ToolContext
    ) -> Observation:
        """What the tool answers, with what the call uses to itself meanwhile."""
        keys = executor.resources(call.action)
        async with self._toolbox.locks.held((f"tool:{call.tool_name}",) if keys is None else keys):
            with self._files.during_call(executor, call.tool_name):
                observation: Observation = await executor.run(call.action, context)
            return observation

    async def _asked(self, questions: list[Question]) -> bool:
        """Have a person decide; False when the run ends here and waits for one."""
        if self._approver is None and self._gate.unattended in ("wait", "fail"):
            return False
        if self._approver is None:
            decisions: Sequence[Decision] = [self._gate.answer_for_nobody(q) for q in questions]
        else:
            with_previews = [self._toolbox.with_preview(question) for question in questions]
            decisions = await self._decided(self._approver, with_previews)
        for question, decision in zip(questions, decisions, strict=True):
            if not decision.approved:
                await self._log.append(rejection(question.call, decision.reason))
        return True

    async def _decided(self, approver: Approver, questions: list[Question]) -> Sequence[Decision]:
        await self._log.set_status(Status.WAITING_FOR_CONFIRMATION)
        decisions = await self._interruptible(approver.decide(questions))
        await self._log.set_status(Status.RUNNING)
        return decisions

    async def _settled(self) -> bool:
        """Whether every call that waited is decided; a message in its place is a refusal.

        Whatever the policy would ask by now: what waited once is carried out after a yes only.
        """
        calls = self._log.open_calls
        undecided = [call for call in calls if call.tool_call_id not in self._decisions]
        if undecided and not self._user_spoke_since(self._log.position(calls[-1])):
            return False
        for call in undecided:
            await self._log.append(rejection(call, ANSWERED_BY_MESSAGE))
        return True

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; `Stopped` when it was told to stop and had nothing to say."""
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._inner = task
        if self._stopping:
            task.cancel()
        either: set[asyncio.Future[Any]] = {task, self._stop_signal}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=STOP_GRACE_S)
        self._inner = None
        if not task.done() or task.cancelled():
            raise Stopped
        return task.result()

    def _check_stop(self) -> None:
        if self._pausing:
            raise Stopped

    def _check_interrupt(self) -> None:
        if self._stopping:
            raise Stopped

    async def _stopped(self) -> Status:
        for call in self._log.open_calls:
            await self._log.append(_error(call, CANCELLED_CALL))
        await self._log.append(PauseEvent())
        return Status.PAUSED

    async def _failed(self, error: Exception) -> None:
        for call in self._log.open_calls:
            await self._log.append(_error(call, f"Not run: {type(error).__name__}."))
        detail = str(error) if isinstance(error, OpenHandsError) else repr(error)
        await self._log.append(
            ConversationErrorEvent(source="environment", code=type(error).__name__, detail=detail)
        )
        await self._log.set_status(Status.ERROR)

    def _user_spoke_since(self, position: int) -> bool:
        later = self._log.events[position:]
        return any(isinstance(e, MessageEvent) and e.source == "user" for e in later)


def rejection(call: ActionEvent, reason: str) -> UserRejectObservation:
    """The result of a call that was not allowed."""
    return UserRejectObservation(
        rejection_reason=reason or "User rejected the action",
        action_id=call.id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
    )


def _error(call: ActionEvent, text: str) -> AgentErrorEvent:
    return AgentErrorEvent(tool_name=call.tool_name, tool_call_id=call.tool_call_id, error=text)


def _observed(call: ActionEvent, observation: Observation) -> ObservationEvent:
    return ObservationEvent(
        observation=observation,
        action_id=call.id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
    )
