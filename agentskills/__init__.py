"""Plain functions for looking at and changing files: each prints what a model should read.

Only the name that is used gets imported, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentskills.changing import (
        append_file,
        create_file,
        edit_file_by_replace,
        insert_content_at_line,
    )
    from agentskills.searching import find_file, search_dir, search_file
    from agentskills.viewing import goto_line, open_file, scroll_down, scroll_up

__all__ = [
    "append_file",
    "create_file",
    "documentation",
    "edit_file_by_replace",
    "find_file",
    "goto_line",
    "insert_content_at_line",
    "open_file",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
]

_HOMES = {
    "append_file": "changing",
    "create_file": "changing",
    "edit_file_by_replace": "changing",
    "find_file": "searching",
    "goto_line": "viewing",
    "insert_content_at_line": "changing",
    "open_file": "viewing",
    "scroll_down": "viewing",
    "scroll_up": "viewing",
    "search_dir": "searching",
    "search_file": "searching",
}


def documentation() -> str:
    """Each skill in one line, signature and purpose, for a prompt."""
    import inspect  # only a prompt needs it

    skills = (_load(name) for name in _HOMES)
    return "\n".join(
        f"{skill.__name__}{inspect.signature(skill)}: {_purpose(skill)}" for skill in skills
    )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _purpose(skill: Any) -> str:
    return str(skill.__doc__).partition("\n")[0]


def _load(name: str) -> Any:
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
