"""As what does a secret value appear in text, beside as itself?

In JSON, in addresses, in quotes of a shell, in base64 wherever it stands in what is encoded. No
list is complete: what a program reverses or encrypts is not recognised.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Shorter values, not counting line ends, are not masked: they would be found in other text."""
HIDDEN = "<secret-hidden>"

# JSON in a string of JSON in a string of JSON: arguments of a call that writes JSON.
_JSON_LEVELS = 3
# A line of a key or a file with credentials counts by itself from this length on.
_LINE_MIN_CHARS = 20
# What JavaScript's encodeURIComponent and encodeURI leave as it is.
_SAFE_SETS = ("", "/", "!*'()", ";,/?:@&=+$#!*'()")
# Between the bytes of a dump in hexadecimal.
_SEPARATORS = ("", " ", ":", "\\x")


def forms_of(value: str) -> set[str]:
    """What to look for in order to hide `value`.

    >>> {"p%26q-rs", "cCZxLXJz", "702671 2d7273".replace(" ", "")} <= forms_of("p&q-rs")
    True
    """
    value = value.strip()  # spaces around it are no secret, and are lost where lines are wrapped
    if is_short(value) or value in HIDDEN:
        return set()
    found = {value, *_escaped(value), *_in_addresses(value), *_in_bytes(value), *_lines(value)}
    return {form for form in found if len(form) >= SHORTEST}


def is_short(value: str) -> bool:
    """Whether a value is too short to be masked."""
    return len(re.sub(r"[\r\n]+[ \t]*", "", value.strip())) < SHORTEST


def _escaped(value: str) -> Iterator[str]:
    levels = {value}
    for _ in range(_JSON_LEVELS):
        levels = {json.dumps(one, ensure_ascii=a)[1:-1] for one in levels for a in (False, True)}
        yield from levels
        yield from (one.replace("/", "\\/") for one in levels)
    yield repr(value)[1:-1]
    yield repr(value.encode())[2:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield shlex.quote(value).removeprefix("'").removesuffix("'")
    yield re.sub(r'(["$`\\])', r"\\\1", value)  # as `export -p` prints it
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)  # as `printf %q` does


def _in_addresses(value: str) -> Iterator[str]:
    encoded = {quote(value, safe=safe) for safe in _SAFE_SETS}
    encoded |= {quote_plus(value), "".join(f"%{byte:02X}" for byte in value.encode())}
    for one in encoded:
        yield one
        yield re.sub("%..", lambda match: match[0].lower(), one)


def _in_bytes(value: str) -> Iterator[str]:
    data = value.encode()
    for separator in _SEPARATORS:
        yield separator.join(f"{byte:02x}" for byte in data)
        yield separator.join(f"{byte:02X}" for byte in data)
    for text in _in_base64(data):
        yield text
        yield text.replace("+", "-").replace("/", "_")


def _in_base64(data: bytes) -> Iterator[str]:
    """The characters that are the same whatever stands before and behind, for each alignment."""
    yield b64encode(data).decode()
    yield b64encode(data + b"\n").decode()  # as `echo $TOKEN | base64` does
    for before in range(3):
        whole = b64encode(bytes(before) + data).decode()
        bits = 8 * (before + len(data))
        yield whole[-(-8 * before // 6) : bits // 6]


def _lines(value: str) -> Iterator[str]:
    """The parts of a value of several lines that are telling by themselves."""
    if "\n" not in value:
        return
    for word in value.split():
        word = word.strip("\"',;")
        if len(word) >= _LINE_MIN_CHARS and "://" not in word and not word.startswith("---"):
            yield word
