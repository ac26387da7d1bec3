"""What does a text say as shell syntax: is it one command, as the terminal tool wants it?"""

import asyncio
import functools
import os
import re
from typing import Any

_LITERALS = (
    (re.compile(r"\[[{\"']"), "list literal"),
    (re.compile(r"\[\[\S"), "nested list literal"),
    (re.compile(r"\{[\"']"), "dict literal"),
)
_HEREDOC = re.compile(rb"(?<!<)<<(?!<)")
_SUBSTITUTION = re.compile(rb"[$<>]\(")
_NO_END = re.compile(r"here-document|unexpected EOF while looking for matching `\)'")
_CHECK_S = 5.0


def literal_kind(command: str) -> str:
    """What a Python or JSON literal in place of a command is called; empty for a command.

    >>> literal_kind('["ls", "-l"]'), literal_kind("[[ -f x ]] && ls")
    ('list literal', '')
    """
    for pattern, kind in _LITERALS:
        if pattern.match(command.lstrip()):
            return kind
    return ""


def statements(command: str) -> list[str]:
    """The commands of `command` that stand on lines of their own; one when it cannot be parsed.

    Here-documents, loops, functions and lines joined by `\\`, `&&` or `|` are one command.

    >>> statements("echo a; echo b")
    ['echo a; echo b']
    >>> statements("cd x\\nls")
    ['cd x', 'ls']
    """
    root = syntax_tree(command)
    if root.has_error:
        return [command]
    source = _bytes(command)
    groups: list[tuple[int, int]] = []
    last_row = -1
    for node in root.children:
        if node.type == "comment":
            continue
        if groups and (node.start_point[0] == last_row or not node.is_named):
            groups[-1] = (groups[-1][0], node.end_byte)
        else:
            groups.append((node.start_byte, node.end_byte))
        last_row = node.end_point[0]
    return [source[start:end].decode("utf-8", "replace").strip() for start, end in groups]


async def unfinished(command: str) -> str:
    """What bash says of a here-document or a `$(` in `command` that has no end; "" if each has one.

    The first would eat what comes after it. The second makes bash 5.2 write in front of a buffer
    of its own (seen with valgrind), of which the shell may die at any later time.
    """
    source = _bytes(command)
    suspect = _SUBSTITUTION.search(source) and syntax_tree(command).has_error
    if not suspect and not _HEREDOC.search(source):
        return ""
    errors = await _words_of_bash(source + b"\n")
    return next((line for line in errors.splitlines() if _NO_END.search(line)), "")


def syntax_tree(text: str) -> Any:
    """The root of the syntax tree of `text`; its positions are those in UTF-8."""
    return _parser().parse(_bytes(text)).root_node


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


async def _words_of_bash(source: bytes) -> str:
    """The errors that a bash without a life of its own finds in `source`, which it does not run."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-O",
        "extglob",
        "-n",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath, "LC_ALL": "C"},
    )
    _, errors = await asyncio.wait_for(process.communicate(source), _CHECK_S)
    return errors.decode("utf-8", "replace")


@functools.cache
def _parser() -> Any:
    import tree_sitter  # a native library, and needed only once a command comes
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
