"""What if a standard stream is closed, full, or read by nobody any more?"""

import os
import sys
from typing import TextIO


def ensure_open() -> None:
    """Have all three standard streams lead somewhere, and take any character.

    Where one is closed, the next file that is opened would get its number: a database, say, into
    which every child process would then print.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode))
    if hasattr(sys.stdout, "reconfigure"):  # a test may have put something else there
        sys.stdout.reconfigure(errors="backslashreplace")


def discard(stream: TextIO) -> None:
    """Let go of what the stream still holds and of what comes: there is nobody to take it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Output:
    """A text stream that falls silent when it fails; what it is written about goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str, /) -> None:
        """Write and show `text`."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self.error = error
            discard(self._stream)

    def flush(self) -> None:
        """Nothing to do: `write` does."""
