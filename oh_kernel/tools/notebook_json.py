"""Where in the text of a notebook file does each cell, and each part of a cell, begin and end?

The values are read by Python's own JSON parser; only the outer two levels (the notebook, its cells)
are walked here, so that a part can be replaced while every other character of the file stays.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"[ \t\n\r]*")
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class Member:
    """One member of an object: its key begins at `key`, its value is `text[start:end]`."""

    key: int
    start: int
    end: int
    value: Any


@dataclass(frozen=True)
class Element:
    """One element of the list of cells, `text[start:end]`; `members` is empty for a non-object."""

    start: int
    end: int
    value: Any
    members: Mapping[str, Member]


@dataclass(frozen=True)
class Outline:
    """The members of the outermost object, and the cells one by one (none without such a list)."""

    members: Mapping[str, Member]
    cells: tuple[Element, ...]

    @property
    def value(self) -> dict[str, Any]:
        """What `json.loads` gives for the text."""
        return {name: member.value for name, member in self.members.items()}


def outline(text: str) -> Outline:
    """The outline of a JSON object; json.JSONDecodeError, naming the place, where it is broken."""
    cells: list[Element] = []

    def read_member(key: str, at: int) -> tuple[Any, int]:
        if key != "cells":
            return _value(text, at)
        cells.clear()  # of a repeated key the last counts, as in json.loads
        if text[at : at + 1] != "[":
            return _value(text, at)
        cells[:], end = _elements(text, at)
        return [cell.value for cell in cells], end

    start = _skipped(text, 0)
    if text[start : start + 1] != "{":
        raise json.JSONDecodeError("A notebook must be a JSON object, expecting '{'", text, start)
    members, end = _members(text, start, read_member)
    end = _skipped(text, end)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return Outline(members, tuple(cells))


def spans_of_list(text: str, at: int) -> list[tuple[int, int]]:
    """Where each element of the list that begins at a place begins and ends."""
    return [(one.start, one.end) for one in _elements(text, at)[0]]


def gap_before(text: str, at: int) -> str:
    """The blanks and line ends right before a place."""
    start = at
    while start and text[start - 1] in " \t\n\r":
        start -= 1
    return text[start:at]


def _members(
    text: str, at: int, read: Callable[[str, int], tuple[Any, int]]
) -> tuple[dict[str, Member], int]:
    members: dict[str, Member] = {}
    at = _skipped(text, at + 1)
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        start = at
        if text[at : at + 1] != '"':
            message = "Expecting property name enclosed in double quotes"
            raise json.JSONDecodeError(message, text, at)
        key, at = _value(text, at)
        at = _skipped(text, _past(text, _skipped(text, at), ":"))
        value, end = read(key, at)
        members[key] = Member(start, at, end, value)
        at = _skipped(text, end)
        if text[at : at + 1] == "}":
            return members, at + 1
        at = _skipped(text, _past(text, at, ","))


def _elements(text: str, at: int) -> tuple[list[Element], int]:
    elements: list[Element] = []
    at = _skipped(text, at + 1)
    if text[at : at + 1] == "]":
        return elements, at + 1
    while True:
        element = _element(text, at)
        elements.append(element)
        at = _skipped(text, element.end)
        if text[at : at + 1] == "]":
            return elements, at + 1
        at = _skipped(text, _past(text, at, ","))


def _element(text: str, at: int) -> Element:
    if text[at : at + 1] != "{":
        value, end = _value(text, at)
        return Element(at, end, value, {})
    members, end = _members(text, at, lambda _, start: _value(text, start))
    return Element(at, end, {name: one.value for name, one in members.items()}, members)


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decoder.raw_decode(text, at)
    except RecursionError:
        raise json.JSONDecodeError("Too deeply nested", text, at) from None


def _past(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r} delimiter", text, at)
    return at + 1


def _skipped(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None  # it matches the empty text too
    return match.end()
