"""How are secrets kept out of events, outputs and prompts?"""

from collections.abc import Iterable

from oh_kernel.sessions.masking import HIDDEN, forms_of


class SecretMask:
    """Replaces every known secret value in text by `<secret-hidden>`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Know one more value; also as it looks inside a JSON string."""
        # Longest first: a value that contains another is hidden whole.
        self._values = sorted({*self._values, *forms_of(value)}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text
