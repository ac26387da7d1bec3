"""The notebook editor: what a model sees of cells, what its edits do, what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from oh_kernel.events import ImageContent
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.notebook_answers import MAX_CHARS
from oh_kernel.tools.notebook_editor import (
    NotebookEditorAction,
    NotebookEditorExecutor,
    NotebookEditorObservation,
    NotebookEditorTool,
)
from oh_kernel.tools.notebook_format import MAX_NOTEBOOK_BYTES, BreaksNotebook, checked_as_notebook

Call = Callable[..., NotebookEditorObservation]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
    "AABJRU5ErkJggg=="
)


def code(source: str, count: int | None = None, *outputs: Any, **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
        **more,
    }


def note(source: str, **more: Any) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    return {"cell_type": "markdown", "metadata": {}, "source": lines, **more}


def printed(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def write(path: Path, *cells: dict[str, Any], minor: int = 4) -> bytes:
    """A notebook as Jupyter writes it."""
    notebook = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    path.write_bytes(text.encode())
    return path.read_bytes()


def sources(path: Path) -> list[str]:
    notebook = json.loads(path.read_bytes())
    nbformat.validate(nbformat.from_dict(notebook))
    return ["".join(cell["source"]) for cell in notebook["cells"]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ipynb"


@pytest.fixture
def executor(tmp_path: Path) -> NotebookEditorExecutor:
    return NotebookEditorExecutor(tmp_path, runtime=tmp_path / "no servers")


@pytest.fixture
def call(executor: NotebookEditorExecutor) -> Call:
    def run(command: Any, path: str = "a.ipynb", **arguments: Any) -> NotebookEditorObservation:
        answer = executor(NotebookEditorAction(command=command, path=path, **arguments))
        assert len(answer.text) <= MAX_CHARS
        return answer

    return run


# Viewing


def test_view_tells_cells_with_all_that_identifies_them(path: Path, call: Call) -> None:
    write(path, note("# Été", id="intro"), code("x", 3, printed("1\n"), id="calc"), minor=5)
    answer = call("view")
    assert answer.text == (
        f"{path}: 2 cells, notebook format 4.5.\n"
        "Run order: from top to bottom.\n"
        "--- [0] markdown, id intro ---\n# Été\n"
        "--- [1] code, id calc, In [3] ---\nx\n"
        "--- [1] output ---\n1\n"
    )
    assert answer.path == str(path)
    assert answer.new_content is None


def test_view_tells_of_every_kind_of_output(path: Path, call: Call) -> None:
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no",
        "traceback": ["\x1b[31mValueError\x1b[0m: no"],
    }
    plot = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": PIXEL, "text/plain": ["<Figure size 1x1>"]},
    }
    table = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": ["<b>bold</b>"]},
    }
    write(path, code("x", 1, printed("10%\r100%\n"), plot, table, error))
    text = call("view").text
    for piece in ("100%\n", "<Figure size 1x1>", "[image/png, 1 KB]", "bold", "ValueError: no"):
        assert piece in text
    for piece in ("\x1b", "10%\r", PIXEL):
        assert piece not in text
    parts = call("view", cell="0").content
    assert [part.image_urls for part in parts if isinstance(part, ImageContent)] == [
        [f"data:image/png;base64,{PIXEL}"]
    ]


def test_long_outputs_are_short_unless_the_cell_is_viewed_alone(path: Path, call: Call) -> None:
    lines = "".join(f"line {n}\n" for n in range(300))
    write(path, code("x", 1, printed(lines)), note("end"))
    text = call("view").text
    assert len(text) < 1_200
    assert "view cell 0 alone; 2589 characters in all" in text
    assert "line 0\n" in text and "line 299\n" in text and "line 150\n" not in text
    assert "line 150\n" in call("view", cell=0).text


def test_what_does_not_fit_is_named_with_the_way_to_see_it(path: Path, call: Call) -> None:
    write(path, *(note(f"cell {n} " + "x" * 900) for n in range(60)))
    seen, first = "", 0
    for _ in range(10):
        text = call("view", view_range=[first, -1]).text
        seen += text
        if "<response clipped>" not in text:
            break
        first = int(text.split("view_range [")[1].split(",")[0])
        assert f"Cells {first} to 59 are not shown." in text
    assert all(seen.count(f"cell {n} x") == 1 for n in range(60))


def test_a_cell_that_does_not_fit_is_viewed_line_by_line(path: Path, call: Call) -> None:
    write(path, note("".join(f"row {n} {'y' * 60}\n" for n in range(1, 801))), note("end"))
    whole = call("view").text
    assert "more characters; view cell 0 alone to see them" in whole
    assert whole.endswith("--- [1] markdown ---\nend\n")
    seen, first = "", 1
    for _ in range(10):
        text = call("view", cell=0, view_range=[first, 800]).text
        seen += text
        if "<response clipped>" not in text:
            break
        first = int(text.split("view_range [")[1].split(",")[0])
        assert f"Lines {first} to 800 of this cell are not shown." in text
    assert all(f"row {n} y" in seen for n in range(1, 801))
    assert "<response clipped>" in call("view", cell=0).text


def test_one_endless_line_is_cut_and_said_to_be(path: Path, call: Call) -> None:
    write(path, note("z" * 50_000))
    assert "[line cut: 50000 characters]" in call("view", cell=0).text
    assert "45000 more characters" in call("view").text


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([code("a", 1), note("x"), code("b", 2)], "Run order: from top to bottom."),
        ([code("a", 3), code("b", 9)], "Run order: from top to bottom."),
        ([code("a"), code(""), code("b", 1)], "cell 0 was never run (or cleared since)."),
        ([code("a"), code("b")], "cells 0, 1 were never run (or cleared since)."),
        ([code("a", 7), code("b", 2), code("c", 4)], "cell 0 (In [7]) stands above cell 1"),
        ([code("a", 1), code("b", 1)], "OUT OF ORDER"),
        ([note("x")], "Run order: there is no code."),
    ],
)
def test_view_tells_whether_cells_were_run_in_order(
    cells: list[dict[str, Any]], said: str, path: Path, call: Call
) -> None:
    write(path, *cells)
    assert said in call("view").text


def test_ranges_that_are_none_are_named(path: Path, call: Call) -> None:
    write(path, note("a\nb"), note("c"))
    for wanted in ([2, 3], [1, 0], [0], [-1, 1]):
        answer = call("view", view_range=wanted)
        assert answer.is_error
        assert "go from 0 to 1" in answer.text
    answer = call("view", cell=0, view_range=[0, 1])
    assert "lines go from 1 to 2" in answer.text
    assert call("view", view_range=[1, 99]).text.endswith("--- [1] markdown ---\nc\n")


def test_an_empty_notebook_is_viewed_and_filled(path: Path, call: Call) -> None:
    write(path)
    assert "It has no cells." in call("view").text
    assert "no cells" in call("replace", cell=0, source="x").text
    assert not call("insert", source="x = 1").is_error
    assert sources(path) == ["x = 1"]


# Editing


def test_replacing_clears_what_came_from_the_old_source(path: Path, call: Call) -> None:
    write(path, code("x = 1\nprint(x)", 3, printed("1\n")), code("y", 4, printed("2\n")))
    answer = call("replace", cell=0, source="x = 2\nprint(x)")
    assert "Its 1 output and execution count 3 came from the old source and were cleared." in (
        answer.text
    )
    assert "     1\tx = 2\n     2\tprint(x)\n" in answer.text
    cells = json.loads(path.read_bytes())["cells"]
    assert cells[0] == code("x = 2\nprint(x)")
    assert cells[1] == code("y", 4, printed("2\n"))


def test_outputs_can_be_kept(path: Path, call: Call) -> None:
    write(path, code("x = 1", 3, printed("1\n")))
    answer = call("replace", cell=0, source="x = 1  # one", keep_outputs=True)
    assert "stand, though the new source was not run" in answer.text
    assert json.loads(path.read_bytes())["cells"] == [code("x = 1  # one", 3, printed("1\n"))]


def test_a_cell_is_named_by_index_or_id(path: Path, call: Call) -> None:
    cells = [note("a", id="7"), note("b", id="1"), note("c", id="x-1"), note("d", id="0")]
    write(path, *cells, minor=5)
    for name, index in (("7", 0), ("x-1", 2), (3, 3), ("2", 2), ("id:1", 1), ("index:1", 1)):
        answer = call("replace", cell=name, source=f"changed by {name}")
        assert not answer.is_error, answer.text
        assert f"Cell {index} " in answer.text
        assert sources(path)[index] == f"changed by {name}"
    before = path.read_bytes()
    answer = call("delete", cell="0")
    assert answer.is_error
    assert "is the id of cell 3 and the index of another" in answer.text
    for name in ("4", "-1", "y", "id:2", "index:x-1", ""):
        answer = call("delete", cell=name)
        assert answer.is_error
        assert "indices 0 to 3" in answer.text
    assert path.read_bytes() == before


def test_an_id_that_several_cells_have_is_refused(path: Path, call: Call) -> None:
    write(path, note("a", id="same"), note("b", id="same"), minor=5)
    answer = call("delete", cell="same")
    assert answer.is_error
    assert "[0, 1]" in answer.text
    assert not call("delete", cell=1).is_error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "abcN"),
        ({"position": "before"}, "Nabc"),
        ({"cell": 0}, "aNbc"),
        ({"cell": 0, "position": "before"}, "Nabc"),
        ({"cell": 1, "position": "before"}, "aNbc"),
        ({"cell": 2}, "abcN"),
    ],
)
def test_insert(arguments: dict[str, Any], expected: str, path: Path, call: Call) -> None:
    write(path, note("a"), note("b"), note("c"))
    answer = call("insert", source="N", **arguments)
    assert f"as cell {expected.index('N')}." in answer.text
    assert "".join(sources(path)) == expected


@pytest.mark.parametrize(
    ("cell", "position", "target", "expected"),
    [
        (0, "after", 2, "bcad"),
        (0, "before", 2, "bacd"),
        (3, "after", 0, "adbc"),
        (3, "before", 0, "dabc"),
        (1, "after", 3, "acdb"),
    ],
)
def test_move(cell: int, position: str, target: int, expected: str, path: Path, call: Call) -> None:
    write(path, note("a"), note("b"), note("c"), note("d"))
    answer = call("move", cell=cell, target=target, position=position)
    assert "".join(sources(path)) == expected
    assert f"is cell {expected.index('abcd'[cell])} now" in answer.text


def test_moves_to_where_a_cell_stands_are_refused(path: Path, call: Call) -> None:
    before = write(path, note("a"), note("b"), note("c"))
    for cell, position, target in ((1, "after", 0), (1, "before", 2), (1, "after", 1)):
        assert call("move", cell=cell, target=target, position=position).is_error
    assert call("move", cell=1).is_error
    assert path.read_bytes() == before


def test_a_move_out_of_the_run_order_is_told(path: Path, call: Call) -> None:
    write(path, code("a", 1), code("b", 2))
    assert "OUT OF ORDER" in call("move", cell=1, target=0, position="before").text


def test_new_cells_have_ids_only_where_the_format_has_them(path: Path, call: Call) -> None:
    write(path, note("a"))
    call("insert", source="b")
    assert "id" not in json.loads(path.read_bytes())["cells"][1]
    path.unlink()
    write(path, note("a", id="a"), minor=5)
    call("view")
    answer = call("insert", source="b")
    cell_id = json.loads(path.read_bytes())["cells"][1]["id"]
    assert len(cell_id) == 8
    assert f"(id {cell_id})" in answer.text
    assert sources(path) == ["a", "b"]


def test_clear_outputs_of_one_or_all(path: Path, call: Call) -> None:
    write(path, code("a", 1, printed("1")), code("b", 2), code("c", 3, printed("3"), printed("4")))
    assert "2 outputs and execution count 3 of cell 2" in call("clear_outputs", cell=2).text
    assert "outputs and execution counts of 2 cells" in call("clear_outputs").text
    assert json.loads(path.read_bytes())["cells"] == [code("a"), code("b"), code("c")]
    assert call("clear_outputs").is_error
    assert call("clear_outputs", cell=0).is_error


def test_a_cell_can_change_its_type(path: Path, call: Call) -> None:
    write(path, code("x", 1, printed("1"), metadata={"tags": ["t"]}, id="k"), minor=5)
    answer = call("replace", cell="k", source="# x", cell_type="markdown")
    assert "is markdown now" in answer.text and "1 output" in answer.text
    cell = note("# x", metadata={"tags": ["t"]}, id="k")
    assert json.loads(path.read_bytes())["cells"] == [cell]
    call("replace", cell="k", source="x", cell_type="code")
    assert sources(path) == ["x"]


def test_str_replace_wants_one_place(path: Path, call: Call) -> None:
    before = write(path, code('print("é")\nprint("é")\n'))
    for old, said in (("x", "did not appear verbatim"), ("print", "appears 2 times"), ("", "did")):
        answer = call("str_replace", cell=0, old_str=old, new_str="y")
        assert answer.is_error
        assert said in answer.text
    assert call("str_replace", cell=0, old_str='é")', new_str='é")').is_error
    assert path.read_bytes() == before
    assert not call("str_replace", cell=0, old_str='é")\nprint', new_str='à")\nprint').is_error
    assert sources(path) == ['print("à")\nprint("é")\n']
    assert not call("str_replace", cell=0, old_str='print("é")\n').is_error
    assert sources(path) == ['print("à")\n']


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("replace", "source"),
        ("insert", "source"),
        ("str_replace", "old_str"),
        ("move", "target"),
        ("delete", "cell"),
        ("suggest", "source"),
    ],
)
def test_what_is_missing_is_named(command: str, missing: str, path: Path, call: Call) -> None:
    write(path, note("a"), note("b"))
    cell = {} if missing == "cell" else {"cell": 0}
    answer = call(command, **cell)
    assert answer.is_error
    assert answer.text == f"Parameter `{missing}` is required for command: {command}."


def test_cells_that_jupyter_protects_are_not_touched(path: Path, call: Call) -> None:
    fixed = {"metadata": {"editable": False, "deletable": False}}
    before = write(path, code("a", 1, printed("1"), **fixed))
    for answer in (call("replace", cell=0, source="b"), call("delete", cell=0)):
        assert answer.is_error
        assert "able in its metadata" in answer.text
    assert path.read_bytes() == before


def test_create_writes_what_jupyter_writes(path: Path, call: Call) -> None:
    answer = call("create", source="import pandas as pd\ndf = 1  # é")
    assert not answer.is_error
    text = path.read_text("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert text == nbformat.writes(notebook) + "\n"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    assert call("create").is_error
    assert path.read_text("utf-8") == text
    assert call("create", path="no/such/folder.ipynb").is_error


def test_edits_are_shown_to_people_as_sources(path: Path, call: Call) -> None:
    write(path, note("# T"), code("x = 1", 3, printed("1")))
    answer = call("replace", cell=1, source="x = 2")
    assert answer.old_content == "# %% markdown\n# T\n\n# %% code, In [3], 1 output\nx = 1\n"
    assert answer.new_content == "# %% markdown\n# T\n\n# %% code, not run\nx = 2\n"
    assert not answer.live


def test_preview_shows_the_same_and_writes_nothing(
    path: Path, executor: NotebookEditorExecutor
) -> None:
    before = write(path, note("a"))
    action = NotebookEditorAction(command="replace", path=str(path), cell=0, source="b")
    preview = executor.preview(action)
    assert preview is not None
    assert (preview.old_text, preview.new_text) == ("# %% markdown\na\n", "# %% markdown\nb\n")
    assert path.read_bytes() == before
    assert executor.preview(action.model_copy(update={"cell": "9"})) is None
    assert executor.preview(action.model_copy(update={"command": "view"})) is None
    new = NotebookEditorAction(command="create", path="new.ipynb", source="x")
    preview = executor.preview(new)
    assert preview is not None
    assert preview.old_text is None
    assert str(preview.new_text).endswith(", not run\nx\n")


# Taking back


def test_undo_takes_edits_back_byte_by_byte(path: Path, call: Call) -> None:
    states = [write(path, code("a", 1, printed("1")))]
    for command, arguments in (
        ("replace", {"cell": 0, "source": "b"}),
        ("insert", {"source": "c"}),
        ("move", {"cell": 1, "target": 0, "position": "before"}),
    ):
        assert not call(command, **arguments).is_error
        states.append(path.read_bytes())
    for state in reversed(states[:-1]):
        assert not call("undo_edit").is_error
        assert path.read_bytes() == state
    assert "No edit history" in call("undo_edit").text
    call("create", path="b.ipynb")
    assert "the file was removed" in call("undo_edit", path="b.ipynb").text
    assert not (path.parent / "b.ipynb").exists()


def test_the_file_editor_takes_its_edits_back_and_the_other_way_round(
    path: Path, tmp_path: Path
) -> None:
    original = write(path, note("a"))
    files = Files(tmp_path)
    cells = NotebookEditorExecutor(tmp_path, files=files, runtime=tmp_path)
    text = FileEditorExecutor(tmp_path, files=files)
    assert not cells(NotebookEditorAction(command="insert", path=str(path), source="b")).is_error
    assert not text(FileEditorAction(command="undo_edit", path=str(path))).is_error
    assert path.read_bytes() == original
    text(FileEditorAction(command="str_replace", path=str(path), old_str='"a"', new_str='"z"'))
    assert not cells(NotebookEditorAction(command="undo_edit", path=str(path))).is_error
    assert path.read_bytes() == original


def test_what_others_changed_is_neither_edited_blindly_nor_undone(path: Path, call: Call) -> None:
    write(path, note("a"))
    call("view")
    theirs = write(path, note("new"), note("a"))
    answer = call("replace", cell=0, source="b")
    assert answer.is_error
    assert path.read_bytes() == theirs
    assert not call("replace", cell=1, source="b").is_error
    theirs = write(path, note("theirs"))
    assert call("undo_edit").is_error
    assert path.read_bytes() == theirs


def test_a_person_takes_back_the_last_edit_only(
    path: Path, call: Call, executor: NotebookEditorExecutor
) -> None:
    original = write(path, note("a"))
    first = call("replace", cell=0, source="b")
    second = call("insert", source="c")
    after = path.read_bytes()
    trouble = executor.revert(path, first.old_content, first.new_content)
    assert trouble == "it is not the last edit of this notebook"
    assert path.read_bytes() == after
    for edit in (second, first):
        assert executor.revert(path, edit.old_content, edit.new_content) is None
    assert path.read_bytes() == original
    assert executor.revert(path, first.old_content, first.new_content) is not None


# What cannot be edited


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "not valid JSON: Expecting property name"),
        (b"", "not valid JSON"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b'{"nbformat": 3, "nbformat_minor": 0, "worksheets": []}', "jupyter nbconvert"),
        (b'{"nbformat": 5, "nbformat_minor": 0, "cells": []}', "format 5"),
        (b'{"cells": []}', 'no number "nbformat"'),
        (b'{"nbformat": 4, "nbformat_minor": 4, "metadata": {}}', '"cells"'),
        (b'{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [1]}', '"cells"'),
    ],
)
def test_files_that_are_no_notebooks(data: bytes, said: str, path: Path, call: Call) -> None:
    path.write_bytes(data)
    for answer in (call("view"), call("insert", source="x")):
        assert answer.is_error
        assert said in answer.text
    assert path.read_bytes() == data


def test_other_files_and_folders_are_left_to_other_tools(tmp_path: Path, call: Call) -> None:
    (tmp_path / "a.py").write_text("x")
    (tmp_path / "folder.ipynb").mkdir()
    assert "no .ipynb file" in call("view", path="a.py").text
    assert call("view", path="folder.ipynb").is_error
    assert "not found" in call("view", path="missing.ipynb").text
    assert call("view", path="a\0.ipynb").is_error
    assert call("view", path="x" * 5000 + ".ipynb").is_error


def test_writing_is_confined_to_the_workspace(tmp_path: Path, call: Call) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.ipynb"
    before = write(outside, note("a"))
    (tmp_path / "link.ipynb").symlink_to(outside)
    assert not call("view", path=str(outside)).is_error
    for name in (str(outside), "link.ipynb"):
        answer = call("replace", path=name, cell=0, source="b")
        assert answer.is_error
        assert "outside the folders" in answer.text
    assert outside.read_bytes() == before


def test_a_notebook_that_was_invalid_may_stay_so_but_not_silently(path: Path, call: Call) -> None:
    write(path, note("a", id="a"), note("b", strange=1), minor=4)
    assert "not valid by its own format" in call("view").text
    answer = call("replace", cell=0, source="c")
    assert not answer.is_error
    assert "was not valid before, and still is not" in answer.text
    assert "id" in json.loads(path.read_bytes())["cells"][0]


def test_large_notebooks_are_edited_up_to_a_limit(path: Path, call: Call) -> None:
    plot = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 20_000_000}}
    write(path, code("a", 1, plot), code("b"))
    answer = call("replace", cell=1, source="c")
    assert not answer.is_error, answer.text
    assert sources(path) == ["a", "c"]
    path.unlink()
    with path.open("wb") as file:
        file.truncate(MAX_NOTEBOOK_BYTES + 1)
    answer = call("view")
    assert answer.is_error
    assert str(MAX_NOTEBOOK_BYTES) in answer.text


def test_a_byte_order_mark_is_kept_and_told(path: Path, call: Call) -> None:
    data = write(path, note("a"))
    path.write_bytes(b"\xef\xbb\xbf" + data)
    assert "byte order mark" in call("view").text
    assert not call("replace", cell=0, source="b").is_error
    assert path.read_bytes() == b"\xef\xbb\xbf" + data.replace(b'"a"', b'"b"')


# Edits as text


def test_text_edits_may_not_make_a_notebook_worse(path: Path) -> None:
    good = write(path, note("a"))
    for bad in (b"", b"{", good[:-3], good.replace(b"markdown", b"markup"), b'{"cells": []}'):
        for before in (good, None):
            with pytest.raises(BreaksNotebook, match="notebook_editor"):
                checked_as_notebook(path, before, bad)
        checked_as_notebook(path, bad, bad)
        checked_as_notebook(path, bad, good)
    checked_as_notebook(path, good, good.replace(b'"a"', b'"b"'))
    invalid = good.replace(b"markdown", b"markup")
    with pytest.raises(BreaksNotebook):
        checked_as_notebook(path, invalid, good[:-3])
    old = b'{"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": []}'
    checked_as_notebook(path, old, old)


def test_text_edits_are_pointed_to_this_tool(path: Path, tmp_path: Path) -> None:
    write(path, note("a"))
    editor = FileEditorExecutor(tmp_path)
    answer = editor(
        FileEditorAction(command="str_replace", path=str(path), old_str='"a"', new_str='"b"')
    )
    assert "notebook_editor" in answer.text
    assert sources(path) == ["b"]
    new = tmp_path / "new.ipynb"
    answer = editor(FileEditorAction(command="create", path=str(new), file_text="print(1)\n"))
    assert answer.is_error
    assert not new.exists()


# What the model is told


def test_the_schema_is_flat_and_small() -> None:
    parameters = NotebookEditorTool.spec().parameters
    assert parameters["required"] == ["command", "path"]
    assert all("anyOf" not in field for field in parameters["properties"].values())
    assert parameters["properties"]["cell"]["type"] == "string"
    assert NotebookEditorAction(command="view", path="a", cell=3).cell == "3"


def test_a_number_with_very_many_digits_is_no_cell(path: Path, call: Call) -> None:
    write(path, code("x"))
    for name in ("9" * 5000, f"index:{'9' * 5000}", f"{'0' * 30}"):
        answer = call("view", cell=name)
        assert answer.is_error and "There is no cell" in answer.text


def test_half_a_character_is_written_as_json_writes_it(path: Path, call: Call) -> None:
    assert not call("create", source="a\ud800").is_error
    assert not call("insert", source="b\udfff").is_error
    assert b"a\\ud800" in path.read_bytes() and b"b\\udfff" in path.read_bytes()
    assert sources(path) == ["a\ud800", "b\udfff"]


@pytest.mark.parametrize(
    "damaged",
    [
        {"source": None, "id": None, "outputs": None, "metadata": None, "execution_count": "x"},
        {"source": 5, "id": 5, "outputs": {}, "metadata": [], "cell_type": 5},
        {"metadata": {"tags": 5}},
        {"outputs": [1, None, {}, {"output_type": "error", "traceback": "x"}]},
    ],
)
def test_damaged_cells_are_viewed_and_mended(
    damaged: dict[str, Any], path: Path, call: Call, executor: NotebookEditorExecutor
) -> None:
    write(path, {**code("x"), **damaged}, code("y"))
    assert not call("view").is_error and not call("view", cell=0).is_error
    action = NotebookEditorAction(command="delete", path="a.ipynb", cell="0")
    assert executor.preview(action) is not None
    assert not call("delete", cell=0).is_error
    assert sources(path) == ["y"]
