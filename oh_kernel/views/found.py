"""How is a place shown in which a text was found?"""

from collections.abc import Sequence
from dataclasses import dataclass

from oh_kernel.views.escape import escape


@dataclass(frozen=True, repr=False)
class Found:
    """A line with its hits marked: as a page does it, or `>>so<<` in plain text.

    Each piece is a text and whether it is a hit.
    """

    pieces: Sequence[tuple[str, bool]]

    def __str__(self) -> str:
        return "".join(f">>{text}<<" if is_hit else text for text, is_hit in self.pieces)

    def _repr_html_(self) -> str:
        marked = (
            f"<mark>{escape(text)}</mark>" if is_hit else escape(text)
            for text, is_hit in self.pieces
        )
        return "".join(marked)
