"""Which bytes does a key send to a terminal?"""

import re

# Sent by programs in line mode and by readline alike as the end of a line.
ENTER = "\r"

_KEYS = {
    "ENTER": ENTER,
    "TAB": "\t",
    "BS": "\x7f",
    "ESC": "\x1b",
    "UP": "\x1b[A",
    "DOWN": "\x1b[B",
    "RIGHT": "\x1b[C",
    "LEFT": "\x1b[D",
    "HOME": "\x1b[H",
    "END": "\x1b[F",
    "PGUP": "\x1b[5~",
    "PGDN": "\x1b[6~",
}
# The control characters of ASCII: those of letters, and NUL (C-@), ESC (C-[), C-\\, C-], C-^, C-_
# and DEL (C-?).
_CONTROL = re.compile(r"(?:C-|CTRL[-+])([A-Z@\[\\\]^_?])", re.IGNORECASE)


def key_bytes(text: str) -> bytes:
    """What typing `text` sends: one key when `text` is a key's name, else the text and Enter.

    >>> key_bytes("C-c"), key_bytes("up"), key_bytes("yes")
    (b'\\x03', b'\\x1b[A', b'yes\\r')
    """
    if letter := control_letter(text):
        return bytes([ord(letter) ^ 64])
    if key := _KEYS.get(text.strip().upper()):
        return key.encode()
    lines = text.replace("\r\n", "\n").removesuffix("\n").replace("\n", ENTER)
    return (lines + ENTER).encode("utf-8", "replace")


def control_letter(text: str) -> str:
    """The character of a control key such as `C-c`, as a capital; empty for anything else."""
    match = _CONTROL.fullmatch(text.strip())
    return match[1].upper() if match else ""
