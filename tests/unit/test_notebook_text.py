"""Edits of a notebook's text: the cell that is meant changes, every other byte stays."""

import json
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oh_kernel.tools.notebook_changes import (
    Change,
    Cleared,
    Deleted,
    Inserted,
    Moved,
    NewSource,
    Replaced,
)
from oh_kernel.tools.notebook_format import flaw, has_ids, read_notebook
from oh_kernel.tools.notebook_json import outline
from oh_kernel.tools.notebook_plan import CannotEdit, planned
from oh_kernel.tools.notebook_text import NotebookText

CODE = {
    "cell_type": "code",
    "execution_count": 1,
    "metadata": {},
    "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}],
    "source": ["x = 1\n", "print(x)"],
}
NOTE = {"cell_type": "markdown", "metadata": {}, "source": ["# Été\n", "last"]}


def notebook(*cells: dict[str, Any], minor: int = 4) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


def changed(text: str, *changes: Change) -> str:
    return NotebookText(text).with_changes(changes).text


LAYOUTS: dict[str, dict[str, Any]] = {
    "jupyter": {"indent": 1, "ensure_ascii": False},
    "two blanks": {"indent": 2},
    "tabs": {"indent": "\t", "ensure_ascii": False},
    "no indent": {"indent": 0},
    "one line": {},
    "minified": {"separators": (",", ":")},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "change",
    [
        Inserted(0, NOTE),
        Inserted(1, NOTE),
        Inserted(2, NOTE),
        Deleted(0),
        Deleted(1),
        Moved(0, 1),
        Moved(1, 0),
        Cleared(0),
        NewSource(0, "x = 2\nprint(x)"),
        NewSource(0, ""),
        NewSource(1, "# Été\nmore\nlast"),
        Replaced(1, {**NOTE, "cell_type": "raw"}),
    ],
)
def test_new_parts_are_laid_out_as_the_file_is(layout: str, change: Change) -> None:
    """Written by json.dumps in one layout, it is as if the changed notebook had been so, too."""
    before = notebook(CODE, NOTE)
    text = changed(json.dumps(before, **LAYOUTS[layout]), change)
    # A cell's accents are spelt as themselves where it is made anew, as Jupyter does.
    spelt = json.dumps(json.loads(text), **LAYOUTS[layout])
    assert text.replace("É", "\\u00c9").replace("é", "\\u00e9") == spelt.replace(
        "É", "\\u00c9"
    ).replace("é", "\\u00e9")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_only_cell_comes_and_goes(layout: str) -> None:
    text = json.dumps(notebook(NOTE), **LAYOUTS[layout])
    empty = changed(text, Deleted(0))
    assert empty == json.dumps(notebook(), **LAYOUTS[layout])
    again = changed(empty, Inserted(0, NOTE))
    assert json.loads(again) == notebook(NOTE)
    assert again.count("\n") == text.count("\n")


def test_lines_of_an_empty_source_are_laid_out() -> None:
    text = json.dumps(notebook({**NOTE, "source": []}), indent=1)
    filled = changed(text, NewSource(0, "a\nb"))
    assert filled == json.dumps(notebook({**NOTE, "source": ["a\n", "b"]}), indent=1)


def test_line_ends_and_mark_are_kept() -> None:
    text = json.dumps(notebook(CODE, NOTE), indent=1, ensure_ascii=False).replace("\n", "\r\n")
    data = b"\xef\xbb\xbf" + text.encode()
    file, _ = read_notebook(data)
    after = file.with_changes([Inserted(1, NOTE), NewSource(0, "y\nz\nprint(x)"), Cleared(0)]).data
    assert after.startswith(b"\xef\xbb\xbf{\r\n")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert json.loads(after.decode("utf-8-sig"))["cells"][0]["outputs"] == []


def test_untouched_lines_keep_their_spelling() -> None:
    text = json.dumps(notebook({**NOTE, "source": ["é\n", "à\n", "ü"]}), indent=1)
    assert "\\u00e9" in text
    after = changed(text, NewSource(0, "é\nx\nü"))
    assert after == text.replace('"\\u00e0\\n"', '"x\\n"')


