"""What does a call in Python give, as far as the code itself tells?"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from oh_kernel.security.places import is_address
from oh_kernel.security.python.tables import (
    DECODERS,
    DOWNLOADS,
    LISTING_METHODS,
    LISTINGS,
    PASSES_ON,
    READS_TABLE,
    SAME_METHODS,
    SAME_TEXT,
    SECRETS,
    TELLS_LITTLE,
)
from oh_kernel.security.shell.flows import content_of
from oh_kernel.security.shell.model import Flow, Kind, Word, merged
from oh_kernel.security.shell.words import MADE_HERE

if TYPE_CHECKING:
    from oh_kernel.security.python.values import Values


def result_of(values: Values, node: ast.Call) -> Word:
    name = values.dotted(node.func)
    first = node.args[0] if node.args else None
    if name in ("os.getenv", "os.environ.get", "os.environ.pop", "os.environ.setdefault"):
        return values.environment(first)
    if name == "os.environ.keys" or name in TELLS_LITTLE:
        return Word("0", Flow(Kind.PLAIN))
    if special := _special(values, node, name):
        return special
    if name == "compile" and first is not None:
        return values.word(first)
    if name in SAME_TEXT:
        return values.joined([values.word(one) for one in node.args], "/" if "ath" in name else " ")
    if isinstance(node.func, ast.Attribute):
        return _method(values, node, node.func, name)
    return _made_of(values, node, name)


def _special(values: Values, node: ast.Call, name: str) -> Word | None:
    first = values.word(node.args[0]) if node.args else Word("")
    if SECRETS.match(name):
        return secret(name)
    if DOWNLOADS.match(name):
        return Word(f"${name}", Flow(Kind.DOWNLOAD), (name,))
    if DECODERS.match(name):
        return Word(first.text, Flow(Kind.DECODED))
    if name in LISTINGS:
        start = first.text if node.args else "."
        return Word(
            f"{start.rstrip('/')}{LISTINGS[name]}",
            Flow(Kind.LISTING),
            first.variables,
            is_wild=True,
        )
    if name in ("pathlib.Path.home", "os.path.expanduser") and not node.args:
        return Word("~", Flow(Kind.TEXT, "~"))
    if name in ("pathlib.Path.cwd", "os.getcwd"):
        return Word(".", Flow(Kind.TEXT, "."))
    if name == "os.path.join":
        return values.joined([values.word(one) for one in node.args], "/")
    if name.startswith("tempfile."):
        values.scope.made.add(MADE_HERE)
        return Word(MADE_HERE, Flow(Kind.PLAIN))
    if name in ("open", "io.open", "codecs.open", "gzip.open", "builtins.open", "io.open_file"):
        return Word(first.text, content_of(first, values.scope), first.variables)
    if READS_TABLE.match(name):
        fetched = is_address(first.text) or first.flow.kind is Kind.DOWNLOAD
        return Word("$table", Flow(Kind.DOWNLOAD if fetched else Kind.DATA), ("table",))
    return None


def _method(values: Values, node: ast.Call, function: ast.Attribute, name: str) -> Word:
    base = values.word(function.value)
    method = function.attr
    arguments = [values.word(one) for one in node.args]
    if method in LISTING_METHODS:
        pattern = arguments[0].text if arguments else "*"
        deep = "**/" if method in ("rglob", "walk") else ""
        return Word(
            f"{base.text.rstrip('/')}/{deep}{pattern}",
            Flow(Kind.LISTING),
            base.variables,
            is_wild=True,
        )
    if method in ("read_text", "read_bytes", "open"):
        return Word(base.text, content_of(base, values.scope), base.variables)
    if method == "joinpath":
        return values.joined([base, *arguments], "/")
    if method == "join" and isinstance(function.value, ast.Constant):
        scrambled = any(word.flow.kind is Kind.DECODED for word in arguments) or any(
            map(_is_reversal, node.args)
        )
        word = values.joined(arguments, " ")
        return Word(word.text, Flow(Kind.DECODED) if scrambled else word.flow, word.variables)
    if method in ("replace", "translate", "swapcase") and base.flow.kind is Kind.TEXT and base.text:
        return Word(base.text, Flow(Kind.DECODED))
    if method == "format":
        return _formatted(values, base, arguments, node)
    if (
        method == "decode"
        and arguments
        and re.match(r"rot|hex|base64|unicode_escape", arguments[0].text)
    ):
        return Word(base.text, Flow(Kind.DECODED))
    if method in SAME_METHODS or method == "decode":
        return base
    return _made_of(values, node, name)


def _formatted(values: Values, base: Word, arguments: list[Word], node: ast.Call) -> Word:
    words = [*arguments, *(values.word(one.value) for one in node.keywords)]
    text = re.sub(r"\{[^{}]*\}", lambda _: words.pop(0).text if words else "$x", base.text)
    merged_word = values.joined([base, *arguments], " ")
    return Word(text, merged_word.flow, merged_word.variables)


def _made_of(values: Values, node: ast.Call, name: str) -> Word:
    """What an unknown function gives: nobody knows, but a download in it stays in it."""
    parts = [*node.args, *(one.value for one in node.keywords)]
    flows = [values.word(one).flow for one in parts]
    if isinstance(node.func, ast.Attribute):
        flows.append(values.word(node.func.value).flow)
    if name == "map" and node.args and values.dotted(node.args[0]) == "chr":
        return Word("$chr", Flow(Kind.DECODED))
    flow = merged(flows)
    # A client that was given a secret does not show it.
    kind = (
        Kind.UNKNOWN
        if flow.kind is Kind.SECRET and name not in PASSES_ON
        else max(flow.kind, Kind.UNKNOWN)
    )
    return Word(f"${name}", Flow(kind), (name,))


def unknown(name: str) -> Word:
    """A value that the code does not show."""
    return Word(f"${name}", Flow(Kind.UNKNOWN), (name,))


def secret(name: str) -> Word:
    """A value that nobody should see."""
    return Word(f"${name}", Flow(Kind.SECRET), (name,))


def _is_reversal(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "reversed"
    )
