"""What does one line say of a tool call: what it is for, and how much came of it?"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from oh_kernel.events import ActionEvent, Observation
from oh_kernel.tools.patch_grammar import named_paths

# Under which names tools take the file or folder that they work on.
_PATHS = ("path", "file_path", "dir_path")
# What of an answer can be counted: the field with the list or the number, and its noun.
_COUNTED = {
    "GlobObservation": ("files", "file"),
    "GrepObservation": ("matches", "file"),
    "ListDirectoryObservation": ("total_count", "entry"),
}
_CUT = ("truncated", "is_truncated")


def title(event: ActionEvent, arguments: Mapping[str, Any]) -> str:
    """The model's words, else what the call is about."""
    # The reference fills a missing summary with the call as JSON, which says nothing new.
    if event.summary and not event.summary.startswith(f"{event.tool_name}: {{"):
        return event.summary
    if patch := arguments.get("patch"):
        return ", ".join(dict.fromkeys(named_paths(str(patch))))
    if pattern := arguments.get("pattern"):
        return f"{pattern} in {_where(arguments)}" if _where(arguments) else str(pattern)
    if tasks := arguments.get("task_list"):
        return f"{arguments.get('command', '')} {count(len(tasks), 'task')}".strip()
    if where := _where(arguments):
        return f"{arguments.get('command', '')} {_cell(arguments)}{where}".strip()
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return texts[0] if texts else ""


def found(observation: Observation) -> str:
    """How much an answer holds, where that is a number: "12 files", "100 files, cut"."""
    name, noun = _COUNTED.get(observation.kind, ("", ""))
    value = getattr(observation, name, None) if name else None
    if value is None or observation.is_error:
        return ""
    number = value if isinstance(value, int) else len(value)
    is_cut = any(getattr(observation, field, False) for field in _CUT)
    return count(number, noun) + (", cut" if is_cut else "")


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "file"), count(2, "entry")
    ('1 file', '2 entries')
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def _where(arguments: Mapping[str, Any]) -> str:
    """The file or folder by its name alone."""
    path = next((arguments[name] for name in _PATHS if arguments.get(name)), "")
    return PurePath(str(path)).name or str(path)


def _cell(arguments: Mapping[str, Any]) -> str:
    cell = arguments.get("cell")
    return "" if cell is None else f"cell {cell} of "
