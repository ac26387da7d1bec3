"""The shipped notebooks: committed clean, with nothing of the machine that ran them."""

import json
from pathlib import Path

import pytest

from tests.notebooks import NOTEBOOKS, strip

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_notebook_is_stripped(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    assert not strip(copy)
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_notebook_explains_before_it_shows(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert all(len(cell["source"]) <= 30 for cell in cells), "at most a screen per cell"
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_strip_takes_away_what_a_run_left(tmp_path: Path) -> None:
    notebook = json.loads(ALL[0].read_text("utf-8"))
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["execution_count"] = 3
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["/home/me\n"]}]
    notebook["metadata"]["language_info"] = {"version": "3.11.7"}
    ran = tmp_path / "ran.ipynb"
    ran.write_text(json.dumps(notebook), "utf-8")
    assert strip(ran)
    assert ran.read_text("utf-8") == ALL[0].read_text("utf-8")


def test_the_script_is_portable() -> None:
    """No path, date or version of the machine that it was written on."""
    text = (NOTEBOOKS / "quickstart.script.json").read_text("utf-8")
    assert "@WORKSPACE@" in text
    assert not [
        word for word in ("/work", "/home", "/tmp", "/root", "2026", "3.11") if word in text
    ]


def test_the_data_is_what_the_text_says() -> None:
    lines = (NOTEBOOKS / "quickstart_files" / "measurements.csv").read_text("utf-8").splitlines()
    assert lines[0] == "time,sensor,temperature_c,humidity_pct"
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == 200
    assert sum(row[2] == "" for row in rows) == 7
    assert max(float(row[2]) for row in rows if row[1] == "roof" and row[2]) == 28.6
    assert max(float(row[2]) for row in rows if row[1] == "door" and row[2]) < 22
