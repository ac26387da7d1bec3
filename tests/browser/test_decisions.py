"""The agent asks, and a person answers by a click while the cell runs."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

OLD = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
SCRIPT = [
    {
        "content": "I correct the divisor.",
        "tool_calls": [
            {
                "name": "file_editor",
                "arguments": {
                    "command": "str_replace",
                    "path": "@WORKSPACE@/mean.py",
                    "old_str": "(len(values) - 1)",
                    "new_str": "len(values)",
                },
            }
        ],
    },
    {
        "tool_calls": [
            {
                "name": "terminal",
                "arguments": {"command": "touch touched", "summary": "leave a trace"},
            }
        ],
    },
    {"content": "The divisor is right now; the trace was not wanted."},
]


def test_an_edit_waits_for_accept_and_a_command_is_rejected(
    lab: Lab, notebook: NotebookPage, images: Path
) -> None:
    source = lab.folder / "mean.py"
    source.write_text(OLD)
    script = lab.folder / "ask.script.json"
    script.write_text(json.dumps(SCRIPT))
    cell = f"%%openhands --policy always --model scripted:{script}\nCorrect mean.py."
    path = lab.write_notebook("ask.ipynb", [cell, "1 + 1"])
    notebook.open("ask.ipynb")
    notebook.run(0)
    output = notebook.output(0)

    accept = output.get_by_role("button", name="Accept edit of mean.py")
    expect(accept).to_be_visible()
    assert source.read_text() == OLD
    notebook.screenshots(images / "waiting")
    accept.click()

    reject = output.get_by_role("button", name="Reject the command touch touched")
    expect(reject).to_be_visible()
    assert source.read_text() == OLD.replace("(len(values) - 1)", "len(values)")
    output.get_by_label("Reason to reject the command touch touched").fill("no traces")
    reject.click()

    expect(output).to_contain_text("the trace was not wanted")
    notebook.wait_done(0)
    assert not (lab.folder / "touched").exists()
    expect(output.get_by_role("button")).to_have_count(0)
    expect(output).to_contain_text("no traces")
    notebook.screenshots(images / "decided")

    notebook.save()
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    outputs = saved.cells[0].outputs
    mimes = {mime for out in outputs for mime in out.get("data", {})}
    assert mimes == {"text/html", "text/markdown", "text/plain"}
    text = "\n".join(out.get("data", {}).get("text/plain", "") for out in outputs)
    assert "+    return sum(values) / len(values)" in text


def test_an_applied_edit_is_taken_back_by_reject(lab: Lab, notebook: NotebookPage) -> None:
    source = lab.folder / "mean.py"
    source.write_text(OLD)
    script = lab.folder / "revert.script.json"
    waits = {"name": "terminal", "arguments": {"command": "while [ ! -e go ]; do sleep 0.1; done"}}
    script.write_text(json.dumps([SCRIPT[0], {"tool_calls": [waits]}, {"content": "Understood."}]))
    cell = f"%%openhands --model scripted:{script}\nCorrect mean.py."
    lab.write_notebook("revert.ipynb", [cell])
    notebook.open("revert.ipynb")
    notebook.run(0)
    output = notebook.output(0)
    reject = output.get_by_role("button", name="Reject edit of mean.py")
    expect(reject).to_be_visible()
    reject.click()
    expect(output.get_by_role("region", name="Edit of mean.py")).to_contain_text("taken back")
    assert source.read_text() == OLD
    (lab.folder / "go").touch()
    expect(output).to_contain_text("Understood.")


def test_review_opens_the_edits_of_a_turn_again(lab: Lab, notebook: NotebookPage) -> None:
    source = lab.folder / "mean.py"
    source.write_text(OLD)
    script = lab.folder / "review.script.json"
    script.write_text(json.dumps([SCRIPT[0], {"content": "Corrected."}, {"content": "I see."}]))
    first = f"%%openhands --model scripted:{script}\nCorrect mean.py."
    again = f"%%openhands --model scripted:{script}\nGo on."
    lab.write_notebook("review.ipynb", [first, "%openhands review", again])
    notebook.open("review.ipynb")
    notebook.run(0)
    notebook.wait_done(0)
    assert source.read_text() != OLD
    notebook.run(1)
    notebook.wait_done(1)
    output = notebook.output(1)
    output.get_by_role("button", name="Reject edit of mean.py").click()
    expect(output.get_by_role("region", name="Edit of mean.py")).to_contain_text("taken back")
    assert source.read_text() == OLD
    notebook.run(2)  # the next turn tells the model, and ends the review
    expect(notebook.output(2)).to_contain_text("I see.")
    expect(output.get_by_role("button")).to_have_count(0)
    expect(output).to_contain_text("taken back")
