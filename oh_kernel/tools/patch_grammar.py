"""What does a patch ask for, read from its text alone?

*** Begin Patch
*** Add File: notes.md
+every line of the new file
*** Update File: a.py
*** Move to: b.py
@@ def greet():
 a line that stays
-a line that goes
+a line that comes
*** Delete File: old.py
*** End Patch
"""

from collections.abc import Iterator
from dataclasses import dataclass

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
MOVE, END_OF_FILE = "*** Move to:", "*** End of File"

_SECTIONS = (END, UPDATE, DELETE, ADD)
_ENDS_HUNK = ("@@", *_SECTIONS, END_OF_FILE)


class DiffError(Exception):
    """The patch cannot be applied; the text tells the model why."""


@dataclass(frozen=True)
class Chunk:
    """Lines that go and lines that come in their place, `offset` lines into their hunk."""

    offset: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class Hunk:
    """Lines of the file as they are before, and what changes among them.

    `anchor` is a line somewhere above them ("" for none); `at_end` says that the file ends there.
    """

    anchor: str
    before: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    at_end: bool = False


@dataclass(frozen=True)
class AddFile:
    """A new file."""

    path: str
    text: str


@dataclass(frozen=True)
class DeleteFile:
    """A file goes."""

    path: str


@dataclass(frozen=True)
class UpdateFile:
    """A file changes, and perhaps its path."""

    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


Section = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> list[Section]:
    """The sections of a patch in their order; DiffError when it is none."""
    if not text.startswith(BEGIN):
        raise DiffError(f"Invalid patch: must start with '{BEGIN}'")
    lines = _lines(text.strip())
    if len(lines) < 2 or lines[-1] != END:
        raise DiffError("Invalid patch text")
    return _Parser(lines).sections()


def named_paths(text: str) -> list[str]:
    """Every path that a patch names, without reading the rest of it."""
    return [
        path
        for line in _lines(text)
        for keyword in (ADD, DELETE, UPDATE, MOVE)
        if (path := _after(keyword, line))
    ]


class _Parser:
    """Goes down the lines of one patch. The last line is the end of the patch, so that every loop
    below meets it.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 1

    def sections(self) -> list[Section]:
        sections: list[Section] = []
        seen: set[str] = set()
        while self._at < len(self._lines) - 1:
            section = self._section()
            if section.path in seen:
                raise duplicate(section, section.path)
            seen.add(section.path)
            sections.append(section)
        return sections

    def _section(self) -> Section:
        line = self._take()
        if path := _after(UPDATE, line):
            return self._update(path)
        if path := _after(DELETE, line):
            return DeleteFile(path)
        if path := _after(ADD, line):
            return AddFile(path, "\n".join(self._added_lines()))
        raise DiffError(f"Unknown Line: {line}")

    def _added_lines(self) -> Iterator[str]:
        while not self._line.startswith(_SECTIONS):
            line = self._take()
            if not line.startswith("+"):
                raise DiffError(f"Invalid Add File Line: {line}")
            yield line[1:]

    def _update(self, path: str) -> UpdateFile:
        move_to = None
        if self._line.startswith(MOVE):
            move_to = _checked_move(_after(MOVE, self._take()))
        hunks: list[Hunk] = []
        while not self._line.startswith((*_SECTIONS, END_OF_FILE)):
            hunks.append(self._hunk(is_first=not hunks))
        if not hunks and move_to is None:
            raise self._nothing_here()
        return UpdateFile(path, move_to, tuple(hunks))

    def _hunk(self, *, is_first: bool) -> Hunk:
        anchor = ""
        if self._line.rstrip() == "@@" or self._line.startswith("@@ "):
            anchor = self._take()[3:]
        elif not is_first:
            raise DiffError(f"Invalid Line:\n{self._line}")
        body = list(self._hunk_lines())
        at_end = self._line == END_OF_FILE
        if at_end:
            self._at += 1
        elif not body:
            raise self._nothing_here()
        before = tuple(line for sign, line in body if sign != "+")
        return Hunk(anchor, before, tuple(_chunks(body)), at_end)

    def _hunk_lines(self) -> Iterator[tuple[str, str]]:
        """Sign and text of each line; an empty line stands for a blank one that stays."""
        while self._line != "***" and not self._line.startswith(_ENDS_HUNK):
            line = self._line or " "
            if line[0] not in " +-":
                raise DiffError(f"Invalid Line: {line}")
            self._at += 1
            yield line[0], line[1:]

    @property
    def _line(self) -> str:
        return self._lines[self._at]

    def _take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def _nothing_here(self) -> DiffError:
        return DiffError(f"Nothing in this section - index={self._at} {self._line}")


def duplicate(section: Section, path: str) -> DiffError:
    """That two sections are about one file."""
    return refusal(section, f"Duplicate Path: {path}")


def refusal(section: Section, words: str) -> DiffError:
    """That a section cannot be carried out, behind the name of its kind."""
    kind = type(section).__name__.removesuffix("File")
    return DiffError(f"{kind} File Error: {words}")


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _after(keyword: str, line: str) -> str:
    """The path behind a keyword, "" if the line is another; blanks around it are slips."""
    return line.removeprefix(keyword).strip() if line.startswith(f"{keyword} ") else ""


def _checked_move(path: str) -> str:
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise DiffError(
            f"Update File Error: Invalid move path '{path}': must be a relative path without '..' "
            "components"
        )
    return path


def _chunks(body: list[tuple[str, str]]) -> Iterator[Chunk]:
    """The stretches of `-` and `+` lines between lines that stay."""
    removed: list[str] = []
    added: list[str] = []
    offset = 0
    for sign, line in [*body, (" ", "")]:
        if sign == "-":
            removed.append(line)
        elif sign == "+":
            added.append(line)
        else:
            if removed or added:
                yield Chunk(offset, tuple(removed), tuple(added))
            offset += len(removed) + 1
            removed, added = [], []
