"""The agent in a kernel, and the notebook that this kernel serves."""

from pathlib import Path
from typing import Any

from tests.live.agent_kernel import AgentKernel, agent_kernel, asks, text_of
from tests.live.kernel_client import Result
from tests.outputs import final_text
from tests.unit.test_notebook_editor import code, note, write


def cells(command: str, **arguments: Any) -> dict[str, Any]:
    """A turn that calls the notebook editor."""
    return asks(("notebook_editor", {"command": command, "path": "own.ipynb", **arguments}))


def next_inputs(result: Result) -> list[tuple[str, bool]]:
    payload = result.reply["content"]["payload"]
    return [(one["text"], one["replace"]) for one in payload if one["source"] == "set_next_input"]


def answers(kernel: AgentKernel) -> list[str]:
    return [text_of(result) for result in kernel.results().values()]


def test_the_kernels_own_notebook_is_not_written_but_gets_a_new_cell(tmp_path: Path) -> None:
    path = tmp_path / "work" / "own.ipynb"
    path.parent.mkdir()
    before = write(path, code("x = 1", 1))
    script = [
        cells("replace", cell=0, source="x = 2"),
        cells("suggest", source="x = 2"),
        cells("suggest", source="print(x)"),
        cells("suggest", path="other.ipynb", source="no"),
        {"content": "See below."},
    ]
    with agent_kernel(tmp_path, script, JPY_SESSION_NAME=str(path)) as kernel:
        result = kernel.ask()
        assert next_inputs(result) == [("x = 2\n\nprint(x)", False)]
        refused, first, _, elsewhere = answers(kernel)
        assert next_inputs(kernel.kernel.run("1 + 1")) == []
    assert "is open in Jupyter" in refused and "command suggest" in refused
    assert "stands below it, not run" in first
    assert "to the notebook of this kernel" in elsewhere
    assert path.read_bytes() == before


def test_other_notebooks_are_edited_from_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "work" / "own.ipynb"
    path.parent.mkdir()
    write(path, note("a"))
    script = [cells("insert", source="b"), cells("undo_edit"), {"content": "Done."}]
    session = str(path.with_name("another.ipynb"))
    with agent_kernel(tmp_path, script, JPY_SESSION_NAME=session) as kernel:
        shown = final_text(kernel.ask().messages)
        assert "was inserted as cell 1" in answers(kernel)[0]
        assert "was taken back" in answers(kernel)[1]
    assert "# %% code" in shown
    assert '"cell_type"' not in shown


def test_visual_studio_code_says_in_the_namespace_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "work" / "own.ipynb"
    path.parent.mkdir()
    before = write(path, note("a"))
    with agent_kernel(tmp_path, [cells("delete", cell=0), {"content": "No."}]) as kernel:
        kernel.kernel.run(f"__vsc_ipynb_file__ = {str(path)!r}")
        kernel.ask()
        assert "is open in Jupyter" in answers(kernel)[0]
    assert path.read_bytes() == before
