"""In which words do read_file, write_file and edit say what is wrong?"""

from pathlib import Path
from typing import Literal

from agentskills import errors
from agentskills.editing import printable
from oh_kernel.tools.base import clip

MAX_CHARS = 50_000
"""Characters of an answer: what a request to a model holds of any tool's text."""


class Failed(Exception):
    """The tool cannot do what it was asked; the text says why."""


def why_not(error: Exception, path: Path, doing: Literal["reading", "writing", "editing"]) -> str:
    """What the model is told of an error."""
    match error:
        case Failed():
            text = f"Error: {error}"
        case errors.FileMissing():
            text = f"Error: File not found: {path}"
        case errors.IsAFolder():
            text = f"Error: Path is a directory, not a file: {path}"
        case (
            errors.CannotRead(cause=PermissionError()) | errors.CannotWrite(cause=PermissionError())
        ):
            text = f"Error: Permission denied: {path}"
        case errors.NotAllowed() | errors.ChangedOutside():
            text = f"Error: {error}"
        case _:
            text = f"Error {doing} file: {error}"
    return clip(printable(text), MAX_CHARS)
