"""How does text that nobody vouches for become text that can be shown?

Everything a file, a command or the model wrote passes through here before it reaches HTML or a
terminal. Nothing is removed silently: what cannot be shown gets a visible stand-in, and what is
cut is counted.
"""

import html
import re
from typing import NamedTuple

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# Tab and newline stay. DEL and the C1 block act on terminals just as the C0 block does.
# Those that turn the direction of writing would show a command in another order than it runs in.
BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDI_CONTROLS}]")
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[@-Z\\-_]"
)


class Clipped(NamedTuple):
    """The part of a text that is shown, and a sentence about the rest (empty when all is shown)."""

    text: str
    note: str


def printable(text: str) -> str:
    """The text with each control character as its visible picture, so that none can act.

    >>> printable("a\\x1b[31mb")
    'a␛[31mb'
    """
    return _CONTROLS.sub(_picture, _LONE_SURROGATES.sub("\ufffd", text))


def escape(text: str) -> str:
    """Text as HTML that reads the same, character for character; fit for attribute values too.

    >>> escape('x"><b>.html')
    'x&quot;&gt;&lt;b&gt;.html'
    """
    return html.escape(printable(text), quote=True)


def strip_ansi(text: str) -> str:
    """The text without terminal escape sequences.

    >>> strip_ansi("\\x1b[1;32mok\\x1b[0m")
    'ok'
    """
    return _ANSI.sub("", text)


def clip(text: str, *, max_lines: int, max_chars: int) -> Clipped:
    """The beginning and the end of a long text, with the number of lines left out between them.

    Ends matter most in output of commands: the beginning says what ran, the end how it went.
    """
    lines = text.split("\n")
    if len(lines) <= max_lines and len(text) <= max_chars:
        return Clipped(text, "")
    if len(lines) > max_lines:
        head = (max_lines + 1) // 2
        lines = [*lines[:head], _gap(len(lines) - max_lines), *_last(lines, max_lines - head)]
    kept = "\n".join(lines)
    if len(kept) > max_chars:
        head = (max_chars + 1) // 2
        tail = kept[len(kept) - (max_chars - head) :]
        kept = f"{kept[:head]}\n[... cut ...]\n{tail}"
    shown = min(len(text), max_chars, len(kept))
    return Clipped(kept, f"Shortened here: about {shown:,} of {len(text):,} characters are shown.")


def one_line(text: str, max_chars: int = 100) -> str:
    """The first line that says something, shortened to fit into a heading."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    more = len(text.strip()) > len(first)
    if len(first) > max_chars:
        return first[: max_chars - 1].rstrip() + "…"
    return f"{first} …" if more and first else first


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def _gap(count: int) -> str:
    return f"[... {count:,} lines left out ...]"


def _last(lines: list[str], count: int) -> list[str]:
    return lines[len(lines) - count :] if count else []
