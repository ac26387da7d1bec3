"""What is an event's JSON without the secrets in it?

Strings are masked one by one, not the text of the JSON: there the `t` of a tab's escape would count
as a letter, and a name of the format could be taken for a secret.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from oh_kernel.sessions.masking import Forms

# Set by us, never by a model or a tool, and needed to read the event again.
_OURS = frozenset({"id", "timestamp", "action_id", "llm_response_id"})
# Words of the format, as long as they are words: a password may be `terminal`.
_FORMAT = frozenset({"kind", "source", "role", "type", "origin", "tool_name", "name", "key"})
_WORD = re.compile(r"[A-Za-z_]{1,40}")


def hidden_in_json(text: str, forms: Forms) -> str | None:
    """`text`, an object as JSON, with secrets hidden in its strings; None if there are none."""
    data = json.loads(text)
    # A look at all strings at once is many times as fast, and most events hold no secret.
    if not forms.found_in("\0".join(_strings(data, ""))):
        return None
    return json.dumps(_hidden(data, "", forms), ensure_ascii=False)


def _strings(value: Any, key: str) -> Iterator[str]:
    match value:
        case str():
            if not _is_fixed(key, value):
                yield value
        case dict():
            for name, inner in value.items():
                if not _is_fixed("name", name):
                    yield name
                yield from _strings(inner, name)
        case list():
            for inner in value:
                yield from _strings(inner, key)


def _hidden(value: Any, key: str, forms: Forms) -> Any:
    match value:
        case str():
            return value if _is_fixed(key, value) else _hidden_text(value, forms)
        case dict():
            return {
                name if _is_fixed("name", name) else forms.hide(name): _hidden(inner, name, forms)
                for name, inner in value.items()
            }
        case list():
            return [_hidden(inner, key, forms) for inner in value]
    return value


def _is_fixed(key: str, text: str) -> bool:
    return key in _OURS or (key in _FORMAT and _WORD.fullmatch(text) is not None)


def _hidden_text(text: str, forms: Forms) -> str:
    """`text` masked; what is JSON itself, such as the arguments of a call, stays JSON."""
    masked = forms.hide(text)
    if masked == text or not text.startswith(("{", "[")):
        return masked
    try:
        data = json.loads(text)
    except ValueError:
        return masked
    return json.dumps(_hidden(data, "", forms), ensure_ascii=False)
