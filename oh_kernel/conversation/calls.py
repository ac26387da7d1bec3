"""How are the calls of a reply carried out, and what is the result of one that is not?"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from oh_kernel.conversation.attendants import Attendant, heard_at
from oh_kernel.conversation.log import ConversationLog, NativeOutput, ToolOutput
from oh_kernel.conversation.stopping import Stop, Stopped
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.events import (
    ActionEvent,
    AgentErrorEvent,
    Event,
    Observation,
    ObservationEvent,
    UserRejectObservation,
)
from oh_kernel.tools.base import ToolContext, ToolExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.locks import LockTimeout

STOPPED_CALL = "Tool call interrupted before completion. The conversation was paused."
CANCELLED_CALL = "Tool call cancelled by interrupt."


class CallRunner:
    """Carries out calls in order, each once. Used on the agent thread, by one run."""

    def __init__(
        self,
        log: ConversationLog,
        toolbox: Toolbox,
        files: Files,
        stop: Stop,
        attendants: Sequence[Attendant],
    ) -> None:
        self._log = log
        self._toolbox = toolbox
        self._files = files
        self._stop = stop
        self._attendants = attendants
        self.stopped: ActionEvent | None = None
        """The call that was running when a person stopped it all at once."""

    async def carry_out(self, calls: Sequence[ActionEvent]) -> bool:
        """Give each of `calls` its result; whether one of them finished the turn.

        When a person stops it at once, the calls that are left stay open and `Stopped` rises.
        """
        finished = False
        for call in calls:
            self._stop.check_now()
            result = await self._log.append(await self._result(call))
            if self._stop.is_now:
                self.stopped = call
            with suppress(Stopped):  # the others are still heard
                for attendant in heard_at("after_call", self._attendants):
                    await self._stop.reaching(attendant.after_call(call, result))
            finished |= call.tool_name == "finish" and isinstance(result, ObservationEvent)
        self._stop.check_now()
        return finished

    async def _result(self, call: ActionEvent) -> Event:
        executor = self._toolbox.executor(call.tool_name)
        if call.action is None or executor is None:
            return failure(
                call, f"Error executing tool '{call.tool_name}': it is not here any more"
            )
        context = ToolContext(
            workspace=self._toolbox.workspace,
            call_id=call.tool_call_id,
            show=lambda text: self._log.delta(ToolOutput(call.tool_call_id, text)),
            make_room=lambda: self._log.delta(NativeOutput(call.tool_call_id)),
        )
        try:
            observation = await self._stop.reaching(self._answer(executor, call, context))
        except Stopped:
            return failure(call, STOPPED_CALL)
        except LockTimeout as error:
            return failure(call, str(error))
        except Exception as error:
            return failure(call, f"Error executing tool '{call.tool_name}': {error}")
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


def rejection(call: ActionEvent, reason: str) -> UserRejectObservation:
    """The result of a call that was not allowed."""
    return UserRejectObservation(
        rejection_reason=reason or "User rejected the action",
        action_id=call.id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
    )


def failure(call: ActionEvent, text: str) -> AgentErrorEvent:
    """The result of a call that was not carried out, or not to its end; `text` is for the model."""
    return AgentErrorEvent(tool_name=call.tool_name, tool_call_id=call.tool_call_id, error=text)


def _observed(call: ActionEvent, observation: Observation) -> ObservationEvent:
    return ObservationEvent(
        observation=observation,
        action_id=call.id,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
    )
