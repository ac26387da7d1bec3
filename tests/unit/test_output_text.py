"""What a model is told of what Python printed and displayed."""

import base64
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from oh_kernel.tools.output_text import (
    EARLIER,
    MAX_IMAGE_CHARS,
    MAX_IMAGES,
    html_as_text,
    model_images,
    model_text,
)


@dataclass
class Piece:
    kind: str
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    late: bool = False


def png(width: int) -> str:
    """A black picture in base64."""
    rows = zlib.compress(b"\0" + bytes(3 * width))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, 1, 8, 2, 0, 0, 0)), (b"IDAT", rows)]
    written = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in [*parts, (b"IEND", b"")]
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + written).decode()


def test_progress_is_told_as_its_last_frame() -> None:
    bar = Piece("stream", "\r 10%|#\r 55%|#####\r100%|##########\n")
    assert model_text([bar, Piece("stream", "\x1b[31mred\x1b[0m\n")]) == "100%|##########\nred"


def test_displays_stand_on_lines_of_their_own() -> None:
    assert model_text([Piece("stream", "no newline"), Piece("result", "42")]) == "no newline\n42"


def test_every_line_of_earlier_work_is_marked() -> None:
    text = model_text([Piece("stream", "tick 1\ntick 2\n", late=True), Piece("stream", "mine\n")])
    assert text == f"{EARLIER}tick 1\n{EARLIER}tick 2\nmine"


def test_html_without_a_text_of_its_own_is_told_by_its_words() -> None:
    page = (
        "<style>b{}</style><h1>T</h1><table><tr><td>a</td><td>b</td></tr></table><script>x</script>"
    )
    shown = Piece("display", "<IPython.core.display.HTML object>", {"text/html": page})
    assert model_text([shown]) == "T\na\tb"
    assert html_as_text("a &amp; b<br>c") == "a & b\nc"


def test_last_pictures_only_and_none_too_large() -> None:
    small = [Piece("display", "fig", {"image/png": png(n + 1)}) for n in range(MAX_IMAGES + 2)]
    urls = model_images(small)
    assert len(urls) == MAX_IMAGES and urls[-1] == f"data:image/png;base64,{png(MAX_IMAGES + 2)}"
    large = Piece("display", "fig", {"image/png": "A" * (MAX_IMAGE_CHARS + 1)})
    assert model_images([large]) == []
    assert "too large" in model_text([large])


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ("no base64!", "is damaged"),
        (base64.b64encode(b"hello").decode(), "is damaged"),
        (png(9000), "has 9000 x 1 pixels"),
    ],
)
def test_pictures_that_providers_refuse_are_told_not_sent(picture: str, said: str) -> None:
    shown = Piece("display", "fig", {"image/png": picture})
    assert model_images([shown]) == []
    assert said in model_text([shown])


def test_a_picture_under_the_name_of_another_kind_is_sent_as_what_it_is() -> None:
    shown = Piece("display", "fig", {"image/jpeg": png(2)})
    assert model_images([shown]) == [f"data:image/png;base64,{png(2)}"]
    assert model_text([shown]) == "fig"
