"""How much do two long texts, or the contents of two files, share at their ends?

Blocks are compared before places: comparing slices is fast, and small ones stay in the cache.
"""

from typing import TypeVar

_BLOCK = 32 * 1024

T = TypeVar("T", str, bytes)


def shared_beginning(a: T, b: T) -> int:
    """How many characters, or bytes, both begin with."""
    at, longest = 0, min(len(a), len(b))
    while at < longest and a[at : at + _BLOCK] == b[at : at + _BLOCK]:
        at += _BLOCK
    return min(at, longest) + _bisected(a[at : at + _BLOCK], b[at : at + _BLOCK])


def shared_end(a: T, b: T) -> int:
    """How many characters, or bytes, both end with."""
    at, longest = 0, min(len(a), len(b))
    while at < longest and _from_end(a, at) == _from_end(b, at):
        at += _BLOCK
    return min(at, longest) + _bisected(_from_end(a, at)[::-1], _from_end(b, at)[::-1])


def _from_end(text: T, at: int) -> T:
    end = max(0, len(text) - at)
    return text[max(0, end - _BLOCK) : end]


def _bisected(a: T, b: T) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
