"""How are secrets kept out of what our modules log?

Messages and tracebacks of loggers called `oh_kernel...` are masked where their records are made,
so that it holds for every handler, and for loggers that come to be later. Others' are left alone.
"""

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

Mask = Callable[[str], str]

# Of the conversations that are open. What one of them hides is hidden in all that we log.
_masks: WeakSet[Mask] = WeakSet()
_PACKAGE = __name__.partition(".")[0]


def hide_in_logs(mask: Mask) -> None:
    """Have `mask` applied to all that we log, for as long as somebody else keeps it."""
    _masks.add(mask)
    made = logging.getLogRecordFactory()
    if not isinstance(made, _MaskedRecords):
        logging.setLogRecordFactory(_MaskedRecords(made))


class _MaskedRecords:
    """A factory of records that goes by another one and masks those of ours."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        if record.name.partition(".")[0] == _PACKAGE:
            _mask(record)
        return record


def _mask(record: logging.LogRecord) -> None:
    record.msg, record.args = _hidden(record.getMessage()), ()
    if record.exc_info:
        record.exc_text = _hidden(logging.Formatter().formatException(record.exc_info))
        record.exc_info = None  # of which a handler would make the traceback anew


def _hidden(text: str) -> str:
    for mask in tuple(_masks):
        text = mask(text)
    return text
