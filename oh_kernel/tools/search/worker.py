"""The process that searches files with Python's `re`: where ripgrep is not there, or cannot.

It is a process of its own because an expression may take for ever in the middle of one call, which
only the end of its process can stop. A job is read from standard input as JSON; each thing found
goes out at once, as one line of JSON, so that what was found before a deadline is kept.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from oh_kernel.tools.search.dialect import read
from oh_kernel.tools.search.globs import Hidden, PathPattern
from oh_kernel.tools.search.lines import LineSearch
from oh_kernel.tools.search.tree import Tree

Kind = Literal["file", "count", "lines", "unreadable"]


@dataclass(frozen=True)
class Job:
    """What to look for, and where: in the files below `root`, or in `files` alone."""

    regex: str
    case_sensitive: bool = False
    output: Literal["files", "counts", "lines"] = "files"
    context: int = 0
    files: tuple[str, ...] = ()
    root: str | None = None
    include: str | None = None
    everything: bool = False
    """Hidden and ignored files too."""

    def to_json(self) -> str:
        """The job as the process reads it."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Item:
    """One thing found: in which file, and how many or which lines."""

    kind: Kind
    path: str
    what: Any = None


def main() -> None:
    """Carry out the job on standard input."""
    job = Job(**json.load(sys.stdin))
    for item in carry_out(job):
        sys.stdout.write(json.dumps((item.kind, item.path, item.what)) + "\n")
        if job.output == "files":
            sys.stdout.flush()


def items(output: bytes) -> list[Item]:
    """What the process has written, up to the last complete line."""
    return [Item(*json.loads(line)) for line in output.split(b"\n")[:-1]]


def carry_out(job: Job) -> Iterator[Item]:
    """Look through the files."""
    search = LineSearch(read(job.regex), case_sensitive=job.case_sensitive)
    unreadable: list[str] = []
    for path in job.files or _files(job, unreadable):
        try:
            yield from _found(search, job, path)
        except FileNotFoundError:
            continue  # it has gone meanwhile
        except OSError:
            unreadable.append(path)
    for path in unreadable:
        yield Item("unreadable", path)


def included(include: str | None, *, everything: bool = False) -> PathPattern:
    """The files that `include` asks for; naming files, it asks for those with a dot first too."""
    hidden = Hidden(files=everything or include is not None, folders=everything)
    return PathPattern.parse("**" if include is None else include, hidden=hidden)


def _found(search: LineSearch, job: Job, path: str) -> Iterator[Item]:
    match job.output:
        case "files":
            if search.has_match(path):
                yield Item("file", path)
        case "counts":
            yield Item("count", path, search.count(path))
        case "lines":
            for line in search.lines(path, job.context):
                yield Item("lines", path, line)


def _files(job: Job, unreadable: list[str]) -> Iterator[str]:
    assert job.root is not None
    tree = Tree(
        job.root,
        included(job.include, everything=job.everything),
        outright=False,
        ignoring=not job.everything,
    )
    for entries in tree.files():
        for entry in entries:
            yield entry.path
    unreadable += tree.unreadable


if __name__ == "__main__":
    main()
