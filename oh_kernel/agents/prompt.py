"""What is the model told at the start of a conversation?

A static part, the same for everybody and so cacheable, and a dynamic part with what holds here.
"""

import importlib.metadata
import platform
import re
import sys
from collections.abc import Collection, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path

from oh_kernel.events import SystemPromptEvent, TextContent
from oh_kernel.tools.base import Tool

# The packages of a data scientist that are worth a line; the rest can be asked for.
_NOTABLE = (
    "altair", "bokeh", "dask", "duckdb", "jax", "matplotlib", "numpy", "openpyxl", "pandas",
    "plotly", "polars", "pyarrow", "pytest", "scikit-learn", "scipy", "seaborn", "sqlalchemy",
    "statsmodels", "sympy", "tensorflow", "torch", "xarray", "xgboost",
)  # fmt: skip


def system_prompt_event(
    tools: Sequence[type[Tool]], workspace: Path, *, notes: str = ""
) -> SystemPromptEvent:
    """The first event of a conversation; `notes` are further lines of the dynamic part."""
    return SystemPromptEvent(
        system_prompt=TextContent(text=static_prompt([tool.name for tool in tools])),
        tools=[tool.define() for tool in tools],
        dynamic_context=TextContent(text=dynamic_context(workspace, notes)),
    )


def static_prompt(tools: Collection[str]) -> str:
    """The part that is the same in every conversation with these tools.

    A line of the text that begins with the name of a tool is for who has that tool.
    """
    text = files("oh_kernel.agents").joinpath("prompts/system.md").read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if _is_for(line, tools))


def dynamic_context(workspace: Path, notes: str = "") -> str:
    """The date, the machine, the folder and the packages, a line each."""
    lines = [
        f"Date: {date.today().isoformat()}",
        f"Working folder: {workspace}",
        f"Platform: {platform.system()} {platform.machine()}",
        f"Python: {platform.python_version()} at {sys.executable}",
        f"Packages: {', '.join(_installed()) or 'none of the usual ones'}",
    ]
    return "\n".join([*lines, notes]).rstrip()


def _is_for(line: str, tools: Collection[str]) -> bool:
    named = re.match(r"- `(\w+)`", line)
    return named is None or named[1] in tools


def _installed() -> list[str]:
    found = []
    for name in _NOTABLE:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
