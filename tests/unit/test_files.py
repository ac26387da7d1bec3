"""What the file tools of a conversation share: what the agent saw, all or none, undo, repair."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentskills.edit_history import Edit, EditHistory
from agentskills.editing import FileText, new_file
from agentskills.errors import (
    CannotUndo,
    ChangedOutside,
    EditingError,
    FileChanged,
    FileExists,
    FileTooLarge,
    NotAllowed,
)
from agentskills.journal import Entry, Journal
from oh_kernel.tools.files import Files, NothingToUndo, Step
from oh_kernel.tools.seen_files import SeenFiles, stamp_of


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def files(work: Path, tmp_path: Path) -> Files:
    return Files(work, journal=Journal(tmp_path / "journal"))


def replaced(files: Files, path: Path, old: str, new: str) -> list[str]:
    before = files.for_edit(path)
    return files.carry_out([Step(path, before, before.replaced(old, new))])


def made(path: Path, text: str) -> Step:
    return Step(path, None, new_file(path, text))


def removed(files: Files, path: Path) -> Step:
    return Step(path, files.for_edit(path), None)


def test_paths_are_expanded_and_joined(files: Files, work: Path) -> None:
    assert files.locate("a/b") == work / "a" / "b"
    assert files.locate("/a/b") == Path("/a/b")
    assert files.locate("~/b") == Path(os.environ["HOME"]) / "b"


def test_writing_elsewhere_is_refused_with_the_remedy(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "theirs.txt"
    with pytest.raises(NotAllowed, match="allowed_folders"):
        files.carry_out([made(path, "x")])
    files.allow([tmp_path])
    files.carry_out([made(path, "x")])
    files.allow([])
    with pytest.raises(NotAllowed):
        files.for_edit(path)
    with pytest.raises(NotAllowed):
        files.undo(path)


def test_a_file_that_was_never_seen_may_be_edited(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    assert replaced(files, path, "one", "two") == []


@pytest.mark.parametrize("how", ["read", "made", "edited", "undone"])
def test_a_change_by_others_is_refused_once_and_shown(how: str, files: Files, work: Path) -> None:
    path = work / "f.txt"
    if how == "made":
        files.carry_out([made(path, "one\ntwo\n")])
    else:
        path.write_text("one\ntwo\n")
        files.read(path)
    if how in ("edited", "undone"):
        replaced(files, path, "two", "2")
    if how == "undone":
        files.undo(path)
    path.write_text("one\nTWO\n")
    with pytest.raises(ChangedOutside) as refusal:
        replaced(files, path, "one", "1")
    assert "+TWO" in refusal.value.diff and "has changed since you last saw it" in str(
        refusal.value
    )
    assert path.read_text() == "one\nTWO\n"
    replaced(files, path, "one", "1")
    assert path.read_text() == "1\nTWO\n"


def test_a_change_between_planning_and_writing_is_refused(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    before = files.for_edit(path)
    path.write_text("theirs\n")
    with pytest.raises(FileChanged):
        files.carry_out([Step(path, before, before.replaced("one", "two"))])
    assert path.read_text() == "theirs\n"
    with pytest.raises(NothingToUndo):
        files.undo(path)


def test_a_file_touched_without_a_change_is_not_changed(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    files.read(path)
    path.write_text("one\n")
    os.utime(path, (1, 1))
    replaced(files, path, "one", "two")


def test_a_preview_does_not_count_as_seen(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    files.read(path)
    path.write_text("one\ntwo\n")
    files.peek(path)
    with pytest.raises(ChangedOutside):
        files.for_edit(path)


def test_a_change_during_an_own_call_is_named(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    files.read(path)
    with files.during_call(object(), "terminal"):
        path.write_text("one\ntwo\n")
    (note,) = replaced(files, path, "one", "1")
    assert note == f"{path} was changed by your own terminal call since you last saw it."
    assert replaced(files, path, "two", "2") == []


def test_a_change_after_an_own_change_is_somebody_elses(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    files.read(path)
    with files.during_call(object(), "terminal"):
        path.write_text("one\ntwo\n")
    path.write_text("one\ntwo\nthree\n")
    with pytest.raises(ChangedOutside):
        replaced(files, path, "one", "1")


def test_calls_that_overlap_are_all_the_agents_own(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    files.read(path)
    with files.during_call(object(), "terminal"):
        path.write_text("one\ntwo\n")
        with files.during_call(object(), "ipython"):
            pass
    assert replaced(files, path, "one", "1")


def test_a_file_edit_during_an_own_call_is_known(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    with files.during_call(object(), "terminal"):
        replaced(files, path, "one", "two")
    assert replaced(files, path, "two", "three") == []


def test_steps_happen_all_or_none(files: Files, work: Path) -> None:
    first, gone, there = (work / name for name in ("first", "gone", "there"))
    for path in (first, gone, there):
        path.write_text(f"{path.name}\n")
    gone.chmod(0o640)
    before = files.for_edit(first)
    steps = [
        Step(first, before, before.replaced("first", "1")),
        removed(files, gone),
        Step(work / "a" / "b" / "new", None, new_file("new", "x"), makes_folders=True),
        made(there, "cannot be made, for it is there"),
    ]
    with pytest.raises(FileExists):
        files.carry_out(steps)
    assert sorted(os.listdir(work)) == ["first", "gone", "there"]
    assert (first.read_text(), gone.read_text()) == ("first\n", "gone\n")
    assert stat.S_IMODE(gone.stat().st_mode) == 0o640
    for path in (first, gone):
        with pytest.raises(NothingToUndo):
            files.undo(path)
    files.carry_out(steps[:3])
    assert sorted(os.listdir(work)) == ["a", "first", "there"]


def test_a_move_keeps_the_mode_and_is_undone_file_by_file(files: Files, work: Path) -> None:
    old, new = work / "old.sh", work / "new.sh"
    old.write_text("echo\n")
    old.chmod(0o750)
    before = files.for_edit(old)
    files.carry_out([Step(old, before, None), Step(new, None, before, like=old)])
    assert stat.S_IMODE(new.stat().st_mode) == 0o750 and not old.exists()
    assert files.was_removed(old)
    files.undo(new)
    step = files.undo(old)
    assert (step.before and step.before.text, step.after) == ("echo\n", None)
    assert stat.S_IMODE(old.stat().st_mode) == 0o750 and not new.exists()


def test_undo_goes_by_the_file_not_by_its_spelling(files: Files, work: Path) -> None:
    path, link = work / "f.txt", work / "link"
    path.write_text("one\n")
    link.symlink_to("f.txt")
    replaced(files, link, "one", "two")
    files.undo(work / ".." / work.name / "." / "f.txt")
    assert path.read_text() == "one\n" and link.is_symlink()


def test_undo_of_a_file_changed_outside_shows_the_change(files: Files, work: Path) -> None:
    path = work / "f.txt"
    path.write_text("one\n")
    replaced(files, path, "one", "two")
    path.write_text("two\nmine\n")
    with pytest.raises(CannotUndo, match="has changed since the last edit") as refusal:
        files.undo(path)
    assert "+mine" in refusal.value.diff
    assert "call again" not in str(refusal.value)  # it would be refused again
    assert path.read_text() == "two\nmine\n"


def test_an_edit_that_was_kept_but_never_made_is_not_undone(work: Path, tmp_path: Path) -> None:
    history = EditHistory()
    files = Files(work, history=history, journal=Journal(tmp_path / "journal"))
    path = work / "f.txt"
    path.write_text("one\n")
    replaced(files, path, "one", "two")
    history.add(path, Edit.between(b"two\n", b"three\n"))  # and then the process died
    files.undo(path)
    assert path.read_text() == "one\n"


def test_an_edit_that_was_made_but_not_confirmed_is_undone(work: Path, tmp_path: Path) -> None:
    history = EditHistory()
    files = Files(work, history=history, journal=Journal(tmp_path / "journal"))
    path = work / "f.txt"
    path.write_text("two\n")
    history.add(path, Edit.between(b"one\n", b"two\n"))
    files.undo(path)
    assert path.read_text() == "one\n"


def test_results_over_the_limit_are_refused(work: Path, tmp_path: Path) -> None:
    files = Files(work, max_file_bytes=10, journal=Journal(tmp_path / "journal"))
    with pytest.raises(FileTooLarge):
        files.carry_out([made(work / "f.txt", "x" * 11)])
    assert os.listdir(work) == []


def test_what_was_seen_takes_bounded_memory(work: Path) -> None:
    seen = SeenFiles(max_bytes=1000)
    paths = [work / str(number) for number in range(5)]
    for path in paths:
        content = path.name.encode() * 400
        path.write_bytes(content)
        seen.note(path, content, stamp_of(path))
    assert seen.change(paths[0], b"0" * 400) is None
    change = seen.change(paths[0], b"other")
    assert change and "View it" in change.diff
    change = seen.change(paths[4], b"other")
    assert change and "+other" in change.diff


def test_what_changed_is_clipped(work: Path) -> None:
    seen, path = SeenFiles(), work / "f"
    seen.note(path, b"one\n", None)
    change = seen.change(path, b"a line\n" * 10_000)
    assert change and len(change.diff) < 4000 and "View the file" in change.diff
    change = seen.change(path, b"\0\1\2")
    assert change and "not text" in change.diff
    change = seen.change(path, b"one\r\n")
    assert change and "line endings" in change.diff


OLD = b"a first line that is long\n" * 2000
NEW = b"short\n" + OLD
DIES_HALF_WAY = """
import os, sys
from pathlib import Path
from agentskills.journal import Journal

