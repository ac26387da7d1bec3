"""How are tables of names written so that one can read them?"""

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def names(text: str) -> tuple[str, ...]:
    """The words of a block of text.

    >>> names("cat head tail")
    ('cat', 'head', 'tail')
    """
    return tuple(text.split())


def by_name(rows: Mapping[str, Value]) -> dict[str, Value]:
    """A table with a row for each word of a key.

    >>> by_name({"yum dnf": "packages"})
    {'yum': 'packages', 'dnf': 'packages'}
    """
    return {name: value for key, value in rows.items() for name in key.split()}
