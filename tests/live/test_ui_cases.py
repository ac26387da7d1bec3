"""The field case UI-01, in a kernel without any widget front end."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.unit.shown import Shown

OLD = "<p>old</p>\n<img src=x onerror=alert(1)></script><script>alert(2)</script>\n"
PRINTED = "<svg onload=alert(3)>\n</textarea><style>*{display:none}</style>"
MESSAGE = "plain text: see <script>alert(4)</script> and [link](javascript:alert(5))"
NAME = 'x"><b>.html'
LIVE = ("<img src=x", "<script", "</script", "<svg", "</textarea", "<style")


def script() -> list[dict[str, object]]:
    edit = {
        "command": "str_replace",
        "path": f"@WORKSPACE@/{NAME}",
        "old_str": "<p>old</p>",
        "new_str": "<p>new & <i>bold</i></p>",
    }
    command = {"command": "printf '{}\\n'".format(PRINTED.replace("\n", "\\n"))}
    return [
        {"tool_calls": [{"name": "file_editor", "arguments": edit}]},
        {"tool_calls": [{"name": "terminal", "arguments": command}]},
        {"content": MESSAGE},
    ]


def test_UI_01_a_saved_notebook_shows_untrusted_text_as_text(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(OLD)
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(script()))
    cell = f"%%openhands --model scripted:{answers}\nChange it."
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    client = NotebookClient(notebook, timeout=60, kernel_name="openhands")
    client.execute(cwd=str(tmp_path))
    path = tmp_path / "saved.ipynb"
    nbformat.write(notebook, path)
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)

    bundles = [output["data"] for output in saved.cells[0].outputs if "data" in output]
    html = "".join(bundle.get("text/html", "") for bundle in bundles)
    assert not any(live in html for live in LIVE)
    shown = Shown(html)
    assert not any(link.strip().lower().startswith("javascript") for link in shown.links)
    for text in (NAME, PRINTED, MESSAGE, "-<p>old</p>", "+<p>new & <i>bold</i></p>"):
        assert text in shown.text
    assert not any(live in json.dumps(saved.metadata.get("widgets", {})) for live in LIVE)

    assert all("text/plain" in bundle for bundle in bundles)
    lines = "\n".join(bundle["text/plain"] for bundle in bundles).splitlines()
    assert lines.count("-<p>old</p>") == 1
    assert lines.count("+<p>new & <i>bold</i></p>") == 1
    assert PRINTED in "\n".join(lines) and MESSAGE in lines
