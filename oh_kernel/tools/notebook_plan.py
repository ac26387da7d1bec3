"""Which changes of a notebook's cells does a call ask for, and what is a model told of them?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agentskills.errors import EditingError
from oh_kernel.tools.notebook_changes import (
    Change,
    Cleared,
    Deleted,
    Inserted,
    Moved,
    NewSource,
    Replaced,
    applied,
    like,
    source_of,
)
from oh_kernel.tools.notebook_format import flaw, new_cell, retyped
from oh_kernel.tools.notebook_view import outputs_of, run_order

CellType = Literal["code", "markdown", "raw"]
_SNIPPET_LINES = 4
_MAX_SNIPPET_CHARS = 2_000


class CannotEdit(EditingError):
    """The call cannot be carried out on this notebook; the text says why and what would do."""


class EditCall(Protocol):
    """What an edit of cells is told, as the tool's action has it."""

    @property
    def command(self) -> str: ...
    @property
    def cell(self) -> str | None: ...
    @property
    def source(self) -> str | None: ...
    @property
    def cell_type(self) -> CellType | None: ...
    @property
    def position(self) -> Literal["before", "after"]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def old_str(self) -> str | None: ...
    @property
    def new_str(self) -> str | None: ...
    @property
    def keep_outputs(self) -> bool: ...


@dataclass(frozen=True)
class Plan:
    """The changes, the notebook with them, and what to say when they are made."""

    changes: tuple[Change, ...]
    after: Mapping[str, Any]
    answer: str


def planned(call: EditCall, notebook: Mapping[str, Any]) -> Plan:
    """What `call` makes of the notebook; CannotEdit when it cannot be done, or would break it."""
    changes, answer = _changes(call, notebook)
    cells = notebook["cells"]
    after = {**notebook, "cells": applied(cells, changes)}
    remarks = [answer]
    if reason := flaw(after):
        if not flaw(notebook):
            raise CannotEdit(f"The notebook would not be valid any more: {reason}.")
        remarks.append(f"The notebook was not valid before, and still is not: {reason}.")
    order = run_order(after["cells"])
    if "OUT OF ORDER" in order and order != run_order(cells):
        remarks.append(order)
    return Plan(tuple(changes), after, "\n".join(remarks))


def find_cell(cells: Sequence[Mapping[str, Any]], name: str) -> int:
    """The index of the cell that a model names by its index or id; CannotEdit if there is none."""
    kind, _, rest = name.strip().partition(":")
    wanted = rest if kind in ("id", "index") and rest else name.strip()
    by_id = [i for i, cell in enumerate(cells) if cell.get("id") == wanted and kind != "index"]
    by_index = [int(wanted)] if _is_index(wanted, len(cells)) and kind != "id" else []
    found = sorted({*by_id, *by_index})
    if len(found) == 1:
        return found[0]
    if len(by_id) > 1:
        raise CannotEdit(f"The cells {by_id} all have the id {wanted!r}. Name one by its index.")
    if found:
        raise CannotEdit(
            f"{wanted!r} is the id of cell {by_id[0]} and the index of another. Say id:{wanted} or "
            f"index:{wanted}."
        )
    there = f"indices 0 to {len(cells) - 1}" if cells else "no cells"
    raise CannotEdit(
        f"There is no cell {name!r}: the notebook has {there}. View it for indices and ids."
    )


def _is_index(name: str, count: int) -> bool:
    # Too many digits are no number for Python.
    return name.isascii() and name.isdigit() and len(name) < 20 and int(name) < count


def _changes(call: EditCall, notebook: Mapping[str, Any]) -> tuple[list[Change], str]:
    cells = notebook["cells"]
    match call.command:
        case "insert":
            return _insertion(call, notebook)
        case "clear_outputs" if call.cell is None:
            return _clearing(cells, range(len(cells)))
    index = find_cell(cells, _required(call, "cell"))
    match call.command:
        case "replace":
            return _replacement(call, index, cells[index], _required(call, "source"))
        case "str_replace":
            return _replacement(call, index, cells[index], _with_new_text(call, cells[index]))
        case "delete":
            return _deletion(index, cells)
        case "move":
            return _move(call, index, cells)
        case "clear_outputs":
            return _clearing(cells, [index])
        case _:
            raise CannotEdit(f"{call.command} does not edit cells.")


def _replacement(
    call: EditCall, index: int, cell: Mapping[str, Any], source: str
) -> tuple[list[Change], str]:
    _require_allowed(cell, index, "editable")
    cell_type = call.cell_type or cell.get("cell_type")
    if cell_type == cell.get("cell_type") and source == source_of(cell):
        raise CannotEdit(f"Cell {index} has this source already. Nothing was changed.")
    changes: list[Change]
    if cell_type != cell.get("cell_type") or not _has_source(cell):
        form = cell["source"] if _has_source(cell) else []
        changes = [Replaced(index, {**retyped(cell, str(cell_type)), "source": like(form, source)})]
        lost = _run_facts(cell)
        answer = f"Cell {index}{_id_of(cell)} was changed and is {cell_type} now."
        return changes, f"{answer} Its {lost} went." if lost else answer
    changes = [NewSource(index, source)]
    answer = f"Cell {index}{_id_of(cell)} was changed.\n{_snippet(source_of(cell), source)}"
    if lost := _run_facts(cell):
        if call.keep_outputs:
            return changes, f"{answer}Its old {lost} stand, though the new source was not run."
        changes.append(Cleared(index))
        answer += f"Its {lost} came from the old source and were cleared. The cell was not run."
    return changes, answer.rstrip("\n")


