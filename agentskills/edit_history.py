"""What did each of the last edits change in a file, so that it can be taken back?

An edit is kept as the stretch of bytes that it replaced, with a digest of the whole content before
and after: taking it back needs the content after it, which is in the file, or else it is refused.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from agentskills.comparing import shared_beginning, shared_end

DEPTH = 10
"""Edits of one file that can be taken back."""


def digest(content: bytes | None) -> bytes | None:
    """What tells one content of a file from another."""
    return None if content is None else hashlib.sha256(content).digest()


@dataclass(frozen=True)
class Edit:
    """One edit of one file. A digest of None: there is no file then."""

    before: bytes | None
    after: bytes | None
    start: int
    removed: bytes
    added: bytes
    mode: int | None = None
    """The permissions of a file that was removed."""

    @classmethod
    def between(
        cls,
        old: bytes | None,
        new: bytes | None,
        mode: int | None = None,
        *,
        digest: Callable[[bytes | None], bytes | None] = digest,
    ) -> Self:
        """The edit that leads from one content to another."""
        a, b = old or b"", new or b""
        start = shared_beginning(a, b)
        # Where text is repeated, beginning and end would overlap.
        end = min(shared_end(a, b), min(len(a), len(b)) - start)
        removed, added = a[start : len(a) - end], b[start : len(b) - end]
        return cls(digest(old), digest(new), start, removed, added, mode)

    def content_before(self, content: bytes | None) -> bytes | None:
        """What was in the file before this edit; `content` is what the edit left there."""
        if self.before is None:
            return None
        content = content or b""
        end = self.start + len(self.added)
        return content[: self.start] + self.removed + content[end:]


@dataclass(frozen=True)
class Kept:
    """An edit in a history. `done` is False until the file is known to be written."""

    number: int
    edit: Edit
    done: bool


class History(Protocol):
    """The last edits of each file, by the path that it really has."""

    def add(self, path: Path, edit: Edit) -> int:
        """Keep an edit that is about to be made, durably; gives its number."""

    def confirm(self, path: Path, number: int) -> None:
        """The edit was made. The oldest beyond DEPTH are forgotten."""

    def drop(self, path: Path, number: int) -> None:
        """Forget an edit that was not made or was taken back."""

    def last(self, path: Path) -> Kept | None:
        """The newest edit of a file."""


class EditHistory:
    """A history that lives as long as its process."""

    def __init__(self) -> None:
        self._kept: defaultdict[Path, list[Kept]] = defaultdict(list)
        self._count = 0

    def add(self, path: Path, edit: Edit) -> int:
        self._count += 1
        self._kept[path].append(Kept(self._count, edit, done=False))
        return self._count

    def confirm(self, path: Path, number: int) -> None:
        confirmed = [
            Kept(kept.number, kept.edit, kept.done or kept.number == number)
            for kept in self._kept[path]
        ]
        self._kept[path] = confirmed[-DEPTH:]

    def drop(self, path: Path, number: int) -> None:
        self._kept[path] = [kept for kept in self._kept[path] if kept.number != number]

    def last(self, path: Path) -> Kept | None:
        kept = self._kept.get(path)
        return kept[-1] if kept else None
