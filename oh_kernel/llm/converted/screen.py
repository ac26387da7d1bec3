"""How much of a reply that is on its way is text for a person, and not yet the markup of a call?"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Opening:
    """How a call begins. `perhaps` finds an end of the text that may become such a beginning."""

    surely: re.Pattern[str]
    perhaps: re.Pattern[str]


class Screen:
    """Lets through what stands before the first call; the rest it holds back."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self.forget()

    def forget(self) -> None:
        """Begin again: the reply is asked for once more."""
        self._text = ""
        self._shown = 0
        self._is_call = False

    def pass_on(self, text: str) -> str:
        """What of the reply may be shown by now, after `text` has come."""
        self._text += text
        if self._is_call:
            return ""
        if call := self._opening.surely.search(self._text, self._shown):
            self._is_call = True
            return self._show_until(call.start())
        doubt = self._opening.perhaps.search(self._text, self._shown)
        return self._show_until(doubt.start() if doubt else len(self._text))

    def rest(self) -> str:
        """What was held back, when it turned out to be no call."""
        return self._show_until(len(self._text))

    def _show_until(self, end: int) -> str:
        shown, self._shown = self._text[self._shown : end], max(self._shown, end)
        return shown
