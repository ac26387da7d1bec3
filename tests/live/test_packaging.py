"""What `pip install` of the built wheel gives: files, a kernel, a command, quiet imports."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.kernel_client import running_kernel
from tests.timing import least_s

ROOT = Path(__file__).resolve().parents[2]
SPEC = Path("share", "jupyter", "kernels", "openhands")
LOGOS = {"logo-32x32.png": b"\x89PNG", "logo-64x64.png": b"\x89PNG", "logo-svg.svg": b"<svg"}


def run(*command: str | Path, timeout_s: float = 60) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout_s
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, ROOT)
    (built,) = folder.glob("oh_kernel-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; the libraries are those of the tests."""
    place = tmp_path_factory.mktemp("fresh") / "env"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", wheel)
    (own,) = place.glob("lib/python*/site-packages")
    # Only the folder: what is installed editable there stays out, since its .pth is not read.
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def test_wheel_holds_what_is_no_python(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {
        "oh_kernel/py.typed",
        "agentskills/py.typed",
        "oh_kernel/views/diff.js",
        "oh_kernel/views/diff.css",
        "oh_kernel/notebooks/quickstart.ipynb",
        "oh_kernel/notebooks/quickstart.script.json",
    } <= names
    prompts = {f"oh_kernel/agents/prompts/{p.name}" for p in ROOT.glob("oh_kernel/*/prompts/*.md")}
    assert prompts and prompts <= names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.startswith("oh_kernel-")} == {"oh_kernel", "agentskills"}


def test_install_alone_gives_the_kernelspec(environment: Path) -> None:
    folder = environment / SPEC
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["display_name"] == "Python 3 (OpenHands)"
    assert spec["language"] == "python"
    assert spec["argv"][0] == "python"  # Jupyter puts its own interpreter in its place
    assert spec["argv"][-4:] == ["-m", "oh_kernel", "-f", "{connection_file}"]
    for name, beginning in LOGOS.items():
        assert beginning in (folder / name).read_bytes()[:200]


def test_command_is_there_fast_and_light(environment: Path) -> None:
    program = environment / "bin" / "oh-kernel"
    assert "install" in run(program, "--help")
    took_s = least_s(lambda: run(program, "--help"), enough=5)
    print(f"oh-kernel --help: {took_s:.2f} s")
    assert took_s < 5
    heavy = ("pydantic", "IPython", "ipykernel", "traitlets", "pydantic_ai")
    code = f"""
import contextlib, io, sys
from oh_kernel.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(["--help"])
print([name for name in {heavy} if name in sys.modules])
"""
    assert run(environment / "bin" / "python", "-c", code) == "[]\n"


def test_install_command_names_this_interpreter(environment: Path, tmp_path: Path) -> None:
    python = environment / "bin" / "python"
    run(environment / "bin" / "oh-kernel", "install", "--prefix", tmp_path, "--name", "mine")
    folder = tmp_path / SPEC.with_name("mine")
    spec = json.loads((folder / "kernel.json").read_text())
    shipped = json.loads((environment / SPEC / "kernel.json").read_text())
    assert spec["argv"] == [str(python), *shipped["argv"][1:]]
    assert {path.name for path in folder.iterdir()} == {"kernel.json", *LOGOS}
    with running_kernel(tmp_path, spec["argv"]) as kernel:
        where = kernel.run("import oh_kernel; print(oh_kernel.__file__)").text
        assert where.startswith(str(environment))
        assert "%%openhands [FLAGS]" in kernel.run("%openhands help").text


# Imports without effects

# Runs in the fresh environment: imports the modules of a group and tells what that did.
IMPORTS = """
import importlib, json, os, sys, threading

OURS = ("oh_kernel", "agentskills")
done = []

class Watched(type(os.environ)):
    def __getitem__(self, key):
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") in ("os", "collections.abc"):
            frame = frame.f_back
        name = str(frame.f_globals.get("__name__"))
        if name.partition(".")[0] in OURS:
            done.append(f"{name} read {key}")
        return super().__getitem__(key)

os.environ.__class__ = Watched

def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.system"):
        done.append(f"{event} {arguments}")
    elif event == "open" and set(str(arguments[1])) & set("wax+"):
        done.append(f"wrote {arguments[0]}")

sys.addaudithook(watch)
for name in sys.argv[1:]:
    importlib.import_module(name)
    if threading.active_count() > 1:
        done.append(f"{name} started {threading.enumerate()[1:]}")
        break
sys.stderr.write(json.dumps(done))
"""


def modules_of(*patterns: str) -> list[str]:
    """The names of the modules that match, as the checkout has them."""
    paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


def groups() -> Iterator[tuple[str, list[str]]]:
    yield "agentskills", modules_of("agentskills/**/*.py")
    yield "oh_kernel", modules_of("oh_kernel/*.py")
    for folder in sorted((ROOT / "oh_kernel").iterdir()):
        if modules := modules_of(f"oh_kernel/{folder.name}/**/*.py"):
            yield f"oh_kernel.{folder.name}", modules


@pytest.mark.parametrize("group", dict(groups()))
def test_importing_has_no_effect(group: str, environment: Path, tmp_path: Path) -> None:
    """Nothing is printed, written, started, connected to or read from the environment."""
    modules = dict(groups())[group]
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-B", "-W", "error", "-c", IMPORTS, *modules],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == "[]"
    assert list(tmp_path.iterdir()) == []
