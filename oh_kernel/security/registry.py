"""Which secrets does a conversation have, and what are their values right now?"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oh_kernel.errors import SettingsError
from oh_kernel.security.secret_sources import (
    EnvironmentSecret,
    LookupFailed,
    LookupSecret,
    SecretSource,
    SecretValue,
    StaticSecret,
    looked_up,
    recorded,
    require_name,
    restored,
    source_of,
)
from oh_kernel.security.secrets import HIDDEN, SecretMask
from oh_kernel.sessions.encodings import SHORTEST, is_short
from oh_kernel.sessions.masking import Forms

BACK_OFF_S = 60.0
STATE_KEY = "secret_registry"

_TOO_SHORT = (
    "The secret {name} has fewer than {shortest} characters: it is not masked, as it would be "
    "found inside other text."
)
_PART_OF_MASK = "The secret {name} is not masked: its value is a part of {hidden}."
_A_WORD = (
    "The value of the secret {name} looks like an ordinary word: it is masked wherever it stands."
)


class SecretWarning(UserWarning):
    """A secret cannot be hidden as well as it should be."""


class SecretRegistry:
    """The secrets of a conversation, by name, as the terminal is handed them.

    Used on the agent thread. A value is known to `mask` from the moment it is known here.
    """

    def __init__(self, mask: SecretMask, clock: Callable[[], float] = time.monotonic) -> None:
        self._mask = mask
        self._clock = clock
        self._sources: dict[str, SecretSource] = {}
        self._values: dict[str, str] = {}
        self._failed: dict[str, tuple[float, str]] = {}  # until when not to try again, and why
        self._remarks: dict[str, str] = {}

    def update(self, secrets: Mapping[str, SecretValue | None]) -> None:
        """Add or replace secrets; None forgets one, which stays masked where it is known."""
        for name, value in secrets.items():
            require_name(name)
            self._forget(name)
            if value is not None:
                self._add(name, source_of(value))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of how well the values can be hidden."""
        return tuple(self._remarks.values())

    @property
    def missing(self) -> list[str]:
        """The names whose values are not here: not kept over a restart, or a variable not set."""
        kinds = (StaticSecret, EnvironmentSecret)
        return [n for n, one in self._sources.items() if isinstance(one, kinds) and not one.value]

    @property
    def described(self) -> dict[str, str]:
        """What each secret is for, by name; empty where nobody said."""
        return {name: source.description or "" for name, source in self._sources.items()}

    @property
    def sources(self) -> dict[str, SecretSource]:
        """Where the values are to be had, for another conversation with the same secrets."""
        return dict(self._sources)

    @property
    def origins(self) -> dict[str, str]:
        """Where each value comes from, by name; never the value."""
        return {name: source.origin for name, source in self._sources.items()}

    @property
    def record(self) -> dict[str, Any]:
        """What is stored of it: no values."""
        sources = {name: recorded(source) for name, source in self._sources.items()}
        return {"secret_sources": sources}

    def restore(self, record: object) -> None:
        """Take over the names of a `record`, except for those that are here already."""
        sources = record.get("secret_sources", {}) if isinstance(record, dict) else {}
        for name, data in sources.items():
            if name not in self._sources and isinstance(data, dict):
                self._add(name, restored(data))

    @property
    def forms(self) -> Forms:
        """All that is to be hidden, other secrets included."""
        return self._mask.forms

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    async def fetch(self, names: frozenset[str]) -> list[str]:
        """Have the values of those of `names` that are secrets; what is to be told of failures.

        One that failed is not tried again for a minute.
        """
        wanted = [name for name in self._sources if name in names]
        failures = await asyncio.gather(*map(self._fetch, wanted))
        return [failure for failure in failures if failure]

    async def _fetch(self, name: str) -> str:
        source = self._sources[name]
        until, why = self._failed.get(name, (0.0, ""))
        if name in self._values and not isinstance(source, LookupSecret):
            return ""
        if self._clock() >= until:
            try:
                self._take(name, await looked_up(source))
                return ""
            except LookupFailed as failure:
                why = str(failure)
                self._failed[name] = self._clock() + BACK_OFF_S, why
                self._values.pop(name, None)
        return (
            f"The secret {name} is not set: {self._mask(why)}. It is tried again {BACK_OFF_S:.0f} "
            "s after it failed."
        )

    def _add(self, name: str, source: SecretSource) -> None:
        self._sources[name] = source
        if isinstance(source, LookupSecret):
            for sent in source.headers.values():
                for part in sent.split():  # `Bearer TOKEN`: the token is as much of a secret
                    self._mask.add(part)
                self._mask.add(sent)
        if isinstance(source, StaticSecret) and source.value is not None:
            value = source.value.get_secret_value()
            if not value or "\0" in value:
                raise SettingsError(
                    f"The secret {name} has no value that a variable can hold.",
                    remedy="Give it some text, without NUL characters.",
                )
            self._take(name, value)
        if isinstance(source, EnvironmentSecret) and source.value:
            self._take(name, source.value)  # so that it is hidden before it is asked for

    def _take(self, name: str, value: str) -> None:
        self._values[name] = value
        self._failed.pop(name, None)
        self._mask.add(value)
        if remark := remark_on(name, value):
            self._remarks[name] = remark

    def _forget(self, name: str) -> None:
        for known in (self._sources, self._values, self._failed, self._remarks):
            known.pop(name, None)


def remark_on(name: str, value: str) -> str:
    """What a person should know of how well this value can be hidden; empty if well."""
    if is_short(value):
        return _TOO_SHORT.format(name=name, shortest=SHORTEST)
    if value in HIDDEN:
        return _PART_OF_MASK.format(name=name, hidden=HIDDEN)
    return _A_WORD.format(name=name) if value.isalpha() else ""
