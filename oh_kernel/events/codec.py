"""How does JSON text become an event?"""

import importlib
import json
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from oh_kernel.events.base import Event, UnknownEvent, find_kind
from oh_kernel.events.text import without_lone_surrogates

# Which module defines a kind that is not imported yet. Importing one of these is cheap: a shell,
# a browser or a parser starts at first use, not at import.
MODULES = {
    "terminal": ("Terminal",),
    "file_editor": ("FileEditor",),
    "apply_patch": ("ApplyPatch",),
    "read_file": ("ReadFile",),
    "write_file": ("WriteFile",),
    "edit": ("Edit",),
    "list_directory": ("ListDirectory",),
    "planning_file_editor": ("PlanningFileEditor",),
    "ipython": ("Ipython",),
    "task_tracker": ("TaskTracker",),
    "notebook_editor": ("NotebookEditor",),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "think": ("Think",),
    "finish": ("Finish",),
}
_MODULE_OF_KIND = {
    f"{stem}{part}": f"oh_kernel.tools.{module}"
    for module, stems in MODULES.items()
    for stem in stems
    for part in ("Action", "Observation", "Tool")
}


def load_kind(kind: str) -> None:
    """Import the module that defines `kind`, if it is one of ours."""
    if module := _MODULE_OF_KIND.get(kind):
        importlib.import_module(module)


def event_from_json(text: str) -> Event:
    """The event whose JSON is `text`.

    An unknown kind, or a known one with values outside what this version knows, gives an
    `UnknownEvent` that keeps the text. Raises `ValueError` when `text` is not a JSON object.
    """
    try:
        data: Any = from_json(text)
    except ValueError as error:
        data = _read_patiently(text, error)
    if not isinstance(data, dict):
        raise ValueError(f"an event is a JSON object, not {text[:40]!r}")
    cls = find_kind(Event, data.get("kind"))
    if cls is None:
        return UnknownEvent.from_text(text, data)
    try:
        event = cls.model_validate(data)
    except ValidationError:
        return UnknownEvent.from_text(text, data)
    assert isinstance(event, Event)
    return event


def _read_patiently(text: str, error: ValueError) -> Any:
    """What other programs write and the fast parser refuses: a byte order mark, and the escape of
    half a surrogate pair, which becomes U+FFFD.
    """
    try:
        return without_lone_surrogates(json.loads(text.lstrip("\ufeff")))
    except (ValueError, RecursionError):
        raise error from None
