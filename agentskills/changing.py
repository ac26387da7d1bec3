"""How does a model change a file with one call, and see at once what became of it?"""

from pathlib import Path

from agentskills import editing
from agentskills.editing import FileText, read_file, save
from agentskills.errors import EditingError, LineOutOfRange, ManyMatches, NoMatch
from agentskills.viewing import current, open_file, prints_errors, show_around


@prints_errors
def create_file(filename: str) -> None:
    """Create a new, empty file and open it."""
    editing.create_file(filename, "")
    open_file(filename)
    print(f"[File {filename} created.]")


@prints_errors
def insert_content_at_line(file_name: str, line_number: int, content: str) -> None:
    """Insert lines before a line of a file; no other line changes."""
    file = read_file(file_name)
    last = len(file.lines) + 1
    if not 1 <= line_number <= last:
        raise LineOutOfRange(line_number, 1, last)
    _save_and_show(file.inserted(line_number - 1, content), file, line_number)


@prints_errors
def append_file(file_name: str, content: str) -> None:
    """Add lines to the end of a file."""
    file = read_file(file_name)
    last = len(file.lines)
    _save_and_show(file.inserted(last, content), file, last + 1)


@prints_errors
def edit_file_by_replace(file_name: str, to_replace: str, new_content: str) -> None:
    """Replace the one place where a file holds exactly `to_replace`; give whole lines."""
    if not to_replace.strip():
        raise EditingError("`to_replace` must not be empty.")
    if to_replace == new_content:
        raise EditingError("`to_replace` and `new_content` must be different.")
    if to_replace.endswith("\n") and new_content and not new_content.endswith("\n"):
        new_content += "\n"  # else the next line would be glued to the new one
    file = read_file(file_name)
    try:
        edited = file.replaced(to_replace, new_content)
    except NoMatch:
        print(f"[No exact match found in {file_name} for\n```\n{to_replace}\n```\n]")
    except ManyMatches:
        raise EditingError(
            "`to_replace` appears more than once, please include enough lines to make code in "
            "`to_replace` unique."
        ) from None
    else:
        _save_and_show(edited, file, file.line_of(to_replace))


def _save_and_show(edited: FileText, was: FileText, line_number: int) -> None:
    save(edited, was=was)
    current.path, current.line = Path(edited.path).absolute(), line_number
    show_around(edited, line_number, note=" after edit")
    print(
        f"[File updated (edited at line {line_number}). Please review the changes and make sure "
        "they are correct (correct indentation, no duplicate lines, etc). Edit the file again if "
        "necessary.]"
    )
