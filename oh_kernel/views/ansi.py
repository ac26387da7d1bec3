"""How do a command's colours look in HTML?"""

import re
from collections.abc import Iterator

from oh_kernel.views.escape import escape, strip_ansi

_SGR = re.compile(r"\x1b\[([0-9;]*)m")
# Mid tones: legible on a white and on a dark page, where pure terminal colours are not.
_COLOURS = ("#7a7a7a", "#d1433f", "#2f9e44", "#b7791f", "#3b82d6", "#a855c7", "#1799a3", "#8a8a8a")
_TEXT_STYLES = {
    1: "font-weight:bold",
    2: "opacity:.75",
    3: "font-style:italic",
    4: "text-decoration:underline",
}


def ansi_to_html(text: str) -> str:
    """Escaped HTML in which SGR colours are spans; every other escape sequence is left out.

    >>> ansi_to_html("\\x1b[31m<no>\\x1b[0m")
    '<span style="color:#d1433f">&lt;no&gt;</span>'
    """
    return "".join(_span(style, part) for style, part in _runs(text) if part)


def _runs(text: str) -> Iterator[tuple[str, str]]:
    style: dict[str, str] = {}
    start = 0
    for match in _SGR.finditer(text):
        yield ";".join(style.values()), strip_ansi(text[start : match.start()])
        _apply(match.group(1), style)
        start = match.end()
    yield ";".join(style.values()), strip_ansi(text[start:])


def _span(style: str, text: str) -> str:
    return f'<span style="{style}">{escape(text)}</span>' if style else escape(text)


def _apply(codes: str, style: dict[str, str]) -> None:
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style.clear()
        elif code in _TEXT_STYLES:
            style[f"text{code}"] = _TEXT_STYLES[code]
        elif code == 22:
            style.pop("text1", None)
            style.pop("text2", None)
        elif code in (23, 24):
            style.pop(f"text{code - 20}", None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["color"] = f"color:{_COLOURS[code % 10]}"
        elif code == 39:
            style.pop("color", None)
        elif code in (38, 48):
            _apply_extended(code, numbers, style)


def _apply_extended(code: int, numbers: list[int], style: dict[str, str]) -> None:
    """Takes the arguments of a 256-colour or true-colour code; backgrounds are not drawn."""
    mode = numbers.pop(0) if numbers else 0
    arguments = [numbers.pop(0) for _ in range({5: 1, 2: 3}.get(mode, 0)) if numbers]
    if code == 38 and mode == 5 and arguments:
        style["color"] = f"color:{_indexed(arguments[0])}"
    elif code == 38 and mode == 2 and len(arguments) == 3:
        style["color"] = "color:#" + "".join(f"{min(part, 255):02x}" for part in arguments)


def _indexed(index: int) -> str:
    if index < 16:
        return _COLOURS[index % 8]
    if index >= 232:
        return "#" + f"{min(8 + (index - 232) * 10, 255):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    cube = index - 16
    return "#" + "".join(f"{levels[part]:02x}" for part in (cube // 36, cube // 6 % 6, cube % 6))
