"""Images are recognised by their content."""

import io

import pytest
from PIL import Image

from agentskills.images import ImageHeader, read_header

KINDS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
}


def made(form: str, mode: str = "RGB", **options: object) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (31, 17), 7 if mode == "L" else None).save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize("form", KINDS)
def test_kind_and_size_are_read_from_the_header(form: str) -> None:
    assert read_header(made(form)) == ImageHeader(KINDS[form], 31, 17)


@pytest.mark.parametrize(
    ("form", "mode", "options"),
    [
        ("WEBP", "RGB", {"lossless": True}),
        ("WEBP", "RGBA", {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}),
        ("JPEG", "L", {"progressive": True, "comment": b"a comment"}),
        ("PNG", "L", {}),
    ],
)
def test_variants(form: str, mode: str, options: dict[str, object]) -> None:
    assert read_header(made(form, mode, **options)) == ImageHeader(KINDS[form], 31, 17)


@pytest.mark.parametrize("form", KINDS)
def test_a_header_that_ends_too_early_is_no_image(form: str) -> None:
    data = made(form)
    assert all(read_header(data[:length]) is None for length in range(14))


def test_a_png_cut_short_or_altered_is_no_image() -> None:
    data = made("PNG")
    assert read_header(data[:-20]) is None
    assert read_header(data[:18] + b"\xff" + data[19:]) is None
    assert read_header(b"plain text") is None
    assert read_header(b"\xff\xd8\xff") is None
