"""How is text made fit to be stored as UTF-8, sent as JSON, and read by a model?"""

import json
import math
from typing import Any, NoReturn

CLIPPED = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been "
    "shown to you.</NOTE>"
)


def parsed_json(text: str, *, strict: bool = True) -> Any:
    """What `json.loads` gives, but a ValueError for what Python alone takes for JSON: numbers that
    are not finite, which providers refuse, and nesting without end.

    >>> parsed_json('{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: NaN is not a JSON number
    """
    try:
        return json.loads(
            text, strict=strict, parse_constant=_no_number, parse_float=_finite_number
        )
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def without_lone_surrogates(value: Any) -> Any:
    """`value` with each unpaired surrogate in its strings replaced by U+FFFD; pairs are joined.

    Walks dictionaries, lists and tuples; anything else is returned as it is.

    >>> without_lone_surrogates(["a\\ud83d", "\\ud83d\\ude00"])
    ['a�', '😀']
    """
    match value:
        case str():
            return _mend(value)
        case dict():
            return {_mend_key(k): without_lone_surrogates(v) for k, v in value.items()}
        case list() | tuple():
            return [without_lone_surrogates(v) for v in value]
        case _:
            return value


def clip(text: str, max_chars: int, notice: str = CLIPPED) -> str:
    """`text` cut in its middle to exactly `max_chars` characters, with `notice` where it was cut.

    The head gets the odd character; the notice itself is cut when it alone is too long.

    >>> clip("abcdefghij", 7, "..")
    'abc..ij'
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(notice)
    if room <= 0:
        return notice[:max_chars]
    head = (room + 1) // 2
    tail = room - head
    return text[:head] + notice + (text[-tail:] if tail else "")


def _mend(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _mend_key(key: Any) -> Any:
    return _mend(key) if isinstance(key, str) else key


def _finite_number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:40]} is not a JSON number")
