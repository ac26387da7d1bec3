"""How is an attribute of a foreign object replaced for a while, and put back exactly?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


@contextmanager
def replaced(target: Any, /, **values: Any) -> Iterator[None]:
    """Set attributes of `target` for the block; one that was not its own goes away afterwards.

    An attribute that somebody else has set meanwhile, on top of ours, is left as it is.
    """
    before = {name: vars(target).get(name, _ABSENT) for name in values}
    for name, value in values.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if vars(target).get(name, _ABSENT) is values[name]:
                _put_back(target, name, value)


def _put_back(target: Any, name: str, value: Any) -> None:
    if value is _ABSENT:
        delattr(target, name)
    else:
        setattr(target, name, value)