def test_a_source_in_one_string_stays_one() -> None:
    text = json.dumps(notebook({**NOTE, "source": "a\nb"}), indent=1)
    assert changed(text, NewSource(0, "a\nc")) == text.replace("a\\nb", "a\\nc")


def test_half_a_pair_in_a_source_is_written_as_an_escape() -> None:
    text = json.dumps(notebook({**NOTE, "source": ["\ud800\n", "b"]}), indent=1)
    after = NotebookText(text).with_changes([NewSource(0, "\ud800 \n" + "b")])
    assert json.loads(after.data)["cells"][0]["source"] == ["\ud800 \n", "b"]


def test_odd_blanks_stay() -> None:
    text = '{ "cells" :[ {"cell_type":"raw" , "metadata": {},\n\n"source": ["a\\n",   "b"] }\t,\n'
    text += '{"cell_type": "raw", "metadata": { }, "source" : "c"}],\n"metadata":{},"nbformat":4,'
    text += '"nbformat_minor" : 2}  '
    assert changed(text, NewSource(0, "a\nc")) == text.replace('"b"', '"c"')
    assert changed(text, NewSource(1, "d")) == text.replace('"c"', '"d"')
    moved = changed(text, Moved(0, 1))
    assert [cell["source"] for cell in json.loads(moved)["cells"]] == ["c", ["a\n", "b"]]
    assert '{"cell_type":"raw" , "metadata": {},\n\n"source": ["a\\n",   "b"] }' in moved


def test_of_a_repeated_key_the_last_counts() -> None:
    text = '{"cells": [], "nbformat": 4, "cells": [{"cell_type": "raw", "metadata": {}, '
    text += '"source": "a", "source": "b"}], "metadata": {}, "nbformat_minor": 1}'
    after = changed(text, NewSource(0, "c"))
    assert after == text.replace('"b"', '"c"')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a"}',
        '{"a": }',
        '{"a": 1,}',
        '{"cells": [1,]}',
        '{"cells": [{}',
        '{"a": 1} x',
        '{"a": "\n"}',
        "{'a': 1}",
        '{"cells": [{"a" 1}]}',
        '{"a": ' + "[" * 100_000,
    ],
)
def test_broken_json_is_an_error_that_names_the_place(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        outline(text)
    assert "line 1 column" in str(caught.value)


# Any sequence of edits of any notebook


WORDS = st.text(
    st.sampled_from("ab \n\t\"\\/é日\u2028\u0085\x0b\r\U0001f40d{}[],:'#%"), max_size=12
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1, 1) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=3,
)
SOURCES = WORDS | WORDS.map(lambda text: text.splitlines(keepends=True))
BUNDLES = st.fixed_dictionaries({"text/plain": SOURCES}, optional={"application/json": JSON_VALUES})
OUTPUTS = st.one_of(
    st.fixed_dictionaries(
        {"output_type": st.just("stream"), "name": st.just("stdout"), "text": SOURCES}
    ),
    st.fixed_dictionaries(
        {"output_type": st.just("display_data"), "data": BUNDLES, "metadata": st.just({})}
    ),
    st.fixed_dictionaries(
        {
            "output_type": st.just("error"),
            "ename": WORDS,
            "evalue": WORDS,
            "traceback": st.lists(WORDS, max_size=2),
        }
    ),
)
METADATA = st.dictionaries(st.sampled_from(["a", "é", "x y"]), JSON_VALUES, max_size=2)


