"""Where is a text, or a file, below a folder?"""

import os
from collections.abc import Iterator
from pathlib import Path

from agentskills.editing import printable, read_file
from agentskills.errors import EditingError
from agentskills.viewing import current, prints_errors

MAX_FILES = 100
"""Files with a match that `search_dir` lists before it asks for a narrower search."""


@prints_errors
def search_dir(search_term: str, dir_path: str = "./") -> None:
    """Search for a text in all files below a folder; hidden and binary files are left out."""
    matches: list[str] = []
    files = 0
    for path in _visible_files(dir_path):
        found = list(_matching_lines(path, search_term))
        files += bool(found)
        matches += [f"{path} (Line {number}): {line.strip()}" for number, line in found]
        if files > MAX_FILES:
            print(
                f'More than {MAX_FILES} files matched for "{search_term}" in {dir_path}. '
                "Please narrow your search."
            )
            return
    if not matches:
        print(f'No matches found for "{search_term}" in {dir_path}')
        return
    _print_matches(matches, search_term, dir_path)


@prints_errors
def search_file(search_term: str, file_path: str | None = None) -> None:
    """Search for a text in a file, by default the open one."""
    path = file_path if file_path is not None else current.path
    if path is None:
        raise EditingError("No file specified or open. Use the open_file function first.")
    lines = read_file(path).lines
    found = [(number, line) for number, line in enumerate(lines, 1) if search_term in line]
    _print_matches([f"Line {n}: {printable(line)}" for n, line in found], search_term, path)


@prints_errors
def find_file(file_name: str, dir_path: str = "./") -> None:
    """Find all files below a folder whose name contains a text."""
    matches = [str(path) for path in _visible_files(dir_path) if file_name in path.name]
    _print_matches(matches, file_name, dir_path)


def _print_matches(matches: list[str], term: str, place: str | Path) -> None:
    if not matches:
        print(f'[No matches found for "{term}" in {place}]')
        return
    print(f'[Found {len(matches)} matches for "{term}" in {place}]')
    for match in matches:
        print(match)
    print(f'[End of matches for "{term}" in {place}]')


def _visible_files(folder: str) -> Iterator[Path]:
    """The files below a folder in a stable order, without what is hidden."""
    if not Path(folder).is_dir():
        raise EditingError(f"Directory {folder} not found")
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(root, name)


def _matching_lines(path: Path, term: str) -> Iterator[tuple[int, str]]:
    try:
        file = read_file(path)
    except EditingError:  # binary, too large or not ours to read: nothing to show of it
        return
    if term in file.text:
        for number, line in enumerate(file.lines, 1):
            if term in line:
                yield number, printable(line)
