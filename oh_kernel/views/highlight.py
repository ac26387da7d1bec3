"""Which parts of some source text get which colour?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from oh_kernel.views.escape import escape
from oh_kernel.views.style import TOKEN_COLOURS

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

# A run of text with the letter of its colour in style.TOKEN_COLOURS, "" for none.
Span = tuple[str, str]

# Colouring costs about 1 ms for 2 KB and ten times the bytes; beyond this the text stays plain.
MAX_COLOURED_CHARS = 40_000


def code_to_html(text: str, language: str) -> str:
    """The source as escaped HTML with coloured spans; `language` is a Pygments name."""
    if len(text) > MAX_COLOURED_CHARS:
        return escape(text)
    return "\n".join(map(line_to_html, _coloured(text, _lexer_named(language))))


def coloured_lines(text: str, path: str) -> list[list[Span]]:
    """The lines of a file, each a list of spans that joined give the line back."""
    if len(text) > MAX_COLOURED_CHARS:
        return [[("", line)] for line in text.split("\n")]
    return _coloured(text, _lexer_for(path))


def line_to_html(spans: Sequence[Span]) -> str:
    return "".join(
        f'<span style="color:{TOKEN_COLOURS[colour]}">{escape(text)}</span>'
        if colour
        else escape(text)
        for colour, text in spans
    )


def _coloured(text: str, lexer: Lexer | None) -> list[list[Span]]:
    if lexer is None:
        return [[("", line)] for line in text.split("\n")]
    lines: list[list[Span]] = [[]]
    for token, value in lexer.get_tokens(text):
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                _append(lines[-1], _colour(token), part)
    # A lexer that drops or adds a character would show something else than the file holds.
    if ["".join(part for _, part in line) for line in lines] != text.split("\n"):
        return [[("", line)] for line in text.split("\n")]
    return lines


def _append(line: list[Span], colour: str, text: str) -> None:
    if line and line[-1][0] == colour:
        line[-1] = (colour, line[-1][1] + text)
    else:
        line.append((colour, text))


def _colour(token: _TokenType) -> str:
    from pygments.token import Comment, Keyword, Literal, Name, Number, String

    groups = (
        (Keyword, "k"),
        (String, "s"),
        (Comment, "c"),
        (Number, "n"),
        (Literal, "s"),
        (Name.Function, "f"),
        (Name.Class, "f"),
        (Name.Builtin, "b"),
    )
    return next((letter for group, letter in groups if group in _with_parents(token)), "")


def _with_parents(token: _TokenType) -> list[_TokenType]:
    return [token, *_with_parents(token.parent)] if token.parent is not None else [token]


@lru_cache(maxsize=32)
def _lexer_named(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # some 20 ms, and not needed to import us

    return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None


@lru_cache(maxsize=64)
def _lexer_for(path: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    if path.endswith(".ipynb"):
        path = "cells.py"  # edits of notebooks are told as the sources of their cells
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
