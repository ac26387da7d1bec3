"""Field cases AP-01 to AP-03: faults seen in comparable agents."""

from pathlib import Path

import pytest

from oh_kernel.tools.apply_patch import ApplyPatchAction, ApplyPatchExecutor, ApplyPatchObservation


def patched(workspace: Path, *lines: str) -> ApplyPatchObservation:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return ApplyPatchExecutor(workspace=workspace)(ApplyPatchAction(patch=text))


def test_AP_01_mark_crlf_and_missing_final_newline_are_kept(tmp_path: Path) -> None:
    win, noeol = tmp_path / "win.txt", tmp_path / "noeol.txt"
    win.write_bytes(b"\xef\xbb\xbfalpha\r\nbeta\r\ngamma\r\n")
    noeol.write_bytes(b"p\nq")
    answer = patched(
        tmp_path,
        *("*** Update File: win.txt", "@@", " alpha", "-beta", "+BETA", "+beta2", " gamma"),
        *("*** Update File: noeol.txt", "@@", "-p", "+P", " q"),
    )
    assert not answer.is_error
    assert "win.txt" in answer.text and "noeol.txt" in answer.text
    assert win.read_bytes() == b"\xef\xbb\xbfalpha\r\nBETA\r\nbeta2\r\ngamma\r\n"
    assert noeol.read_bytes() == b"P\nq"


HUNK = ("@@", " monday", "+tuesday")
MOVES = {
    "self_move": ("*** Update File: diary.md", "*** Move to: ./diary.md", *HUNK),
    "move_onto_existing": ("*** Update File: diary.md", "*** Move to: other.md", *HUNK),
    "add_over_existing": ("*** Add File: other.md", "+new"),
    "delete_missing": ("*** Delete File: nope.md",),
}


@pytest.mark.parametrize("variant", MOVES)
def test_AP_02_success_is_told_only_when_the_content_is_there(tmp_path: Path, variant: str) -> None:
    diary, other = tmp_path / "diary.md", tmp_path / "other.md"
    diary.write_bytes(b"monday\n")
    other.write_bytes(b"keep me\n")
    answer = patched(tmp_path, *MOVES[variant])
    assert answer.is_error == (variant != "self_move")
    assert diary.read_bytes() == (b"monday\ntuesday\n" if variant == "self_move" else b"monday\n")
    assert other.read_bytes() == b"keep me\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diary.md", "other.md"]
    if variant == "delete_missing":
        assert "nope.md" in answer.text


@pytest.mark.parametrize("variant", ["second_part_fails", "parent", "absolute", "through_link"])
def test_AP_03_all_files_or_none_and_none_outside(tmp_path: Path, variant: str) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "one.txt").write_bytes(b"1\n")
    (workspace / "two.txt").write_bytes(b"2\n")
    (workspace / "out").symlink_to(outside)
    patches = {
        "second_part_fails": (
            *("*** Update File: one.txt", "@@", "-1", "+one"),
            *("*** Update File: two.txt", "@@", "-not there", "+two"),
        ),
        "parent": ("*** Add File: sub/../../escaped.txt", "+x"),
        "absolute": (f"*** Add File: {outside}/escaped.txt", "+x"),
        "through_link": ("*** Add File: out/escaped.txt", "+x"),
    }
    answer = patched(workspace, *patches[variant])
    assert answer.is_error
    if variant == "second_part_fails":
        assert "two.txt" in answer.text
    else:
        assert answer.text.startswith("Absolute or escaping paths are not allowed")
    assert (workspace / "one.txt").read_bytes() == b"1\n"
    assert (workspace / "two.txt").read_bytes() == b"2\n"
    assert list(tmp_path.rglob("escaped.txt")) == list(tmp_path.rglob("sub")) == []
