"""Images are recognised by their content."""

import io

import pytest
from PIL import Image

from agentskills.bitmaps import png_of_bmp
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


def pattern(mode: str) -> Image.Image:
    image = Image.frombytes("RGB", (5, 3), bytes(range(0, 225, 5)))
    return image if mode == "RGB" else image.convert(mode)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L"])
def test_a_bmp_becomes_the_same_picture_as_png(mode: str) -> None:
    file = io.BytesIO()
    pattern(mode).save(file, "BMP")
    png = png_of_bmp(file.getvalue())
    assert png and read_header(png) == ImageHeader("image/png", 5, 3)
    shown, expected = Image.open(io.BytesIO(png)), Image.open(io.BytesIO(file.getvalue()))
    assert shown.convert("RGB").tobytes() == expected.convert("RGB").tobytes()


def test_a_bmp_whose_top_row_comes_first() -> None:
    file = io.BytesIO()
    pattern("RGB").transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(file, "BMP")
    data = bytearray(file.getvalue())
    data[22:26] = (-3).to_bytes(4, "little", signed=True)
    png = png_of_bmp(bytes(data))
    assert png and Image.open(io.BytesIO(png)).tobytes() == pattern("RGB").tobytes()


def test_a_bmp_of_an_unknown_kind_is_not_guessed_at() -> None:
    file = io.BytesIO()
    pattern("RGB").save(file, "BMP")
    data = file.getvalue()
    assert all(png_of_bmp(data[:length]) is None for length in range(len(data)))
    compressed = data[:30] + (1).to_bytes(4, "little") + data[34:]
    assert png_of_bmp(compressed) is None
    one_bit = io.BytesIO()
    pattern("1").save(one_bit, "BMP")
    assert png_of_bmp(one_bit.getvalue()) is None
