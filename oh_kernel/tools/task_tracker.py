"""The tool with which a model keeps a list of what is to be done, for itself and for the user."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from oh_kernel.events import Action, Event, Observation, ObservationEvent, ToolAnnotations
from oh_kernel.events.base import Wire
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor

TaskStatus = Literal["todo", "in_progress", "done"]
Command = Literal["view", "plan"]

NO_TASKS = 'No task list found. Use the "plan" command to create one.'
ICONS: dict[TaskStatus, str] = {"todo": "⏳", "in_progress": "🔄", "done": "✅"}


class TaskItem(Wire):
    """A task of the list. One that is only a text is a task with this title."""

    title: str
    notes: str = ""
    status: TaskStatus = "todo"

    @model_validator(mode="before")
    @classmethod
    def _of_title(cls, data: Any) -> Any:
        return {"title": data} if isinstance(data, str) else data


class TaskTrackerAction(Action):
    """What to do with the list."""

    command: Command = Field(
        default="view", description="`plan` puts task_list in place of the list; `view` shows it."
    )
    task_list: list[TaskItem] = Field(
        default_factory=list, description="For `plan`: all tasks in order, also those done."
    )


class TaskTrackerObservation(Observation):
    """The list as it is now."""

    command: Command
    task_list: list[TaskItem] = Field(default_factory=list)


class TaskTrackerExecutor(ToolExecutor[TaskTrackerAction, TaskTrackerObservation]):
    """Answers with the list. In a conversation the log remembers it, `planned` reads it there."""

    def __init__(
        self, workspace: str | Path, *, planned: Callable[[], Sequence[TaskItem]] | None = None
    ) -> None:
        super().__init__(workspace)
        self._own: Sequence[TaskItem] = ()
        self._planned = planned or (lambda: self._own)

    async def run(self, action: TaskTrackerAction, context: ToolContext) -> TaskTrackerObservation:
        if action.command == "plan":
            tasks = self._own = action.task_list
            text = f"Task list has been updated with {len(tasks)} item(s)."
        else:
            tasks = list(self._planned())
            text = in_words(tasks) if tasks else NO_TASKS
        return TaskTrackerObservation.from_text(text, command=action.command, task_list=tasks)


class TaskTrackerTool(Tool):
    """Keeping a list of tasks, as a model calls it."""

    name = "task_tracker"
    prose = (
        "Keep a list of tasks that the user sees, for work of several parts. Plan it first, then "
        "plan it again as things change: one task in_progress at a time, done once checked."
    )
    action = TaskTrackerAction
    observation = TaskTrackerObservation
    executor = TaskTrackerExecutor
    hints = ToolAnnotations(destructiveHint=False, idempotentHint=True, openWorldHint=False)


def in_words(tasks: Iterable[TaskItem]) -> str:
    """The list as the model reads it."""
    return "\n\n".join(["# Task List", *(_entry(n, task) for n, task in enumerate(tasks, 1))])


def tasks_of(events: Sequence[Event]) -> list[TaskItem]:
    """The list as it was planned last."""
    for event in reversed(events):
        answer = event.observation if isinstance(event, ObservationEvent) else None
        if isinstance(answer, TaskTrackerObservation) and answer.command == "plan":
            return answer.task_list
    return []


def _entry(number: int, task: TaskItem) -> str:
    line = f"{number}. {ICONS[task.status]} {task.title}"
    return f"{line}\n   {task.notes}" if task.notes else line