target, old, new, half = (Path(name) for name in sys.argv[2:])
with Journal(Path(sys.argv[1])).keeping(target, old.read_bytes(), new.read_bytes()):
    handle = os.open(target, os.O_WRONLY)
    os.pwrite(handle, half.read_bytes(), 0)
    os._exit(0)
"""


def die_half_way(journal: Path, target: Path, half: bytes) -> None:
    """A process that has written the first bytes in place, and ends."""
    contents = {"old": OLD, "new": NEW, "half": half}
    for name, content in contents.items():
        (journal.parent / name).write_bytes(content)
    target.write_bytes(OLD)
    names = [str(journal.parent / name) for name in contents]
    command = [sys.executable, "-c", DIES_HALF_WAY, str(journal), str(target), *names]
    subprocess.run(command, check=True)


def test_a_half_written_file_is_put_right_when_files_are_opened(work: Path, tmp_path: Path) -> None:
    path, folder = work / "f.txt", tmp_path / "journal"
    die_half_way(folder, path, NEW[:10_000])
    assert path.read_bytes() not in (OLD, NEW)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Files(elsewhere, journal=Journal(folder))
    assert path.read_bytes() not in (OLD, NEW)
    files = Files(work, journal=Journal(folder))
    assert path.read_bytes() == OLD
    assert files.news() == [f"Writing {path} was cut short; it was put back as it was before."]
    assert files.news() == [] and os.listdir(folder) == []


def test_a_file_that_others_left_half_written_is_put_right_when_read(
    files: Files, work: Path, tmp_path: Path
) -> None:
    path = work / "f.txt"
    die_half_way(tmp_path / "journal", path, NEW[:10_000])
    assert files.peek(path).data == OLD
    assert files.news()


@pytest.mark.parametrize("left", [OLD, NEW, b"written by somebody since\n", b""])
def test_a_file_that_is_whole_is_left_alone(left: bytes, work: Path, tmp_path: Path) -> None:
    path, folder = work / "f.txt", tmp_path / "journal"
    die_half_way(folder, path, NEW[:10_000])
    path.write_bytes(left)
    files = Files(work, journal=Journal(folder))
    assert path.read_bytes() == left
    assert files.news() == [] and os.listdir(folder) == []


def test_blocks_that_never_reached_the_disk_count_as_half_written() -> None:
    entry = Entry(Path("f"), OLD, NEW)
    assert entry.is_half_written(NEW[:512] + bytes(512) + OLD[1024:])
    assert entry.is_half_written(NEW[:700] + OLD[700:])
    assert not entry.is_half_written(OLD[:300])  # it is never cut before all is written
    assert not entry.is_half_written(b"x" * 600 + OLD[600:])
    assert not entry.is_half_written(NEW + b"more")
    assert Entry.from_bytes(entry.to_bytes()) == entry
    assert Entry.from_bytes(entry.to_bytes()[:-1]) is None
    assert Entry.from_bytes(b"") is None


def test_a_journal_that_cannot_be_written_keeps_the_file_as_it_is(
    work: Path, tmp_path: Path
) -> None:
    (tmp_path / "in the way").write_text("")
    files = Files(work, journal=Journal(tmp_path / "in the way" / "journal"))
    path = work / "f.txt"
    path.write_text("one\n")
    (work / "other").hardlink_to(path)
    with pytest.raises(EditingError, match="Not a directory"):
        replaced(files, path, "one", "two")
    assert path.read_text() == "one\n"
    spare = Journal(tmp_path / "in the way" / "journal", tmp_path / "spare")
    replaced(Files(work, journal=spare), path, "one", "two")
    assert (work / "other").read_text() == "two\n" and os.listdir(tmp_path / "spare") == []


def test_bytes_of_an_undone_edit_are_the_very_same(files: Files, work: Path) -> None:
    path = work / "f.txt"
    original = b"\xef\xbb\xbfna\xc3\xafve\r\n\xff\xfe stray\nend"
    path.write_bytes(original)
    before = files.for_edit(path)
    assert isinstance(before, FileText)
    files.carry_out([Step(path, before, before.replaced("stray", "found"))])
    files.undo(path)
    assert path.read_bytes() == original
