"""How is a secret hidden in text that comes in pieces?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

HIDDEN = "<secret-hidden>"
SHORTEST = 6
"""Shorter values are not masked: they would be found inside other text."""


def forms_of(value: str) -> set[str]:
    """What to look for in order to hide `value`: itself, also as it looks inside a JSON string."""
    if len(value) < SHORTEST:
        return set()
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


class StreamMask:
    """Replaces the values of secrets by `<secret-hidden>`, those that pieces cut in two as well.

    What may be the beginning of a value is held back until more has come.

        >>> mask = StreamMask(["hunter22"])
        >>> mask.feed("password: hun"), mask.feed("ter22, hun"), mask.flush()
        ('password: ', '<secret-hidden>, ', 'hun')
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in forms_of(value)}
        # Longest first: a value that contains another is hidden whole.
        self._forms = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._forms)))
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that is certain once `text` has come in."""
        if not self._forms:
            return text
        text = self._held + text
        done, at = [], 0
        for match in self._pattern.finditer(text):
            if self._beginning(text, at) <= match.start():
                break  # it may be the beginning of a longer one
            done += [text[at : match.start()], HIDDEN]
            at = match.end()
        cut = self._beginning(text, at)
        self._held = text[cut:]
        return "".join([*done, text[at:cut]])

    def flush(self) -> str:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return self._pattern.sub(HIDDEN, held) if held else ""

    def _beginning(self, text: str, at: int) -> int:
        """Where, from `at` on, the end of `text` is the beginning of a value; its length if not."""
        return min(_beginning_of(form, text, at) for form in self._forms)


def _beginning_of(form: str, text: str, at: int) -> int:
    start = max(at, len(text) - len(form) + 1)
    while (start := text.find(form[0], start)) >= 0:
        if form.startswith(text[start:]):
            return start
        start += 1
    return len(text)
