"""The quickstart in JupyterLab: a turn with a plot in its place, and an edit that is clicked."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
# The code cells of the notebook, by what they do.
DATA, FIX, CHECK = 1, 3, 4


def test_quickstart_shows_a_plot_in_place_and_a_diff(
    lab: Lab, notebook: NotebookPage, images: Path
) -> None:
    shutil.copytree(NOTEBOOKS / "quickstart_files", lab.folder / "quickstart_files")
    path = Path(shutil.copy(NOTEBOOKS / "quickstart.ipynb", lab.folder))
    notebook.open(path.name)
    notebook.page.set_viewport_size({"width": 1100, "height": 1800})
    notebook.page.keyboard.press("Control+b")  # the file browser would show other tests' files
    notebook.run_all()
    notebook.wait_done(CHECK)
    data, fix = notebook.output(DATA), notebook.output(FIX)
    expect(data).to_contain_text("Both sensors follow the day")
    expect(data.locator("img")).to_have_count(1)
    expect(fix).to_contain_text("finished")
    expect(notebook.output(CHECK)).to_contain_text("OK")
    notebook.save()
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    outputs = [output for cell in saved.cells for output in cell.get("outputs", [])]
    assert not any(WIDGET in output.get("data", {}) for output in outputs)
    data.scroll_into_view_if_needed()
    notebook.screenshots(images / "quickstart-data")
    fix.scroll_into_view_if_needed()
    notebook.screenshots(images / "quickstart-fix")
