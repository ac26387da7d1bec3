"""Which tools is a model given, and from what are their executors made?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_kernel.errors import SettingsError
from oh_kernel.settings import Settings
from oh_kernel.tools.base import Tool, ToolExecutor
from oh_kernel.tools.file_editor import FileEditorExecutor, FileEditorTool
from oh_kernel.tools.finish import FinishTool
from oh_kernel.tools.ipython import IpythonExecutor, IpythonTool
from oh_kernel.tools.terminal import TerminalExecutor, TerminalTool
from oh_kernel.tools.think import ThinkTool

if TYPE_CHECKING:
    from oh_kernel.sessions.namespace import Namespace

PRESETS: dict[str, tuple[type[Tool], ...]] = {
    "default": (IpythonTool, TerminalTool, FileEditorTool, ThinkTool, FinishTool),
}


@dataclass(frozen=True)
class Resources:
    """What tools are handed beside the workspace and the settings.

    Without a `namespace`, Python runs in a shell made for the conversation, in this process.
    """

    namespace: Namespace | None = None
    output_folder: Path | None = None
    """Where complete outputs are saved that were too long to be told whole."""


def tools_of_preset(name: str) -> tuple[type[Tool], ...]:
    """The tools of the preset called `name`."""
    if name not in PRESETS:
        raise SettingsError(
            f"tools={name!r} is no preset.", remedy=f"Choose one of: {', '.join(PRESETS)}."
        )
    return PRESETS[name]


def tool_named(name: str) -> type[Tool]:
    """The tool of this name, whichever preset it is in."""
    known = {tool.name: tool for preset in PRESETS.values() for tool in preset}
    if name not in known:
        raise SettingsError(
            f"There is no tool {name!r}.", remedy=f"Choose among: {', '.join(known)}."
        )
    return known[name]


def make_executor(
    tool: type[Tool], workspace: Path, settings: Settings, resources: Resources
) -> ToolExecutor[Any, Any]:
    """The executor of `tool` for this workspace, set up as the settings say."""
    if tool is TerminalTool:
        return TerminalExecutor(
            workspace=workspace,
            no_change_timeout_s=settings.terminal_no_change_timeout_s,
            output_folder=resources.output_folder,
            one_statement=False,  # our shell is handed a file, so lines cannot run into each other
        )
    if tool is FileEditorTool:
        return FileEditorExecutor(workspace=workspace, allowed_folders=settings.allowed_folders)
    if tool is IpythonTool:
        return IpythonExecutor(
            workspace=workspace,
            namespace=resources.namespace,
            timeout_s=settings.python_timeout_s,
        )
    return tool.executor(workspace=workspace)
