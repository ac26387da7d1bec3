"""The field case UI-01 with widgets shown, and in a notebook that is saved and loaded again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.live.agent_kernel import agent_kernel, asks
from tests.live.model_server import ModelServer
from tests.live.test_ui_cases import LIVE, MESSAGE, NAME, OLD, PRINTED
from tests.outputs import final_bundles
from tests.unit.shown import Shown

# What every widget of the product is made of; the text of others is in the remaining values.
OUR_OWN = ("_esm", "_css")


def script(work: Path) -> list[dict[str, Any]]:
    edit = {
        "command": "str_replace",
        "path": str(work / NAME),
        "old_str": "<p>old</p>",
        "new_str": "<p>new & <i>bold</i></p>",
    }
    command = "printf '{}\\n'".format(PRINTED.replace("\n", "\\n"))
    return [
        asks(("file_editor", edit)),
        asks(("terminal", {"command": command})),
        {"content": MESSAGE},
    ]


def check_bundles(bundles: list[dict[str, Any]]) -> None:
    """In each output untrusted text is text, and reads the same as it came, in HTML and plain."""
    assert all("text/plain" in bundle for bundle in bundles)
    for bundle in bundles:
        html = "".join(bundle.get("text/html", ""))
        assert not any(live in html for live in LIVE)
        shown = Shown(html)  # which refuses attributes with code
        assert not any(link.strip().lower().startswith("javascript") for link in shown.links)
    text = Shown("".join("".join(bundle.get("text/html", "")) for bundle in bundles)).text
    for part in (NAME, PRINTED, MESSAGE, "-<p>old</p>", "+<p>new & <i>bold</i></p>"):
        assert part in text
    plain = "\n".join(str(bundle["text/plain"]) for bundle in bundles)
    lines = plain.splitlines()
    assert lines.count("-<p>old</p>") == lines.count("+<p>new & <i>bold</i></p>") == 1
    assert PRINTED in plain and MESSAGE in plain


def test_UI_01_saved_without_a_widget_front_end(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(OLD)
    with ModelServer(script(tmp_path)) as server:
        setting = (
            f"%openhands config model=openai:scripted\n"
            f"%openhands config base_url={server.url}/v1\n"
            f"%openhands config store_path={tmp_path}/events.sqlite"
        )
        cells = [
            f"import os; os.environ['OPENAI_API_KEY'] = 'sk-test-1234567890'\n{setting}",
            "%%openhands\nChange it.",
        ]
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells]
        )
        NotebookClient(notebook, timeout=60, kernel_name="openhands").execute(cwd=str(tmp_path))
    path = tmp_path / "saved.ipynb"
    nbformat.write(notebook, path)
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    assert saved == nbformat.from_dict(notebook)
    outputs = saved.cells[1].outputs
    assert not any(output.output_type == "error" for output in outputs)
    check_bundles([dict(output["data"]) for output in outputs if "data" in output])
    assert not any(live in json.dumps(saved.metadata.get("widgets", {})) for live in LIVE)


def test_UI_01_state_of_widgets(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / NAME).write_text(OLD)
    with agent_kernel(tmp_path, script(work)) as kernel:
        kernel.kernel.client.comm_info("jupyter.widget.control")  # as a widget front end does
        cell = kernel.kernel.start("%%openhands\nChange it.", allow_stdin=True)
        result = kernel.kernel.finish(cell, deadline_s=30)
        states = [
            content["data"].get("state", {}) for content in result.of_type("comm_open", "comm_msg")
        ]
    values = [str(v) for state in states for name, v in state.items() if name not in OUR_OWN]
    assert any("old" in value for value in values), "no widget showed the edit"
    for value in values:
        assert not any(live in value for live in LIVE)
        assert "javascript:" not in value
    check_bundles(final_bundles(result.messages))
