"""Who writes to stdout while it is for events alone?"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def only_ours() -> Iterator[TextIO]:
    """A stream to the stdout of this process that nothing else can write to: what the agent's
    code and its children print goes to stderr meanwhile.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with (
            os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream,
            redirect_stdout(sys.stderr),
        ):
            yield stream
    finally:
        os.dup2(kept, 1)
        os.close(kept)
