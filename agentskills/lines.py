"""Which lines has a long text, told without making all of them?

Newlines are counted block by block, as far as a line that is asked for; only the lines of a slice
become strings. A newline at the end begins no further line.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

_BLOCK = 32 * 1024


class Lines(Sequence[str]):
    """The lines of a text, without their endings.

    >>> lines = Lines("one\\ntwo\\nthree")
    >>> lines[1:], len(lines)
    (['two', 'three'], 3)
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._newlines_before = [0]
        """How many newlines stand before each block that was counted so far."""

    def __len__(self) -> int:
        self._count_to(None)
        ends_open = bool(self._text) and not self._text.endswith("\n")
        return self._newlines_before[-1] + ends_open

    def reaches(self, number: int) -> bool:
        """Whether there are so many lines; cheaper than their whole number."""
        self._count_to(number)
        return self._newlines_before[-1] >= number or len(self) >= number

    def start(self, index: int) -> int:
        """Where the line begins in the text; for the number of lines, where the text ends."""
        self._count_to(index)
        if index == 0:
            return 0
        block = bisect_left(self._newlines_before, index) - 1
        if block == len(self._newlines_before) - 1:
            return len(self._text)
        position = block * _BLOCK
        for _ in range(index - self._newlines_before[block]):
            position = self._text.find("\n", position) + 1
        return position

    def number(self, position: int) -> int:
        """The line, counted from 1, that holds this place of the text."""
        block = position // _BLOCK
        while len(self._newlines_before) <= block:
            self._count_block()
        return 1 + self._newlines_before[block] + self._text.count("\n", block * _BLOCK, position)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._slice(index)
        number = index + len(self) if index < 0 else index
        if number < 0 or not self.reaches(number + 1):
            raise IndexError(f"there is no line with the index {index}")
        return self[number : number + 1][0]

    def __iter__(self) -> Iterator[str]:
        return iter(_split(self._text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        raise TypeError("lines are equal to lists, which cannot be hashed")

    def __repr__(self) -> str:
        return f"Lines({self._text!r})"

    def _slice(self, wanted: slice) -> list[str]:
        start, stop, step = wanted.start or 0, wanted.stop, wanted.step or 1
        if start < 0 or stop is None or stop < 0 or not self.reaches(stop):
            start, stop, step = wanted.indices(len(self))
        if step != 1:
            return list(self)[wanted]
        return _split(self._text[self.start(start) : self.start(max(start, stop))])

    def _count_to(self, newlines: int | None) -> None:
        """Count blocks until there are so many newlines; None: to the end."""
        counts = self._newlines_before
        while newlines is None or counts[-1] < newlines:
            if (len(counts) - 1) * _BLOCK >= len(self._text):
                return
            self._count_block()

    def _count_block(self) -> None:
        at = (len(self._newlines_before) - 1) * _BLOCK
        count = self._text.count("\n", at, at + _BLOCK)
        self._newlines_before.append(self._newlines_before[-1] + count)


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
