"""The contract of the file editor: texts, fields, limits, undo, confinement, preview and revert."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import ValidationError

from agentskills.journal import Entry, Journal
from oh_kernel.events import ImageContent
from oh_kernel.events.tools import Observation
from oh_kernel.tools.file_answers import MAX_CHARS
from oh_kernel.tools.file_editor import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
    FileEditorTool,
)
from oh_kernel.tools.files import Files, Step
from tests.folders import as_nobody, open_folder

Call = Callable[..., FileEditorObservation]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def executor(workspace: Path) -> FileEditorExecutor:
    return FileEditorExecutor(workspace=workspace)


@pytest.fixture
def call(executor: FileEditorExecutor) -> Call:
    def run(command: Any, path: str | Path, **arguments: Any) -> FileEditorObservation:
        answer = executor(FileEditorAction(command=command, path=str(path), **arguments))
        assert len(answer.text) <= MAX_CHARS
        answer.to_json()
        return answer

    return run


def fields(answer: FileEditorObservation) -> tuple[Any, ...]:
    return answer.path, answer.prev_exist, answer.old_content, answer.new_content


def refusal(answer: FileEditorObservation) -> str:
    assert answer.is_error
    assert fields(answer) == (None, True, None, None)
    return answer.text


def test_view_numbers_the_lines(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("one\n\n\tthree\n")
    answer = call("view", path)
    assert answer.text == (
        f"Here's the result of running `cat -n` on {path}:\n"
        "     1\tone\n     2\t\n     3\t\tthree\n"
    )
    assert fields(answer) == (str(path), True, None, None)
    assert answer.command == "view"


def test_view_range(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("1\n2\n3\n4\n")
    head = f"Here's the result of running `cat -n` on {path}:\n"
    assert call("view", path, view_range=[2, 3]).text == f"{head}     2\t2\n     3\t3\n"
    assert call("view", path, view_range=[3, -1]).text == f"{head}     3\t3\n     4\t4\n"
    assert call("view", path, view_range=[4, 9]).text == (
        f"NOTE: We only show up to 4 since there're only 4 lines in this file.\n{head}     4\t4\n"
    )


def test_create(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    answer = call("create", path, file_text="a\nb")
    assert answer.text == f"File created successfully at: {path}"
    assert fields(answer) == (str(path), False, None, "a\nb")
    assert path.read_bytes() == b"a\nb"


def test_str_replace_shows_a_snippet(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    old = "".join(f"line {n}\n" for n in range(1, 21))
    path.write_text(old)
    answer = call("str_replace", path, old_str="line 10\n", new_str="ten\nand a half\n")
    new = old.replace("line 10\n", "ten\nand a half\n")
    shown = "".join(
        f"{n:6}\t{line}\n" for n, line in enumerate(new.splitlines(), 1) if 7 <= n <= 16
    )
    assert answer.text == (
        f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of "
        f"{path}:\n{shown}Review the changes and make sure they are as expected. Edit the file "
        "again if necessary."
    )
    assert fields(answer) == (str(path), True, old, new)


def test_insert_shows_a_snippet(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("This is a test file.\nThis file is for testing purposes.")
    answer = call("insert", path, insert_line=1, new_str="Inserted line")
    assert answer.text == (
        f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of "
        "the edited file:\n     1\tThis is a test file.\n     2\tInserted line\n     3\tThis file "
        "is for testing purposes.\nReview the changes and make sure they are as expected (correct "
        "indentation, no duplicate lines, etc). Edit the file again if necessary."
    )
    assert answer.old_content == "This is a test file.\nThis file is for testing purposes."
    assert answer.new_content == path.read_text()


def test_undo_edit_shows_the_file(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("one\n")
    call("str_replace", path, old_str="one", new_str="two")
    answer = call("undo_edit", path)
    assert answer.text == (
        f"Last edit to {path} undone successfully. Here's the result of running `cat -n` on "
        f"{path}:\n     1\tone\n"
    )
    assert fields(answer) == (str(path), True, "two\n", "one\n")
    assert refusal(call("undo_edit", path)) == f"No edit history found for {path}."


def test_undo_of_create_removes_the_file(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    call("create", path, file_text="x\n")
    call("insert", path, insert_line=1, new_str="y")
    assert not call("undo_edit", path).is_error
    assert path.read_text() == "x\n"
    answer = call("undo_edit", path)
    assert not answer.is_error
    assert fields(answer) == (str(path), True, "x\n", None)
    assert not path.exists()


def test_undo_of_create_leaves_a_file_that_somebody_changed(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    call("create", path, file_text="x\n")
    path.write_text("mine\n")
    assert "has changed since the last edit" in refusal(call("undo_edit", path))
    assert path.read_text() == "mine\n"


def test_undo_is_ten_deep_and_goes_by_the_real_path(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("0\n")
    (workspace / "link").symlink_to("f.txt")
    for n in range(12):
        call("str_replace", path, old_str=f"{n}\n", new_str=f"{n + 1}\n")
    for _ in range(10):
        assert not call("undo_edit", f"{workspace}/../{workspace.name}/link").is_error
    assert path.read_text() == "2\n"
    assert call("undo_edit", path).is_error


def test_undo_brings_back_a_file_that_another_tool_removed(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    path.write_text("one\n")
    executor.files.carry_out([Step(path, executor.files.for_edit(path), None)])
    answer = call("undo_edit", path)
    assert not answer.is_error and "     1\tone\n" in answer.text
    assert fields(answer) == (str(path), False, None, "one\n")
    assert path.read_text() == "one\n"


def test_edits_of_tools_that_share_files_are_known_and_undone(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    path.write_text("one\n")
    call("view", path)
    action = FileEditorAction(command="str_replace", path=str(path), old_str="one", new_str="two")
    FileEditorExecutor(workspace=workspace, files=executor.files)(action)
    assert not call("str_replace", path, old_str="two", new_str="three").is_error
    assert not call("undo_edit", path).is_error
    assert not call("undo_edit", path).is_error
    assert path.read_text() == "one\n"
    FileEditorExecutor(workspace=workspace)(action)
    answer = call("str_replace", path, old_str="two", new_str="three")
    assert answer.is_error and "-one\n+two" in answer.text


def test_only_certain_files_can_be_edited_when_they_are_named(workspace: Path) -> None:
    for name in ("plan.md", "other.md"):
        (workspace / name).write_text("x\n")
    executor = FileEditorExecutor(
        workspace=workspace, allowed_edits_files=[workspace / "plan.md", workspace / "b.md"]
    )

    def edit(name: str) -> FileEditorObservation:
        action = FileEditorAction(
            command="str_replace", path=str(workspace / name), old_str="x", new_str="y"
        )
        return executor(action)

    assert not edit("plan.md").is_error
    assert refusal(edit("other.md")) == (
        f"Operation 'str_replace' is not allowed on file '{workspace}/other.md'. Only the "
        f"following files can be edited: ['{workspace}/b.md', '{workspace}/plan.md']"
    )
    view = FileEditorAction(command="view", path=str(workspace / "other.md"))
    assert not executor(view).is_error


def test_a_repair_is_told_with_the_next_answer(workspace: Path, tmp_path: Path) -> None:
    path, folder = workspace / "f.txt", tmp_path / "journal"
    old, new = b"old text\n" * 1000, b"shorter\n" * 1000
    path.write_bytes(new[:3000] + old[3000:])
    folder.mkdir(mode=0o700)
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:40]
    (folder / f"{name}.unfinished").write_bytes(Entry(path, old, new).to_bytes())
    files = Files(workspace, journal=Journal(folder))
    executor = FileEditorExecutor(workspace=workspace, files=files)
    action = FileEditorAction(command="view", path=str(path), view_range=[1, 1])
    note = f"Writing {path} was cut short; it was put back as it was before.\n"
    assert executor(action).text.startswith(note + "Here's the result")
    assert not executor(action).text.startswith(note)
    assert path.read_bytes() == old


def test_bmp_images_are_shown_as_png(workspace: Path, call: Call) -> None:
    Image.new("RGB", (3, 2)).save(workspace / "small.bmp")
    picture = call("view", workspace / "small.bmp").content[1]
    assert isinstance(picture, ImageContent)
    assert picture.image_urls[0].startswith("data:image/png;base64,")
    Image.new("1", (3, 2)).save(workspace / "odd.bmp")
    assert "Save it as a PNG" in refusal(call("view", workspace / "odd.bmp"))


def test_texts_of_refusals(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("a test\na test\nend\n")
    missing = workspace / "none.txt"

    def required(name: str, command: str) -> str:
        return f"Parameter `{name}` is required for command: {command}."

    def view_range(*bounds: int) -> str:
        return refusal(call("view", path, view_range=list(bounds)))

    assert refusal(call("create", workspace / "new")) == required("file_text", "create")
    assert refusal(call("str_replace", path)) == required("old_str", "str_replace")
    assert refusal(call("str_replace", path, old_str="x")) == required("new_str", "str_replace")
    assert refusal(call("insert", path, new_str="x")) == required("insert_line", "insert")
    assert refusal(call("insert", path, insert_line=1)) == required("new_str", "insert")
    assert refusal(call("view", missing)) == (
        f"Invalid `path` parameter: {missing}. The path {missing} does not exist. Please provide "
        "a valid path."
    )
    assert refusal(call("create", path, file_text="x")) == (
        f"Invalid `path` parameter: {path}. File already exists at: {path}. Cannot overwrite files "
        "using command `create`."
    )
    assert refusal(call("str_replace", workspace, old_str="x", new_str="y")) == (
        f"Invalid `path` parameter: {workspace}. The path {workspace} is a directory and only the "
        "`view` command can be used on directories."
    )
    assert refusal(call("view", workspace, view_range=[1, 2])) == (
        "Invalid `view_range` parameter: [1, 2]. The `view_range` parameter is not allowed when "
        "`path` points to a directory."
    )
    assert view_range(1) == (
        "Invalid `view_range` parameter: [1]. It should be a list of two integers."
    )
    assert view_range(4, 5) == (
        "Invalid `view_range` parameter: [4, 5]. Its first element `4` should be within the range "
        "of lines of the file: [1, 3]."
    )
    assert view_range(2, 1) == (
        "Invalid `view_range` parameter: [2, 1]. Its second element `1` should be greater than or "
        "equal to the first element `2`."
    )
    assert refusal(call("insert", path, insert_line=4, new_str="x")) == (
        "Invalid `insert_line` parameter: 4. It should be within the range of allowed values: "
        "[0, 3]"
    )
    assert refusal(call("str_replace", path, old_str="end", new_str="end")) == (
        "Invalid `new_str` parameter: end. No replacement was performed. `new_str` and `old_str` "
        "must be different."
    )
    assert refusal(call("str_replace", path, old_str="nowhere", new_str="x")) == (
        f"No replacement was performed, old_str `nowhere` did not appear verbatim in {path}."
    )
    assert refusal(call("str_replace", path, old_str="test", new_str="x")) == (
        "No replacement was performed. Multiple occurrences of old_str `test` in lines [1, 2]. "
        "Please ensure it is unique."
    )
    assert refusal(call("str_replace", path, old_str="", new_str="x")) == (
        "No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3, 4]. "
        "Please ensure it is unique."
    )
    assert refusal(call("undo_edit", path)) == f"No edit history found for {path}."
    assert path.read_text() == "a test\na test\nend\n"


def test_relative_paths_are_refused_with_the_path_that_was_meant(
    workspace: Path, call: Call
) -> None:
    (workspace / "f.txt").write_text("x\n")
    text = "Invalid `path` parameter: {0}. The path should be an absolute path."
    meant = " Maybe you meant {1}/{0}?"
    assert refusal(call("view", "f.txt")) == (text + meant).format("f.txt", workspace)
    assert refusal(call("view", "g.txt")) == text.format("g.txt")
    assert refusal(call("create", "g.txt", file_text="")) == (
        (text + meant).format("g.txt", workspace)
    )
    assert refusal(call("view", "")) == text.format("")
    assert refusal(call("view", "n" * 5000)).endswith("The path should be an absolute path.")


def test_home_is_expanded(workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    (workspace / "notes.txt").write_text("x\n")
    assert call("view", "~/notes.txt").path == f"{workspace}/notes.txt"
    assert call("view", "~nobody-has-this-name/notes.txt").is_error


def test_files_that_cannot_be_read(workspace: Path, call: Call) -> None:
    (workspace / "large").write_bytes(b"x" * (10 * 2**20 + 600_000))
    os.mkfifo(workspace / "pipe")
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    assert refusal(call("view", workspace / "large")) == (
        f"File validation failed for {workspace}/large: File is too large (10.6MB). Maximum "
        "allowed size is 10MB."
    )
    assert "not a regular file" in refusal(call("view", workspace / "pipe"))
    assert refusal(call("view", workspace / "a")).startswith("Ran into [Errno 40] ")
    assert refusal(call("create", workspace / "a", file_text="x")).startswith("Ran into ")
    told = refusal(call("view", f"{workspace}/nul\0byte"))
    assert "embedded null" in told and "nul\\x00byte" in told and "\0" not in told
    assert "File name too long" in refusal(call("view", workspace / ("n" * 300)))
    assert refusal(call("view", workspace / "large" / "below")).endswith("a valid path.")


def test_create_in_a_folder_that_is_not_there(workspace: Path, call: Call) -> None:
    path = workspace / "no" / "f.txt"
    assert refusal(call("create", path, file_text="x")) == (
        f"Ran into [Errno 2] No such file or directory: '{path.parent}' while trying to write to "
        f"{path}"
    )


def test_an_edit_may_not_make_a_file_that_cannot_be_edited(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_bytes(b"x" * (10 * 2**20 - 10))
    assert "too large" in refusal(call("insert", path, insert_line=0, new_str="y" * 20))
    (workspace / "g.txt").write_text("x\n")
    assert "NUL" in refusal(call("str_replace", workspace / "g.txt", old_str="x", new_str="\0"))
    assert "binary" in refusal(call("create", workspace / "h.txt", file_text="a\0b"))


def test_characters_that_the_encoding_lacks_are_refused(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_bytes(b"ann\xe9e\nx\n")
    assert "cp1252" in refusal(call("str_replace", path, old_str="x", new_str="中"))
    assert path.read_bytes() == b"ann\xe9e\nx\n"


def test_numbers_are_right_where_lines_are_left_out(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("".join(f"line {n} of many\n" for n in range(1, 5001)))
    text = call("view", path).text
    assert len(text) > 15_500
    rows = [row.split("\t") for row in text.splitlines() if "\t" in row]
    assert all(f"line {int(number)} of many" == line for number, line in rows)
    numbers = [int(number) for number, _ in rows]
    assert (numbers[0], numbers[-1]) == (1, 5000)
    gap = next(i for i, n in enumerate(numbers) if n != i + 1)
    assert f"Lines {numbers[gap - 1] + 1} to {numbers[gap] - 1} are not shown.\n" in text
    assert text.count("<response clipped><NOTE>") == 1
    middle = call("view", path, view_range=[2400, 2600])
    assert "Lines" not in middle.text


@pytest.mark.parametrize("length", [100, 399, 500, 5_000, 50_000])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_every_answer_keeps_to_the_cap(
    length: int, count: int, workspace: Path, call: Call
) -> None:
    path = workspace / "f.txt"
    path.write_bytes((b"\xe9" * (length // 2) + b"x" * (length // 2) + b"\n") * count + b"end")
    call("view", path)
    assert "Edit the file again" in call("str_replace", path, old_str="end", new_str="END").text
    assert call("undo_edit", path).text.startswith("Last edit to")
    call("str_replace", path, old_str="end", new_str="y" * length * count)
    call("str_replace", path, old_str="n" * length * count, new_str="")
    call("create", workspace / "g.txt", file_text="x")


def test_a_long_line_is_shown_around_the_edit(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_text("a\n" + "x" * 40_000 + "here" + "x" * 40_000 + "\nb\n")
    text = call("str_replace", path, old_str="here", new_str="there").text
    assert "xxxtherexxx" in text
    assert text.count("[line cut: ") == 2
    assert "     1\ta\n" in text
    assert "     3\tb\n" in text


def test_stray_bytes_are_shown_escaped(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_bytes("naïve café\n".encode() + b"\xff\xfe broken\n")
    answer = call("insert", path, insert_line=2, new_str="more")
    assert "     2\t\\xff\\xfe broken\n" in answer.text
    assert answer.new_content == "naïve café\n\\xff\\xfe broken\nmore\n"


def test_folders_are_listed_two_levels_deep(workspace: Path, call: Call) -> None:
    (workspace / "src" / "deep").mkdir(parents=True)
    for name in ("a.txt", ".env", "src/b.py", "src/.cache", "src/deep/c.py"):
        (workspace / name).write_text("")
    (workspace / "loop").symlink_to(".")
    answer = call("view", workspace)
    listed = [
        f"{workspace}/",
        *(f"{workspace}/{name}" for name in ("a.txt", "loop/", "src/", "src/b.py", "src/deep/")),
    ]
    assert answer.text == (
        f"Here's the files and directories up to 2 levels deep in {workspace}, excluding hidden "
        "items:\n" + "\n".join(listed) + "\n\n1 hidden files/directories in this directory are "
        f"excluded. You can use 'ls -la {workspace}' to see them."
    )
    assert fields(answer) == (str(workspace), True, None, None)


def test_folders_that_cannot_be_entered_do_not_hide_the_others() -> None:
    with open_folder() as folder:
        (folder / "open").mkdir()
        (folder / "open" / "file").touch()
        (folder / "locked" / "inner").mkdir(parents=True)
        (folder / "link").symlink_to("locked/inner")
        (folder / "locked").chmod(0)
        action = FileEditorAction(command="view", path=str(folder))
        with as_nobody():
            answer = FileEditorExecutor(workspace=folder)(action)
        (folder / "locked").chmod(0o700)
    assert not answer.is_error
    assert [line.removeprefix(f"{folder}/") for line in answer.text.splitlines()[2:]] == [
        "link",
        "locked/",
        "open/",
        "open/file",
    ]


def test_long_listings_are_cut(workspace: Path, call: Call) -> None:
    for n in range(1000):
        (workspace / f"file_{n}.txt").touch()
    assert "only part of this directory has been shown" in call("view", workspace).text


def test_writing_stays_in_the_workspace(tmp_path: Path, workspace: Path, call: Call) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs\n")
    (workspace / "link").symlink_to(outside)
    (workspace / "folder").symlink_to(tmp_path)
    assert not call("view", outside).is_error
    assert not call("view", workspace / "link").is_error
    for path in (outside, workspace / "link", f"{workspace}/../outside.txt"):
        answer = call("str_replace", path, old_str="theirs", new_str="ours")
        assert refusal(answer) == (
            f"Operation 'str_replace' is not allowed on file '{path}'. Only files in the following "
            f"folders can be edited: [{workspace}]"
        )
    for path in (tmp_path / "new", workspace / "folder" / "new", f"{workspace}-beside"):
        assert "is not allowed" in refusal(call("create", path, file_text="x"))
        assert not Path(path).exists()
    assert outside.read_text() == "theirs\n"


def test_allowed_folders_can_be_written(tmp_path: Path, workspace: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    executor = FileEditorExecutor(workspace=workspace, allowed_folders=[allowed])
    action = FileEditorAction(command="create", path=f"{allowed}/f.txt", file_text="x")
    assert not executor(action).is_error


def test_preview_says_what_would_happen_and_writes_nothing(
    workspace: Path, executor: FileEditorExecutor
) -> None:
    path = workspace / "f.txt"
    path.write_bytes(b"one\r\ntwo")

    def preview(command: Any, name: str = "f.txt", **arguments: Any) -> tuple[Any, ...] | None:
        action = FileEditorAction(command=command, path=str(workspace / name), **arguments)
        shown = executor.preview(action)
        return (shown.path, shown.old_text, shown.new_text) if shown else None

    assert preview("str_replace", old_str="one", new_str="1") == (path, "one\ntwo", "1\ntwo")
    assert preview("insert", insert_line=2, new_str="3") == (path, "one\ntwo", "one\ntwo\n3")
    assert preview("create", "new", file_text="x") == (workspace / "new", None, "x")
    assert preview("view") is None
    assert preview("undo_edit") is None
    assert preview("create", file_text="x") is None
    assert preview("create", "no/new", file_text="x") is None
    assert preview("create", "../new", file_text="x") is None
    assert preview("str_replace", old_str="none", new_str="1") is None
    assert path.read_bytes() == b"one\r\ntwo"
    assert os.listdir(workspace) == ["f.txt"]


def test_revert_restores_the_very_bytes(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    original = "naïve café\r\n".encode() + b"\xff\xfe broken\nend"
    path.write_bytes(original)
    answer = call("str_replace", path, old_str="broken\nend", new_str="whole\nEND\n")
    assert executor.revert(path, answer.old_content, answer.new_content) is None
    assert path.read_bytes() == original
    assert call("undo_edit", path).is_error


def test_revert_of_a_create_removes_the_file(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    call("create", path, file_text="x\r\n")
    assert executor.revert(path, None, "x\n") is None
    assert not path.exists()


def test_revert_of_an_undo_brings_a_created_file_back(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    call("create", path, file_text="x\n")
    undone = call("undo_edit", path)
    assert executor.revert(path, undone.old_content, undone.new_content) is None
    assert path.read_text() == "x\n"


def test_revert_after_a_restart_goes_by_the_logged_texts(workspace: Path, call: Call) -> None:
    path = workspace / "f.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\nthree")
    answer = call("str_replace", path, old_str="one", new_str="1\n1b")
    later = FileEditorExecutor(workspace=workspace)
    later.revert(path, answer.old_content, answer.new_content)
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\nthree"
    made = call("create", workspace / "g.txt", file_text="x\n")
    later.revert(workspace / "g.txt", made.old_content, made.new_content)
    assert not (workspace / "g.txt").exists()


def test_revert_leaves_a_file_that_changed(
    workspace: Path, executor: FileEditorExecutor, call: Call
) -> None:
    path = workspace / "f.txt"
    path.write_text("one\n")
    call("str_replace", path, old_str="one", new_str="two")
    path.write_text("two\nand more\n")
    reason = executor.revert(path, "one\n", "two\n")
    assert reason == f"{path} was changed by somebody else in the meantime."
    assert path.read_text() == "two\nand more\n"
    path.unlink()
    assert executor.revert(path, "one\n", "two\n") == f"File {path} not found."


def test_arguments_are_checked(workspace: Path) -> None:
    with pytest.raises(ValidationError):
        FileEditorAction.model_validate({"command": "delete", "path": str(workspace)})
    with pytest.raises(ValidationError):
        FileEditorAction.model_validate({"command": "view", "path": "/f", "replace_all": True})
    schema = FileEditorAction.model_json_schema()["properties"]["insert_line"]
    assert schema["anyOf"] == [{"type": "integer", "minimum": 0}, {"type": "null"}]


def test_the_model_is_told_little() -> None:
    spec = FileEditorTool.spec()
    described = [field.get("description", "") for field in spec.parameters["properties"].values()]
    # About 4 characters make a token; the budget is 420 tokens.
    assert len(spec.description + "".join(described)) < 4 * 420
    assert list(spec.parameters["properties"])[:2] == ["security_risk", "summary"]


def test_observations_survive_the_log(workspace: Path, call: Call) -> None:
    answer = call("create", workspace / "f.txt", file_text="x\n")
    assert isinstance(answer, Observation)
    assert FileEditorObservation.model_validate_json(answer.to_json()) == answer
