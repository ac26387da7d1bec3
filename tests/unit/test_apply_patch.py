"""Patches change all of their files or none, and each change can be taken back."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oh_kernel.events import Observation, event_from_json
from oh_kernel.tools.apply_patch import (
    ApplyPatchAction,
    ApplyPatchExecutor,
    ApplyPatchObservation,
    ApplyPatchTool,
)
from oh_kernel.tools.file_answers import MAX_CHARS
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor
from oh_kernel.tools.files import Files
from tests.experiments import count
from tests.unit.turns import action, observed


def patch(*lines: str) -> ApplyPatchAction:
    return ApplyPatchAction(patch="\n".join(["*** Begin Patch", *lines, "*** End Patch"]))


def patched(workspace: Path, *lines: str, **options: Any) -> ApplyPatchObservation:
    return ApplyPatchExecutor(workspace=workspace, **options)(patch(*lines))


def refusal(workspace: Path, *lines: str) -> str:
    answer = patched(workspace, *lines)
    assert answer.is_error
    assert (answer.commit, answer.fuzz, answer.message) == (None, 0, "")
    return answer.text


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, and every folder as such."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"<folder>"
        for path in folder.rglob("*")
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (folder / "b.txt").write_bytes(b"red\n")
    return folder


def test_one_patch_adds_deletes_updates_and_moves(workspace: Path) -> None:
    (workspace / "c.txt").write_bytes(b"x\r\ny\r\n")
    (workspace / "c.txt").chmod(0o750)
    answer = patched(
        workspace,
        *("*** Add File: new/deep/d.txt", "+d", "+"),
        "*** Delete File: b.txt",
        *("*** Update File: a.txt", "@@", "-one", "+ONE", " two", "@@", "-three", "+3"),
        *("*** Update File: c.txt", "*** Move to: new/c.txt", " x", "-y", "+z"),
    )
    assert content(workspace) == {
        "a.txt": b"ONE\ntwo\n3\n",
        "new": b"<folder>",
        "new/deep": b"<folder>",
        "new/deep/d.txt": b"d\n",
        "new/c.txt": b"x\r\nz\r\n",
    }
    assert stat.S_IMODE((workspace / "new/c.txt").stat().st_mode) == 0o750
    assert not answer.is_error
    assert answer.text.splitlines() == [
        "Done!",
        "new/deep/d.txt added",
        "b.txt deleted",
        "a.txt updated",
        "c.txt updated and moved to new/c.txt",
    ]
    assert (answer.message, answer.fuzz) == ("Done!", 0)
    assert answer.commit is not None
    assert answer.commit.model_dump(exclude_none=True)["changes"] == {
        "new/deep/d.txt": {"type": "add", "new_content": "d\n"},
        "b.txt": {"type": "delete", "old_content": "red\n"},
        "a.txt": {
            "type": "update",
            "old_content": "one\ntwo\nthree\n",
            "new_content": "ONE\ntwo\n3\n",
        },
        "c.txt": {
            "type": "update",
            "old_content": "x\ny\n",
            "new_content": "x\nz\n",
            "move_path": "new/c.txt",
        },
    }


def test_the_observation_is_the_same_after_the_log(workspace: Path) -> None:
    answer = patched(workspace, "*** Update File: a.txt", "*** Move to: m.txt", "-one")
    call = action("apply_patch", {"patch": "-"})
    event = observed(call, "").model_copy(update={"observation": answer})
    assert event_from_json(event.to_json()) == event
    assert [edit.name for edit in answer.edits()] == ["a.txt → m.txt"]
    assert Observation.from_text("no edit").edits() == []


@pytest.mark.parametrize(("line", "fuzz"), [("two", 0), ("two ", 1), ("  two", 100)])
def test_a_loose_match_is_told(workspace: Path, line: str, fuzz: int) -> None:
    answer = patched(workspace, "*** Update File: a.txt", f" {line}", "-three")
    assert answer.fuzz == fuzz
    assert ("matched only loosely (fuzz" in answer.text) == (fuzz > 0)
    assert (workspace / "a.txt").read_bytes() == b"one\ntwo\n"


def test_an_added_file_ends_as_its_lines_do(workspace: Path) -> None:
    patched(
        workspace,
        *("*** Add File: open", "+x"),
        *("*** Add File: ended", "+x", "+"),
        "*** Add File: empty",
    )
    assert [(workspace / name).read_bytes() for name in ("open", "ended", "empty")] == [
        b"x",
        b"x\n",
        b"",
    ]


def test_a_patch_without_sections_says_that_nothing_changed(workspace: Path) -> None:
    answer = patched(workspace)
    assert not answer.is_error
    assert answer.text == "Done! Nothing was to be changed."


UPDATE = ("*** Update File: a.txt", "-one", "+1")


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (("*** Delete File: x.txt",), "Delete File Error: Missing File: x.txt"),
        (("*** Update File: x.txt", "-one"), "Update File Error: Missing File: x.txt"),
        (("*** Add File: ./a.txt", "+x"), "Add File Error: File already exists: ./a.txt. "),
        (
            ("*** Update File: a.txt", "*** Move to: b.txt"),
            "Update File Error: File already exists: b.txt. ",
        ),
        ((*UPDATE, "*** Delete File: ./a.txt"), "Delete File Error: Duplicate Path: ./a.txt"),
        (("*** Add File: n", "+x", "*** Add File: n", "+y"), "Add File Error: Duplicate Path: n"),
        (
            (*UPDATE, "*** Update File: b.txt", "*** Move to: sub/../a.txt"),
            "Update File Error: Invalid move path 'sub/../a.txt': must be a relative path without "
            "'..' components",
        ),
        (
            ("*** Add File: n", "+x", "*** Update File: b.txt", "*** Move to: ./n"),
            "Update File Error: Duplicate Path: ./n",
        ),
        ((*UPDATE, "*** Add File: a.txt/n", "+x"), "Cannot write "),
        ((*UPDATE, "*** Add File: n\0", "+x"), "Cannot read "),
        ((*UPDATE, "*** Add File: bin", "+\0"), "{workspace}/bin is a binary file (1 bytes)"),
        (("*** Update File: dir", "-x"), "{workspace}/dir is a directory, not a file."),
        (("*** Update File: link", "*** Move to: l2"), "Update File Error: link is a link. Name "),
        (("*** Delete File: link",), "Delete File Error: link is a link. Name a.txt, or "),
        (("*** Delete File: nowhere",), "Delete File Error: nowhere is a link. "),
        (("*** Add File: nowhere", "+x"), "Add File Error: File already exists: nowhere. "),
        ((*UPDATE, "*** Update File: link", "-two"), "Update File Error: Duplicate Path: link"),
        ((*UPDATE, "*** Delete File: image"), "{workspace}/image is a binary file (3 bytes)"),
        (
            (*UPDATE, "*** Update File: latin", "-caf\u00e9", "+\u4e2d"),
            "latin: The character '\\u4e2d' cannot be written in cp1252",
        ),
        ((*UPDATE, "*** Update File: b.txt", "-blue"), "Invalid Context 0:\nblue\n\nb.txt does "),
        (
            (*UPDATE, "*** Update File: b.txt", "-blue", "*** End of File"),
            "Invalid EOF Context 0:\nblue\n\nb.txt does ",
        ),
        (("*** Update File: ~/x", "-x"), "Update File Error: Missing File: ~/x"),
        (("*** Delete File: /etc/hostname",), "Absolute or escaping paths are not allowed: /etc/h"),
        (("*** Delete File: ../s.txt",), "Absolute or escaping paths are not allowed: ../s.txt."),
    ],
)
def test_refusals_leave_every_file_as_it_was(
    workspace: Path, lines: tuple[str, ...], answer: str
) -> None:
    (workspace / "dir").mkdir()
    (workspace / "link").symlink_to("a.txt")
    (workspace / "nowhere").symlink_to("gone")
    (workspace / "image").write_bytes(b"\x00\x01\x02")
    (workspace / "latin").write_bytes("café un été à la plage, garçon\ncafé\n".encode("cp1252"))
    (workspace.parent / "s.txt").write_bytes(b"secret\n")
    before = content(workspace.parent)
    assert refusal(workspace, *lines).startswith(answer.format(workspace=workspace))
    assert content(workspace.parent) == before


def test_a_path_inside_may_be_absolute_and_folders_may_be_allowed(
    workspace: Path, tmp_path: Path
) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    lines = (f"*** Add File: {workspace}/n", "+x", f"*** Add File: {allowed}/n", "+y")
    assert patched(workspace, *lines).is_error
    assert not patched(workspace, *lines, allowed_folders=[allowed]).is_error
    assert (workspace / "n").read_bytes() + (allowed / "n").read_bytes() == b"xy"


def test_long_answers_are_clipped(workspace: Path) -> None:
    text = refusal(workspace, "*** Update File: a.txt", "-" + "x" * 20_000)
    assert len(text) == MAX_CHARS and "<response clipped>" in text


def test_a_link_is_written_through(workspace: Path) -> None:
    (workspace / "link").symlink_to("a.txt")
    assert not patched(workspace, "*** Update File: link", "-one").is_error
    assert (workspace / "link").is_symlink()
    assert (workspace / "a.txt").read_bytes() == b"two\nthree\n"


FULL_DISK = """
import resource, signal, sys
from oh_kernel.tools.apply_patch import ApplyPatchAction, ApplyPatchExecutor

