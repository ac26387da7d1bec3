"""How is what Python printed and displayed told to a model?"""

from base64 import b64decode
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any, Protocol

from agentskills.images import ImageHeader, read_header
from oh_kernel.events.text import without_lone_surrogates
from oh_kernel.sessions.screen import readable
from oh_kernel.tools.file_answers import MAX_IMAGE_SIDE

MAX_IMAGES = 4
MAX_IMAGE_CHARS = 4_500_000
"""Of one picture in base64; providers refuse more than 5 MB."""
EARLIER = "[from code that was started earlier] "

_IMAGES = ("image/png", "image/jpeg")
_TEXTS = ("text/markdown", "text/latex", "application/json")
_BREAKS = {"br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "table"}


class Output(Protocol):
    """A piece of output, as a namespace records it."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
    @property
    def late(self) -> bool: ...


def model_text(outputs: Iterable[Output]) -> str:
    """The text of `outputs`: progress bars as their last frame, displays by their plain text."""
    pieces: list[str] = []
    for output in outputs:
        text = readable(without_lone_surrogates(_text(output)).encode())
        if output.late:
            text = _marked(text)
        if text and output.kind != "stream":
            text = text.rstrip("\n") + "\n"
        if text and pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(text)
    return "".join(pieces).rstrip("\n")


def model_images(outputs: Iterable[Output]) -> list[str]:
    """The last few pictures among `outputs`, as `data:` URLs.

    What a provider refuses is left out: it would spoil every later request of the conversation.
    """
    urls = []
    for output in outputs:
        for mime in _IMAGES:
            encoded = _encoded(output, mime)
            if encoded and not _why_unfit(encoded):
                header = _header(encoded)
                urls.append(f"data:{header.mime_type if header else mime};base64,{encoded}")
                break
    return urls[-MAX_IMAGES:]


def _encoded(output: Output, mime: str) -> str:
    """The base64 of a picture, without the line ends that some write into it; empty for none."""
    return "".join(str(output.data.get(mime, "")).split())


def _why_unfit(encoded: str) -> str:
    """Why a picture cannot be sent to a model; empty if it can."""
    if len(encoded) > MAX_IMAGE_CHARS:
        return "is too large to be sent to you"
    header = _header(encoded)
    if header is None or header.mime_type not in _IMAGES:
        return "is damaged"
    if max(header.width, header.height) > MAX_IMAGE_SIDE:
        return f"has {header.width} x {header.height} pixels, too many to be sent to you"
    return ""


def _header(encoded: str) -> ImageHeader | None:
    """What a picture says of itself; None for what is none."""
    try:
        return read_header(b64decode(encoded, validate=True))
    except ValueError:  # no base64, or no ASCII
        return None


def _marked(text: str) -> str:
    """Each line with the mark of work that began in an earlier call."""
    lines = text.splitlines(keepends=True)
    return "".join(EARLIER + line if line.strip() else line for line in lines)


def _text(output: Output) -> str:
    pictures = [encoded for mime in _IMAGES if (encoded := _encoded(output, mime))]
    if pictures and all(reasons := [_why_unfit(encoded) for encoded in pictures]):
        return f"{output.text} [the picture {reasons[0]}]"
    if not output.text.startswith("<IPython.core.display."):
        return output.text
    for mime in _TEXTS:
        if mime in output.data:
            return str(output.data[mime])
    html = output.data.get("text/html")
    return html_as_text(str(html)) if html else output.text


def html_as_text(html: str) -> str:
    """The words of an HTML fragment, cells of a table apart, rows on lines of their own.

    >>> html_as_text("<table><tr><td>a</td><td>b</td></tr><tr><td>c &lt; d</td></tr></table>")
    'a\\tb\\nc < d'
    """
    parser = _Words()
    parser.feed(html)
    parser.close()
    lines = (line.strip() for line in "".join(parser.pieces).splitlines())
    return "\n".join(line for line in lines if line)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._silent += 1
        if tag in _BREAKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._silent = max(0, self._silent - 1)
        if tag in ("td", "th"):
            self.pieces.append("\t")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data)
