"""How is an error of a cell told in few lines?"""

from __future__ import annotations

import traceback
from typing import Any

# The frames nearest to the error tell most; recursion can make thousands.
MAX_FRAMES = 8
_HIDDEN = ("/IPython/core/", "/oh_kernel/sessions/", "/ipykernel/")


def one_line(error: BaseException) -> str:
    """What the error says; a SyntaxError without the invented name of the cell's file."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.msg} (line {error.lineno})"
    return str(error)


def short_traceback(shell: Any, error: BaseException) -> str:
    """The error with the frames of the user's code and of libraries, without IPython's and ours."""
    described = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = described
    while link is not None:
        _shorten(shell, link.stack)
        filename = getattr(link, "filename", None)  # of a SyntaxError
        if filename is not None and _is_cell(shell, filename):
            link.filename = "<cell>"
        link = link.__cause__ or link.__context__
    return "".join(described.format())


def _shorten(shell: Any, stack: traceback.StackSummary) -> None:
    frames = [frame for frame in stack if not any(part in frame.filename for part in _HIDDEN)]
    left_out = len(frames) - MAX_FRAMES
    stack[:] = frames[-MAX_FRAMES:]
    for frame in stack:
        # The source line is looked up by the name, so it is read before the name goes.
        frame.line  # noqa: B018
        if _is_cell(shell, frame.filename):
            frame.filename = "<cell>"
    if left_out > 0:
        notice = traceback.FrameSummary(f"<{left_out} frames>", 0, "...", line="")
        stack.insert(0, notice)


def _is_cell(shell: Any, filename: str) -> bool:
    names: dict[str, object] = getattr(shell.compile, "_filename_map", {})
    return filename in names or filename.startswith("<ipython-input-")
