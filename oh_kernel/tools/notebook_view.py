"""How does a model see a notebook, or one of its cells, within a number of characters?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oh_kernel.tools.base import clip
from oh_kernel.tools.notebook_changes import source_of
from oh_kernel.tools.notebook_format import version_of
from oh_kernel.tools.output_text import model_text

MAX_SOURCE_CHARS = 5_000
MAX_OUTPUT_CHARS = 600
"""Of one cell when several are shown; a cell that is viewed alone is shown as far as it fits."""
_MAX_NAMED = 12
_NOTICE_CHARS = 200  # room for what says which cells or lines are not shown
_MOST_CHARS = 200_000  # of one output, that are looked through for what to show
_PICTURES = ("image/png", "image/jpeg", "image/svg+xml", "image/gif")


@dataclass(frozen=True)
class CellOutput:
    """An output of a saved cell in the form that the output of running code has."""

    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    late: bool = False


def outputs_of(cell: Mapping[str, Any]) -> list[CellOutput]:
    """What a cell has put out, as far as it is well-formed."""
    outputs = cell.get("outputs")
    found = outputs if isinstance(outputs, list) else []
    return [_output(one) for one in found if isinstance(one, dict)]


def whole_view(
    name: str, notebook: Mapping[str, Any], first: int, last: int, max_chars: int
) -> str:
    """The cells `first` to `last`, as many as fit, and what to say of the notebook."""
    cells = notebook["cells"]
    head = f"{_headline(name, notebook)}\n{run_order(cells)}\n"
    if not cells:
        return head + "It has no cells."
    room = max_chars - len(head) - _NOTICE_CHARS
    blocks: list[str] = []
    for index in range(first, last + 1):
        block = _block(index, cells[index])
        if len(block) > room and blocks:
            break
        blocks.append(block[: max(0, room)])
        room -= len(block)
    shown = first + len(blocks) - 1
    notice = ""
    if shown < last:
        notice = (
            f"<response clipped><NOTE>Cells {shown + 1} to {last} are not shown. View them with "
            f"view_range [{shown + 1}, {last}].</NOTE>"
        )
    return clip(head + "".join(blocks) + notice, max_chars)


def cell_view(
    index: int, cell: Mapping[str, Any], lines: tuple[int, int] | None, max_chars: int
) -> str:
    """One cell: all of its source or a range of lines, and its outputs as far as they fit."""
    source = source_of(cell)
    rows = source.split("\n")
    first, last = lines or (1, len(rows))
    head = f"{_title(index, cell)}\n"
    if lines:
        head += f"[lines {first} to {last} of {len(rows)}]\n"
    outputs = "" if lines else _outputs_text(index, cell, max_chars // 3)
    room = max_chars - len(head) - len(outputs) - _NOTICE_CHARS
    shown = list(_fitting(rows[first - 1 : last], room))
    notice = ""
    if len(shown) < last - first + 1:
        at = first + len(shown)
        notice = (
            f"<response clipped><NOTE>Lines {at} to {last} of this cell are not shown. View them "
            f"with cell {index} and view_range [{at}, {last}].</NOTE>\n"
        )
    return clip(head + "".join(shown) + notice + outputs, max_chars)


def run_order(cells: Sequence[Mapping[str, Any]]) -> str:
    """Whether the outputs come from a run from top to bottom: what was not run, or out of order."""
    code = [
        (index, cell.get("execution_count"))
        for index, cell in enumerate(cells)
        if cell.get("cell_type") == "code" and source_of(cell).strip()
    ]
    if not code:
        return "Run order: there is no code."
    never = [index for index, count in code if not isinstance(count, int)]
    counted = [(index, count) for index, count in code if isinstance(count, int)]
    remarks = []
    if never:
        remarks.append(f"{_cells(never)} never run (or cleared since)")
    if misplaced := list(_misplaced(counted)):
        remarks.append(
            f"OUT OF ORDER, so a run from top to bottom may give other results: {_named(misplaced)}"
        )
    return "Run order: " + ("; ".join(remarks) or "from top to bottom") + "."


def percent_text(notebook: Mapping[str, Any]) -> str:
    """The notebook as a script with `# %%` between the cells: what people compare."""
    pieces = []
    for cell in notebook["cells"]:
        facts = _facts(cell)
        count = len(outputs_of(cell))
        if count:
            facts.append(f"{count} output{'' if count == 1 else 's'}")
        pieces.append(f"# %% {', '.join(facts)}\n{_ended(source_of(cell))}")
    return "\n".join(pieces)


def _headline(name: str, notebook: Mapping[str, Any]) -> str:
    major, minor = version_of(notebook)
    cells = notebook["cells"]
    count = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
    metadata = notebook.get("metadata")
    spec = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    kernel = f", kernel {spec.get('name')}" if isinstance(spec, dict) else ""
    return f"{name}: {count}, notebook format {major}.{minor}{kernel}."


def _block(index: int, cell: Mapping[str, Any]) -> str:
    source = source_of(cell)
    notice = ""
    if len(source) > MAX_SOURCE_CHARS:
        cut = source.rfind("\n", 0, MAX_SOURCE_CHARS) + 1 or MAX_SOURCE_CHARS
        notice = f"[{len(source) - cut} more characters; view cell {index} alone to see them]\n"
        source = source[:cut]
    outputs = _outputs_text(index, cell, MAX_OUTPUT_CHARS, f"view cell {index} alone; ")
    return f"{_title(index, cell)}\n{_ended(source)}{notice}{outputs}"


def _title(index: int, cell: Mapping[str, Any]) -> str:
    return f"--- [{index}] {', '.join(_facts(cell))} ---"


def _facts(cell: Mapping[str, Any]) -> list[str]:
    """Type, id, count, and the tags, each a few words."""
    facts = [str(cell.get("cell_type"))]
    if "id" in cell:
        facts.append(f"id {cell['id']}")
    if cell.get("cell_type") == "code":
        count = cell.get("execution_count")
        facts.append("not run" if count is None else f"In [{count}]")
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    if isinstance(tags, list) and tags:
        facts.append(f"tags {' '.join(map(str, tags))}")
    return facts


def _outputs_text(index: int, cell: Mapping[str, Any], max_chars: int, notice: str = "") -> str:
    outputs = outputs_of(cell)
    if not outputs:
        return ""
    text = model_text(replace(output, text=clip(output.text, _MOST_CHARS)) for output in outputs)
    pictures = [
        f"[{mime}, {len(str(output.data[mime])) // 1024 + 1} KB]"
        for output in outputs
        for mime in _PICTURES
        if mime in output.data
    ]
    shown = clip(text, max_chars, f"\n[... cut: {notice}{len(text)} characters in all ...]\n")
    body = "\n".join(part for part in (shown, *pictures) if part) or "[nothing that is text]"
    return f"--- [{index}] output ---\n{_ended(body)}"


def _output(output: Mapping[str, Any]) -> CellOutput:
    match output.get("output_type"):
        case "stream":
            return CellOutput("stream", _joined(output.get("text")))
        case "error":
            trace = output.get("traceback")
            lines = trace if isinstance(trace, list) else []
            text = "\n".join(map(str, lines))
            return CellOutput("error", text or f"{output.get('ename')}: {output.get('evalue')}")
        case _:
            bundle = output.get("data")
            data = {k: _joined(v) for k, v in bundle.items()} if isinstance(bundle, dict) else {}
            return CellOutput("display", _plain(data), data)


def _plain(data: Mapping[str, str]) -> str:
    if "text/plain" in data:
        return data["text/plain"]
    # What has no plain text is told by the next best, as IPython's own objects are.
    return "<IPython.core.display." if data and not set(data) & set(_PICTURES) else ""


def _joined(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _misplaced(counted: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The cells that were run after one that stands below them."""
    least: tuple[int, int] | None = None
    for index, count in reversed(counted):
        if least is not None and count >= least[1]:
            yield f"cell {index} (In [{count}]) stands above cell {least[0]} (In [{least[1]}])"
        else:
            least = index, count


def _cells(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return f"cell {indices[0]} was"
    return f"cells {_named([str(index) for index in indices])} were"


def _named(words: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(words) - _MAX_NAMED} more" if len(words) > _MAX_NAMED else ""
    return ", ".join(words[:_MAX_NAMED]) + more


def _fitting(rows: Sequence[str], room: int) -> Iterator[str]:
    """The first rows that fit; of a first one that does not, its beginning."""
    for number, row in enumerate(rows):
        if len(row) + 1 > room:
            if number == 0:
                yield f"{row[: max(0, room - 50)]} [line cut: {len(row)} characters]\n"
            return
        room -= len(row) + 1
        yield f"{row}\n"


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
