"""Which tools are there, which of them is a model given, and from what are their executors made?"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import SettingsError
from oh_kernel.events import Event
from oh_kernel.settings import Settings, notebook_of_session
from oh_kernel.tools.base import Tool, ToolExecutor

if TYPE_CHECKING:
    from oh_kernel.sessions.namespace import Namespace
    from oh_kernel.sessions.own_notebook import OwnNotebook
    from oh_kernel.tools.files import Files

# Every tool there is: its name, which is also its module's in this folder, and its class. A tool
# is imported when a preset with it is used.
ALL_TOOLS = {
    "ipython": "IpythonTool",
    "terminal": "TerminalTool",
    "file_editor": "FileEditorTool",
    "apply_patch": "ApplyPatchTool",
    "notebook_editor": "NotebookEditorTool",
    "task_tracker": "TaskTrackerTool",
    "think": "ThinkTool",
    "finish": "FinishTool",
}

PRESETS: dict[str, tuple[str, ...]] = {
    "default": ("ipython", "terminal", "file_editor", "task_tracker", "think", "finish"),
}


@dataclass(frozen=True)
class Resources:
    """What tools are handed beside the workspace and the settings.

    Without a `namespace`, Python runs in a shell made for the conversation, in this process.
    """

    namespace: Namespace | None = None
    output_folder: Path | None = None
    """Where complete outputs are saved that were too long to be told whole."""
    events: Callable[[], Sequence[Event]] = tuple
    """The log so far, for tools that go on from what they answered before."""
    files: Files | None = None
    """What all file tools of a conversation share."""


def tools_of_preset(name: str) -> tuple[type[Tool], ...]:
    """The tools of the preset called `name`."""
    if name not in PRESETS:
        raise SettingsError(
            f"tools={name!r} is no preset.", remedy=f"Choose one of: {', '.join(PRESETS)}."
        )
    return tuple(tool_named(tool) for tool in PRESETS[name])


def tool_named(name: str) -> type[Tool]:
    """The tool of this name, whichever preset it is in."""
    if name not in ALL_TOOLS:
        raise SettingsError(
            f"There is no tool {name!r}.", remedy=f"Choose among: {', '.join(ALL_TOOLS)}."
        )
    module = importlib.import_module(f"oh_kernel.tools.{name}")
    tool: type[Tool] = getattr(module, ALL_TOOLS[name])
    return tool


def make_executor(
    tool: type[Tool], workspace: Path, settings: Settings, resources: Resources
) -> ToolExecutor[Any, Any]:
    """The executor of `tool` for this workspace, set up as the settings say."""
    is_ours = tool.__module__ == f"oh_kernel.tools.{tool.name}"
    more = _arguments(tool.name, settings, resources) if is_ours else {}
    return tool.executor(workspace=workspace, **more)


def _arguments(name: str, settings: Settings, resources: Resources) -> Mapping[str, Any]:
    """What the executor of our tool called `name` takes beside the workspace."""
    match name:
        case "terminal":
            return {
                "no_change_timeout_s": settings.terminal_no_change_timeout_s,
                "output_folder": resources.output_folder,
                # Our shell is handed a file, so lines cannot run into each other.
                "one_statement": False,
            }
        case "file_editor" | "apply_patch":
            return {"files": resources.files, "allowed_folders": settings.allowed_folders}
        case "notebook_editor":
            shared = {"files": resources.files, "allowed_folders": settings.allowed_folders}
            return {**shared, "own": _own_notebook(resources.namespace)}
        case "ipython":
            return {"namespace": resources.namespace, "timeout_s": settings.python_timeout_s}
        case "task_tracker":
            from oh_kernel.tools.task_tracker import tasks_of  # the tool, loaded by now

            return {"planned": lambda: tasks_of(resources.events())}
        case _:
            return {}


def _own_notebook(namespace: Namespace | None) -> OwnNotebook | None:
    """The notebook that this kernel serves, if it is one."""
    from oh_kernel.sessions.own_notebook import OwnNotebook  # light, but only one tool needs it

    return OwnNotebook(namespace.shell, notebook_of_session()) if namespace else None
