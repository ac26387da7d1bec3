"""How does a BMP image become a PNG, which every provider of models takes?

Uncompressed images of 8, 24 and 32 bits a pixel, which is what programs write.
Formats: https://learn.microsoft.com/windows/win32/gdi/bitmap-storage and RFC 2083.
"""

import struct
import zlib
from dataclasses import dataclass

_UNCOMPRESSED, _BIT_FIELDS = 0, 3
_USUAL_MASKS = (0xFF0000, 0xFF00, 0xFF)
_TRUE_COLOUR, _PALETTE = 2, 3
_FILE_HEADER_BYTES = 14


@dataclass(frozen=True)
class _Header:
    pixels_at: int
    palette_at: int
    width: int
    height: int
    """Negative when the top row comes first."""
    bits: int
    colours: int

    @property
    def row_bytes(self) -> int:
        """Rows are filled up to 4 bytes."""
        return (self.width * self.bits + 31) // 32 * 4


def png_of_bmp(data: bytes) -> bytes | None:
    """The same picture as a PNG; None for a kind of BMP that is not known here."""
    header = _header(data)
    if header is None:
        return None
    size, end = header.row_bytes, header.pixels_at + header.row_bytes * abs(header.height)
    if end > len(data):
        return None
    rows = [data[at : at + size] for at in range(header.pixels_at, end, size)]
    if header.height > 0:
        rows.reverse()
    kind = _PALETTE if header.bits == 8 else _TRUE_COLOUR
    pixels = b"".join(b"\0" + _row(row, header) for row in rows)  # 0: not filtered
    size_and_kind = struct.pack(">IIBBBBB", header.width, len(rows), 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", size_and_kind)]
    if kind == _PALETTE:
        chunks.append((b"PLTE", _palette(data, header)))
    chunks += [(b"IDAT", zlib.compress(pixels)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def _header(data: bytes) -> _Header | None:
    try:
        (pixels_at,) = struct.unpack_from("<I", data, 10)
        length, width, height, _, bits, compression = struct.unpack_from("<IiiHHI", data, 14)
        (colours,) = struct.unpack_from("<I", data, 46)
        masks = struct.unpack_from("<3I", data, 54) if compression == _BIT_FIELDS else _USUAL_MASKS
    except struct.error:
        return None
    is_plain = compression == _UNCOMPRESSED or (compression, bits) == (_BIT_FIELDS, 32)
    if not is_plain or masks != _USUAL_MASKS or bits not in (8, 24, 32) or width <= 0:
        return None
    return _Header(pixels_at, _FILE_HEADER_BYTES + length, width, height, bits, colours or 256)


def _row(row: bytes, header: _Header) -> bytes:
    """The pixels of a row: numbers of the palette, or red, green and blue."""
    if header.bits == 8:
        return row[: header.width]
    step = header.bits // 8
    pixels = bytearray(3 * header.width)
    for channel in range(3):  # they come as blue, green, red
        pixels[channel::3] = row[2 - channel : header.width * step : step]
    return bytes(pixels)


def _palette(data: bytes, header: _Header) -> bytes:
    colours = data[header.palette_at : header.palette_at + 4 * min(header.colours, 256)]
    return b"".join(colours[at : at + 3][::-1] for at in range(0, len(colours), 4))


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)
