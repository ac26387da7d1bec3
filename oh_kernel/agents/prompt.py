"""What is the model told at the start of a conversation?

A static part, the same for everybody and so cacheable, and a dynamic part with what holds here.
"""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
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
        system_prompt=TextContent(text=static_prompt()),
        tools=[tool.define() for tool in tools],
        dynamic_context=TextContent(text=dynamic_context(workspace, notes)),
    )


def static_prompt() -> str:
    """The part that is the same in every conversation."""
    return files("oh_kernel.agents").joinpath("prompts/system.md").read_text("utf-8")


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


def _installed() -> list[str]:
    found = []
    for name in _NOTABLE:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
