"""How is text made fit to be stored as UTF-8 and sent as JSON?"""

from typing import Any


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


def _mend(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _mend_key(key: Any) -> Any:
    return _mend(key) if isinstance(key, str) else key
