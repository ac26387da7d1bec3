"""A person accepts and rejects edits in JupyterLab, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path

import nbformat
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

SETUP = """
from IPython.display import display
from oh_kernel.views.diff import Diff
from oh_kernel.views.diff_widget import DiffWidget

decisions = []
def decide(item_id, accepted, reason):
    decisions.append((item_id, accepted, reason))
    widget.set_state(item_id, "accepted" if accepted else "rejected")
widget = DiffWidget(decide)
old = "def mean(values):\\n    return sum(values) / (len(values) - 1)  # biased\\n"
page, new_page = "<p>old</p>\\n", "<img src=x onerror=alert(1)></script>\\n"
widget.add_edit("e1", [Diff("stats.py", old, old.replace(" - 1)  # biased", ")"))], "applied")
widget.add_edit("e2", [Diff('x"><b>.html', page, new_page)], "waiting")
lines = ["Why: clean up", "Risk: HIGH"]
widget.add_question("q1", "the command rm -r build", lines=lines, code="rm -r build")
display(widget.live_bundle(), raw=True)
"""


def test_clicks_and_keys_decide_while_the_kernel_is_idle(
    lab: Lab, notebook: NotebookPage, images: Path
) -> None:
    lab.write_notebook("diff.ipynb", [SETUP, "print(decisions)"], kernel="python3")
    notebook.open("diff.ipynb")
    notebook.run(0)
    output = notebook.output(0)
    accept = output.get_by_role("button", name="Accept edit of stats.py")
    expect(accept).to_be_visible()
    notebook.screenshots(images / "diff-open")

    accept.click()
    edit = output.get_by_role("region", name="Edit of stats.py")
    expect(edit.get_by_role("status")).to_have_text("accepted")
    expect(edit.get_by_role("button")).to_have_count(0)

    reject = output.get_by_role("button", name='Reject edit of x"><b>.html')
    reject.focus()
    notebook.page.keyboard.press("Enter")
    other = output.get_by_role("region", name='Edit of x"><b>.html')
    expect(other.get_by_role("status")).to_have_text("rejected")
    expect(other.get_by_role("status")).to_be_focused()

    output.get_by_label("Reason to reject the command rm -r build").fill("dd, not now")
    output.get_by_role("button", name="Reject the command rm -r build").click()
    expect(output.get_by_role("button")).to_have_count(0)
    notebook.screenshots(images / "diff-decided")

    notebook.run(1)
    expect(notebook.output(1)).to_contain_text(
        "[('e1', True, ''), ('e2', False, ''), ('q1', False, 'dd, not now')]"
    )
    expect(output).to_contain_text("<img src=x onerror=alert(1)></script>")
    assert output.locator("img, script").count() == 0


BLOCKED = """
import threading

widget = DiffWidget(lambda *decision: (decisions.append(decision), clicked.set()))
clicked = threading.Event()
widget.add_edit("e1", [Diff("stats.py", old, old.replace("biased", "fine"))], "waiting")
get_ipython().kernel.bridge.own_comm(widget.model_id)
shown = display(widget.live_bundle(), raw=True, display_id=True)
in_time = clicked.wait(60)
widget.set_state("e1", "accepted")
widget.close_open()
shown.update(widget.static().bundle(), raw=True)
print("clicked" if in_time else "nobody clicked", decisions)
"""


def test_a_click_arrives_while_the_cell_waits_for_it(lab: Lab, notebook: NotebookPage) -> None:
    path = lab.write_notebook("blocked.ipynb", [SETUP, BLOCKED])
    notebook.open("blocked.ipynb")
    notebook.run(0)
    notebook.wait_done(0)
    notebook.run(1)
    output = notebook.output(1)
    accept = output.get_by_role("button", name="Accept edit of stats.py")
    expect(accept).to_be_visible()
    accept.click()
    expect(output).to_contain_text("clicked [('e1', True, '')]")
    # What is left has no buttons, is saved as HTML and text, and needs no kernel to be read again.
    expect(output.get_by_role("button")).to_have_count(0)
    notebook.save()
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    shown = saved.cells[1].outputs[0].data
    assert set(shown) == {"text/html", "text/markdown", "text/plain"}
    assert "+    return sum(values) / (len(values) - 1)  # fine" in shown["text/plain"]
