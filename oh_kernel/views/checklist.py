"""How does a list of tasks look?"""

from collections.abc import Sequence

from oh_kernel.tools.task_tracker import TaskItem, TaskStatus
from oh_kernel.views.escape import escape, one_line, printable
from oh_kernel.views.markdown import inert_markdown
from oh_kernel.views.rendered import Rendered
from oh_kernel.views.style import MUTED, STATE_COLOURS

# The sign tells the states apart, the colour only repeats it; words say it where a sign is unclear.
_SIGNS: dict[TaskStatus, str] = {"todo": "☐", "in_progress": "▶", "done": "☑"}
_COLOURS: dict[TaskStatus, str] = {
    "todo": MUTED,
    "in_progress": STATE_COLOURS["running"],
    "done": STATE_COLOURS["ok"],
}
_MARKDOWN: dict[TaskStatus, str] = {"todo": "[ ]", "in_progress": "[ ]", "done": "[x]"}
_TEXT: dict[TaskStatus, str] = {"todo": "[ ]", "in_progress": "[>]", "done": "[x]"}
_LIST = "list-style:none;margin:4px 0;padding:0 4px"
_LINE_CHARS = 200


def render_checklist(tasks: Sequence[TaskItem]) -> Rendered:
    """The tasks with a box for each, ticked when it is done."""
    items = "".join(map(_item, tasks))
    return Rendered(
        html=f'<ul role="list" style="{_LIST}">{items}</ul>',
        markdown="\n".join(map(_markdown, tasks)),
        text="\n".join(map(_text, tasks)),
    )


def progress(tasks: Sequence[TaskItem]) -> str:
    """How far the list is, in words."""
    return f"{sum(task.status == 'done' for task in tasks)} of {len(tasks)} done"


def _item(task: TaskItem) -> str:
    title = escape(_line(task.title))
    if task.status == "in_progress":
        title = f'<b>{title}</b> <span style="{MUTED}">· in progress</span>'
    elif task.status == "done":
        title = f'<span style="{MUTED}">{title}</span>'
    notes = f'<div style="{MUTED};padding-left:1.4em">{escape(_line(task.notes))}</div>'
    sign = f'<span style="{_COLOURS[task.status]};display:inline-block;width:1.4em">'
    return f"<li>{sign}{_SIGNS[task.status]}</span>{title}{notes if task.notes else ''}</li>"


def _markdown(task: TaskItem) -> str:
    doing = " *(in progress)*" if task.status == "in_progress" else ""
    notes = f"  \n  {inert_markdown(_line(task.notes))}" if task.notes else ""
    return f"- {_MARKDOWN[task.status]} {inert_markdown(_line(task.title))}{doing}{notes}"


def _text(task: TaskItem) -> str:
    notes = f"\n    {_line(task.notes)}" if task.notes else ""
    return f"{_TEXT[task.status]} {_line(task.title)}{notes}"


def _line(text: str) -> str:
    return printable(one_line(text, _LINE_CHARS))
