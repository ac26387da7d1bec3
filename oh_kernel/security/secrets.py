"""How are secrets kept out of events, outputs and prompts?"""

import json
from collections.abc import Iterable

HIDDEN = "<secret-hidden>"
SHORTEST = 6
"""Shorter values are not masked: they would be found inside other text."""


class SecretMask:
    """Replaces every known secret value in text by `<secret-hidden>`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Know one more value; also as it looks inside a JSON string."""
        if len(value) < SHORTEST:
            return
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        # Longest first: a value that contains another is hidden whole.
        self._values = sorted({*self._values, *forms}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text
