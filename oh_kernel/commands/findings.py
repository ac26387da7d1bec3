"""What does `oh-kernel doctor` say of one thing it looked at?"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """`ok`, a `note` for who wants it, or `wrong`, which makes the exit code 1."""

    state: Literal["ok", "note", "wrong"]
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = {"ok": " ok  ", "note": "note ", "wrong": "WRONG"}[self.state]
        return "\n        ".join([f"[{mark}] {self.text}", *self.remedy.splitlines()])


def ok(text: str) -> Finding:
    """All is well."""
    return Finding("ok", text)


def note(text: str, remedy: str = "") -> Finding:
    """Not wrong, but worth knowing."""
    return Finding("note", text, remedy)


def wrong(text: str, remedy: str) -> Finding:
    """Something does not work; `remedy` is what to do."""
    return Finding("wrong", text, remedy)
