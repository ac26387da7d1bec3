"""In which forms is a thing shown?"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rendered:
    """The same content three times: for a notebook, for Markdown readers, and as plain text."""

    html: str
    markdown: str
    text: str

    def bundle(self) -> dict[str, str]:
        """The content by MIME type, as `display_data` takes it."""
        return {
            "text/html": self.html,
            "text/markdown": self.markdown,
            "text/plain": self.text,
        }

    def __len__(self) -> int:
        """Characters that a notebook file spends on it."""
        return len(self.html) + len(self.markdown) + len(self.text)


def joined(parts: Sequence[Rendered], *, text_gap: str = "\n") -> Rendered:
    """The parts one below the other; `text_gap` stands between them in plain text."""
    return Rendered(
        html="".join(part.html for part in parts),
        markdown="\n\n".join(part.markdown for part in parts if part.markdown),
        text=text_gap.join(part.text for part in parts if part.text),
    )


def fenced(text: str, language: str = "") -> str:
    """The text as a Markdown code block, whatever backticks it holds.

    >>> print(fenced("a", "bash"))
    ```bash
    a
    ```
    """
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def inline_code(text: str) -> str:
    """One line of text as Markdown code, whatever backticks it holds."""
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _backtick_runs(text: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in text).split() if run]
