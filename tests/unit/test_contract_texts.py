"""Limits and short texts of the contract that no test of a single tool holds."""

import base64
import inspect
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import ValidationError

from agentskills.disk import MAX_FILE_BYTES
from oh_kernel.events import AgentErrorEvent, ImageContent, Observation, TextContent
from oh_kernel.events.messages import events_to_messages
from oh_kernel.tools import apply_patch, file_answers, list_directory, read_file, terminal
from oh_kernel.tools.base import clip
from oh_kernel.tools.edit import EditAction, EditExecutor
from oh_kernel.tools.file_editor import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
)
from oh_kernel.tools.glob import GlobExecutor
from oh_kernel.tools.grep import GrepExecutor
from oh_kernel.tools.list_directory import ListDirectoryAction, ListDirectoryExecutor
from oh_kernel.tools.read_file import ReadFileAction, ReadFileExecutor
from oh_kernel.tools.search import answers
from oh_kernel.tools.terminal import TerminalAction, TerminalExecutor
from oh_kernel.tools.write_file import WriteFileAction, WriteFileExecutor
from tests.folders import as_nobody, open_folder
from tests.unit.turns import action, observed

NOTE = "<response clipped><NOTE>Due to the max output limit, only part of "
CLIPPED = f"{NOTE}the full response has been shown to you.</NOTE>"


def edited(path: Path, command: Any, **arguments: Any) -> FileEditorObservation:
    given = FileEditorAction(command=command, path=str(path), **arguments)
    return FileEditorExecutor(workspace=path.parent)(given)


def test_limits() -> None:
    assert (file_answers.MAX_CHARS, file_answers.CONTEXT_LINES) == (16_000, 4)
    assert MAX_FILE_BYTES == 10 * 1024 * 1024
    assert (terminal.MAX_CHARS, terminal.NO_CHANGE_TIMEOUT_S) == (30_000, 30)
    assert (answers.MAX_FILES, answers.TIMEOUT_S) == (100, 30)
    assert (read_file.MAX_LINES_PER_READ, list_directory.MAX_ENTRIES) == (1000, 500)
    assert apply_patch.DONE == "Done!"


@pytest.mark.parametrize(
    ("executor", "name", "default"),
    [
        (TerminalExecutor, "no_change_timeout_s", 30),
        (GlobExecutor, "timeout_s", 30),
        (GrepExecutor, "timeout_s", 30),
        (FileEditorExecutor, "max_file_bytes", 10 * 1024 * 1024),
    ],
)
def test_limits_hold_unless_set_otherwise(executor: type, name: str, default: int) -> None:
    assert inspect.signature(executor).parameters[name].default == default


# What all tools share


def test_text_is_cut_in_its_middle_with_the_usual_notice() -> None:
    text = "a" * 300 + "b" * 300
    cut = clip(text, len(CLIPPED) + 11)
    assert cut == "a" * 6 + CLIPPED + "b" * 5
    assert clip(text, 10) == CLIPPED[:10]
    assert clip(text, 600) == text


def test_an_error_has_a_head_of_its_own_for_the_model() -> None:
    call = action("file_editor", {"command": "view", "path": "/x"})
    for is_error in (True, False):
        failed = Observation.from_text("what", is_error)
        event = observed(call, "").model_copy(update={"observation": failed})
        told = events_to_messages([call, event])[-1].content
        texts = [part.text for part in told if isinstance(part, TextContent)]
        assert texts == ["[An error occurred during execution.]\n"] * is_error + ["what"]
    refused = AgentErrorEvent(error="no", tool_name="file_editor", tool_call_id=call.tool_call_id)
    told = events_to_messages([call, refused])[-1].content
    assert [part.text for part in told if isinstance(part, TextContent)] == ["no"]


# file_editor


def test_ten_megabytes_are_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x\n" * (5 * 2**20))
    assert not edited(path, "view", view_range=[1, 1]).is_error
    with path.open("ab") as file:
        file.write(b"y")
    answer = edited(path, "view", view_range=[1, 1])
    assert answer.is_error
    assert answer.text == (
        f"File validation failed for {path}: File is too large (10.0MB). Maximum allowed size is "
        "10MB."
    )


