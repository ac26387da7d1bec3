"""Fixtures for all layers: no test sees the developer's own Jupyter, settings or keys.

And for all properties: how long an example takes says nothing on a machine that others use, too.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.experiments import LONG
from tests.skips import pytest_configure  # noqa: F401 - it holds tests/allowed_skips.txt

# A change is judged by the same examples each time; new ones are looked for in the long runs.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

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
def usual_signals() -> None:
    """Heed what a shell ignores for jobs in the background and for `nohup`, in children as well."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
