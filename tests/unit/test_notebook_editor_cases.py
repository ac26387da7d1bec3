"""Field case NB-01: an edit of one cell must not rewrite, spoil or break the notebook."""

import difflib
import json
from pathlib import Path

import nbformat

from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.notebook_editor import NotebookEditorAction, NotebookEditorExecutor

NB44 = """\
{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": [
    "# Été\\n",
    "two spaces end this line  \\n",
    "last"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "metadata": {
    "tags": [
     "keep"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\\n"
     ]
    }
   ],
   "source": [
    "x = 1\\n",
    "print(x)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "language": "python",
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 4
}
"""


def diff(old: str, new: str) -> list[str]:
    """The lines that went and came, without those around them."""
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [row for row in rows if row[0] in "+-" and row[:3] not in ("+++", "---")]


def check_as_jupyter_writes_it(path: Path) -> None:
    text = path.read_text("utf-8")
    notebook = json.loads(text)
    nbformat.validate(nbformat.from_dict(notebook))
    assert notebook["nbformat_minor"] == 4
    assert not any("id" in cell for cell in notebook["cells"])
    assert all(isinstance(cell["source"], list) for cell in notebook["cells"])
    assert "Été" in text
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def test_NB_01_one_cell_edit_is_one_cell_diff(tmp_path: Path) -> None:
    path = tmp_path / "nb44.ipynb"
    path.write_bytes(NB44.encode())
    files = Files(tmp_path)
    cells = NotebookEditorExecutor(tmp_path, files=files, runtime=tmp_path)
    text = FileEditorExecutor(tmp_path, files=files)
    edit = {"command": "str_replace", "path": str(path), "old_str": "x = 1", "new_str": "x = 2"}
    answer = cells(NotebookEditorAction(**edit, cell="1", keep_outputs=True))
    assert not answer.is_error, answer.text
    assert diff(NB44, path.read_text("utf-8")) == ['-    "x = 1\\n",', '+    "x = 2\\n",']
    check_as_jupyter_writes_it(path)

    # The same without keeping the outputs: they and the count go as well, nothing else.
    path.write_bytes(NB44.encode())
    files.read(path)
    answer = cells(NotebookEditorAction(**edit, cell="1"))
    assert not answer.is_error, answer.text
    assert "cleared" in answer.text
    expected = json.loads(NB44)
    expected["cells"][1].update(source=["x = 2\n", "print(x)"], outputs=[], execution_count=None)
    assert json.loads(path.read_bytes()) == expected
    check_as_jupyter_writes_it(path)

    # As text, with the file editor.
    path.write_bytes(NB44.encode())
    files.read(path)
    raw = {"command": "str_replace", "path": str(path)}
    answer = text(FileEditorAction(**raw, old_str='    "x = 1\\n",', new_str='    "x = 2\\n",'))
    assert not answer.is_error, answer.text
    assert diff(NB44, path.read_text("utf-8")) == ['-    "x = 1\\n",', '+    "x = 2\\n",']
    assert "notebook_editor" in answer.text
    check_as_jupyter_writes_it(path)

    # Step 2: what would break the JSON.
    before = path.read_bytes()
    answer = text(FileEditorAction(**raw, old_str='    "print(x)"', new_str='    "print(x)'))
    assert answer.is_error
    assert "not valid JSON" in answer.text
    assert "notebook_editor" in answer.text
    assert path.read_bytes() == before
