"""Which files do `.gitignore` and `.ignore` leave out?

As ripgrep reads them: a rule is asked about each file and folder on the way down, the last rule of
a file that matches decides, and nearer files win. A `.gitignore` holds outside of a repository too,
but one above a repository says nothing inside of it.
"""

import os
import re
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from oh_kernel.tools.search.globs import BadGlob, expand_braces, name_regex

GIT_IGNORE = ".gitignore"
OTHERS = (".rgignore", ".ignore")
"""They win over `.gitignore`, and the first over the second."""
NAMES = (*OTHERS, GIT_IGNORE)


@dataclass(frozen=True)
class Rule:
    """One line of an ignore file."""

    regex: re.Pattern[str]
    keeps: bool
    folders_only: bool
    looks_at_path: bool

    @classmethod
    def parse(cls, line: str) -> "Rule | None":
        """The rule on a line; None for a comment, a blank line or one that makes no sense."""
        line = line if line.endswith("\\ ") else line.rstrip()
        if not line or line.startswith("#"):
            return None
        keeps = line.startswith("!")
        text = line[1:] if keeps else line
        body = text.removesuffix("/")
        try:
            regex = re.compile("|".join(_line_regex(one) for one in expand_braces(body)))
        except (re.error, BadGlob):
            return None
        return cls(regex, keeps, text.endswith("/"), "/" in body)


class IgnoreFile:
    """The rules of one file. What it says of a name is remembered: names repeat in a tree."""

    def __init__(self, text: str) -> None:
        rules = [rule for line in text.split("\n") if (rule := Rule.parse(line))]
        self._rules = rules[::-1]
        self._by_name_only = not any(rule.looks_at_path for rule in rules)
        self._known: dict[tuple[str, bool], bool | None] = {}

    def decides(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Whether the file or folder is left out; None when no rule is about it."""
        if not path.isascii():
            path, name = _as_bytes(path), _as_bytes(name)
        if not self._by_name_only:
            return self._decided(path, name, is_folder)
        key = (name, is_folder)
        if key not in self._known:
            self._known[key] = self._decided(path, name, is_folder)
        return self._known[key]

    def _decided(self, path: str, name: str, is_folder: bool) -> bool | None:
        for rule in self._rules:
            if rule.folders_only and not is_folder:
                continue
            if rule.regex.match(path if rule.looks_at_path else name):
                return not rule.keeps
        return None


@dataclass(frozen=True)
class Level:
    """An ignore file, and how an absolute path becomes one from its folder on."""

    file: IgnoreFile
    prefix: int
    """Characters of the path to leave out."""
    lead: str = ""
    """What comes before the rest: the way down to the root of a search."""


Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Rules:
    """All rules that hold in a folder, the nearest first."""

    by_kind: tuple[Levels, ...] = ((), (), ())
    in_repository: bool = False

    @classmethod
    def above(cls, root: str) -> "Rules":
        """The rules that a repository's upper folders have for `root`; none outside of one."""
        if not in_repository(root):
            return cls()
        rules = cls(in_repository=True)
        real = Path(root).resolve()
        for folder in reversed(real.parents):
            there = {name for name in (*NAMES, ".git") if (folder / name).exists()}
            rules = rules.within(str(folder), there, lead=f"{real.relative_to(folder)}/", root=root)
        return rules

    def within(
        self, folder: str, names: Container[str], *, root: str | None = None, lead: str = ""
    ) -> "Rules":
        """The rules inside of `folder`, in which there are files of these names.

        For paths below `root`, by default the folder itself, to which `lead` leads from there.
        """
        rules = self
        if self.in_repository and ".git" in names:
            rules = replace(rules, by_kind=(*rules.by_kind[:-1], ()))
        if any(name in names for name in NAMES):
            paths = [Path(folder, name) for name in NAMES]
            added = [
                _added(levels, path, root or folder, lead) if path.name in names else levels
                for path, levels in zip(paths, rules.by_kind, strict=True)
            ]
            rules = replace(rules, by_kind=tuple(added))
        return rules

    def ignores(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether the file or folder with this absolute path is left out."""
        for levels in self.by_kind:
            for level in levels:
                below = level.lead + path[level.prefix :]
                decision = level.file.decides(below, name, is_folder)
                if decision is not None:
                    return decision
        return False

    def __bool__(self) -> bool:
        return any(self.by_kind)


def in_repository(root: str) -> bool:
    """Whether a git repository holds the folder, or is it."""
    real = Path(root).resolve()
    return any((folder / ".git").exists() for folder in (real, *real.parents))


def _added(levels: Levels, path: Path, root: str, lead: str) -> Levels:
    try:
        data = path.read_bytes()
    except OSError:  # a folder of that name, or not ours to read: as if it were not there
        return levels
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    return (Level(IgnoreFile(text), len(root.rstrip("/")) + 1, lead), *levels)


def _as_bytes(name: str) -> str:
    """A name as a character for each byte: to ripgrep and git, `?` is one byte of it."""
    return os.fsencode(name).decode("latin-1")


def _line_regex(text: str) -> str:
    """A gitignore glob as a regular expression for a name or, with a slash, for a path."""
    parts = text.split("/")
    if len(parts) == 1:
        return name_regex(text)
    if parts[0] == "":
        del parts[0]
    regex = ""
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if part == "**":
            regex += "(?s:.+)" if is_last else "(?:(?s:.+)/)?"
        else:
            regex += name_regex(part).removesuffix(r"\Z") + ("" if is_last else "/")
    return regex + r"\Z"
