"""The tool with which a model writes a thought down; nothing else happens."""

from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor


class ThinkAction(Action):
    """A thought."""

    thought: str


class ThinkObservation(Observation):
    """That the thought is in the log."""


class ThinkExecutor(ToolExecutor[ThinkAction, ThinkObservation]):
    """Answers; the thought itself is stored with the action."""

    def resources(self, action: ThinkAction) -> tuple[str, ...]:
        return ()

    async def run(self, action: ThinkAction, context: ToolContext) -> ThinkObservation:
        return ThinkObservation.from_text("Your thought has been logged.")


class ThinkTool(Tool):
    """Thinking, as a model calls it."""

    name = "think"
    prose = "Write a thought down; nothing is run or changed."
    action = ThinkAction
    observation = ThinkObservation
    executor = ThinkExecutor
    hints = ToolAnnotations(
        readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False
    )
