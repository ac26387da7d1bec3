"""A full disk, a folder that is not writable or gone: a clear error, nothing lost, no litter."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentskills.journal import Journal
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files

BEFORE = """
import os, resource, signal, sys
from pathlib import Path
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor

work = Path(sys.argv[1])

def call(command, name, **more):
    path = str(work / name)
    answer = executor(FileEditorAction(command=command, path=path, **more))
    print("error" if answer.is_error else "done", answer.text.splitlines()[0])

def become_nobody():  # rights on files mean nothing to root
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

executor = FileEditorExecutor(workspace=work)
"""


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder that every user can reach and write; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder, data = Path(name) / "work", Path(name) / "data"
        for each in (folder, data):
            each.mkdir()
            each.chmod(0o777)
        yield folder
        if folder.exists():
            folder.chmod(0o777)


def told(work: Path, script: str) -> list[str]:
    """What the calls of a script in a process of its own were answered, a line each."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + textwrap.dedent(script), str(work)],
        env={
            **os.environ,
            "JUPYTER_DATA_DIR": str(work.parent / "data"),
            "TMPDIR": str(work.parent / "data"),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_full_disk(work: Path) -> None:
    for name in ("f.txt", "linked.txt"):
        (work / name).write_text("old\n")
    (work / "other.txt").hardlink_to(work / "linked.txt")
    answers = told(
        work,
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for name in ("f.txt", "linked.txt"):
            call("str_replace", name, old_str="old", new_str="n" * 5000)
        call("create", "new.txt", file_text="n" * 5000)
        call("str_replace", "f.txt", old_str="old", new_str="new")
        call("undo_edit", "f.txt")
        """,
    )
    reason = "Ran into [Errno 27] File too large while trying to write to"
    names = ("f.txt", "linked.txt", "new.txt")
    assert answers[:3] == [f"error {reason} {work}/{name}" for name in names]
    assert [answer.split()[0] for answer in answers[3:]] == ["done", "done"]
    assert sorted(os.listdir(work)) == ["f.txt", "linked.txt", "other.txt"]
    assert {(work / name).read_text() for name in os.listdir(work)} == {"old\n"}
    assert os.listdir(work.parent / "data" / "oh-kernel" / "unfinished") == []


def test_folder_that_is_not_writable(work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    path.chmod(0o666)
    (work / "locked.txt").write_text("one\n")
    (work / "locked.txt").chmod(0o444)
    work.chmod(0o555)
    answers = told(
        work,
        """
        become_nobody()
        call("create", "new.txt", file_text="x")
        call("view", "f.txt")
        call("str_replace", "f.txt", old_str="one", new_str="two")
        call("insert", "f.txt", insert_line=1, new_str="three")
        call("undo_edit", "f.txt")
        call("str_replace", "locked.txt", old_str="one", new_str="two")
        """,
    )
    assert [answer.split()[0] for answer in answers] == ["error", *["done"] * 4, "error"]
    assert answers[0].startswith("error Ran into [Errno 13] Permission denied: ")
    assert answers[0].endswith(f" while trying to write to {work}/new.txt")
    assert "[Errno 13] Permission denied" in answers[5]
    assert sorted(os.listdir(work)) == ["f.txt", "locked.txt"]
    assert path.read_text() == "two\n"


def test_working_folder_that_is_gone(work: Path) -> None:
    (work / "f.txt").write_text("one\n")
    answers = told(
        work,
        """
        gone = work.parent / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        call("view", "f.txt")
        call("str_replace", "f.txt", old_str="one", new_str="two")
        executor = FileEditorExecutor(workspace=work)
        call("undo_edit", "f.txt")
        answer = executor(FileEditorAction(command="view", path="f.txt"))
        print(answer.text)
        """,
    )
    assert [answer.split()[0] for answer in answers[:2]] == ["done", "done"]
    assert answers[2] == f"error No edit history found for {work}/f.txt."
    assert answers[3].endswith(f"Maybe you meant {work}/f.txt?")


def test_workspace_that_is_gone(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    files = Files(work, journal=Journal(tmp_path / "journal"))
    executor = FileEditorExecutor(workspace=work, files=files)
    path = work / "f.txt"
    executor(FileEditorAction(command="create", path=str(path), file_text="one\n"))
    shutil.rmtree(work)
    answer = executor(FileEditorAction(command="create", path=str(path), file_text="one\n"))
    assert answer.is_error and f"No such file or directory: '{work}'" in answer.text
    replace = FileEditorAction(command="str_replace", path=str(path), old_str="one", new_str="1")
    for action in (replace, FileEditorAction(command="undo_edit", path=str(path))):
        answer = executor(action)
        assert answer.is_error and f"The path {path} does not exist." in answer.text
    assert not work.exists()


def test_file_that_was_deleted_after_it_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("one\n")
    executor = FileEditorExecutor(workspace=tmp_path)
    executor(FileEditorAction(command="view", path=str(path)))
    path.unlink()
    answer = executor(
        FileEditorAction(command="str_replace", path=str(path), old_str="one", new_str="1")
    )
    assert answer.is_error and f"The path {path} does not exist." in answer.text
    made = executor(FileEditorAction(command="create", path=str(path), file_text="new\n"))
    assert not made.is_error and path.read_text() == "new\n"
