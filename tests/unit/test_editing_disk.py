"""Writing files: links, modes, atomicity, and the files that are refused."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agentskills import disk
from agentskills.editing import create_file, read_file, save
from agentskills.errors import (
    CannotRead,
    CannotWrite,
    FileChanged,
    FileExists,
    FileMissing,
    FileTooLarge,
    IsAFolder,
    NotARegularFile,
)


def edit(path: Path, old: str, new: str) -> None:
    file = read_file(path)
    save(file.replaced(old, new), was=file)


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def run_without_privileges(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run Python as a user for whom permissions count, also when the tests run as root."""
    become = "import os\nif os.getuid() == 0:\n    os.setgid(65534); os.setuid(65534)\n"
    # Imported while still privileged: the tree may be in a folder that only root can enter.
    imports = "import sys\nimport agentskills.changing\nfrom agentskills.editing import *\n"
    code = imports + become + textwrap.dedent(script)
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """A folder that any user can reach and write."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    for parent in list(folder.parents)[:3]:
        if parent.owner() == folder.owner() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    return folder


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4750])
def test_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "script.sh"
    path.write_text("echo one\n")
    path.chmod(mode)
    edit(path, "one", "two")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "echo two\n"


def test_new_files_get_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        create_file(tmp_path / "new.txt", "x\r\ny")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640
    assert (tmp_path / "new.txt").read_bytes() == b"x\r\ny"
    assert leftovers(tmp_path) == []


def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    real = tmp_path / "docs" / "real.md"
    real.write_text("tone: formal\n")
    (tmp_path / "first").symlink_to("docs/real.md")
    (tmp_path / "second").symlink_to("first")
    edit(tmp_path / "second", "formal", "plain")
    assert real.read_text() == "tone: plain\n"
    assert os.readlink(tmp_path / "first") == "docs/real.md"
    assert os.readlink(tmp_path / "second") == "first"


def test_hard_links_stay_one_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a long first text\n")
    other.hardlink_to(one)
    edit(one, "a long first text", "short")
    assert other.read_text() == "short\n"
    assert one.stat().st_ino == other.stat().st_ino


def test_a_dangling_link_gets_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target.txt")
    create_file(tmp_path / "link", "x\n")
    assert (tmp_path / "target.txt").read_text() == "x\n"
    assert (tmp_path / "link").is_symlink()


def test_link_loops_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CannotRead):
        read_file(tmp_path / "a")
    with pytest.raises((FileExists, CannotWrite)):
        create_file(tmp_path / "a", "x")


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    os.setxattr(path, "user.note", b"mine")
    edit(path, "one", "two")
    assert os.getxattr(path, "user.note") == b"mine"


def test_refused_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * (disk.MAX_FILE_BYTES + 1))
    (tmp_path / "limit").write_bytes(b"x" * disk.MAX_FILE_BYTES)
    with pytest.raises(FileMissing):
        read_file(tmp_path / "none")
    with pytest.raises(IsAFolder):
        read_file(tmp_path)
    with pytest.raises(NotARegularFile):
        read_file(tmp_path / "pipe")
    with pytest.raises(FileTooLarge):
        read_file(tmp_path / "large")
    with pytest.raises(CannotRead):
        read_file("nul\0byte")
    with pytest.raises(CannotRead):
        read_file(tmp_path / ("n" * 300))
    assert len(read_file(tmp_path / "limit").data) == disk.MAX_FILE_BYTES


def test_creating_needs_a_folder_and_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("kept\n")
    with pytest.raises(FileExists):
        create_file(tmp_path / "there", "lost\n")
    with pytest.raises(CannotWrite, match="nowhere"):
        create_file(tmp_path / "nowhere" / "f", "x")
    assert (tmp_path / "there").read_text() == "kept\n"
    assert leftovers(tmp_path) == []


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    file = read_file(path)
    path.write_text("somebody else's\n")
    with pytest.raises(FileChanged):
        save(file.replaced("one", "two"), was=file)
    with pytest.raises(FileChanged):
        disk.remove_file(path, was=file.data)
    assert path.read_text() == "somebody else's\n"


def test_read_only_files_and_unreadable_files_are_refused(shared_folder: Path) -> None:
    locked, secret = shared_folder / "locked", shared_folder / "secret"
    locked.write_text("one\n")
    locked.chmod(0o444)
    secret.write_text("one\n")
    secret.chmod(0o000)
    script = """
        file = read_file(sys.argv[1])
        for attempt in (lambda: save(file.replaced("one", "two"), was=file),
                        lambda: read_file(sys.argv[2])):
            try:
                attempt()
            except Exception as error:
                print(type(error).__name__, error.cause.errno)
    """
    done = run_without_privileges(script, locked, secret)
    assert done.stdout == "CannotWrite 13\nCannotRead 13\n", done.stderr
    assert locked.read_text() == "one\n"
    assert leftovers(shared_folder) == []


def test_a_folder_that_is_not_writable_gets_its_file_written_in_place(shared_folder: Path) -> None:
    path = shared_folder / "f"
    path.write_text("a long first line\n")
    path.chmod(0o666)
    shared_folder.chmod(0o555)
    script = """
        file = read_file(sys.argv[1])
        save(file.replaced("a long first line", "short"), was=file)
    """
    done = run_without_privileges(script, path)
    shared_folder.chmod(0o777)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == "short\n"


def test_an_owner_that_cannot_be_given_is_kept_by_writing_in_place(shared_folder: Path) -> None:
    path = shared_folder / "f"
    path.write_text("one\n")
    path.chmod(0o666)
    before = path.stat()
    script = """
        file = read_file(sys.argv[1])
        save(file.replaced("one", "two"), was=file)
    """
    done = run_without_privileges(script, path)
    after = path.stat()
    assert done.returncode == 0, done.stderr
    assert path.read_text() == "two\n"
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )
    assert leftovers(shared_folder) == []


WRITER = """
import sys, threading
from agentskills.disk import replace_bytes
path = sys.argv[1]
texts = [letter * 300_000 for letter in (b"a", b"b")]
while True:
    replace_bytes(path, texts[1], was=texts[0])
    print("at work", flush=True)
    replace_bytes(path, texts[0], was=texts[1])
