"""The tool with which a model ends its turn and gives the answer."""

from pydantic import Field

from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor


class FinishAction(Action):
    """The end of a turn."""

    message: str = Field(description="The answer to the user.")


class FinishObservation(Observation):
    """The answer once more."""


class FinishExecutor(ToolExecutor[FinishAction, FinishObservation]):
    """Gives the message back; ending the turn is the agent's part."""

    def resources(self, action: FinishAction) -> tuple[str, ...]:
        return ()

    async def run(self, action: FinishAction, context: ToolContext) -> FinishObservation:
        return FinishObservation.from_text(action.message)


class FinishTool(Tool):
    """Finishing, as a model calls it."""

    name = "finish"
    prose = "End the turn when the task is done, or when you cannot go on without the user."
    action = FinishAction
    observation = FinishObservation
    executor = FinishExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )
