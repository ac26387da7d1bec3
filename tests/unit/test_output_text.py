"""What a model is told of what Python printed and displayed."""

from dataclasses import dataclass, field
from typing import Any

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
    small = [Piece("display", "fig", {"image/png": f"{n}AAA"}) for n in range(MAX_IMAGES + 2)]
    urls = model_images(small)
    assert len(urls) == MAX_IMAGES and urls[-1] == f"data:image/png;base64,{MAX_IMAGES + 1}AAA"
    large = Piece("display", "fig", {"image/png": "A" * (MAX_IMAGE_CHARS + 1)})
    assert model_images([large]) == []
    assert "too large" in model_text([large])
