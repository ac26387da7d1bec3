"""Which files hold an expression? By ripgrep where it is there and understands it, else by `re`."""

import asyncio
import os
import sys
import time
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from oh_kernel.tools.search import ripgrep
from oh_kernel.tools.search.answers import MAX_FILES
from oh_kernel.tools.search.children import Ended, run_child
from oh_kernel.tools.search.dialect import Expression
from oh_kernel.tools.search.tree import Tree, ranked
from oh_kernel.tools.search.worker import Item, Job, included, items


@dataclass(frozen=True)
class Query:
    """What to look for, and below which folder or in which file."""

    root: str
    regex: str
    expression: Expression
    case_sensitive: bool = False
    include: str | None = None
    everything: bool = False
    """Hidden and ignored files too."""


@dataclass(frozen=True)
class Found:
    """The files with a match, the newest first: all, or more than are shown."""

    files: list[str]
    unreadable: list[str]
    is_complete: bool
    """Whether the time sufficed."""


async def find(query: Query, *, rg: str | None, until: float) -> Found:
    """Look for the files until the clock (monotonic) says `until`; `rg` is ripgrep's path."""
    found = None
    if rg is not None and query.expression.rust is not None and Path(query.root).is_dir():
        found = await _by_ripgrep(query, rg, query.expression.rust, until)
    return found or await _by_python(query, until)


async def look_into(job: Job, *, until: float) -> tuple[list[Item], bool]:
    """Have a process carry out a job: what it found, and whether it came to its end."""
    # -P: no file in the working folder takes the place of a library.
    command = [sys.executable, "-P", "-m", "oh_kernel.tools.search.worker"]
    ended = await run_child(command, given=job.to_json().encode(), timeout_s=_left(until))
    if ended.status not in (0, None):
        raise RuntimeError(f"the searching process failed: {ended.errors.decode()[-2000:]}")
    return items(ended.output), ended.status is not None


async def _by_python(query: Query, until: float) -> Found:
    job = Job(query.regex, query.case_sensitive, include=query.include, everything=query.everything)
    is_folder = Path(query.root).is_dir()
    job = replace(job, root=query.root) if is_folder else replace(job, files=(query.root,))
    found, is_complete = await look_into(job, until=until)
    files = await asyncio.to_thread(ranked, [item.path for item in found if item.kind == "file"])
    unreadable = [item.path for item in found if item.kind == "unreadable"]
    return Found([path for _, path in files], unreadable, is_complete)


async def _by_ripgrep(query: Query, rg: str, rust: str, until: float) -> Found | None:
    """None when ripgrep gives no answer: an older one, or an expression too large for it."""
    command = ripgrep.command(
        rg,
        query.root,
        rust,
        case_sensitive=query.case_sensitive,
        include=query.include,
        everything=query.everything,
    )
    ended = await run_child(command, timeout_s=_left(until))
    if ended.status not in (0, 1, None) and not ended.output:
        return None
    return await asyncio.to_thread(_understood, query, ended)


def _understood(query: Query, ended: Ended) -> Found:
    named = ripgrep.files(ended.output, query.root, query.include, everything=query.everything)
    texts = (path for _, path in ranked(named) if ripgrep.is_text(path))
    files = list(islice(texts, MAX_FILES + 1))  # one more, so that it is known that there is
    unreadable = _unreadable(query) if ended.status == ripgrep.ERROR else []
    return Found(files, unreadable, ended.status is not None)


def _unreadable(query: Query) -> list[str]:
    """The folders and files that could not be read; ripgrep tells that there are some."""
    pattern = included(query.include, everything=query.everything)
    tree = Tree(query.root, pattern, outright=False, ignoring=not query.everything)
    closed = [e.path for entries in tree.files() for e in entries if not os.access(e, os.R_OK)]
    return tree.unreadable + closed


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
