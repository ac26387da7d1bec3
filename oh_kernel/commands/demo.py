"""How does a newcomer see the agent at work? The quickstart notebook, in the real kernel."""

import argparse
import importlib.util
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from oh_kernel.commands.install import shipped_kernelspec
from oh_kernel.errors import OpenHandsError, SettingsError
from oh_kernel.installing import pip_install
from oh_kernel.settings import child_environment, load_settings

NOTEBOOK = "quickstart.ipynb"
FILES = "quickstart_files"
SCRIPT = "quickstart.script.json"
NEEDS = ("matplotlib", "nbclient", "pandas")


# Folders in build of what libraries write for a user: its history of cells, its cache of fonts.
PRIVATE = {"IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}


def demo(arguments: argparse.Namespace) -> int:
    """`oh-kernel demo`: 0 when every cell ran through; build/quickstart.ipynb is what came out."""
    _check_libraries()
    source = _shipped_notebooks()
    build = Path.cwd() / "build"
    variables = _model(source)
    notebook = _laid_out(source, build)
    failed = _run(notebook, variables)
    print(_what_next(notebook, scripted="OPENHANDS_MODEL" in variables))
    return int(failed)


def _model(source: Path) -> dict[str, str]:
    """Says whose words these are, and gives the variables of the kernel."""
    settings = load_settings()
    if settings.model is not None and settings.model.startswith("local:"):
        print(
            f"Demo with a tiny offline model, {settings.model}: it shows the way, not how good an "
            "agent can be,\nand takes minutes. Use any other model for work.",
            flush=True,
        )
        return {}
    if settings.model is not None:
        print(f"Demo with the model {settings.model} ({settings.origin('model')}).", flush=True)
        return {}
    print(
        "Demo with scripted answers, as no model is set: the agent's words were written "
        "beforehand,\neverything else (kernel, Python, shell, edits, plot) is real.",
        flush=True,
    )
    return {"OPENHANDS_MODEL": f"scripted:{source / SCRIPT}"}


def _check_libraries() -> None:
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"The demo needs {', '.join(missing)}.",
            remedy=f"Run: {pip_install(*missing)}",
        )


def _shipped_notebooks() -> Path:
    """The folder of the notebooks: of the project in this folder, or as it was installed."""
    package = Path(__file__).resolve().parents[1]
    for folder in (Path.cwd(), package.parent, package):
        if (folder / "notebooks" / NOTEBOOK).is_file():
            return folder / "notebooks"
    raise SettingsError(f"{NOTEBOOK} is missing.", remedy="Install oh-kernel again.")


def _laid_out(source: Path, build: Path) -> Path:
    """A copy of the notebook and its files in `build`, where it is run and can be run again."""
    build.mkdir(exist_ok=True)
    shutil.rmtree(build / FILES, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / FILES, build / FILES, ignore=ignored)
    return Path(shutil.copyfile(source / NOTEBOOK, build / NOTEBOOK))


def _run(path: Path, variables: dict[str, str]) -> bool:
    """Run the notebook and write it back with what came out; whether a cell raised."""
    import nbformat  # this and the next import a JSON schema library and a Jupyter client
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    from oh_kernel.commands.playback import Playback

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # untyped
    client = Playback.of(notebook, kernels=shipped_kernelspec().parent, folder=path.parent)
    own = {name: str(path.parent / folder) for name, folder in PRIVATE.items()}
    own["OPENHANDS_STORE_PATH"] = str(path.with_suffix(".sqlite"))
    try:
        client.execute(env=child_environment(own | variables))
    except CellExecutionError:
        print("\nA cell failed, see above.", file=sys.stderr)
        return True
    except DeadKernelError as error:
        raise OpenHandsError(
            "The kernel ended before its time.", remedy="Run oh-kernel doctor."
        ) from error
    finally:
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call] # untyped
    return False


def _what_next(notebook: Path, *, scripted: bool) -> str:
    """Commands with whole paths: after `make -C DIR` the user stands elsewhere than we do."""
    program = shlex.quote(str(Path(sys.executable).parent / "oh-kernel"))
    lines = ["", f"What came out is in {notebook}. To open it in JupyterLab:", ""]
    if importlib.util.find_spec("jupyterlab") is None:
        lines += [f"    {pip_install('jupyterlab')}"]
    lines += [f"    {program} lab {shlex.quote(str(notebook))}", ""]
    if scripted:
        lines += ["The same with a model of your own:", ""]
        lines += [f"    OPENHANDS_MODEL=openai:gpt-6-luna OPENAI_API_KEY=... {program} demo"]
        lines += [f"    OPENHANDS_MODEL=ollama:qwen3 {program} demo", ""]
        lines += ["Or with a tiny one on this machine, of 1.2 GB: make demo MODEL=local", ""]
    return "\n".join(lines)
