"""What does a text file say, and how is a part of it changed while every other byte stays?

The engine under the skills and the file tools. A `FileText` holds the bytes of a file beside its
text with `\\n` endings. An edit works on that text; only the bytes of the part that really differs
are made anew, in the encoding of the file and with the line endings of the neighbourhood:

    >>> file = FileText.from_bytes("a.txt", b"\\xef\\xbb\\xbfone\\r\\ntwo\\r\\n")
    >>> file.replaced("one\\ntwo", "one\\n2").data
    b'\\xef\\xbb\\xbfone\\r\\n2\\r\\n'
"""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Self

from agentskills.charset import Charset, detect
from agentskills.comparing import shared_beginning, shared_end
from agentskills.disk import MAX_FILE_BYTES, create_bytes, read_bytes, replace_bytes
from agentskills.errors import BinaryFile, EditingError, LineOutOfRange, ManyMatches, NoMatch
from agentskills.lines import Lines

_MOST_MATCHES = 10_000  # that are looked for; an error that names more helps nobody
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class FileText:
    """One state of a text file: its bytes, and what they say."""

    path: Path
    data: bytes
    charset: Charset

    @classmethod
    def from_bytes(cls, path: str | os.PathLike[str], data: bytes) -> Self:
        """Bytes read as text; BinaryFile when they are none."""
        charset = detect(data)
        if charset is None:
            raise BinaryFile(path, len(data))
        return cls(Path(path), data, charset)

    @cached_property
    def text(self) -> str:
        """The whole text with `\\n` endings; a byte without meaning is a lone surrogate."""
        return self._with_lf(self._decoded)

    @cached_property
    def lines(self) -> Lines:
        """The lines without their endings; a final newline begins no further line."""
        return Lines(self.text)

    def replaced(self, old: str, new: str) -> Self:
        """The file with the one occurrence of `old` replaced; NoMatch or ManyMatches otherwise."""
        old = self._with_lf(old)
        starts = list(islice(self._occurrences(old), _MOST_MATCHES))
        if not starts:
            raise NoMatch
        if len(starts) > 1:
            raise ManyMatches(self._line_numbers(starts))
        return self.spliced(starts[0], starts[0] + len(old), new)

    def inserted(self, after_line: int, new: str) -> Self:
        """The file with `new` as lines of their own after a line (0: at the top)."""
        last = len(self.lines)
        if not 0 <= after_line <= last:
            raise LineOutOfRange(after_line, 0, last)
        new = self._with_lf(new)
        if not new.endswith("\n"):
            new += "\n"
        if after_line == last and self.text and not self.text.endswith("\n"):
            # The file goes on to end without a newline, unless its last line would be blank.
            unended = new[:-1]
            new = "\n" + (unended if unended.rpartition("\n")[2] else new)
        start = self.lines.start(after_line)
        return self.spliced(start, start, new)

    def spliced(self, start: int, end: int, new: str) -> Self:
        """The file with `text[start:end]` replaced by `new`."""
        return self.spliced_all([(start, end, new)])

    def spliced_all(self, parts: Iterable[tuple[int, int, str]]) -> Self:
        """The file with several stretches of its text replaced; they are given in rising order.

        New lines end as those beside them did before, whatever else is replaced.
        """
        texts: list[str] = []
        pieces = [self.charset.mark]
        at, offset = 0, len(self.charset.mark)
        for start, end, new in [*parts, (len(self.text), len(self.text), "")]:
            first, stop, new = self._in_own_endings(start, end, new)
            kept, replaced = self._decoded[at:first], self._decoded[first:stop]
            width = self.charset.width(kept)
            texts += [kept, new]
            pieces += [self.data[offset : offset + width], self.charset.encode(new)]
            at, offset = stop, offset + width + self.charset.width(replaced)
        edited = replace(self, data=b"".join(pieces))
        if edited.data.isascii() and not self.charset.is_wide:
            return edited  # no byte can mean anything else beside others
        # Charsets with shift states, or stray bytes that now meet: better no edit than a wrong one.
        if edited._decoded != "".join(texts):
            raise EditingError(
                f"In {self.charset.name} this edit would alter the text beside it. "
                "Nothing was changed."
            )
        return edited

    def line_number(self, index: int) -> int:
        """The line, counted from 1, that holds `text[index]`."""
        return self.lines.number(index)

    def difference(self, other: "FileText") -> int:
        """The index from which on the two texts differ."""
        return shared_beginning(self.text, other.text)

    def place_of(self, old: str) -> int:
        """The index where the first occurrence of `old` begins; 0 when there is none."""
        return max(0, self.text.find(self._with_lf(old)))

    def line_of(self, old: str) -> int:
        """The line, counted from 1, where the first occurrence of `old` begins."""
        return self.line_number(self.place_of(old))

    @cached_property
    def _decoded(self) -> str:
        return self.charset.decode(self.data)

    @cached_property
    def _has_cr_endings(self) -> bool:
        """Whether lines end as on the old Macintosh; where `\\n` is, a lone `\\r` ends nothing."""
        return "\r" in self._decoded and "\n" not in self._decoded

    def _with_lf(self, text: str) -> str:
        if "\r" not in text:  # told much faster than where two characters stand together
            return text
        text = text.replace("\r\n", "\n")
        return text.replace("\r", "\n") if self._has_cr_endings else text

    def _occurrences(self, old: str) -> Iterator[int]:
        # Overlapping ones count too: which of them is meant is just as unclear.
        start = self.text.find(old)
        while start != -1:
            yield start
            start = self.text.find(old, start + 1)

    def _line_numbers(self, indices: list[int]) -> list[int]:
        """The lines of ascending indices, each once; every stretch of text is counted once."""
        between = [self.text.count("\n", start, end) for start, end in pairwise([0, *indices])]
        return sorted({1 + count for count in accumulate(between)})

    def _narrowed(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """The smallest span that differs, so that equal text keeps its bytes and endings."""
        old = self.text[start:end]
        shared = shared_beginning(old, new)
        old, new = old[shared:], new[shared:]
        trailing = shared_end(old, new)
        return start + shared, end - trailing, new[: len(new) - trailing]

    def _in_own_endings(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """The same replacement of the text as it is in the file, with the endings it has there."""
        if "\0" in new:
            raise EditingError("A NUL character would make the file binary. Nothing was changed.")
        start, end, new = self._narrowed(start, end, self._with_lf(new))
        new = new.replace("\n", self._ending_at(start))
        return self._decoded_index(start), self._decoded_index(end), new

    @cached_property
    def _crlf(self) -> list[int]:
        """Where in `text` the newlines are that take two characters in the file."""
        found = re.finditer("\r\n", self._decoded) if "\r" in self._decoded else ()
        return [match.start() - before for before, match in enumerate(found)]

    def _decoded_index(self, index: int) -> int:
        """Where a position of `text` is in the text with its own line endings."""
        return index + bisect_left(self._crlf, index)

    def _ending_at(self, index: int) -> str:
        """The ending of the line at `index`, or of the one before when it has none."""
        if self._has_cr_endings:
            return "\r"
        if not self._crlf:
            return "\n"
        newline = self.text.find("\n", index)
        if newline == -1:
            newline = self.text.rfind("\n")
        at = bisect_left(self._crlf, newline)
        return "\r\n" if self._crlf[at : at + 1] == [newline] else "\n"


def read_file(path: str | os.PathLike[str], *, max_bytes: int = MAX_FILE_BYTES) -> FileText:
    """The text file at `path`; one of the EditingErrors when there is none to read."""
    return FileText.from_bytes(path, read_bytes(path, max_bytes=max_bytes))


def save(edited: FileText, *, was: FileText) -> None:
    """Write an edit to the disk, unless the file changed since `was` was read."""
    replace_bytes(edited.path, edited.data, was=was.data)


def new_file(path: str | os.PathLike[str], text: str) -> FileText:
    """What a file of this text will be: UTF-8, the text exactly as given. Nothing is written."""
    return FileText.from_bytes(path, Charset("utf-8").encode(text))


def create_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a new file; FileExists when there is one."""
    create_bytes(path, new_file(path, text).data)


def printable(text: str) -> str:
    """The text with bytes that had no meaning, and NUL, written as `\\xNN`, fit for any encoder."""
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    if text.isascii():  # by far the commonest, and told at once
        return text
    return _LONE_SURROGATE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
