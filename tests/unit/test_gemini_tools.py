"""read_file, write_file, edit and list_directory: contract texts, and every other byte kept."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentskills.charset import Charset
from agentskills.editing import FileText
from oh_kernel.tools.edit import EditAction, EditExecutor, EditObservation, EditTool
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.gemini_answers import MAX_CHARS
from oh_kernel.tools.list_directory import (
    MAX_ENTRIES,
    ListDirectoryAction,
    ListDirectoryExecutor,
    ListDirectoryObservation,
    ListDirectoryTool,
)
from oh_kernel.tools.read_file import (
    MAX_LINES_PER_READ,
    ReadFileAction,
    ReadFileExecutor,
    ReadFileObservation,
    ReadFileTool,
)
from oh_kernel.tools.write_file import (
    WriteFileAction,
    WriteFileExecutor,
    WriteFileObservation,
    WriteFileTool,
)
from tests.experiments import count

EXECUTORS = (ReadFileExecutor, WriteFileExecutor, EditExecutor, ListDirectoryExecutor)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def read(workspace: Path, path: str, **more: Any) -> ReadFileObservation:
    return ReadFileExecutor(workspace)(ReadFileAction(file_path=path, **more))


def write(workspace: Path, path: str, content: str, **more: Any) -> WriteFileObservation:
    return WriteFileExecutor(workspace, **more)(WriteFileAction(file_path=path, content=content))


def edit(workspace: Path, path: str, old: str, new: str, **more: Any) -> EditObservation:
    action = EditAction(file_path=path, old_string=old, new_string=new, **more)
    return EditExecutor(workspace)(action)


def listed(workspace: Path, path: str = ".", **more: Any) -> ListDirectoryObservation:
    return ListDirectoryExecutor(workspace)(ListDirectoryAction(dir_path=path, **more))


# read_file


def test_a_file_is_read_with_numbers(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"\xef\xbb\xbfone\r\n\r\nthree")
    answer = read(workspace, "f")
    assert answer.text == f"Read file: {workspace}/f\n\n     1  one\n     2  \n     3  three\n"
    assert (answer.file_path, answer.file_content) == (f"{workspace}/f", "one\n\nthree")
    assert (answer.is_truncated, answer.lines_shown, answer.total_lines) == (False, None, 3)
    assert read(workspace, str(workspace / "f")) == answer


def test_a_long_file_is_read_page_by_page(workspace: Path) -> None:
    (workspace / "f").write_text("".join(f"line {n}\n" for n in range(1, 2346)))
    shown, offset = "", 0
    for last, more in (
        (1000, " To read more, use: read_file(file_path='{}', offset=1000, limit=1000)"),
        (2000, " To read more, use: read_file(file_path='{}', offset=2000, limit=1000)"),
        (2345, ""),
    ):
        answer = read(workspace, "f", offset=offset or None)
        head = f"Read file: {workspace}/f (showing lines {offset + 1}-{last} of 2345){more}\n\n"
        assert answer.text.startswith(head.format(workspace / "f") + f"{offset + 1:6d}  line ")
        assert (answer.is_truncated, answer.lines_shown) == (True, (offset + 1, last))
        shown, offset = shown + answer.file_content, last
    assert shown == (workspace / "f").read_text()
    assert MAX_LINES_PER_READ == 1000


def test_offset_and_limit_choose_the_lines(workspace: Path) -> None:
    (workspace / "f").write_text("a\nb\nc\nd\n")
    answer = read(workspace, "f", offset=1, limit=2)
    assert answer.text == (
        f"Read file: {workspace}/f (showing lines 2-3 of 4) To read more, use: "
        f"read_file(file_path='{workspace}/f', offset=3, limit=2)\n\n     2  b\n     3  c\n"
    )
    assert read(workspace, "f", limit=2000).file_content == "a\nb\nc\nd\n"
    for bad in ({"offset": -1}, {"limit": 0}):
        with pytest.raises(ValidationError):
            ReadFileAction(file_path="f", **bad)


def test_an_empty_file_can_be_read(workspace: Path) -> None:
    (workspace / "f").touch()
    answer = read(workspace, "f", offset=0)
    assert not answer.is_error
    assert answer.text == f"Read file: {workspace}/f\n\n(The file is empty.)"
    assert (answer.file_content, answer.total_lines, answer.is_truncated) == ("", 0, False)


@pytest.mark.parametrize("lines", [["x" * 200_000], ["y" * 900] * 300, ["short", "z" * 60_000]])
def test_an_answer_has_a_limit_and_says_how_to_go_on(workspace: Path, lines: list[str]) -> None:
    (workspace / "f").write_text("\n".join(lines))
    seen, offset = 0, 0
    while offset < len(lines):
        answer = read(workspace, "f", offset=offset)
        assert len(answer.text) <= MAX_CHARS
        assert answer.total_lines == len(lines)
        first, last = answer.lines_shown or (1, len(lines))
        assert first == offset + 1
        assert ("To read more" in answer.text) == (last < len(lines))
        seen, offset = seen + last - first + 1, last
    assert seen == len(lines)
    if len(lines) == 1:
        assert "[line cut: it has 200000 characters]" in answer.text


def test_refusals_to_read(workspace: Path) -> None:
    (workspace / "f").write_text("a\nb\n")
    (workspace / "bin").write_bytes(b"\0\1")
    for path, more, text in (
        ("g", {}, f"Error: File not found: {workspace}/g"),
        (".", {}, f"Error: Path is a directory, not a file: {workspace}"),
        ("f", {"offset": 2}, "Error: Offset 2 is beyond file length (2 lines)"),
        ("bin", {}, f"Error reading file: {workspace}/bin is a binary file (2 bytes), not text."),
        ("f/g", {}, "Error reading file: Cannot read "),
        ("n\0", {}, "Error reading file: Cannot read "),
    ):
        answer = read(workspace, path, **more)
        assert answer.is_error
        assert answer.text.startswith(text)
        assert answer.file_content == ""


def test_files_elsewhere_can_be_read(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    assert not read(workspace, "../outside").is_error


# write_file


def test_a_new_file_is_written_with_its_folders(workspace: Path) -> None:
    answer = write(workspace, "a/b/f", "x\r\ny")
    assert answer.text == f"Created file: {workspace}/a/b/f"
    assert (answer.file_path, answer.is_new_file) == (f"{workspace}/a/b/f", True)
    assert (answer.old_content, answer.new_content) == (None, "x\ny")
    assert (workspace / "a/b/f").read_bytes() == b"x\r\ny"
    assert write(workspace, "empty", "").is_new_file
    assert (workspace / "empty").read_bytes() == b""


def test_a_file_that_is_written_over_keeps_its_ways(workspace: Path) -> None:
    path = workspace / "f"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o640)
    (workspace / "link").symlink_to("f")
    answer = write(workspace, "link", "one\nthree\nfour\n")
    assert answer.text == f"Updated file: {workspace}/link"
    assert (answer.is_new_file, answer.old_content) == (False, "one\ntwo\n")
    assert answer.new_content == "one\nthree\nfour\n"
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\nfour\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (workspace / "link").is_symlink()


def test_refusals_to_write_change_nothing(workspace: Path, tmp_path: Path) -> None:
    (workspace / "bin").write_bytes(b"\0\1")
    (workspace / "latin").write_bytes("déjà vu, garçon\n".encode("cp1252"))
    (workspace / "out").symlink_to(tmp_path)
    for path, content, text in (
        (".", "x", f"Error: Path is a directory, not a file: {workspace}"),
        ("bin", "x", f"Error writing file: {workspace}/bin is a binary file (2 bytes)"),
        ("latin", "中\n", "Error writing file: The character '\\u4e2d' cannot be written in cp"),
        ("new", "\0", f"Error writing file: {workspace}/new is a binary file (1 bytes)"),
        ("../f", "x", f"Error: {workspace}/../f is outside the folders that may be written: ["),
        ("out/sub/f", "x", f"Error: {workspace}/out/sub/f is outside the folders that may be w"),
        (f"{tmp_path}/f", "x", f"Error: {tmp_path}/f is outside the folders that may be written"),
        ("n\0", "x", "Error writing file: Cannot read "),
        ("bin/f", "x", "Error writing file: Cannot write "),
    ):
        answer = write(workspace, path, content)
        assert answer.is_error
        assert answer.text.startswith(text), answer.text
        assert (answer.file_path, answer.new_content) == (None, None)
    assert sorted(os.listdir(workspace)) == ["bin", "latin", "out"]
    assert os.listdir(tmp_path) == ["workspace"]
    assert (workspace / "bin").read_bytes() == b"\0\1"


def test_a_limit_of_bytes_holds_for_what_is_written(workspace: Path) -> None:
    answer = write(workspace, "a/f", "x" * 101, max_file_bytes=100)
    assert answer.text.startswith(f"Error writing file: {workspace}/a/f has 101 bytes; at most 100")
    assert os.listdir(workspace) == []


# edit


def test_each_occurrence_is_replaced(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"foo bar\r\nfoo\r\n")
    answer = edit(workspace, "f", "foo", "a\nb", expected_replacements=2)
    assert answer.text == f"Successfully edited {workspace}/f (2 replacement(s))"
    assert (answer.file_path, answer.is_new_file) == (f"{workspace}/f", False)
    assert answer.replacements_made == 2
    assert (answer.old_content, answer.new_content) == ("foo bar\nfoo\n", "a\nb bar\na\nb\n")
    assert (workspace / "f").read_bytes() == b"a\r\nb bar\r\na\r\nb\r\n"


def test_a_file_is_made_of_an_empty_old_string(workspace: Path) -> None:
    answer = edit(workspace, "a/f", "", "x\n")
    assert answer.text == f"Created new file: {workspace}/a/f"
    assert (answer.is_new_file, answer.replacements_made) == (True, 1)
    assert (answer.old_content, answer.new_content) == (None, "x\n")
    assert (workspace / "a/f").read_bytes() == b"x\n"


def test_refusals_to_edit_change_nothing(workspace: Path, tmp_path: Path) -> None:
    (workspace / "f").write_bytes(b"aa aa\n")
    (tmp_path / "outside").write_bytes(b"aa\n")
    at = f"{workspace}/f"
    for path, old, new, expected, text in (
        ("f", "", "x", 1, f"Error: Cannot create file that already exists: {at}. "),
        (
            *("g", "a", "x", 1),
            f"Error: File not found: {workspace}/g. To create a new file, use old_string=''.",
        ),
        (
            *("f", "a", "a", 4),
            "Error: No changes to apply. old_string and new_string are identical.",
        ),
        (
            *("f", "b", "x", 1),
            "Error: Could not find the string to replace. 0 occurrences found in "
            f"{at}. Use read_file to verify the exact text.",
        ),
        ("f", "aa", "x", 1, f"Error: Expected 1 occurrence(s) but found 2 in {at}."),
        ("f", "aa", "x", 0, f"Error: Expected 0 occurrence(s) but found 2 in {at}."),
        (".", "a", "x", 1, f"Error: Path is a directory, not a file: {workspace}"),
        ("../outside", "aa", "x", 1, f"Error: {workspace}/../outside is outside the folders that"),
        ("../new/f", "", "x", 1, f"Error: {workspace}/../new/f is outside the folders that may"),
        ("f", "aa aa", "\0", 1, "Error editing file: A NUL character would make the file binary"),
    ):
        answer = edit(workspace, path, old, new, expected_replacements=expected)
        assert answer.is_error
        assert answer.text.startswith(text), answer.text
        assert answer.replacements_made == 0
    assert (workspace / "f").read_bytes() == b"aa aa\n"
    assert os.listdir(workspace) == ["f"]
    assert (tmp_path / "outside").read_bytes() == b"aa\n"
    with pytest.raises(ValidationError):
        EditAction(file_path="f", old_string="a", new_string="b", expected_replacements=-1)


PIECE = st.text(st.sampled_from("ab\né"), max_size=3)
CRLF = st.sampled_from(["\n", "\r\n"])


@pytest.mark.repeated
@pytest.mark.timeout(1800)
@settings(max_examples=count(200, long=10_000), deadline=None)
@given(st.lists(PIECE, max_size=8), PIECE.filter(bool), PIECE, CRLF, st.booleans())
def test_an_edit_equals_replace_and_keeps_every_other_byte(
    pieces: list[str], old: str, new: str, ending: str, marked: bool
) -> None:
    text = old.join(pieces)
    charset = Charset("utf-8", b"\xef\xbb\xbf") if marked else Charset("cp1252")
    data = charset.mark + charset.encode(text.replace("\n", ending))
    file = FileText(Path("f"), data, charset)
    if old not in file.text or old == new:
        return
    starts = [len(old.join(["", *text.split(old)[: n + 1]])) for n in range(text.count(old))]
    starts = [start - len(old) for start in starts]
    edited = file.spliced_all((start, start + len(old), new) for start in starts)
    assert edited.text == text.replace(old, new)
    if "\n" in text:
        expected = text.replace(old, new).replace("\n", ending)
        assert edited.data == charset.mark + charset.encode(expected)


# list_directory


def test_the_model_is_told_the_names(workspace: Path) -> None:
    (workspace / "src/deep/er").mkdir(parents=True)
    (workspace / "src/a.py").write_bytes(b"12345")
    (workspace / ".git/objects").mkdir(parents=True)
    (workspace / "z\n.txt").touch()
    (workspace / "gone").symlink_to("nowhere")
    (workspace / "up").symlink_to("..")
    answer = listed(workspace)
    assert answer.text.splitlines() == [
        f"Listed directory: {workspace} (5 entries)",
        ".git/",
        "gone (7 bytes)",
        "src/",
        "up/",
        "z",
        ".txt (0 bytes)",
    ]
    assert [entry.name for entry in answer.entries] == [".git", "gone", "src", "up", "z\n.txt"]
    assert answer.entries[2].path == f"{workspace}/src"
    assert (answer.entries[2].is_directory, answer.entries[2].size) == (True, 0)
    assert (answer.dir_path, answer.total_count, answer.is_truncated) == (str(workspace), 5, False)
    recursive = listed(workspace, "src/..", recursive=True)
    assert "src/a.py (5 bytes)" in recursive.text and "src/deep/" in recursive.text
    assert "er" not in [entry.name for entry in recursive.entries]
    assert "objects" not in recursive.text
    assert ListDirectoryObservation.model_validate_json(answer.to_json()) == answer


def test_a_long_list_is_cut_and_says_so(workspace: Path) -> None:
    for number in range(MAX_ENTRIES + 3):
        (workspace / f"{number:04}").touch()
    answer = listed(workspace)
    head = f"Listed directory: {workspace} (503 entries, truncated to 500)"
    assert answer.text.splitlines()[0] == head
    assert (len(answer.entries), answer.total_count, answer.is_truncated) == (500, 503, True)
    assert len(answer.text.splitlines()) == 501


def test_refusals_to_list(workspace: Path) -> None:
    (workspace / "f").touch()
    for path, text in (
        ("g", f"Error: Directory not found: {workspace}/g"),
        ("f", f"Error: Path is not a directory: {workspace}/f"),
        ("n\0", "Error listing directory: "),
    ):
        answer = listed(workspace, path)
        assert answer.is_error and answer.text.startswith(text)
    assert listed(workspace, str(workspace)).total_count == 1


# all of them


def test_edits_are_undone_by_the_file_editor(workspace: Path) -> None:
    files = Files(workspace)
    editor = FileEditorExecutor(workspace, files=files)
    writer, replacer = (
        WriteFileExecutor(workspace, files=files),
        EditExecutor(workspace, files=files),
    )
    (workspace / "f").write_bytes(b"one\r\n")
    assert not writer(WriteFileAction(file_path="f", content="two\n")).is_error
    action = EditAction(file_path="./f", old_string="two", new_string="three")
    assert not replacer(action).is_error
    assert not writer(WriteFileAction(file_path="sub/g", content="x")).is_error
    for name in ("f", "f", "sub/g"):
        undo = FileEditorAction(command="undo_edit", path=f"{workspace}/{name}")
        assert not editor(undo).is_error
    assert (workspace / "f").read_bytes() == b"one\r\n"
    # The folder that was made stays: somebody may use it by now.
    assert list((workspace / "sub").iterdir()) == []


def test_a_file_changed_outside_is_shown_before_it_is_written_over(workspace: Path) -> None:
    files = Files(workspace)
    reader, writer = (
        ReadFileExecutor(workspace, files=files),
        WriteFileExecutor(workspace, files=files),
    )
    (workspace / "f").write_text("one\n")
    reader(ReadFileAction(file_path="f"))
    (workspace / "f").write_text("one\nmine\n")
    action = WriteFileAction(file_path="f", content="two\n")
    answer = writer(action)
    assert answer.is_error and "+mine" in answer.text
    assert (workspace / "f").read_text() == "one\nmine\n"
    assert not writer(action).is_error


def test_previews_show_the_change_and_write_nothing(workspace: Path) -> None:
    (workspace / "f").write_text("one\n")
    writer, replacer = WriteFileExecutor(workspace), EditExecutor(workspace)

    def shown(executor: Any, action: Any) -> tuple[str | None, str | None] | None:
        preview = executor.preview(action)
        return preview and (preview.old_text, preview.new_text)

    assert shown(writer, WriteFileAction(file_path="f", content="2\n")) == ("one\n", "2\n")
    assert shown(writer, WriteFileAction(file_path="a/b", content="2\n")) == (None, "2\n")
    assert shown(writer, WriteFileAction(file_path="../b", content="2\n")) is None
    replace = EditAction(file_path="f", old_string="one", new_string="2")
    assert shown(replacer, replace) == ("one\n", "2\n")
    create = EditAction(file_path="g", old_string="", new_string="2")
    assert shown(replacer, create) == (None, "2")
    assert shown(replacer, create.model_copy(update={"file_path": "f"})) is None
    assert shown(replacer, replace.model_copy(update={"old_string": "no"})) is None
    assert os.listdir(workspace) == ["f"]


def test_a_rejected_edit_is_taken_back(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"one\r\n")
    executor = EditExecutor(workspace)
    answer = executor(EditAction(file_path="f", old_string="one", new_string="two"))
    (change,) = answer.edits()
    assert executor.revert(Path(change.path), change.old, change.new) is None
    assert (workspace / "f").read_bytes() == b"one\r\n"


def test_a_call_locks_its_file_by_where_it_leads(workspace: Path) -> None:
    (workspace / "link").symlink_to("f")
    key = (f"file:{os.path.realpath(workspace)}/f",)
    assert ReadFileExecutor(workspace).resources(ReadFileAction(file_path="link")) == key
    action = WriteFileAction(file_path="sub/../f", content="")
    assert WriteFileExecutor(workspace).resources(action) == key
    replace = EditAction(file_path=f"{workspace}/f", old_string="a", new_string="b")
    assert EditExecutor(workspace).resources(replace) == key
    assert ListDirectoryExecutor(workspace).resources(ListDirectoryAction()) == ()


def test_what_only_reads_is_marked_so() -> None:
    tools = (ReadFileTool, WriteFileTool, EditTool, ListDirectoryTool)
    assert [tool.hints.readOnlyHint for tool in tools] == [True, False, False, True]
    assert [tool.name for tool in tools] == ["read_file", "write_file", "edit", "list_directory"]
    assert [tool.executor for tool in tools] == list(EXECUTORS)
    assert EditTool.spec().parameters["required"] == ["file_path", "old_string", "new_string"]


def test_odd_entries_of_a_folder_do_not_hide_the_others(workspace: Path) -> None:
    (workspace / "plain").write_text("x")
    (workspace / "endless link").symlink_to("n" * 300)
    (workspace / "far future").write_text("x")
    os.utime(workspace / "far future", (1e12, 1e12))
    answer = ListDirectoryExecutor(workspace)(ListDirectoryAction())
    assert not answer.is_error
    assert [entry.name for entry in answer.entries] == ["endless link", "far future", "plain"]


def test_a_list_of_long_names_has_a_limit(workspace: Path) -> None:
    for number in range(MAX_ENTRIES):
        (workspace / f"{number:03d}{'n' * 200}").touch()
    answer = ListDirectoryExecutor(workspace)(ListDirectoryAction())
    assert len(answer.text) == MAX_CHARS and len(answer.entries) == MAX_ENTRIES


@pytest.mark.parametrize("path", ["n" * 300, "n" * 300 + "/a", "a/" + "n" * 300 + "/b"])
def test_names_that_are_too_long_are_told(path: str, workspace: Path) -> None:
    for answer in (write(workspace, path, "x"), edit(workspace, path, "", "x")):
        assert answer.is_error and "File name too long" in answer.text
    assert list(workspace.iterdir()) == []


def test_lines_with_long_numbers_have_room(workspace: Path) -> None:
    (workspace / "many").write_bytes(b"\n" * 1_100_000)
    answer = read(workspace, "many", offset=1_050_000, limit=10_000)
    assert len(answer.text) <= MAX_CHARS and "response clipped" not in answer.text


def test_a_byte_order_mark_is_written_once(workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xef\xbb\xbfold\n")
    assert not write(workspace, "a", "\ufeffnew\n").is_error
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfnew\n"


@pytest.mark.parametrize("path", ["~\0", "~\ud800/a", "a\0b"])
def test_paths_that_no_file_can_have_are_told(path: str, workspace: Path) -> None:
    assert read(workspace, path).is_error and write(workspace, path, "x").is_error
    assert edit(workspace, path, "", "x").is_error
    assert ListDirectoryExecutor(workspace)(ListDirectoryAction(dir_path=path)).is_error
    view = FileEditorAction(command="view", path=path)
    assert FileEditorExecutor(workspace)(view).is_error
    write_it = WriteFileAction(file_path=path, content="x")
    assert WriteFileExecutor(workspace).preview(write_it) is None