executor = ApplyPatchExecutor(workspace=sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
answer = executor(ApplyPatchAction(patch=sys.stdin.read()))
print(answer.is_error, answer.text)
"""


def test_a_disk_that_is_full_in_the_middle_leaves_all_files(workspace: Path) -> None:
    lines = [
        *("*** Add File: deep/n", "+x", "*** Update File: a.txt", "*** Move to: m.txt", "-one"),
        *("*** Update File: b.txt", *["+long"] * 300, "*** Delete File: c.txt"),
    ]
    (workspace / "c.txt").write_bytes(b"c\n")
    before = content(workspace)
    command = [sys.executable, "-c", FULL_DISK, str(workspace)]
    done = subprocess.run(
        command, input=patch(*lines).patch, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("True Cannot write "), done.stderr
    assert "b.txt" in done.stdout
    assert content(workspace) == before


def test_an_edit_is_undone_by_the_file_editor_and_the_other_way_round(workspace: Path) -> None:
    files = Files(workspace)
    patches, editor = (
        ApplyPatchExecutor(workspace, files=files),
        FileEditorExecutor(workspace, files=files),
    )

    def edit(command: Any, name: str, **more: Any) -> bool:
        path = str(workspace / name)
        return not editor(FileEditorAction(command=command, path=path, **more)).is_error

    before = content(workspace)
    assert edit("str_replace", "a.txt", old_str="one", new_str="1")
    assert not patches(
        patch(
            *("*** Update File: a.txt", "*** Move to: sub/m.txt", "-1", "+uno"),
            *("*** Add File: n.txt", "+n"),
            "*** Delete File: b.txt",
        )
    ).is_error
    for name in ("sub/m.txt", "n.txt", "b.txt", "a.txt", "a.txt"):
        assert edit("undo_edit", name), name
    assert content(workspace) == {**before, "sub": b"<folder>"}


def test_a_file_changed_outside_is_refused_and_then_known(workspace: Path) -> None:
    files = Files(workspace)
    executor = ApplyPatchExecutor(workspace, files=files)
    files.read(workspace / "a.txt")
    (workspace / "a.txt").write_bytes(b"one\ntwo\nthree\nfour\n")
    action = patch("*** Update File: b.txt", "-red", "+blue", *UPDATE)
    answer = executor(action)
    assert answer.is_error and "+four" in answer.text
    assert (workspace / "b.txt").read_bytes() == b"red\n"
    assert not executor(action).is_error
    assert (workspace / "a.txt").read_bytes() == b"1\ntwo\nthree\nfour\n"


def test_a_preview_shows_every_file_and_changes_none(workspace: Path) -> None:
    before = content(workspace)
    executor = ApplyPatchExecutor(workspace)
    lines = ("*** Update File: a.txt", "*** Move to: m.txt", "-one", "*** Delete File: b.txt")
    shown = [(edit.path, edit.old_text, edit.new_text) for edit in executor.preview(patch(*lines))]
    assert shown == [
        (workspace / "a.txt", "one\ntwo\nthree\n", "two\nthree\n"),
        (workspace / "b.txt", "red\n", None),
    ]
    assert executor.preview(patch(*lines))[0].moved_to == workspace / "m.txt"
    assert executor.preview(patch("*** Delete File: nope")) == []
    assert content(workspace) == before


def test_a_call_locks_every_file_that_it_names(workspace: Path) -> None:
    (workspace / "link").symlink_to("a.txt")
    executor = ApplyPatchExecutor(workspace)
    lines = ("*** Update File: link", "*** Move to: m.txt", "-x", "*** Add File: ../n", "+x")
    names = ("a.txt", "m.txt", "../n")
    real = [os.path.realpath(workspace / name) for name in names]
    assert executor.resources(patch(*lines)) == tuple(f"file:{path}" for path in real)
    assert executor.resources(patch("*** Delete File: \0")) == ()


def test_the_model_gives_the_patch_alone() -> None:
    parameters = ApplyPatchTool.spec().parameters
    assert parameters["required"] == ["patch"]
    assert set(parameters["properties"]) == {"patch", "security_risk", "summary"}


SECTIONS = st.lists(
    st.sampled_from(
        [
            ("*** Add File: n{}", "+x"),
            ("*** Add File: deep/{}/n", "+x"),
            ("*** Update File: f{}", "-1", "+one"),
            ("*** Update File: f{}", "*** Move to: moved/{}", "-1", "+one"),
            ("*** Delete File: f{}",),
        ]
    ),
    min_size=1,
    max_size=6,
)
WRONG = st.sampled_from(
    [
        ("*** Update File: f9", "-2"),
        ("*** Delete File: gone",),
        ("*** Add File: f9", "+x"),
        ("*** Add File: f9/below", "+x"),  # only the disk refuses this one
        ("*** Add File: " + "n" * 300, "+x"),  # and this
    ]
)


@pytest.mark.repeated
@pytest.mark.timeout(1800)
@settings(max_examples=count(60, long=2_000), deadline=None)
@given(SECTIONS, WRONG, st.integers(0, 6))
def test_a_patch_that_fails_anywhere_leaves_all_files(
    tmp_path_factory: pytest.TempPathFactory,
    sections: list[tuple[str, ...]],
    wrong: tuple[str, ...],
    position: int,
) -> None:
    workspace = tmp_path_factory.mktemp("workspace")
    for number in range(10):
        (workspace / f"f{number}").write_bytes(b"1\r\n")
    numbered = [
        tuple(line.format(number, number) for line in section)
        for number, section in enumerate(sections)
    ]
    numbered.insert(position, wrong)
    before = content(workspace)
    refusal(workspace, *(line for section in numbered for line in section))
    assert content(workspace) == before


@pytest.mark.repeated
@pytest.mark.timeout(1800)
@settings(max_examples=count(60, long=2_000), deadline=None)
@given(st.lists(st.sampled_from(["+x", "-1", " 1", "@@", "", "*** End of File", "?"]), max_size=6))
def test_only_told_errors_leave_the_tool(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "f").write_bytes(b"1\n1\n")
    answer = patched(workspace, "*** Update File: f", *lines)
    assert answer.is_error or answer.text.startswith("Done!")
