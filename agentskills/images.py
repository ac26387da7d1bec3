"""What kind of image are these bytes, and how many pixels has it? Read from the header alone."""

import struct
import zlib
from dataclasses import dataclass

_GIF_HEADER_BYTES = 13
_JPEG_SIZE_MARKERS = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True)
class ImageHeader:
    """What an image says of itself."""

    mime_type: str
    width: int
    height: int


def read_header(data: bytes) -> ImageHeader | None:
    """The header of a PNG, JPEG, GIF, WebP or BMP image; None when the bytes are no such image."""
    for mime_type, size_of in _READERS.items():
        try:
            size = size_of(data)
        except (struct.error, IndexError):  # the bytes end too early
            continue
        if size is not None and min(size) > 0:
            return ImageHeader(mime_type, *size)
    return None


def _png_size(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR") or b"IEND" not in data[-64:]:
        return None
    (checksum,) = struct.unpack_from(">I", data, 29)
    if zlib.crc32(data[12:29]) != checksum:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_SIZE_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:  # padding
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    return None


def _gif_size(data: bytes) -> tuple[int, int] | None:
    if not data.startswith((b"GIF87a", b"GIF89a")) or len(data) < _GIF_HEADER_BYTES + 1:
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp_size(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    form = data[12:16]
    if form == b"VP8X":
        width, height = data[24:27], data[27:30]
        return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
    if form == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        wide, high = struct.unpack_from("<HH", data, 26)
        return wide & 0x3FFF, high & 0x3FFF
    return None


def _bmp_size(data: bytes) -> tuple[int, int] | None:
    if not data.startswith(b"BM"):
        return None
    (header_length,) = struct.unpack_from("<I", data, 14)
    if header_length < 40:
        return None
    width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height)  # a negative height means that the top row comes first


_READERS = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
    "image/bmp": _bmp_size,
}
