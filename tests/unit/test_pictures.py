"""Which pictures reach a provider, whatever the history holds?"""

import base64
import io
import subprocess
import sys

import pytest
from PIL import Image

from agentskills.images import read_header
from oh_kernel.llm.pictures import (
    MAX_BASE64_BYTES,
    UNREADABLE,
    Picture,
    fitted,
)


def url_of(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def drawn(size: tuple[int, int], form: str = "PNG", mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, 100).save(out, form)
    return out.getvalue()


def noise(side: int) -> bytes:
    out = io.BytesIO()
    channels = [Image.effect_noise((side, side), 200) for _ in "RGB"]
    Image.merge("RGB", channels).save(out, "PNG")
    return out.getvalue()


def size_of(picture: Picture | str) -> tuple[int, int]:
    assert isinstance(picture, Picture), picture
    header = read_header(picture.data)
    assert header is not None
    assert header.mime_type == picture.media_type
    return header.width, header.height


def test_a_small_picture_goes_as_it_is() -> None:
    data = drawn((30, 20))
    assert fitted(url_of(data), many=True) == Picture(data, "image/png")


def test_the_kind_is_what_the_bytes_say() -> None:
    data = drawn((30, 20), "JPEG")
    assert fitted(url_of(data, "image/png")) == Picture(data, "image/jpeg")


@pytest.mark.parametrize("size", [(200, 9000), (9000, 200), (2001, 1), (5000, 5000)])
def test_a_long_side_is_scaled(size: tuple[int, int]) -> None:
    assert max(size_of(fitted(url_of(drawn(size))))) == 2000


def test_many_bytes_become_fewer() -> None:
    data = noise(1400)
    assert len(base64.b64encode(data)) > MAX_BASE64_BYTES
    picture = fitted(url_of(data))
    size_of(picture)
    assert isinstance(picture, Picture)
    assert len(base64.b64encode(picture.data)) <= MAX_BASE64_BYTES


@pytest.mark.parametrize(("form", "mode"), [("BMP", "RGB"), ("TIFF", "CMYK"), ("TIFF", "I;16")])
def test_formats_that_no_provider_takes_are_drawn_anew(form: str, mode: str) -> None:
    assert size_of(fitted(url_of(drawn((30, 20), form, mode), f"image/{form.lower()}"))) == (30, 20)


def test_what_shines_through_still_does() -> None:
    picture = fitted(url_of(drawn((3000, 10), mode="RGBA")))
    assert isinstance(picture, Picture)
    assert Image.open(io.BytesIO(picture.data)).mode == "RGBA"


@pytest.mark.parametrize(
    "url",
    [
        url_of(b"\x89PNG\r\n\x1a\nnot really"),
        url_of(drawn((3000, 3000))[:200]),
        url_of(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        url_of(b""),
        url_of(b"PK", "application/zip"),
        "data:image/png;base64,%%%",
        "data:",
    ],
)
def test_what_cannot_be_read_is_a_sentence(url: str) -> None:
    assert fitted(url) == UNREADABLE


WITHOUT_PILLOW = """
import sys
sys.modules["PIL"] = None
from oh_kernel.llm.pictures import fitted
for many in (False, True):
    found = fitted(sys.stdin.readline().strip(), many=many)
    print(found if isinstance(found, str) else "sent")
"""


@pytest.mark.parametrize(
    ("size", "few", "many"),
    [
        ((2000, 10), "sent", "sent"),
        ((7000, 10), "sent", "7000 x 10 pixels; what is sent has at most 2000 pixels a side"),
        ((200, 9000), "200 x 9000 pixels; what is sent", "; with Pillow it is scaled"),
    ],
)
def test_without_pillow(size: tuple[int, int], few: str, many: str) -> None:
    lines = f"{url_of(drawn(size))}\n" * 2
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PILLOW], input=lines, capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    assert few in first
    assert many in second
