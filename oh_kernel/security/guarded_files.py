"""Which files does a person always see before a file tool writes them?

Those that run by themselves later on, or decide what may run: by an edit of them an agent could do
without a question what it would be asked about in a command.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from oh_kernel.events import Action
from oh_kernel.security.findings import Finding, rail
from oh_kernel.security.places import CHANGES_HOOKS, CHANGES_STARTUP, Place, place_of
from oh_kernel.settings import config_folder

_WRITERS = ("file_editor", "planning_file_editor", "write_file", "edit", "notebook_editor")
_PATH_FIELDS = ("path", "file_path")
_REASONS = {
    Place.HOOK: CHANGES_HOOKS,
    Place.STARTUP: CHANGES_STARTUP,
}
_SETTINGS = "changes your own settings of this program"
_UNCLEAR = "writes a file whose name could not be judged"


def guarded_findings(tool_name: str, action: Action, workspace: Path | None) -> list[Finding]:
    """Why a person has to be asked before `action` writes; nothing when it need not be."""
    found = (_reason(path, workspace) for path in _written(tool_name, action))
    return [rail(reason) for reason in dict.fromkeys(found) if reason]


def _written(tool_name: str, action: Action) -> Iterable[str]:
    """The paths that a file tool writes to, as the model spelled them."""
    if tool_name == "apply_patch":
        from oh_kernel.tools.patch_grammar import named_paths  # not for the other tools

        return named_paths(str(getattr(action, "patch", "")))
    only_reads = getattr(action, "command", None) == "view"
    if only_reads or tool_name not in _WRITERS:
        return ()
    named = (getattr(action, name, None) for name in _PATH_FIELDS)
    return [path for path in named if isinstance(path, str)]


def _reason(path: str, workspace: Path | None) -> str | None:
    try:
        spellings = _spellings(path, workspace)
    except (RuntimeError, ValueError):  # the home of nobody, a NUL
        return _UNCLEAR
    places = {place_of(one) for one in spellings}
    if place := next((place for place in _REASONS if place in places), None):
        return _REASONS[place]
    own = config_folder()
    return _SETTINGS if any(Path(one).is_relative_to(own) for one in spellings) else None


def _spellings(path: str, workspace: Path | None) -> list[str]:
    """What a file is called and where that leads: a link must not hide it, nor must other letters
    on a disk that takes them for the same.
    """
    named = os.path.normpath((workspace or Path()) / Path(path).expanduser())
    found = [named, os.path.realpath(named)] if workspace else [named]
    return [*found, *(one.lower() for one in found)]
