"""The lines that say how to install something work when they are pasted into a shell."""

import shlex
import subprocess
import sys
from pathlib import Path

from oh_kernel.installing import ours, pip_install


def test_the_line_names_this_interpreter_and_survives_a_shell() -> None:
    line = pip_install("pandas", "pydantic-ai-slim[groq]")
    words = [sys.executable, "-m", "pip", "install", "pandas", "pydantic-ai-slim[groq]"]
    assert shlex.split(line) == words
    assert shlex.split(pip_install("x", python="/my env/python"))[0] == "/my env/python"


def test_what_came_from_a_folder_is_installed_from_there() -> None:
    assert (Path(ours()) / "pyproject.toml").is_file()


def test_a_missing_library_is_named_itself() -> None:
    """Once all of ours is imported, no library is found any more."""
    code = (
        "import locale, sys\n"  # locale: argparse of newer Pythons imports it late
        "from oh_kernel.cli import main; from oh_kernel.commands import demo, lab\n"
        "sys.path.clear(); print(main(['demo']), main(['lab']))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "1 1\n"
    assert f"{sys.executable} -m pip install matplotlib nbclient pandas" in run.stderr
    assert f"{sys.executable} -m pip install jupyterlab" in run.stderr
    assert "oh-kernel[" not in run.stderr
