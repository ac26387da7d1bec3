"""What do the words of a parsed command line say once quotes and variables are resolved?"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from oh_kernel.security.findings import TooInvolved
from oh_kernel.security.shell.model import NOTHING, Flow, Kind, Scope, Word, merged

Run = Callable[[Any], Flow]
"""Judges the commands below a node and says what they write."""

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.S)
_CONTROL = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "e": "\x1b",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}
_TELLS_ONLY_WHETHER = re.compile(r"\$\{(?:#|!?\w+:?\+)")
_LONGEST = 1_000_000
MADE_HERE = "/tmp/.made-here"


def text_of(node: Any) -> str:
    """The source of a node."""
    return str(node.text.decode("utf-8", "replace"))


def unescaped(text: str) -> str:
    r"""What `$'...'` or `printf` makes of backslashes.

    >>> unescaped(r"\x72\155")
    'rm'
    """
    return _ESCAPE.sub(lambda found: _character(found[1]), text)


def _character(code: str) -> str:
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _CONTROL.get(code, code)


def words_of(node: Any, scope: Scope, run: Run) -> list[Word]:
    """The words that one argument becomes: several for an unquoted variable with blanks in it."""
    if node.type in ("simple_expansion", "expansion"):
        return [part for word in _expansion(node, scope, run) for part in _split(word, scope)]
    if node.type == "string" and node.named_child_count == 1:
        child = node.named_children[0]
        if child.type in ("simple_expansion", "expansion") and len(text_of(child)) + 2 == len(
            text_of(node)
        ):
            return list(_expansion(child, scope, run))
    if node.type == "command_substitution":
        return _split(word_of(node, scope, run), scope)
    return [word_of(node, scope, run)]


def word_of(node: Any, scope: Scope, run: Run) -> Word:
    """The one word that a node becomes."""
    match node.type:
        case "raw_string":
            return Word(text_of(node)[1:-1])
        case "ansi_c_string":
            source = text_of(node)[2:-1]
            return Word(unescaped(source), is_joined=bool(re.search(r"\\[xu0-7]", source)))
        case "simple_expansion" | "expansion":
            return _as_one(_expansion(node, scope, run))
        case "command_substitution" | "process_substitution":
            return _substitution(node, run)
        case "arithmetic_expansion":
            return Word("0", merged(_runs_below(node, run)))
        case "string" | "concatenation" | "translated_string" | "heredoc_body" | "brace_expression":
            return _joined(node, scope, run)
        case "array":
            return _as_one([word_of(child, scope, run) for child in node.named_children])
    return _plain(node)


def _plain(node: Any) -> Word:
    source = text_of(node)
    text = re.sub(r"\\(?:\n|(.))", lambda found: found[1] or "", source)
    is_wild = bool(re.search(r"(?<!\\)[*?\[]", source))
    return Word(text, is_wild=is_wild, is_joined=bool(re.search(r"\w\\\w", source)))


def _joined(node: Any, scope: Scope, run: Run) -> Word:
    """A string or a concatenation: its parts, with the plain source between them."""
    parts: list[Word] = []
    at = node.start_byte
    source = node.text
    quoted = node.type in ("string", "translated_string")
    for child in node.named_children:
        parts.append(
            _gap(source[at - node.start_byte : child.start_byte - node.start_byte], quoted)
        )
        parts.append(_part(child, scope, run, quoted=quoted))
        at = child.end_byte
    parts.append(_gap(source[at - node.start_byte :], quoted))
    word = _as_one([part for part in parts if part.text or part.variables], between="")
    hides = node.type in ("concatenation", "string") and _is_pieced(node)
    return Word(
        word.text,
        word.flow,
        word.variables,
        word.is_wild and not quoted,
        word.is_joined or hides,
        word.is_literal,
    )


def _gap(source: bytes, quoted: bool) -> Word:
    text = source.decode("utf-8", "replace")
    return Word(text.replace('"', "") if quoted else text)


def _part(child: Any, scope: Scope, run: Run, *, quoted: bool) -> Word:
    if child.type in ("string_content", "heredoc_content"):
        return Word(re.sub(r'\\(["$`\\])', r"\1", text_of(child)))
    word = word_of(child, scope, run)
    return Word(
        word.text,
        word.flow,
        word.variables,
        word.is_wild and not quoted,
        word.is_joined,
        word.is_literal,
    )


def _is_pieced(node: Any) -> bool:
    """Whether letters are put together, as in `r''m` or `"$a$b"`: nobody needs that for a name."""
    expansions = [one for one in node.named_children if "expansion" in one.type]
    rest = [text_of(one) for one in node.named_children if "expansion" not in one.type]
    if len(expansions) > 1 - bool(rest) and all(re.fullmatch(r"\w{0,2}", one) for one in rest):
        return True
    types = [child.type for child in node.named_children]
    letters = [text_of(child).strip("'\"{}") for child in node.named_children]
    quotes = {"raw_string", "string", "ansi_c_string", "brace_expression"} & set(types)
    return bool(quotes) and all(re.fullmatch(r"[\w.-]*", one) for one in letters)


def _expansion(node: Any, scope: Scope, run: Run) -> tuple[Word, ...]:
    source = text_of(node)
    inner = [run(child) for child in node.named_children if "substitution" in child.type]
    if _TELLS_ONLY_WHETHER.match(source):
        return (Word("0", is_literal=False),)
    name = next((text_of(one) for one in _names(node)), source.strip("${}"))
    if name == "IFS":
        return (Word(" ", is_joined=True, is_literal=False),)
    changed = node.type == "expansion" and bool(re.search(r"[/%#^,:@]", source.strip("${}")))
    known = scope.variables.get(name)
    if known is None:
        return (Word(f"${name}", merged(inner), (name,), is_literal=False),)
    return tuple(
        Word(word.text, word.flow, word.variables, word.is_wild, word.is_joined or changed, False)
        for word in known
    )


def _names(node: Any) -> Iterator[Any]:
    for child in node.named_children:
        if child.type in ("variable_name", "special_variable_name"):
            yield child
        elif child.type == "subscript":
            yield from _names(child)


def _substitution(node: Any, run: Run) -> Word:
    flow = merged(_runs_below(node, run))
    if node.type == "process_substitution":
        return Word("/dev/fd/63", flow, is_literal=False)
    if flow.kind is Kind.TEXT:
        return Word(flow.text.rstrip("\n"), is_literal=False)
    if flow.text == MADE_HERE:
        return Word(MADE_HERE, is_literal=False)
    return Word("$(...)", flow, is_literal=False)


def _runs_below(node: Any, run: Run) -> Iterator[Flow]:
    for child in node.named_children:
        yield run(child)


def _as_one(words: list[Word] | tuple[Word, ...], between: str = " ") -> Word:
    text = between.join(word.text for word in words)
    if len(text) > _LONGEST:
        raise TooInvolved("variables make a text that grows without end")
    return Word(
        text,
        merged(word.flow for word in words),
        tuple(name for word in words for name in word.variables),
        any(word.is_wild for word in words),
        any(word.is_joined for word in words),
        all(word.is_literal for word in words),
    )


def _split(word: Word, scope: Scope) -> list[Word]:
    """The shell splits what an unquoted variable holds: at blanks, or at what `IFS` says."""
    separators = "".join(one.text for one in scope.variables.get("IFS", ())) or " \t\n"
    texts = [text for text in re.split(f"[{re.escape(separators)}]", word.text) if text]
    if word.flow is not NOTHING or len(texts) < 2:
        return [word]
    return [
        Word(text, word.flow, word.variables, word.is_wild, word.is_joined, word.is_literal)
        for text in texts
    ]
