"""How is JupyterLab started with the kernel in it?"""

import argparse
import importlib.util
import os
import sys

from oh_kernel.errors import SettingsError
from oh_kernel.installing import pip_install


def lab(arguments: argparse.Namespace) -> int:
    """`oh-kernel lab`: this process becomes JupyterLab, so that C-c reaches it."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise SettingsError(
            "JupyterLab is not installed in this environment.",
            remedy=f"Run: {pip_install('jupyterlab')}. Or, to use the JupyterLab of another "
            "environment: oh-kernel install --user",
        )
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *arguments.words])
