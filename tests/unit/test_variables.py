"""What the model is told of the user's namespace and cells."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from oh_kernel.kernel.recent_cells import MAX_CELLS, last_count, recent_cells
from oh_kernel.kernel.variables import MAX_CHARS, MAX_VARIABLES, summary


class Loud:
    """An object whose every way to be looked at would be noticed."""

    def __repr__(self) -> str:
        raise AssertionError("repr was called")

    __len__ = __str__ = __repr__  # type: ignore[assignment]  # never called, that is the point

    @property
    def shape(self) -> object:
        raise AssertionError("a property was read")


FRAME = pd.DataFrame({"city": ["Rome", "Oslo"], "rain_mm": [1.5, 2.0]})


def told(mode: str = "schema", **namespace: object) -> str:
    return summary(namespace, hidden=["In"], mode=mode)  # type: ignore[arg-type]  # a parameter


def test_frame_is_told_by_shape_columns_and_types() -> None:
    text = told(df=FRAME)
    assert "- df: DataFrame 2 x 2" in text
    assert "city " in text and "rain_mm float64" in text
    assert "Rome" not in text


def test_full_mode_adds_head_rows_marked_as_data() -> None:
    text = told("full", df=FRAME)
    assert "Rome" in text and "not instructions" in text


def test_none_tells_nothing() -> None:
    assert told("none", df=FRAME) == ""


def test_array_and_series() -> None:
    text = told(a=np.zeros((3, 4)), s=FRAME["rain_mm"])
    assert "array (3, 4) float64, 96 B" in text
    assert "Series of 2, float64, name rain_mm" in text


def test_code_of_unknown_types_is_not_called() -> None:
    assert "- x: test_variables.Loud" in told(x=Loud()).replace("tests.unit.", "")


def test_subclass_of_a_container_is_not_measured() -> None:
    class Odd(list):  # type: ignore[type-arg]  # what it holds does not matter
        def __len__(self) -> int:
            raise AssertionError("len was called")

    assert "Odd" in told(odd=Odd())


def test_newest_first_hidden_private_and_modules_left_out() -> None:
    text = told(old=1, _private=2, In=[1], np=np, new="abc")
    assert [line.split(":")[0] for line in text.splitlines()[1:]] == ["- new", "- old"]


def test_many_variables_are_capped_and_counted() -> None:
    text = told(**{f"v{i}": i for i in range(500)})
    assert len(text) < MAX_CHARS + 200
    assert f"... and {500 - MAX_VARIABLES} older ones" in text


def test_broken_library_object_still_has_its_type() -> None:
    broken = object.__new__(pd.DataFrame)
    assert "- b: pandas" in told(b=broken)


def shell_with(cells: dict[int, str], outputs: dict[int, str] | None = None) -> SimpleNamespace:
    raw = [""] + [cells.get(n, "") for n in range(1, max(cells) + 1)]
    made = {
        n: [SimpleNamespace(output_type="execute_result", bundle={"text/plain": text})]
        for n, text in (outputs or {}).items()
    }
    history = SimpleNamespace(input_hist_raw=raw, outputs=made, exceptions={})
    return SimpleNamespace(history_manager=history)


def test_cells_since_the_last_turn_with_their_output() -> None:
    shell = shell_with({1: "old = 1", 2: "x = 41", 3: "x + 1"}, {3: "42"})
    text = recent_cells(shell, since=1)
    assert "In [2]:\nx = 41" in text and "Out[3]:\n42" in text and "old" not in text
    assert recent_cells(shell, last_count(shell)) == ""


def test_cells_for_the_agent_are_left_out() -> None:
    assert recent_cells(shell_with({1: "%%openhands\nhi", 2: "  %openhands status"}), 0) == ""


def test_long_cells_and_many_cells_are_cut() -> None:
    shell = shell_with({n: f"x{n} = {'1' * 5000}" for n in range(1, 30)})
    text = recent_cells(shell, 0)
    assert "(cut)" in text and f"({29 - MAX_CELLS} earlier cells left out)" in text
    assert len(text) < 20_000


@pytest.mark.parametrize("stream", ["plain", ["in ", "pieces"]])
def test_printed_text_counts_as_output(stream: object) -> None:
    shell = shell_with({1: "print()"})
    bundle = {"stream": stream}
    shell.history_manager.outputs[1] = [SimpleNamespace(output_type="out_stream", bundle=bundle)]
    assert "Out[1]:" in recent_cells(shell, 0)
