"""A turn is watched in JupyterLab, and read again after saving and reloading."""

from __future__ import annotations

from pathlib import Path

import nbformat
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

EVENTS = Path(__file__).parents[1] / "fixtures" / "reference_conversation" / "events.jsonl"

# Plays the stored events on the agent thread, slowly enough to be watched.
PLAY = f"""
import asyncio
from pathlib import Path
from oh_kernel.events import event_from_json
from oh_kernel.llm.base import TextDelta
from oh_kernel.loop import run_blocking
from oh_kernel.views.transcript import Transcript

async def play():
    transcript = Transcript(get_ipython().kernel.bridge.publish)
    try:
        transcript.begin("asking the model")
        while not Path("seen").exists():
            await asyncio.sleep(0.05)
        for word in "I will look at the workspace first.".split(" "):
            transcript.delta(TextDelta(word + " "))
            await asyncio.sleep(0.05)
        for line in Path({str(EVENTS)!r}).read_text().splitlines():
            transcript.event(event_from_json(line))
            await asyncio.sleep(0.05)
    finally:
        transcript.close()

run_blocking(play())
"""


def test_a_turn_is_shown_as_it_goes_and_stays_after_reload(
    lab: Lab, notebook: NotebookPage, images: Path
) -> None:
    path = lab.write_notebook("turn.ipynb", [PLAY])
    notebook.open("turn.ipynb")
    notebook.run(0)
    output = notebook.output(0)
    expect(output.get_by_role("status")).to_contain_text("asking the model")
    (lab.folder / "seen").touch()
    expect(output).to_contain_text("I will look")
    notebook.wait_done(0)
    expect(output.get_by_role("status")).to_have_count(0)
    expect(output).to_contain_text("11 steps")
    notebook.page.set_viewport_size({"width": 1200, "height": 2200})
    notebook.screenshots(images / "turn")

    notebook.save()
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    (shown,) = saved.cells[0].outputs
    assert set(shown.data) == {"text/html", "text/markdown", "text/plain"}

    notebook.page.reload()
    again = notebook.output(0)
    expect(again).to_contain_text("Fixed the typo and added new.py.")
    fold = again.locator("summary", has_text="list workspace files")
    expect(again.get_by_text("ls -la")).not_to_be_visible()
    fold.click()
    expect(again.get_by_text("ls -la")).to_be_visible()
