"""In which words does the file editor answer a model?"""

from base64 import b64encode
from pathlib import Path

from agentskills import bitmaps, errors, images
from agentskills.editing import FileText
from oh_kernel.tools.excerpts import Focus, numbered

MAX_CHARS = 16_000
"""Characters of an answer, numbers and notices included."""
CONTEXT_LINES = 4
# What the providers take: larger images would spoil every later request of the conversation.
MAX_IMAGE_SIDE = 8000
MAX_IMAGE_BYTES = 5 * 1024 * 1024 * 3 // 4  # 5 MiB as base64


class Refused(Exception):
    """The model asked for something that cannot be; the text tells it why."""


def invalid(parameter: str, value: object, hint: str) -> Refused:
    """A refusal because of one parameter."""
    return Refused(f"Invalid `{parameter}` parameter: {value}. {hint}")


def listing(
    file: FileText,
    name: str | Path,
    lines: range | None = None,
    *,
    intro: str = "",
    closing: str = "",
    focus: Focus | None = None,
) -> str:
    """Numbered lines of a file, all or a range, between what is said around them."""
    head = f"{intro}Here's the result of running `cat -n` on {name}:\n"
    shown = file.lines[lines.start - 1 : lines.stop - 1] if lines else file.lines
    room = MAX_CHARS - len(head) - len(closing)
    return head + numbered(shown, lines.start if lines else 1, room, focus=focus) + closing


def lines_in_range(file: FileText, path: Path, view_range: list[int]) -> str:
    """The lines of a `view_range`; Refused when it is none."""
    if len(view_range) != 2:
        raise invalid("view_range", view_range, "It should be a list of two integers.")
    first, last = view_range
    # Asked so, for counting all lines of a large file takes the most time of all.
    if first < 1 or not file.lines.reaches(first):
        hint = (
            f"Its first element `{first}` should be within the range of lines of the file: "
            f"[1, {len(file.lines)}]."
        )
        raise invalid("view_range", view_range, hint)
    if last != -1 and last < first:
        hint = (
            f"Its second element `{last}` should be greater than or equal to the first element "
            f"`{first}`."
        )
        raise invalid("view_range", view_range, hint)
    if last != -1 and file.lines.reaches(last):
        return listing(file, path, range(first, last + 1))
    total, note = len(file.lines), ""
    if last != -1:
        note = f"NOTE: We only show up to {total} since there're only {total} lines in this file.\n"
    return listing(file, path, range(first, total + 1), intro=note)


def after_replacement(before: FileText, after: FileText, path: Path, old: str, new: str) -> str:
    """That text was replaced, with the lines around it."""
    line = after.line_number(before.place_of(old))  # up to there, both are the same
    index = before.difference(after)
    column = index - (after.text.rfind("\n", 0, index) + 1)
    return listing(
        after,
        f"a snippet of {path}",
        _around(line, line + new.count("\n")),
        intro=f"The file {path} has been edited. ",
        closing="Review the changes and make sure they are as expected. Edit the file again if "
        "necessary.",
        focus=Focus(after.line_number(index), column),
    )


def after_insertion(after: FileText, path: Path, after_line: int, added: int) -> str:
    """That lines were added, with the lines around them."""
    return listing(
        after,
        "a snippet of the edited file",
        _around(after_line, after_line + added),
        intro=f"The file {path} has been edited. ",
        closing="Review the changes and make sure they are as expected (correct indentation, no "
        "duplicate lines, etc). Edit the file again if necessary.",
    )


def after_undo(restored: FileText | None, path: Path) -> str:
    """That the last edit was taken back, with what the file holds now."""
    intro = f"Last edit to {path} undone successfully. "
    if restored is None:
        return f"{intro}That edit had created the file, so the file was removed."
    return listing(restored, path, intro=intro)


def image_url(path: Path, data: bytes) -> str:
    """An image as a `data:` URL; Refused when it is none or too large to be sent to a model."""
    header = images.read_header(data)
    if header is None:
        raise Refused(
            f"Failed to read image file {path}: its content is not that of a PNG, JPEG, GIF, WebP "
            "or BMP image."
        )
    kind = header.mime_type
    if kind == "image/bmp":  # no provider takes it
        kind, data = "image/png", _as_png(path, data)
    if max(header.width, header.height) > MAX_IMAGE_SIDE or len(data) > MAX_IMAGE_BYTES:
        raise Refused(
            f"Failed to read image file {path}: it has {header.width} x {header.height} pixels and "
            f"{len(data)} bytes. At most {MAX_IMAGE_SIDE} pixels a side and {MAX_IMAGE_BYTES} "
            "bytes can be shown. Save a smaller copy and view that."
        )
    return f"data:{kind};base64,{b64encode(data).decode('ascii')}"


def _as_png(path: Path, data: bytes) -> bytes:
    png = bitmaps.png_of_bmp(data)
    if png is None:
        raise Refused(
            f"Failed to read image file {path}: BMP images of this kind cannot be shown. Save it "
            "as a PNG and view that."
        )
    return png


def told(error: errors.EditingError, command: str, path: str, old_str: str | None) -> str:
    """An error of the editing engine in the words of the tool's contract."""
    match error:
        case errors.NotAllowed(folders=folders):
            return (
                f"Operation '{command}' is not allowed on file '{path}'. Only files in the "
                f"following folders can be edited: [{', '.join(map(str, folders))}]"
            )
        case errors.ChangedOutside():
            return str(error)
        case errors.NoMatch():
            return (
                f"No replacement was performed, old_str `{old_str}` did not appear verbatim in "
                f"{path}."
            )
        case errors.ManyMatches(line_numbers=lines):
            return (
                f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in "
                f"lines {lines}. Please ensure it is unique."
            )
        case errors.LineOutOfRange(number=number, first=first, last=last):
            hint = f"It should be within the range of allowed values: [{first}, {last}]"
            return str(invalid("insert_line", number, hint))
        case errors.FileTooLarge(size=size, limit=limit):
            return (
                f"File validation failed for {path}: File is too large ({size / 2**20:.1f}MB). "
                f"Maximum allowed size is {limit // 2**20}MB."
            )
        case errors.BinaryFile(size=size):
            return (
                f"File validation failed for {path}: File appears to be binary and this file type "
                f"cannot be read or edited by this tool. It has {size} bytes."
            )
        case errors.CannotRead(cause=cause):
            return f"Ran into {cause} while trying to read {path}"
        case errors.CannotWrite(cause=cause):
            return f"Ran into {cause} while trying to write to {path}"
        case errors.FileChanged():
            return f"{path} has changed since the last edit. Nothing was done; view it first."
        case _:
            return str(error)


def _around(first: int, last: int) -> range:
    return range(max(0, first - CONTEXT_LINES) + 1, last + CONTEXT_LINES + 1)