def test_sixteen_thousand_characters_are_shown_and_where_to_find_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("".join(f"{n}\n" for n in range(10_000)))
    text = edited(path, "view").text
    assert 15_500 < len(text) <= 16_000
    assert (
        f"\n{NOTE}this file has been shown to you. You should retry this tool after you have "
        "searched inside the file with `grep -n` in order to find the line numbers of what you "
        "are looking for.</NOTE>\n"
    ) in text
    for n in range(800):
        (tmp_path / f"file {n}").touch()
    text = edited(tmp_path, "view").text
    assert len(text) == 16_000
    assert (
        f"{NOTE}this directory has been shown to you. You should use `ls -la` instead to view "
        "large directories incrementally.</NOTE>"
    ) in text


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".png", "png"),
        (".jpg", "jpeg"),
        (".jpeg", "jpeg"),
        (".gif", "gif"),
        (".webp", "webp"),
        (".bmp", "png"),  # as no provider takes it
        (".PNG", "png"),
    ],
)
def test_pictures_of_six_suffixes_are_shown(tmp_path: Path, suffix: str, kind: str) -> None:
    path = tmp_path / f"picture{suffix}"
    Image.new("RGB", (3, 2), "red").save(path)
    answer = edited(path, "view")
    assert not answer.is_error
    assert answer.text == f"Image file {path} read successfully. Displaying image content."
    (picture,) = (part for part in answer.content if isinstance(part, ImageContent))
    head, _, data = picture.image_urls[0].partition(",")
    assert head == f"data:image/{kind};base64"
    assert suffix == ".bmp" or base64.b64decode(data) == path.read_bytes()


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    binary, picture = tmp_path / "bin", tmp_path / "x.png"
    binary.write_bytes(b"\0\1\2")
    picture.write_text("text")
    assert edited(binary, "view").text == (
        f"File validation failed for {binary}: File appears to be binary and this file type "
        "cannot be read or edited by this tool. It has 3 bytes."
    )
    assert edited(picture, "view").text.startswith(f"Failed to read image file {picture}: ")


def test_what_the_system_says_is_told(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert edited(loop, "view").text == (
        f"Ran into [Errno 40] Too many levels of symbolic links: '{loop}' while trying to read "
        f"{loop}"
    )


def test_the_first_thing_amiss_with_a_path_is_told(tmp_path: Path) -> None:
    """Not absolute, then there already, then not there, then a folder; the fields come last."""
    folder, missing = tmp_path / "folder", tmp_path / "missing"
    folder.mkdir()
    assert "should be an absolute path" in edited(Path("folder"), "create").text
    assert f"File already exists at: {folder}." in edited(folder, "create").text
    assert f"The path {missing} does not exist." in edited(missing, "str_replace").text
    assert "only the `view` command can be used" in edited(folder, "str_replace").text


def test_an_unknown_command_names_those_that_are_there() -> None:
    with pytest.raises(ValidationError) as refused:
        FileEditorAction.model_validate({"command": "delete", "path": "/x"})
    for command in ("view", "create", "str_replace", "insert", "undo_edit"):
        assert f"'{command}'" in str(refused.value)


# Who must wait for whom


def test_a_file_is_locked_by_where_its_path_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("f")
    executor = FileEditorExecutor(workspace=tmp_path)
    for command in ("view", "create", "str_replace", "insert", "undo_edit"):
        for path in (f"{tmp_path}/link", f"{tmp_path}/x/../f"):
            asked = FileEditorAction.model_validate({"command": command, "path": path})
            assert executor.resources(asked) == (f"file:{tmp_path.resolve()}/f",)


def test_there_is_one_shell(tmp_path: Path) -> None:
    executor = TerminalExecutor(tmp_path)
    for fields in ({}, {"is_input": True}, {"reset": True}):
        asked = TerminalAction.model_validate({"command": "x", **fields})
        assert executor.resources(asked) == ("terminal:session",)


# read_file, write_file, edit, list_directory


def test_what_may_not_be_reached_is_told() -> None:
    with open_folder() as folder:
        closed, file = folder / "closed", folder / "f"
        closed.mkdir(mode=0)
        file.write_text("one\n")
        file.chmod(0)
        with as_nobody():
            read = ReadFileExecutor(folder)(ReadFileAction(file_path="f"))
            edit = EditAction(file_path="f", old_string="one", new_string="two")
            edit_answer = EditExecutor(folder)(edit)
            written = WriteFileExecutor(folder)(WriteFileAction(file_path="new", content="x"))
            listed = ListDirectoryExecutor(folder)(ListDirectoryAction(dir_path="closed"))
        closed.chmod(0o700)
        assert read.text == edit_answer.text == f"Error: Permission denied: {file}"
        assert written.text == f"Error: Permission denied: {folder}/new"
        assert listed.text == f"Error: Permission denied: {closed}"
        assert all(answer.is_error for answer in (read, edit_answer, written, listed))
        assert [path.name for path in sorted(folder.iterdir())] == ["closed", "f"]
