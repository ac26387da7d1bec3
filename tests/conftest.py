"""Fixtures for all layers: no test sees the developer's own Jupyter, settings or keys."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.skips import pytest_configure  # noqa: F401 - it holds tests/allowed_skips.txt

OWN_VARIABLES = (
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "GROQ_",
    "IPYTHON",
    "JUPYTER_",
    "LLM_",
    "OPENAI_",
    "OPENHANDS_",
    "XDG_",
)


@pytest.fixture(autouse=True, scope="session")
def private_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder of the test run's own, and no variable that would change what is tested."""
    home = tmp_path_factory.mktemp("home")
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name.startswith(OWN_VARIABLES):
            patch.delenv(name)
    patch.setenv("HOME", str(home))
    patch.setenv("IPYTHONDIR", str(home / ".ipython"))
    patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    yield home
    patch.undo()
