"""How is a display that is redrawn as a whole shown where text can only be added?

Each line is printed once it will not change any more, and everything in its order: what comes after
a view waits until that view stands still.
"""

from dataclasses import dataclass
from typing import TextIO

# How a line begins from which on a view will still change: an open call, the status below all.
OPEN = ("… ", "[")
# At the end of a view without any: the sentence that is being written, and what is below it.
UNSETTLED_LINES = 3


class Screen:
    """Text and views, one after the other, on a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._waiting: list[str | Display | View] = []
        self._views: dict[str, View] = {}
        self._above = ""  # the last view that stands still, as a whole

    def add(self, text: str) -> None:
        """Show `text` after all that came before."""
        self._waiting.append(text)
        self._advance()

    def draw(self, text: str, display_id: str | None = None) -> None:
        """Show a display, or how one with this id looks now."""
        if display_id is None:
            self._waiting.append(Display(text))
            self._advance()
            return
        if display_id not in self._views:
            self._views[display_id] = View()
            self._waiting.append(self._views[display_id])
        self._views[display_id].text = text
        self._advance()

    def finish(self) -> None:
        """Show all that waits, as it is now."""
        for one in self._waiting:
            self._close(one)
        self._waiting.clear()
        self._views.clear()
        self._above = ""

    def _advance(self) -> None:
        while self._waiting:
            one = self._waiting[0]
            if isinstance(one, View) and (len(self._waiting) == 1 or one.is_open):
                self._write(one.settled())
                return
            self._close(one)
            del self._waiting[0]

    def _close(self, one: "str | Display | View") -> None:
        """Write what will not change any more."""
        match one:
            case str():
                self._write(one)
            case View():
                self._write(one.rest())
                self._above = one.text
            case Display() if not one.stands_in(self._above):
                self._write(one.text + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@dataclass(frozen=True)
class Display:
    """A display that stays as it is. What the agent's Python displayed is told in words by the
    transcript above it too: the words are for the model, the display is for a notebook.
    """

    text: str

    def stands_in(self, view: str) -> bool:
        """Whether a reader of `view` has seen these lines."""
        lines = self.text.rstrip()
        return f"\n{lines}\n" in f"\n{view}\n"


class View:
    """A display that is redrawn: how it looks now, and how much of it was printed."""

    def __init__(self) -> None:
        self.text = ""
        self._printed: list[str] = []

    @property
    def is_open(self) -> bool:
        """It says itself that it will change."""
        return any(line.startswith(OPEN) for line in self.text.splitlines())

    def settled(self) -> str:
        """The new lines that will not change any more, as far as one can tell."""
        lines = self.text.splitlines()
        count = max(0, len(lines) - UNSETTLED_LINES)
        first_open = next((n for n, line in enumerate(lines) if line.startswith(OPEN)), count)
        return self._new(lines[: min(count, first_open)])

    def rest(self) -> str:
        """The lines that were held back."""
        return self._new(self.text.splitlines())

    def _new(self, lines: list[str]) -> str:
        if len(lines) < len(self._printed):
            return ""
        if lines[: len(self._printed)] == self._printed:
            lines = lines[len(self._printed) :]
        else:
            seen = set(self._printed)
            lines = [line for line in lines if line.strip() and line not in seen]
        self._printed += lines
        return "".join(line + "\n" for line in lines)
