"""The tool with which a model ends its turn and gives the answer, also as data if that is asked."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from oh_kernel.events import Action, Observation, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor
from oh_kernel.tools.response_schema import ResponseSchema

ASKS_FOR_DATA = (
    "The fields beside the message are the answer as data. A reply in plain text does not give it, "
    "so end with this call."
)


class FinishAction(Action):
    """The end of a turn. `structured_output` is the answer as data, where a form was asked for."""

    message: str = Field(description="The answer to the user.")
    structured_output: SkipJsonSchema[dict[str, Any] | None] = None


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

    @staticmethod
    def with_schema(
        schema: type[BaseModel] | Mapping[str, Any] | ResponseSchema,
    ) -> type["FinishTool"]:
        """The same with the fields of `schema` beside the message; what is amiss goes back."""
        form = schema if isinstance(schema, ResponseSchema) else ResponseSchema(schema)

        class WithSchema(FinishTool, abstract=True):
            prose = f"{FinishTool.prose} {ASKS_FOR_DATA}"

            @classmethod
            def arguments(cls) -> dict[str, Any]:
                own = super().arguments()
                return {
                    **form.json,
                    "properties": {**own["properties"], **form.json["properties"]},
                    "required": [*own["required"], *form.json.get("required", ())],
                }

            @classmethod
            def action_of(cls, arguments: Mapping[str, Any]) -> Action:
                answer = {name: value for name, value in arguments.items() if name != "message"}
                message = {name: arguments[name] for name in arguments if name == "message"}
                return FinishAction.model_validate(
                    {**message, "structured_output": form.checked(answer)}
                )

        WithSchema.__name__ = FinishTool.__name__  # in the log it is the tool that it was
        return WithSchema
