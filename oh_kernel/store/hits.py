"""Where in a text do words stand, in whatever case, and what is shown around them?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

BEFORE, SHOWN = 40, 140  # characters in front of the first hit, and in all

Span = tuple[int, int]


class Piece(NamedTuple):
    """Some of a snippet; `is_hit` when it is what was looked for."""

    text: str
    is_hit: bool


@dataclass(frozen=True)
class Hit:
    """An event that says what was looked for. `turn` counts the user's messages, from 1."""

    conversation_id: str
    title: str
    timestamp: str
    turn: int
    snippet: tuple[Piece, ...]


def fold(text: str) -> str:
    """Text as it is compared. FTS5 reads no further than a zero character."""
    return text.casefold().replace("\0", " ")


def spans_of(text: str, words: Sequence[str]) -> list[Span] | None:
    """Where each of the folded words stands in the text; None unless all of them do."""
    folded = fold(text)
    if any(word not in folded for word in words):
        return None
    spans = sorted({span for word in words for span in _occurrences(folded, word)})
    if len(folded) == len(text):
        return spans
    # Folded, some characters become two (ß, ss): which one stands where?
    place = [at for at, character in enumerate(text) for _ in fold(character)]
    return [(place[start], place[end - 1] + 1) for start, end in spans]


def snippet(text: str, spans: Sequence[Span]) -> tuple[Piece, ...]:
    """The text around the first hit on one line, in pieces.

    >>> "".join(f"[{p.text}]" if p.is_hit else p.text for p in snippet("so it is", [(3, 5)]))
    'so [it] is'
    """
    start = max(spans[0][0] - BEFORE, 0)
    stop = min(max(start + SHOWN, spans[0][1]), len(text))
    pieces = [Piece("…" if start else "", False)]
    at = start
    for begin, end in spans:
        if begin < at or end > stop:
            continue
        pieces += [Piece(text[at:begin], False), Piece(text[begin:end], True)]
        at = end
    pieces += [Piece(text[at:stop], False), Piece("…" if stop < len(text) else "", False)]
    return tuple(Piece(_on_one_line(p.text), p.is_hit) for p in pieces if p.text)


def _occurrences(folded: str, word: str) -> list[Span]:
    found = []
    at = folded.find(word)
    while at >= 0:
        found.append((at, at + len(word)))
        at = folded.find(word, at + len(word))
    return found


def _on_one_line(text: str) -> str:
    return "".join(" " if character.isspace() else character for character in text)
