"""What is a command line made of: words, what flows through pipes, and what is known so far?"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import Any


class Kind(IntEnum):
    """What a stream or a substitution holds; of several, the highest counts."""

    NOTHING = auto()
    PLAIN = auto()
    """A date, a count, a name: nothing of the user's."""
    TEXT = auto()
    """Text that stands in the command line itself."""
    LISTING = auto()
    """Names of files."""
    DATA = auto()
    """What a file or program of the workspace holds or says."""
    UNKNOWN = auto()
    PROCESSES = auto()
    DOWNLOAD = auto()
    DECODED = auto()
    SECRET = auto()


@dataclass(frozen=True)
class Flow:
    """What a command writes, or reads from its input."""

    kind: Kind = Kind.NOTHING
    text: str = ""
    names: tuple[str, ...] = ()
    """For a listing: the patterns that the names follow."""


NOTHING = Flow()


def merged(flows: Iterable[Flow]) -> Flow:
    """The flow of several, one after another."""
    many = [flow for flow in flows if flow.kind is not Kind.NOTHING]
    if not many:
        return NOTHING
    top = max(many, key=lambda flow: flow.kind)
    if top.kind is Kind.TEXT:
        return Flow(Kind.TEXT, "\n".join(flow.text for flow in many if flow.text))
    return top


@dataclass(frozen=True)
class Word:
    """A word after expansion; what is not known of it stays as `$NAME` or `$(...)`."""

    text: str
    flow: Flow = NOTHING
    """What the substitutions in it hold."""
    variables: tuple[str, ...] = ()
    """Whose value is in it and not known here."""
    is_wild: bool = False
    is_joined: bool = False
    """Pieced together so that its text is not what it says."""
    is_literal: bool = True
    """Written in quotes or plainly: no variable or substitution took part."""

    @property
    def is_known(self) -> bool:
        """Whether all of its text stands in the command line."""
        return not self.variables and self.flow.kind <= Kind.TEXT


@dataclass
class Scope:
    """What the text has done so far."""

    variables: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Flow] = field(default_factory=dict)
    """Files that the text itself wrote: what is in them."""
    made: set[str] = field(default_factory=set)
    """Temporary places that the text itself made."""
    downloads: set[str] = field(default_factory=set)
    remotes: set[str] = field(default_factory=set)
    folder: str = ""
    """Where `cd` went, when that is outside of the workspace or a download."""
    loops: int = 0

    def keep(self, path: str, flow: Flow) -> None:
        """Remember what the text wrote into a file."""
        self.files[path.removeprefix("./")] = flow

    def kept(self, path: str) -> Flow | None:
        """What the text wrote into `path`, if it did."""
        return self.files.get(path.removeprefix("./"))

    def is_own(self, path: str) -> bool:
        """Whether the text made `path`, or a folder that it is in."""
        return any(path == one or path.startswith(one.rstrip("/") + "/") for one in self.made)

    def downloaded(self, path: str) -> bool:
        """Whether `path` is a file that the text fetched, or in a folder that it fetched."""
        names = {path.removeprefix("./"), f"{self.folder}/{path}".removeprefix("./")}
        return any(
            name == one or name.startswith(one.rstrip("/") + "/")
            for one in self.downloads
            for name in names
        )


@dataclass
class Call:
    """A simple command that would be run."""

    name: str
    args: list[Word]
    stdin: Flow
    scope: Scope
    variables: dict[str, str] = field(default_factory=dict)
    """Set for this command alone."""

    @property
    def texts(self) -> list[str]:
        """The words after the name."""
        return [word.text for word in self.args]

    @property
    def line(self) -> str:
        """Name and words with single blanks between them."""
        return " ".join([self.name, *self.texts])

    def has(self, *options: str) -> bool:
        """Whether one of `options` is given: short ones also in a cluster, long ones with `=`."""
        return any(_is_option(text, option) for text in self._before_end() for option in options)

    def value(self, *options: str) -> Word | None:
        """What is given to the first of `options`: `-o x`, `-ox`, `--out x` or `--out=x`."""
        for index, word in enumerate(self.args):
            for option in options:
                if word.text == option:
                    return self.args[index + 1] if index + 1 < len(self.args) else None
                prefix = option if len(option) == 2 else option + "="
                if word.text.startswith(prefix) and word.text != prefix:
                    return _cut(word, len(prefix))
        return None

    def operands(self, valued: Collection[str] = ()) -> list[Word]:
        """The words that are no options; `valued` options take the word after them."""
        found: list[Word] = []
        skip = ended = False
        for word in self.args:
            if skip:
                skip = False
            elif ended or not word.text.startswith("-") or word.text == "-":
                found.append(word)
            elif word.text == "--":
                ended = True
            else:
                skip = word.text in valued
        return found

    def _before_end(self) -> list[str]:
        texts = self.texts
        return texts[: texts.index("--")] if "--" in texts else texts


def _cut(word: Word, start: int) -> Word:
    return Word(word.text[start:], word.flow, word.variables, word.is_wild, word.is_joined)


def _is_option(text: str, option: str) -> bool:
    if option.startswith("--") or len(option) > 2:
        return text == option or text.startswith(option + "=")
    return bool(re.match(r"-\w*$", text)) and option[1] in text[1:]
