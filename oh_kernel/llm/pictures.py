"""Which pictures of a history are sent, and how, so that no provider refuses the request?

One picture that is too large would have every later request refused, as the history holds it for
ever. So each is looked at before it is sent: scaled where it can be, else a sentence in its place.
The same picture always becomes the same bytes, for the sake of prompt caches. What is stored stays
as it is.
"""

import base64
import binascii
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from agentskills.images import ImageHeader, read_header
from oh_kernel.events import ImageContent, Message

if TYPE_CHECKING:
    from PIL import Image

MAX_BASE64_BYTES = 5 * 1024 * 1024
MAX_BYTES = MAX_BASE64_BYTES // 4 * 3
MAX_SIDE = 8000
# Providers scale down to less than this themselves; beyond `MANY` pictures they refuse more.
SIDE = 2000
MANY = 20
SENDABLE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SCALED = 0.7
_QUALITY = 85

UNREADABLE = "[A picture is left out here: its data cannot be read.]"
REFUSED = "[A picture is left out here: the provider refused it.]"


@dataclass(frozen=True)
class Picture:
    """A picture as it is sent."""

    data: bytes
    media_type: str


def fitted(url: str, *, many: bool = False) -> Picture | str:
    """The picture of a data URL as it may be sent, or a sentence that says why it is not.

    `many`: whether the request has more than `MANY` pictures.
    """
    found = _fitted(url)
    if many and isinstance(found, Picture) and not _is_small(found.data, SIDE):
        return _left_out(read_header(found.data), found.media_type, f"{SIDE} pixels a side")
    return found


def key_of(url: str) -> str:
    """By what a picture is known again."""
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()


def urls_of(messages: Sequence[Message]) -> list[str]:
    """The addresses, mostly of data, of all pictures in a history."""
    return [
        url
        for message in messages
        for part in message.content
        if isinstance(part, ImageContent)
        for url in part.image_urls
    ]


@lru_cache(maxsize=64)
def _fitted(url: str) -> Picture | str:
    picture = _read(url)
    if picture is None:
        return UNREADABLE
    header = read_header(picture.data)
    is_known = header is not None and header.mime_type in SENDABLE_TYPES
    if is_known and len(picture.data) <= MAX_BYTES and _is_small(picture.data, SIDE):
        assert header is not None
        return Picture(picture.data, header.mime_type)  # whatever its label says
    try:
        return _redrawn(picture.data)
    except ImportError:
        if is_known and len(picture.data) <= MAX_BYTES and _is_small(picture.data, MAX_SIDE):
            return picture
        limit = f"{MAX_SIDE} pixels a side and {MAX_BYTES} bytes"
        return _left_out(header, picture.media_type, limit, remedy="; with Pillow it is scaled")
    except Exception:  # what a decoder may stumble over has no common name
        return UNREADABLE


def _read(url: str) -> Picture | None:
    head, _, encoded = url.partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    return Picture(data, media_type) if data and media_type.startswith("image/") else None


def _is_small(data: bytes, side: int) -> bool:
    header = read_header(data)
    return header is not None and max(header.width, header.height) <= side


def _left_out(header: ImageHeader | None, kind: str, limit: str, remedy: str = "") -> str:
    what = f"{header.width} x {header.height} pixels" if header else kind
    return f"[A picture is left out here: {what}; what is sent has at most {limit}{remedy}.]"


def _redrawn(data: bytes) -> Picture:
    """The picture within the limits, as a PNG, or as a JPEG where that is too long.

    Raises ImportError without Pillow, and its errors for what is no picture or a bomb.
    """
    from PIL import Image  # comes with matplotlib; none of what a kernel needs

    with Image.open(io.BytesIO(data)) as opened:
        opened.draft("RGB", (SIDE, SIDE))
        opened.thumbnail((SIDE, SIDE))
        image = opened.convert("RGBA" if opened.has_transparency_data else "RGB")
    while True:
        png = _encoded(image, "PNG")
        if len(png) <= MAX_BYTES:
            return Picture(png, "image/png")
        jpeg = _encoded(image.convert("RGB"), "JPEG", quality=_QUALITY)
        if len(jpeg) <= MAX_BYTES:
            return Picture(jpeg, "image/jpeg")
        image = image.resize([max(1, round(side * _SCALED)) for side in image.size])


def _encoded(image: "Image.Image", form: Literal["PNG", "JPEG"], **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
