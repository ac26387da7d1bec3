"""How are secrets kept out of events, outputs and prompts?"""

from collections.abc import Iterable
from typing import TypeVar

from oh_kernel.events import Event, event_from_json
from oh_kernel.security.masked_json import hidden_in_json
from oh_kernel.sessions.masking import HIDDEN, Forms, StreamMask

__all__ = ["HIDDEN", "SecretMask"]

AnyEvent = TypeVar("AnyEvent", bound=Event)


class SecretMask:
    """Replaces every known secret value, and what it is encoded as, by `<secret-hidden>`.

    Values are added on the agent thread; any thread may have text masked.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._forms: Forms | None = None
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Know one more value."""
        if value not in self._values:
            self._values.add(value)
            self._forms = None

    @property
    def forms(self) -> Forms:
        """All that is hidden by now."""
        forms = self._forms
        if forms is None:
            forms = self._forms = Forms(frozenset(self._values))
        return forms

    def __call__(self, text: str) -> str:
        return self.forms.hide(text) if text else text

    def event(self, event: Event) -> Event:
        """`event` without secrets; itself when it holds none."""
        if not self.forms:
            return event
        masked = hidden_in_json(event.to_json(), self.forms)
        return event if masked is None else event_from_json(masked)

    def stream(self) -> StreamMask:
        """For text that comes in pieces."""
        return StreamMask(self.forms)
