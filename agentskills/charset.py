"""How are the bytes of a file read as text, so that no byte is lost on the way back?"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentskills.errors import NotEncodable

# The UTF-32 marks begin like the UTF-16 ones, so they are tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Formats of bytes that may happen to hold no NUL.
_BINARY_BEGINNINGS = (b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"7z\xbc\xaf")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_SAMPLE_BYTES = 64 * 1024
# All of them read ASCII as ASCII, but a double-byte one may swallow a letter after a high byte.
_SINGLE_BYTE = [
    "cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256",
    "mac_roman", "iso8859_2",
]  # fmt: skip
_DOUBLE_BYTE = ["cp932", "euc_jp", "cp949", "gb18030", "big5"]
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_FEW = 2  # characters that one may meet by accident
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANZI = re.compile("[\u4e00-\u9fff]")
# Half-width kana, Greek, Cyrillic, box drawing and what no Japanese types.
_NOT_JAPANESE = re.compile(
    "[^\x00-\x7f\u2010-\u2312\u25a0-\u266f\u3000-\u30ff\u4e00-\u9fff\uff01-\uff5e\uffe5]"
)
# The punctuation of GB 2312 and its first level of characters, which are nearly all of any text.
_EVERYDAY_CHINESE = re.compile(rb"(?:[\xa1\xa3\xb0-\xd7][\xa1-\xfe])*")
_ASCII = bytes(range(128))
_LETTERS_OF_HALF_WIDTH = re.compile("[\uff66-\uff9f]")
# Quotation marks, dashes, currencies and signs, as word processors put them into plain English.
_WESTERN_SIGNS = "€‚„…†‡‰‹‘’“”•–—™›¡¢£¥§©«¬®°±·»¼½¾¿\xa0".encode("cp1252")


@dataclass(frozen=True)
class Charset:
    """An encoding and its byte order mark; bytes without meaning become lone surrogates."""

    name: str
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text after the mark."""
        return data[len(self.mark) :].decode(self.name, self._errors)

    def width(self, text: str) -> int:
        """How many bytes a piece of decoded text takes in the file."""
        if text.isascii() and not self.is_wide:
            return len(text)
        return len(text.encode(self.name, self._errors))

    def encode(self, text: str) -> bytes:
        """New text as bytes, without the mark; NotEncodable when a character has none."""
        try:
            return text.encode(self.name)
        except UnicodeEncodeError as error:
            raise NotEncodable(text[error.start], self.name) from error

    @property
    def _errors(self) -> str:
        # A stray byte below 0x80 cannot be escaped, but UTF-16 needs only its lone surrogates kept.
        return "surrogatepass" if self.is_wide else "surrogateescape"

    @property
    def is_wide(self) -> bool:
        """Whether even ASCII takes more than a byte a character."""
        return self.name.startswith(("utf-16", "utf-32"))


def detect(data: bytes) -> Charset | None:
    """The charset of these bytes, or None when they are not text."""
    marked = _marked(data)
    if marked is not None:
        return marked if _reads_as_text(marked, data) else None
    if b"\0" in data:
        return None
    if _is_utf8(data):
        return Charset("utf-8")
    if data.startswith(_BINARY_BEGINNINGS) or _has_many_controls(data):
        return None
    return Charset(_guess(data))


def _marked(data: bytes) -> Charset | None:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Charset(name, mark)
    return None


def _reads_as_text(charset: Charset, data: bytes) -> bool:
    try:
        return "\0" not in charset.decode(data)
    except UnicodeDecodeError:
        return False


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _has_many_controls(data: bytes) -> bool:
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > len(sample) // 50


def _guess(data: bytes) -> str:
    """The most likely charset of bytes that are not wholly UTF-8."""
    sample = b"\n".join(_telling_lines(data))
    return "utf-8" if _is_mostly_utf8(sample) else _legacy_charset(sample)


def _telling_lines(data: bytes) -> Iterator[bytes]:
    """The first lines that say something about the charset: those with more than ASCII."""
    room = _SAMPLE_BYTES
    for line in data.split(b"\n"):
        if not line.isascii():
            yield line[:room]
            room -= len(line)
        if room <= 0:
            return


def _is_mostly_utf8(sample: bytes) -> bool:
    text = sample.decode("utf-8", "surrogateescape")
    stray = sum("\udc80" <= character <= "\udcff" for character in text)
    valid = sum(character > "\x7f" for character in text) - stray
    return 2 * valid >= stray  # in other charsets few pairs are UTF-8 by accident


def _legacy_charset(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # heavy: its tables, and only legacy files need it

    if not sample.translate(None, _ASCII + _WESTERN_SIGNS):
        return "cp1252"
    if certain := _east_asian_charset(sample):
        return certain
    in_runs = _has_runs_of_high_bytes(sample)
    readings = [
        (-match.coherence, name != "cp1252", rank, name)
        for rank, match in enumerate(from_bytes(sample, cp_isolation=_SINGLE_BYTE + _DOUBLE_BYTE))
        for name in match.could_be_from_charset
        if name in _SINGLE_BYTE
        or (name in _DOUBLE_BYTE and (in_runs or match.coherence) and _is_full_width(str(match)))
    ]
    # Short Western texts look equally good in many charsets; cp1252 is then the likeliest.
    return min(readings)[-1] if readings else "cp1252"


def _east_asian_charset(sample: bytes) -> str | None:
    """The charset in which the sample reads as wholly Japanese or Chinese text, however short.

    Statistics need more text than a few comments in a file; but that bytes of another charset
    make kana, or only everyday Chinese characters, hardly happens.
    """
    for name in ("cp932", "euc_jp"):
        text = _read_strictly(sample, name)
        if len(_KANA.findall(text)) >= _FEW and not _NOT_JAPANESE.search(text):
            return name
    is_chinese = _EVERYDAY_CHINESE.fullmatch(sample.translate(None, _ASCII))
    hanzi = _HANZI.findall(_read_strictly(sample, "gb2312"))
    is_korean = not _HANZI.search(_read_strictly(sample, "euc_kr") or "\u4e00")
    return "gb18030" if is_chinese and len(hanzi) >= _FEW and not is_korean else None


def _read_strictly(sample: bytes, name: str) -> str:
    """The sample read in this charset; empty when it cannot be."""
    try:
        return sample.decode(name)
    except UnicodeDecodeError:
        return ""


def _is_full_width(text: str) -> bool:
    """Whether East Asian text has the usual letters: other scripts' bytes are half-width kana."""
    return not _LETTERS_OF_HALF_WIDTH.search(text)


def _has_runs_of_high_bytes(sample: bytes) -> bool:
    """Whether high bytes stand together, as in Chinese and unlike accents in a Western word."""
    runs = _HIGH_BYTES.findall(sample)
    lone = sum(len(run) == 1 for run in runs)
    return len(runs) > 4 * lone