def _with_new_text(call: EditCall, cell: Mapping[str, Any]) -> str:
    old, new = _required(call, "old_str"), call.new_str or ""
    source = source_of(cell)
    count = source.count(old)
    if not old or count == 0:
        raise CannotEdit(
            f"old_str `{old}` did not appear verbatim in the source of cell {call.cell}. View the "
            "cell and take old_str from it; it is source text, without JSON escapes."
        )
    if count > 1:
        raise CannotEdit(
            f"old_str `{old}` appears {count} times in cell {call.cell}. Add text around it until "
            "it is unique."
        )
    return source.replace(old, new)


def _insertion(call: EditCall, notebook: Mapping[str, Any]) -> tuple[list[Change], str]:
    cells = notebook["cells"]
    index = 0 if call.position == "before" else len(cells)
    if call.cell is not None:
        index = find_cell(cells, call.cell) + (call.position == "after")
    cell = new_cell(notebook, call.cell_type or "code", _required(call, "source"))
    answer = f"A {cell['cell_type']} cell was inserted as cell {index}{_id_of(cell)}."
    if index < len(cells):
        answer += " The indices of the cells below it went up by one."
    return [Inserted(index, cell)], answer + _not_run(cell)


def _deletion(index: int, cells: Sequence[Mapping[str, Any]]) -> tuple[list[Change], str]:
    _require_allowed(cells[index], index, "deletable")
    answer = f"Cell {index}{_id_of(cells[index])} was deleted."
    if index < len(cells) - 1:
        answer += " The indices of the cells below it went down by one."
    return [Deleted(index)], answer


def _move(
    call: EditCall, index: int, cells: Sequence[Mapping[str, Any]]
) -> tuple[list[Change], str]:
    beside = find_cell(cells, _required(call, "target"))
    if beside == index:
        raise CannotEdit(f"Cell {index} cannot be moved beside itself; target is another cell.")
    to = beside + (call.position == "after") - (index < beside)
    if to == index:
        raise CannotEdit(f"Cell {index} stands {call.position} cell {beside} already.")
    answer = (
        f"Cell {index}{_id_of(cells[index])} was moved and is cell {to} now. The cells between "
        "have new indices."
    )
    return [Moved(index, to)], answer


def _clearing(
    cells: Sequence[Mapping[str, Any]], indices: Sequence[int]
) -> tuple[list[Change], str]:
    run = [index for index in indices if _run_facts(cells[index])]
    if not run:
        raise CannotEdit("There are no outputs or execution counts to clear.")
    facts = f"the {_run_facts(cells[run[0]])} of cell {run[0]}"
    if len(run) > 1:
        facts = f"the outputs and execution counts of {len(run)} cells"
    return [Cleared(index) for index in run], f"Cleared {facts}."


def _run_facts(cell: Mapping[str, Any]) -> str:
    """What a cell keeps of its last run, in words; empty if nothing."""
    facts = []
    if count := len(outputs_of(cell)):
        facts.append(f"{count} output{'' if count == 1 else 's'}")
    if isinstance(cell.get("execution_count"), int):
        facts.append(f"execution count {cell['execution_count']}")
    return " and ".join(facts)


def _require_allowed(cell: Mapping[str, Any], index: int, right: str) -> None:
    """Jupyter itself refuses what a cell's metadata forbids; whoever set that had a reason."""
    metadata = cell.get("metadata")
    if isinstance(metadata, dict) and metadata.get(right) is False:
        raise CannotEdit(
            f"Cell {index} is marked as not {right} in its metadata, as in Jupyter. Nothing was "
            "changed; ask the user to lift that."
        )


def _required(call: EditCall, name: str) -> str:
    value = getattr(call, name)
    if value is None:
        raise CannotEdit(f"Parameter `{name}` is required for command: {call.command}.")
    return str(value)


def _has_source(cell: Mapping[str, Any]) -> bool:
    source = cell.get("source")
    if isinstance(source, list):
        return all(isinstance(line, str) for line in source)
    return isinstance(source, str)


def _snippet(old: str, new: str) -> str:
    """The lines around the first that differ, as the cell has them now."""
    before, rows = old.split("\n"), new.split("\n")
    at = next((n for n, (a, b) in enumerate(zip(before, rows, strict=False)) if a != b), 0)
    first = max(0, at - _SNIPPET_LINES)
    shown = rows[first : at + 2 * _SNIPPET_LINES]
    numbered = "\n".join(f"{first + n + 1:6}\t{row}" for n, row in enumerate(shown))
    return f"{numbered[:_MAX_SNIPPET_CHARS]}\n" if new else "It is empty now.\n"


def _not_run(cell: Mapping[str, Any]) -> str:
    return " It was not run." if cell["cell_type"] == "code" else ""


def _id_of(cell: Mapping[str, Any]) -> str:
    return f" (id {cell['id']})" if cell.get("id") else ""
