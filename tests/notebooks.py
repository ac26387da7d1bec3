"""Runs every shipped notebook from top to bottom, or strips what a run left in it.

    python tests/notebooks.py              run all, each on its script, in a copy of the folder
    python tests/notebooks.py --strip FILE ...

A notebook NAME.ipynb with a NAME.script.json beside it gets the model's words from there.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
KERNEL = {"display_name": "Python 3 (OpenHands)", "language": "python"}


def main(arguments: list[str]) -> int:
    """0 when all ran through, or when nothing had to be stripped."""
    if arguments[:1] == ["--strip"]:
        changed = [name for name in arguments[1:] if strip(Path(name))]
        return int(bool(changed))
    names = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    return max((run(name) for name in names), default=0)


def run(name: str) -> int:
    """Run one notebook with nbval, where it may write and no settings of the developer count."""
    with tempfile.TemporaryDirectory(prefix="notebooks-") as folder:
        work = Path(folder, "notebooks")
        shutil.copytree(NOTEBOOKS, work)
        script = (work / name).with_suffix(".script.json")
        environ = {key: text for key, text in os.environ.items() if not key.startswith("OPENHANDS")}
        environ |= {"HOME": folder, "OPENHANDS_STORE_PATH": str(Path(folder, "events.sqlite"))}
        if script.exists():
            environ["OPENHANDS_MODEL"] = f"scripted:{script}"
        command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider"]
        command += ["--override-ini", "filterwarnings=", "--rootdir", folder, str(work / name)]
        return subprocess.run(command, env=environ, cwd=work, check=False).returncode


def strip(path: Path) -> bool:
    """Take outputs, counts and metadata away; whether there were any."""
    before = path.read_text("utf-8")
    notebook = json.loads(before)
    name = notebook["metadata"].get("kernelspec", {}).get("name", "openhands")
    notebook["metadata"] = {"kernelspec": KERNEL | {"name": name}}
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    after = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    path.write_text(after, "utf-8")
    return after != before


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
