"""Which kernelspecs start our kernel, and would they?

The usual trouble: JupyterLab in one environment, the kernel in another, and a kernelspec that names
neither or an interpreter that is gone.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from oh_kernel.commands.findings import Finding, note, ok, wrong
from oh_kernel.installing import ours, pip_install

ANSWER_WITHIN_S = 60.0
_ASK_VERSION = "import importlib.metadata as m, oh_kernel; print(m.version('oh-kernel'))"
REINSTALL = "Run: oh-kernel install --user"


def check_kernelspecs() -> Iterator[Finding]:
    """A finding for each kernelspec of ours that this environment's Jupyter sees."""
    from jupyter_client.kernelspec import KernelSpecManager  # imports traitlets

    ours = {
        name: found
        for name, found in sorted(KernelSpecManager().get_all_specs().items())
        if "oh_kernel" in found["spec"]["argv"]
    }
    if not ours:
        yield wrong("Jupyter knows no kernel of ours.", REINSTALL)
    for name, found in ours.items():
        yield _check(name, Path(found["resource_dir"]), found["spec"]["argv"][0])
    yield from _check_lab(ours)


def _check(name: str, folder: Path, python: str) -> Finding:
    """Jupyter replaces a bare `python` by its own interpreter; an absolute path stays."""
    relative = not Path(python).is_absolute()
    program = sys.executable if relative else python
    what = f"kernelspec {name} ({folder})"
    if not Path(program).exists():
        return wrong(f"{what}: its Python {program} is gone.", _replace(name))
    found = _version_in(program)
    if found is None:
        return wrong(f"{what}: {program} cannot import oh_kernel.", _replace(name))
    if found != version("oh-kernel"):
        return wrong(
            f"{what}: {program} has oh-kernel {found}, here it is {version('oh-kernel')}.",
            f"Install the same there: {pip_install('--upgrade', ours(), python=program)}",
        )
    return ok(f"{what}: runs {program}, oh-kernel {found}")


def _replace(name: str) -> str:
    return f"Run: oh-kernel install --user --name {name}"


def _version_in(program: str) -> str | None:
    """The version of ours that this interpreter imports; -P: not from the working folder."""
    try:
        answer = subprocess.run(
            [program, "-P", "-c", _ASK_VERSION],
            capture_output=True,
            text=True,
            timeout=ANSWER_WITHIN_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _check_lab(ours: dict[str, dict[str, object]]) -> Iterator[Finding]:
    """Whether the JupyterLab that a shell would start is this environment's."""
    found = shutil.which("jupyter-lab")
    here = Path(sys.executable).parent
    if found is None and not (here / "jupyter-lab").exists():
        yield note(
            "JupyterLab is not on PATH.",
            f"For one in this environment: {pip_install('jupyterlab')}",
        )
    elif found is None or Path(found).parent == here:
        yield ok(f"JupyterLab of this environment ({here / 'jupyter-lab'})")
    else:
        yield from _check_other_lab(Path(found), ours)


def _check_other_lab(lab: Path, ours: dict[str, dict[str, object]]) -> Iterator[Finding]:
    """Another environment's Lab sees only kernelspecs that are outside of ours."""
    folders = [Path(str(found["resource_dir"])) for found in ours.values()]
    seen = [folder for folder in folders if not folder.is_relative_to(sys.prefix)]
    if seen:
        yield ok(f"JupyterLab of another environment ({lab}) sees the kernel in {seen[0]}")
    else:
        yield wrong(f"JupyterLab is in another environment ({lab}).", REINSTALL)
    yield note(
        "Clickable diffs need the widgets in JupyterLab's environment too.",
        f"Run: {pip_install('anywidget', 'ipywidgets', python=str(lab.parent / 'python'))}",
    )