"""


def test_kill_at_any_moment_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for _ in range(5):
        path.write_bytes(b"a" * 300_000)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        content = path.read_bytes()
        assert content in (b"a" * 300_000, b"b" * 300_000)


KILLED_BEFORE_RENAME = """
import os, signal, sys
from agentskills.disk import replace_bytes

def die_before_rename(event, args):
    if event == "os.rename":
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(die_before_rename)
replace_bytes(sys.argv[1], b"new" * 100_000, was=b"old")
"""


def test_kill_between_write_and_rename_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED_BEFORE_RENAME, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (temp,) = leftovers(tmp_path)
    assert (tmp_path / temp).read_bytes() == b"new" * 100_000


FULL_DISK = """
import resource, signal, sys
from agentskills.disk import replace_bytes
from agentskills.errors import CannotWrite

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_bytes(sys.argv[1], b"n" * 5000, was=b"old")
except CannotWrite as error:
    print(type(error.cause).__name__)
"""


@pytest.mark.parametrize("linked", [False, True])
def test_when_the_new_content_does_not_fit_the_old_stays(tmp_path: Path, linked: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    if linked:
        (tmp_path / "other").hardlink_to(path)
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "OSError\n", done.stderr
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_file_of_the_kernel_that_waits_for_news_is_refused_at_once() -> None:
    # Regular by its type. Without privileges, and on systems that have none, it is refused too.
    with pytest.raises((CannotRead, FileMissing)):
        read_file("/proc/kmsg")


def test_limit_holds_for_files_that_do_not_tell_their_size() -> None:
    made_up = "/proc/self/status"
    if sys.platform != "linux":
        made_up = __file__
    with pytest.raises(FileTooLarge) as refusal:
        disk.read_bytes(made_up, max_bytes=10)
    assert refusal.value.size > 10


def test_refusal_of_a_file_below_a_file_names_no_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotWrite) as refusal:
        create_file(tmp_path / "file" / "below", "y")
    assert "Not a directory" in str(refusal.value) and ".tmp" not in str(refusal.value)
