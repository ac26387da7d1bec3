"""The agent's list of tasks is seen as a checklist in JupyterLab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

TASKS: list[dict[str, Any]] = [
    {"title": "Read the measurements", "status": "in_progress"},
    {"title": "Find out why the mean is off", "notes": "one sensor reports Fahrenheit"},
    {"title": "Mend the conversion and check it"},
]


def plan(*statuses: str) -> dict[str, Any]:
    tasks = [{**task, "status": status} for task, status in zip(TASKS, statuses, strict=True)]
    arguments = {"command": "plan", "task_list": tasks, "summary": "plan the work"}
    return {"tool_calls": [{"name": "task_tracker", "arguments": arguments}]}


SCRIPT = [
    plan("in_progress", "todo", "todo"),
    {"tool_calls": [{"name": "terminal", "arguments": {"command": "echo 20.1"}}]},
    plan("done", "in_progress", "todo"),
    {"content": "The first part is done."},
]


def test_tasks_are_a_checklist_and_only_the_last_stands_open(
    lab: Lab, notebook: NotebookPage, images: Path
) -> None:
    (lab.folder / "tasks.json").write_text(json.dumps(SCRIPT))
    cell = "%%openhands --model scripted:tasks.json --policy never\nWhy is the mean off?"
    lab.write_notebook("tasks.ipynb", [cell])
    notebook.open("tasks.ipynb")
    notebook.run(0)
    notebook.wait_done(0)
    output = notebook.output(0)
    expect(output).to_contain_text("The first part is done.")
    lists = output.get_by_role("list")
    expect(lists).to_have_count(1)  # a folded one is not there for who cannot see either
    items = lists.get_by_role("listitem")
    expect(items).to_have_count(3)
    expect(items.nth(0)).to_contain_text("☑")
    expect(items.nth(1)).to_contain_text("Find out why the mean is off · in progress")
    expect(items.nth(1)).to_contain_text("one sensor reports Fahrenheit")
    expect(items.nth(2)).to_contain_text("☐")
    expect(output).to_contain_text("1 of 3 done")
    notebook.screenshots(images / "tasks")
