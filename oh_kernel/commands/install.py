"""How does Jupyter get to know the kernel?

`pip install` alone makes it known in its own environment. This is for a JupyterLab that lives in
another one: the kernelspec then names this interpreter by its absolute path.
"""

import argparse
import json
import shutil
import sys
import tempfile
from importlib.metadata import files
from pathlib import Path
from typing import Any

from oh_kernel.errors import SettingsError
from oh_kernel.installing import ours, pip_install

NAME = "openhands"


def install(arguments: argparse.Namespace) -> int:
    """`oh-kernel install`: write a kernelspec, by default for this user alone."""
    prefix = sys.prefix if arguments.sys_prefix else arguments.prefix
    place = write_kernelspec(arguments.name, prefix=prefix, display_name=arguments.display_name)
    print(f"The kernel {arguments.name} is in {place}; it runs with {sys.executable}.")
    return 0


def write_kernelspec(
    name: str = NAME, *, prefix: str | None = None, display_name: str | None = None
) -> Path:
    """Write the kernelspec and return its folder. Without `prefix` it is for this user alone."""
    from jupyter_client.kernelspec import KernelSpecManager  # imports traitlets

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, NAME)
        shutil.copytree(shipped_kernelspec(), source)
        spec = kernelspec(name, display_name)
        (source / "kernel.json").write_text(json.dumps(spec, indent=2) + "\n", "utf-8")
        try:
            place = KernelSpecManager().install_kernel_spec(
                str(source), name, user=prefix is None, prefix=prefix
            )
        except (ValueError, PermissionError) as error:
            raise SettingsError(
                f"The kernelspec {name!r} cannot be written: {error}.",
                remedy="Choose another --name or --prefix, or --user.",
            ) from error
    return Path(place)


def kernelspec(name: str, display_name: str | None = None) -> dict[str, Any]:
    """What kernel.json says, with this interpreter by its absolute path."""
    spec: dict[str, Any] = json.loads((shipped_kernelspec() / "kernel.json").read_text("utf-8"))
    # Not resolved: the link in an environment's bin folder is what makes it that environment.
    spec["argv"][0] = sys.executable
    if display_name or name != NAME:
        spec["display_name"] = display_name or f"{spec['display_name']} [{name}]"
    return spec


def shipped_kernelspec() -> Path:
    """The folder of the kernelspec that came with the package."""
    for file in files("oh-kernel") or ():
        if file.parts[-2:] == (NAME, "kernel.json"):
            place = Path(str(file.locate())).resolve().parent
            if place.is_dir():
                return place
    raise SettingsError(
        "The kernelspec that ships with oh-kernel is missing.",
        remedy=f"Install it again: {pip_install('--force-reinstall', ours())}",
    )
