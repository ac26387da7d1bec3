"""Which block of code in a reply is to be run, and how is code written as such a block?

Blocks are as in CommonMark: three or more backticks or tildes, closed by at least as many of the
same. So a longer fence may hold a shorter one.
"""

import re
from dataclasses import dataclass

from oh_kernel.llm.converted.screen import Opening

LANGUAGES = {
    "python": "python",
    "python3": "python",
    "py": "python",
    "ipython": "python",
    "bash": "bash",
    "sh": "bash",
    "shell": "bash",
}
_WORDS = "|".join(LANGUAGES)
_FENCE = re.compile(
    r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$", re.MULTILINE
)

OPENING = Opening(
    re.compile(rf"^ {{0,3}}(?:`{{3,}}|~{{3,}})[ \t]*(?i:{_WORDS})\b[^`\n]*$", re.MULTILINE),
    re.compile(r"^ {0,3}(?:`+|~+)[^`\n]*\Z", re.MULTILINE),
)


@dataclass(frozen=True)
class Block:
    """A block of code that can be run; `language` is python or bash."""

    language: str
    code: str
    start: int  # where it begins in the reply
    is_closed: bool


def first_block(text: str) -> Block | None:
    """The first block in a language that is run; blocks in others are passed over whole."""
    position = 0
    while (opening := _FENCE.search(text, position)) is not None:
        start = opening.end() + 1
        closing = _closing(opening).search(text, start)
        words = opening["info"].split(maxsplit=1)
        language = LANGUAGES.get(words[0].lower()) if words else None
        if language is not None:
            code = text[start : closing.start()] if closing else text[start:]
            shifted = _without_indent(code.removesuffix("\n"), len(opening["indent"]))
            return Block(language, shifted, opening.start(), closing is not None)
        if closing is None:
            return None
        position = closing.end()
    return None


def block_of(language: str, code: str) -> str:
    """`code` as a block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _closing(opening: re.Match[str]) -> re.Pattern[str]:
    letter, count = opening["fence"][0], len(opening["fence"])
    return re.compile(rf"^ {{0,3}}{letter}{{{count},}}[ \t\r]*$", re.MULTILINE)


def _without_indent(code: str, columns: int) -> str:
    """The lines of a block whose fence is indented lose as much, where they have it."""
    return re.sub(rf"^ {{1,{columns}}}", "", code, flags=re.MULTILINE) if columns else code
