"""Why can a file not be read or changed? One tree, whose members carry the facts for a caller.

EditingError                 nothing was written
|- FileMissing               no file has this path
|- FileExists                a new file was wanted, and there is one
|- IsAFolder
|- NotARegularFile           a pipe, socket or device
|- FileTooLarge              .size, .limit in bytes
|- BinaryFile                .size in bytes
|- CannotRead                .cause, the operating system's error
|- CannotWrite               .cause
|- NotAllowed                .folders that may be written
|- FileChanged               it no longer holds what the caller saw
|  `- ChangedOutside         .diff, what changed since
|     `- CannotUndo          it is no longer as its last edit left it
|- NotEncodable              .character, .encoding
|- NoMatch
|- ManyMatches               .line_numbers
`- LineOutOfRange            .number, .first, .last
"""

import os
from collections.abc import Sequence
from pathlib import Path


class EditingError(Exception):
    """A file was not read or not changed; the message says why in one sentence."""


class FileMissing(EditingError):
    """No file has this path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(f"File {path} not found.")


class FileExists(EditingError):
    """A new file was wanted where there is one already."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(f"File '{path}' already exists.")


class IsAFolder(EditingError):
    """The path names a folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(f"{path} is a directory, not a file.")


class NotARegularFile(EditingError):
    """The path names a pipe, a socket or a device."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(f"{path} is not a regular file.")


class FileTooLarge(EditingError):
    """The file has more bytes than the limit."""

    def __init__(self, path: str | os.PathLike[str], size: int, limit: int) -> None:
        super().__init__(f"{path} has {size} bytes; at most {limit} can be read or edited.")
        self.size = size
        self.limit = limit


class BinaryFile(EditingError):
    """The bytes are not text."""

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        super().__init__(f"{path} is a binary file ({size} bytes), not text.")
        self.size = size


class CannotRead(EditingError):
    """The operating system refused to read."""

    def __init__(self, path: str | os.PathLike[str], cause: Exception) -> None:
        super().__init__(f"Cannot read {path}: {cause}")
        self.cause = cause


class CannotWrite(EditingError):
    """The operating system refused to write."""

    def __init__(self, path: str | os.PathLike[str], cause: Exception) -> None:
        super().__init__(f"Cannot write {path}: {cause}")
        self.cause = cause


class NotAllowed(EditingError):
    """The file is outside the folders that may be written."""

    def __init__(self, path: str | os.PathLike[str], folders: Sequence[Path]) -> None:
        named = ", ".join(map(str, folders))
        super().__init__(
            f"{path} is outside the folders that may be written: [{named}]. Work in one of them, "
            "or ask the user to add its folder to the setting allowed_folders."
        )
        self.folders = folders


class FileChanged(EditingError):
    """Somebody else changed the file after the caller saw it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(f"{path} was changed by somebody else in the meantime.")


class ChangedOutside(FileChanged):
    """The file is not as the agent last saw it; the message shows what changed."""

    def __init__(self, path: str | os.PathLike[str], diff: str) -> None:
        EditingError.__init__(
            self,
            f"{path} has changed since you last saw it. Nothing was done. This is what changed; "
            f"call again if you still want to edit it:\n{diff}",
        )
        self.diff = diff


class CannotUndo(ChangedOutside):
    """The file is not as its last edit left it."""

    def __init__(self, path: str | os.PathLike[str], diff: str) -> None:
        EditingError.__init__(
            self,
            f"{path} has changed since the last edit, so that edit can no longer be undone. "
            f"Nothing was done; edit the file instead. This is what changed:\n{diff}",
        )
        self.diff = diff


class NotEncodable(EditingError):
    """The file's encoding has no bytes for a character of the new text."""

    def __init__(self, character: str, encoding: str) -> None:
        super().__init__(
            f"The character {character!a} cannot be written in {encoding}, the encoding of "
            "this file. Nothing was changed."
        )
        self.character = character
        self.encoding = encoding


class NoMatch(EditingError):
    """The text to replace is not in the file."""

    def __init__(self) -> None:
        super().__init__("The text to replace does not appear in the file.")


class ManyMatches(EditingError):
    """The text to replace is in the file more than once."""

    def __init__(self, line_numbers: list[int]) -> None:
        super().__init__(f"The text to replace appears more than once, in lines {line_numbers}.")
        self.line_numbers = line_numbers


class LineOutOfRange(EditingError):
    """The file has no such line."""

    def __init__(self, number: int, first: int, last: int) -> None:
        super().__init__(f"Line number must be between {first} and {last}")
        self.number = number
        self.first = first
        self.last = last
