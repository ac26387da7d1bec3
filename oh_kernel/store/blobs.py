"""How is a long text that many events repeat stored only once, and put back byte for byte?

Each edit of a file carries the file before and after, and the next edit carries the latter again.
The inside of those JSON strings is cut out of the event's text, exactly as it is escaped there,
and stored under its hash. What stays is still valid JSON (`"old_content":""`), and serving is
concatenation.
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import NamedTuple

MIN_BYTES = 200  # below this the hash and the place cost about what they save

_KEY = re.compile(rb'[{,]\s*"(?:old|new)_content"\s*:\s*"')
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*')


class Piece(NamedTuple):
    """A text that was cut out: its hash, and the place in what stayed where it belongs."""

    offset: int
    hash: bytes


def cut(text: bytes) -> tuple[bytes, list[Piece], dict[bytes, bytes]]:
    """What stays of an event's JSON, the pieces cut out, and their texts by hash.

    The key cannot be met inside a JSON string: a quote there has a backslash before it, whereas
    the pattern asks for `{`, `,` or white space.
    """
    kept: list[bytes] = []
    pieces: list[Piece] = []
    texts: dict[bytes, bytes] = {}
    end = offset = 0
    if b'old_content"' not in text and b'new_content"' not in text:
        return text, pieces, texts
    for start, stop in _long_strings(text):
        kept.append(text[end:start])
        offset += start - end
        inside = text[start:stop]
        pieces.append(Piece(offset, digest(inside)))
        texts[pieces[-1].hash] = inside
        end = stop
    return b"".join([*kept, text[end:]]), pieces, texts


def join(text: bytes, pieces: list[Piece], find: Callable[[bytes], bytes]) -> bytes:
    """The event's JSON as it was; `find` gives the text of a hash."""
    parts: list[bytes] = []
    end = 0
    for piece in pieces:
        parts += [text[end : piece.offset], find(piece.hash)]
        end = piece.offset
    return b"".join([*parts, text[end:]])


def digest(text: bytes) -> bytes:
    """The hash under which a text is stored."""
    return hashlib.sha256(text).digest()


def pieces_to_json(pieces: list[Piece]) -> str | None:
    """How the row of an event remembers its pieces; most have none."""
    return json.dumps([[piece.offset, piece.hash.hex()] for piece in pieces]) if pieces else None


def pieces_from_json(text: str | None) -> list[Piece]:
    """The inverse of `pieces_to_json`."""
    return [Piece(offset, bytes.fromhex(name)) for offset, name in json.loads(text or "[]")]


def _long_strings(text: bytes) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    position = 0
    while key := _KEY.search(text, position):
        inside = _INSIDE.match(text, key.end())
        position = inside.end() if inside else key.end()
        if position - key.end() >= MIN_BYTES:
            spans.append((key.end(), position))
    return spans
