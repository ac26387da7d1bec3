"""Which lines of a file match? For the process that searches: it may take as long as it likes.

A file is read in blocks of whole lines. It is UTF-8, or what its byte order mark says; one with a
NUL is binary and has no lines.
"""

import codecs
from collections.abc import Iterable, Iterator
from io import FileIO
from itertools import chain
from typing import NamedTuple

from oh_kernel.tools.search.dialect import Expression

BLOCK_BYTES = 8 * 1024 * 1024
_SMALL = 64 * 1024
MAX_LINE_CHARS = 500
"""Characters that are shown of one line."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Line(NamedTuple):
    """A line that matches, or one beside it."""

    number: int
    text: str
    is_match: bool


class Block(NamedTuple):
    """Some lines of a file, without the last line break. Stray bytes are lone surrogates."""

    text: str
    has_stray_bytes: bool


class Span(NamedTuple):
    """A line that matches: where it begins, where the match in it does, and where it ends."""

    start: int
    match: int
    end: int


class LineSearch:
    """Looks for an expression in files; OSError when one cannot be read."""

    def __init__(self, expression: Expression, *, case_sensitive: bool) -> None:
        self._regex = expression.compiled(case_sensitive=case_sensitive)
        self._strict = expression.compiled(case_sensitive=case_sensitive, strict=True)
        self._literal = expression.literal

    def has_match(self, path: str) -> bool:
        """Whether any line of the file matches."""
        return any(True for block in blocks(path) for _ in self._spans(block))

    def count(self, path: str) -> int:
        """How many lines match."""
        return sum(1 for block in blocks(path) for _ in self._spans(block))

    def lines(self, path: str, context: int) -> Iterator[Line]:
        """The lines that match, and up to `context` lines before and after each."""
        before = 0
        for block in blocks(path):
            yield from _shown(block.text, self._spans(block), before, context)
            before += block.text.count("\n") + 1

    def _spans(self, block: Block) -> Iterator[Span]:
        text = block.text
        if self._literal and text.isascii() and self._literal not in text.lower():
            return  # ten times as fast as the expression
        search = (self._strict if block.has_stray_bytes else self._regex).search
        at = 0
        while at <= len(text) and (found := search(text, at)):
            start = text.rfind("\n", 0, found.start()) + 1
            end = text.find("\n", found.end())
            end = len(text) if end < 0 else end
            yield Span(start, found.start(), end)
            at = end + 1


def blocks(path: str) -> Iterator[Block]:
    """The text of a file, block by block; nothing of a binary one.

    A NUL in the first block makes the file binary; one further on ends the text.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of Path.open
        data = file.read(_SMALL)
        if len(data) < _SMALL and data[:2] not in _UTF16:  # nearly all files
            data = data.removeprefix(codecs.BOM_UTF8)
            if data and b"\0" not in data:
                yield _block(data)
            return
        data += file.read(BLOCK_BYTES - _SMALL)
        for lines in _whole_lines(_until_nul(_utf8(data, file))):
            yield _block(lines)


def _block(data: bytes) -> Block:
    data = data.removesuffix(b"\n")
    try:
        return Block(data.decode(), False)
    except UnicodeDecodeError:
        return Block(data.decode("utf-8", "surrogateescape"), True)


def _utf8(data: bytes, file: FileIO) -> Iterator[bytes]:
    """The file, which begins with `data`, as it would be in UTF-8, without a byte order mark."""
    encoding = _UTF16.get(data[:2])
    if encoding is None:
        data = data.removeprefix(codecs.BOM_UTF8)
        while data:
            yield data
            data = file.read(BLOCK_BYTES)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    data = data[2:]
    while data:
        yield decoder.decode(data).encode()
        data = file.read(BLOCK_BYTES)
    yield decoder.decode(b"", True).encode()


def _until_nul(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for index, piece in enumerate(pieces):
        if b"\0" not in piece:
            yield piece
            continue
        if index:
            yield piece[: piece.index(b"\0")]
        return


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, cut behind line breaks only."""
    begun: list[bytes] = []
    piece = next(pieces, b"")
    for following in chain(pieces, [b""]):
        cut = piece.rfind(b"\n") + 1 if following else len(piece)
        if cut:
            yield b"".join((*begun, piece[:cut]))
            begun = []
        begun.append(piece[cut:])
        piece = following


def _shown(text: str, spans: Iterator[Span], before: int, context: int) -> Iterator[Line]:
    matches: dict[int, int] = {}  # index of a line: where its match begins
    index = at = 0
    for span in spans:
        index += text.count("\n", at, span.start)
        at = span.start
        matches[index] = span.match - span.start
    if not matches:
        return
    lines = text.split("\n")
    near = {i for m in matches for i in range(m - context, m + context + 1)}
    for i in sorted(near & set(range(len(lines)))) if context else matches:
        shown = _shortened(lines[i].removesuffix("\r"), matches.get(i, 0))
        yield Line(before + i + 1, shown, i in matches)


def _shortened(line: str, column: int) -> str:
    """The part of a long line around what matters in it."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(column - MAX_LINE_CHARS // 4, len(line) - MAX_LINE_CHARS))
    end = start + MAX_LINE_CHARS
    left, right = start, len(line) - end
    return (
        (f"[{left} characters] " if left else "")
        + line[start:end]
        + (f" [{right} characters]" if right else "")
    )
