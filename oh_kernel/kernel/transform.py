"""Which cells are for the agent, and how do they reach it exactly as typed?

A cell that begins with `%%openhands`, or is a single line `%openhands ...`, becomes one call with
the text as literals. In a kernel the call is awaited, so that the main loop stays free meanwhile.
The transform stands before IPython's own, which would take prompts (`>>> `) and indentation off.

    >>> print("".join(agent_call(["%%openhands --new\\n", ">>> why?\\n"], awaited=True)), end="")
    await get_ipython().openhands.run('--new',
    '>>> why?\\n')
    >>> agent_call(["%openhands?\\n"], awaited=True) is None
    True
"""

from __future__ import annotations

from collections.abc import Callable

MAGIC = "openhands"


class CellTransform:
    """The cleanup transform of one shell."""

    # Tells IPython's "is this cell complete?" to leave it out. A console then waits for the body.
    has_side_effects = True

    def __init__(self, awaited: Callable[[], bool]) -> None:
        self._awaited = awaited

    def __call__(self, lines: list[str]) -> list[str]:
        call = agent_call(lines, awaited=self._awaited())
        return lines if call is None else call


def agent_call(lines: list[str], *, awaited: bool) -> list[str] | None:
    """The lines of code that stand for a cell of the agent's, None for any other cell."""
    cell = "".join(lines)
    first, _, rest = cell.lstrip().partition("\n")
    marks, word, argument = _split(first)
    if word != MAGIC or (marks == "%" and rest.strip()):
        return None
    body = rest if marks == "%%" else None
    method = (
        f"await get_ipython().{MAGIC}.run" if awaited else f"get_ipython().{MAGIC}.run_blocking"
    )
    # Two lines: IPython tries further shorthands of its own on a cell of one line.
    return [f"{method}({argument!r},\n", f"{body!r})\n"]


def _split(first: str) -> tuple[str, str, str]:
    """`%%openhands --new` as its marks, its word, and the rest of the line."""
    unmarked = first.lstrip("%")
    marks = first[: len(first) - len(unmarked)]
    word, argument = [*unmarked.split(maxsplit=1), "", ""][:2]
    if marks not in ("%", "%%") or not unmarked.startswith(word):
        return "", "", ""
    return marks, word, argument.strip()
