"""How is ripgrep asked which files hold an expression, and what does its answer mean?

It walks and reads; which of its files count is decided here, where it would see things otherwise:
its own `-g` overrides ignore rules, and a negated rule shows it what is hidden.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from oh_kernel.tools.search.ignoring import in_repository
from oh_kernel.tools.search.lines import BLOCK_BYTES
from oh_kernel.tools.search.worker import included

ERROR = 2
"""Its status when something went wrong, be it that one folder could not be read."""
# Names that ripgrep's own matcher reads as ours does, and can leave unread all the others.
_SIMPLE_NAMES = re.compile(r"[\w.*?-]+|[\w.*?-]*\{[\w.*?,-]+\}[\w.*?-]*", re.ASCII)
_BOMS = (b"\xff\xfe", b"\xfe\xff")


def command(
    program: str,
    root: str,
    regex: str,
    *,
    case_sensitive: bool,
    include: str | None,
    everything: bool,
) -> list[str]:
    """The command that lists the files below `root` in which a line matches."""
    return [
        program,
        "--no-config",
        "--files-with-matches",
        "--null",
        "--color=never",
        "--no-messages",
        "--no-mmap",  # a file that shrinks meanwhile would kill it
        "--case-sensitive" if case_sensitive else "--ignore-case",
        *_scope(root, everything),
        *_names(include, everything),
        f"--regexp={regex}",
        "--",
        root,
    ]


def files(output: bytes, root: str, include: str | None, *, everything: bool) -> Iterator[str]:
    """The files that an answer names, without those that do not count."""
    pattern = included(include, everything=everything)
    prefix = len(root.rstrip("/")) + 1
    for name in output.split(b"\0")[:-1]:
        path = os.fsdecode(name)
        below = path[prefix:]
        may_be_hidden = below.startswith(".") or "/." in below
        if (include is None and not may_be_hidden) or pattern.matches(below):
            yield path


def is_text(path: str) -> bool:
    """Whether a file that ripgrep found is text to us too: it read no further than the match."""
    try:
        with Path(path).open("rb") as file:
            block = file.read(BLOCK_BYTES)
    except OSError:
        return False
    return block.startswith(_BOMS) or b"\0" not in block


def _scope(root: str, everything: bool) -> list[str]:
    """Which ignore rules hold; see `ignoring`."""
    if everything:
        return ["--no-ignore", "--hidden", "--glob=!.git"]
    rules = ["--no-ignore-global", "--no-ignore-exclude"]
    if not in_repository(root):
        rules += ["--no-require-git", "--no-ignore-parent"]
    return rules


def _names(include: str | None, everything: bool) -> list[str]:
    if include is None:
        return []
    name = include.rsplit("/", 1)[-1]
    names = ["--hidden", "--glob=!.*/"] if not everything else []
    if _SIMPLE_NAMES.fullmatch(name) and "**" not in name:
        names += [f"--type-add=wanted:{name}", "--type=wanted"]
    return names
