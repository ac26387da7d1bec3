"""Which tools are there, which of them is a model given, and from what are their executors made?"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import SettingsError
from oh_kernel.events import Event
from oh_kernel.providers import acts_by_code
from oh_kernel.settings import Settings, notebook_of_session
from oh_kernel.tools.base import Tool, ToolExecutor

if TYPE_CHECKING:
    from oh_kernel.sessions.namespace import Namespace
    from oh_kernel.sessions.own_notebook import OwnNotebook
    from oh_kernel.tools.files import Files
    from oh_kernel.tools.terminal import SecretsSource

# Every tool there is: its name, which is also its module's in this folder, and its class. A tool
# is imported when a preset with it is used.
ALL_TOOLS = {
    "ipython": "IpythonTool",
    "terminal": "TerminalTool",
    "file_editor": "FileEditorTool",
    "apply_patch": "ApplyPatchTool",
    "read_file": "ReadFileTool",
    "write_file": "WriteFileTool",
    "edit": "EditTool",
    "list_directory": "ListDirectoryTool",
    "planning_file_editor": "PlanningFileEditorTool",
    "notebook_editor": "NotebookEditorTool",
    "task_tracker": "TaskTrackerTool",
    "glob": "GlobTool",
    "grep": "GrepTool",
    "think": "ThinkTool",
    "finish": "FinishTool",
}

# What most presets have: what runs code, what stands beside the files.
_RUN = ("ipython", "terminal")
_GEMINI = ("read_file", "write_file", "edit", "list_directory")
_ON_FILES = ("file_editor", "planning_file_editor", "apply_patch", *_GEMINI)
_BESIDE = ("notebook_editor", "task_tracker", "think", "finish")
PRESETS: dict[str, tuple[str, ...]] = {
    "default": (*_RUN, "file_editor", *_BESIDE),
    "gpt5": (*_RUN, "apply_patch", *_BESIDE),
    "gemini": (*_RUN, *_GEMINI, *_BESIDE),
    "planning": ("glob", "grep", "planning_file_editor", "think", "finish"),
}
AUTO = "auto"
# The tools that models of a family know from their training; all others get the default.
_FAMILIES = {
    "gpt5": re.compile(r"gpt-(?:[5-9]|[1-9]\d)|o[1-9]\b|(?:.*-)?codex"),
    "gemini": re.compile(r"gemini-"),
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
    secrets: SecretsSource | None = None
    """What commands may be given as variables, and no output may show."""
    mask: Callable[[str], str] | None = None
    """Hides secrets in what is shown beside the log, such as displays in the notebook."""


def tools_of(settings: Settings, model: str | None = None) -> tuple[type[Tool], ...]:
    """The tools that the settings say; a model that acts by code blocks needs what runs them."""
    model = model or settings.model
    by_code = settings.tools == AUTO and acts_by_code(settings.tool_calls, model or "")
    return tools_named(",".join(_RUN) if by_code else settings.tools, model)


def tools_named(wanted: str, model: str | None = None) -> tuple[type[Tool], ...]:
    """The tools of a list of presets and tools; "auto" is the preset that suits `model`.

    A preset is most often alone, but `default,grep` means what it says.
    """
    listed = [name.strip() for name in wanted.split(",") if name.strip()]
    presets = {**PRESETS, AUTO: PRESETS[preset_for(model)]}
    names = [tool for name in listed for tool in presets.get(name, (name,))]
    if not names or (len(names) == 1 and names[0] not in ALL_TOOLS):
        raise SettingsError(
            f"tools={wanted!r} is neither a preset nor a tool.",
            remedy=f"Choose {AUTO}, {', '.join(PRESETS)}, or some of: {', '.join(ALL_TOOLS)}.",
        )
    return tuple(tool_named(name) for name in dict.fromkeys(names))


def preset_for(model: str | None) -> str:
    """The preset for a model, by its family.

    >>> preset_for("openrouter:openai/gpt-5.1-codex"), preset_for("anthropic:claude-opus-5-5")
    ('gpt5', 'default')
    """
    parts = re.split(r"[:/]", (model or "").lower())
    for preset, family in _FAMILIES.items():
        if any(family.match(part) for part in parts):
            return preset
    return "default"


def tool_named(name: str) -> type[Tool]:
    """The tool of this name, whichever preset it is in."""
    if name not in ALL_TOOLS:
        presets = ", ".join((AUTO, *PRESETS))
        raise SettingsError(
            f"There is no tool {name!r}.",
            remedy=f"Choose among: {', '.join(ALL_TOOLS)}, or the presets {presets}.",
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
    shared = {"files": resources.files, "allowed_folders": settings.allowed_folders}
    match name:
        case "terminal":
            return {
                "no_change_timeout_s": settings.terminal_no_change_timeout_s,
                "idle_cap_s": settings.runtime_idle_timeout_s,
                "output_folder": resources.output_folder,
                "secrets": resources.secrets,
                # Off by default: our shell is handed a file, so lines cannot run into each other.
                "one_statement": settings.terminal_one_statement,
            }
        case name if name in _ON_FILES:
            return shared
        case "notebook_editor":
            return {**shared, "own": _own_notebook(resources.namespace)}
        case "ipython":
            return {
                "namespace": resources.namespace,
                "timeout_s": settings.python_timeout_s,
                "mask": resources.mask,
            }
        case "task_tracker":
            from oh_kernel.tools.task_tracker import tasks_of  # the tool, loaded by now

            return {"planned": lambda: tasks_of(resources.events())}
        case _:
            return {}


def _own_notebook(namespace: Namespace | None) -> OwnNotebook | None:
    """The notebook that this kernel serves, if it is one."""
    from oh_kernel.sessions.own_notebook import OwnNotebook  # light, but only one tool needs it

    return OwnNotebook(namespace.shell, notebook_of_session()) if namespace else None