@st.composite
def any_notebooks(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A valid notebook of format 4.0 to 4.5, and a text that says it."""
    minor = draw(st.integers(0, 5))
    cells = []
    for number in range(draw(st.integers(0, 5))):
        cell: dict[str, Any] = {"source": draw(SOURCES), "metadata": draw(METADATA)}
        cell["cell_type"] = draw(st.sampled_from(["code", "markdown", "raw"]))
        if cell["cell_type"] == "code":
            cell["outputs"] = draw(st.lists(OUTPUTS, max_size=2))
            cell["execution_count"] = draw(st.none() | st.integers(0, 9))
        if minor == 5:
            cell["id"] = f"cell-{number}"
        cells.append(cell)
    value = {**notebook(*cells, minor=minor), "metadata": draw(METADATA)}
    text = json.dumps(
        value,
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
        sort_keys=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ": "), (",", ":"), (", ", ": ")])),
    )
    text += draw(st.sampled_from(["", "\n", " \n\n"]))
    return value, text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@st.composite
def any_calls(draw: st.DrawFn, value: dict[str, Any]) -> SimpleNamespace:
    """An edit as a model asks for it; some do not suit the notebook."""
    names = [cell.get("id", str(index)) for index, cell in enumerate(value["cells"])]
    sources = ["".join(cell["source"]) for cell in value["cells"]]
    commands = ["replace", "str_replace", "insert", "delete", "move", "clear_outputs"]
    return SimpleNamespace(
        command=draw(st.sampled_from(commands)),
        cell=draw(st.sampled_from([*names, *names, "0", "3", None])),
        source=draw(WORDS),
        cell_type=draw(st.sampled_from([None, None, "code", "markdown", "raw"])),
        position=draw(st.sampled_from(["before", "after"])),
        target=draw(st.sampled_from([*names, "0", "1"])),
        old_str=draw(st.sampled_from([*filter(None, sources), "a"])),
        new_str=draw(WORDS),
        keep_outputs=draw(st.booleans()),
    )


def parts(text: str) -> tuple[str, list[str], str]:
    """The text before, of and after the cells."""
    seen = outline(text)
    cells = [text[cell.start : cell.end] for cell in seen.cells]
    return text[: seen.members["cells"].start], cells, text[seen.members["cells"].end :]


def expected_cells(cells: list[Any], changes: tuple[Change, ...]) -> tuple[list[Any], list[Any]]:
    """The cells as nbformat would have them after the changes, and which of them are as before."""
    result = [dict(cell) for cell in cells]
    origin: list[int | None] = list(range(len(cells)))
    for change in changes:
        match change:
            case NewSource(index, source):
                result[index]["source"], origin[index] = source, None
            case Cleared(index):
                result[index].update(outputs=[], execution_count=None)
                origin[index] = None
            case Replaced(index, cell):
                result[index] = {**cell, "source": "".join(cell["source"])}
                origin[index] = None
            case Inserted(index, cell):
                result.insert(index, {**cell, "source": "".join(cell["source"])})
                origin.insert(index, None)
            case Deleted(index):
                del result[index], origin[index]
            case Moved(index, to):
                result.insert(to, result.pop(index))
                origin.insert(to, origin.pop(index))
    return result, origin


def as_nbformat_reads(text: str) -> Any:
    read = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(read)
    return read


@settings(max_examples=200, deadline=None)
@given(any_notebooks(), st.data())
def test_any_edits_of_any_notebook(made: tuple[dict[str, Any], str], data: st.DataObject) -> None:
    value, text = made
    assert not flaw(value)
    for _ in range(5):
        file, now = read_notebook(text.encode())
        call = data.draw(any_calls(now))
        try:
            plan = planned(call, now)
        except CannotEdit:
            continue
        after = file.with_changes(plan.changes).data.decode()
        # What it says is what was planned, and what nbformat makes of the same changes.
        assert json.loads(after) == plan.after
        was = as_nbformat_reads(text)
        cells, origin = expected_cells(was.cells, plan.changes)
        assert as_nbformat_reads(after) == {**was, "cells": nbformat.from_dict(cells)}
        # Every byte of the cells that were not meant, and of what is around them, is the same.
        head, old, tail = parts(text)
        new_head, new, new_tail = parts(after)
        assert (new_head, new_tail) == (head, tail)
        for cell, source in zip(new, origin, strict=True):
            assert source is None or cell == old[source]
        assert has_ids(now) or not any("id" in cell for cell in json.loads(after)["cells"])
        text = after
