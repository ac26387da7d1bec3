"""What the skills print, and that they edit without loss."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentskills
from agentskills import viewing

SKILLS = [name for name in agentskills.__all__ if name != "documentation"]


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    viewing.current.path, viewing.current.line = None, 1
    monkeypatch.chdir(tmp_path)
    yield
    viewing.current.path = None


@pytest.fixture
def thousand(tmp_path: Path) -> Path:
    path = tmp_path / "thousand.txt"
    path.write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    return path


def window(path: Path, total: int, start: int, end: int, note: str = "") -> str:
    above = (
        f"({start - 1} more lines above)" if start > 1 else "(this is the beginning of the file)"
    )
    below = f"({total - end} more lines below)" if end < total else "(this is the end of the file)"
    lines = [f"{n}|line {n}" for n in range(start, end + 1)]
    return "\n".join([f"[File: {path} ({total} lines total{note})]", above, *lines, below, ""])


MORE = "[Use `scroll_down` to view the next 100 lines of the file!]\n"
REVIEW = (
    "[File updated (edited at line {}). Please review the changes and make sure they are correct "
    "(correct indentation, no duplicate lines, etc). Edit the file again if necessary.]\n"
)


def test_public_names_are_sorted_and_there() -> None:
    assert agentskills.__all__ == sorted(agentskills.__all__)
    assert all(callable(getattr(agentskills, name)) for name in agentskills.__all__)
    assert set(agentskills.__all__) <= set(dir(agentskills))
    with pytest.raises(AttributeError, match="no_such_skill"):
        agentskills.no_such_skill  # noqa: B018


def test_documentation_has_a_line_for_each_skill() -> None:
    lines = agentskills.documentation().splitlines()
    assert [line.partition("(")[0] for line in lines] == SKILLS
    assert "goto_line(line_number: int) -> None: Show the lines around a line number" in (
        agentskills.documentation()
    )


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import agentskills; from agentskills import *;"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}"
        " & {'charset_normalizer', 'pydantic', 'oh_kernel', 'IPython'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_open_file_shows_a_window(thousand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agentskills.open_file(str(thousand)) is None
    assert capsys.readouterr().out == window(thousand, 1000, 1, 100) + MORE
    agentskills.open_file(str(thousand), 500)
    assert capsys.readouterr().out == window(thousand, 1000, 450, 550) + MORE
    agentskills.open_file(str(thousand), 1000)
    assert capsys.readouterr().out == window(thousand, 1000, 901, 1000)
    agentskills.open_file(str(thousand), 1, context_lines=5)
    assert capsys.readouterr().out == window(thousand, 1000, 1, 5) + MORE
    agentskills.open_file(str(thousand), 1, context_lines=5000)
    assert capsys.readouterr().out == window(thousand, 1000, 1, 100) + MORE


def test_goto_and_scroll(thousand: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agentskills.open_file(str(thousand))
    capsys.readouterr()
    agentskills.scroll_down()
    assert capsys.readouterr().out == window(thousand, 1000, 101, 200)
    agentskills.goto_line(500)
    assert capsys.readouterr().out == window(thousand, 1000, 450, 550)
    agentskills.scroll_up()
    assert capsys.readouterr().out == window(thousand, 1000, 400, 499)
    agentskills.goto_line(990)
    agentskills.scroll_down()
    assert capsys.readouterr().out.endswith(window(thousand, 1000, 901, 1000))
    agentskills.goto_line(1001)
    assert capsys.readouterr().out == "ERROR: Line number must be between 1 and 1000\n"


@pytest.mark.parametrize(
    ("skill", "args", "printed"),
    [
        ("open_file", ("none.txt",), "ERROR: File none.txt not found.\n"),
        ("goto_line", (1,), "ERROR: No file open. Use the open_file function first.\n"),
        ("scroll_down", (), "ERROR: No file open. Use the open_file function first.\n"),
        ("scroll_up", (), "ERROR: No file open. Use the open_file function first.\n"),
        ("search_dir", ("x", "none"), "ERROR: Directory none not found\n"),
        ("find_file", ("x", "none"), "ERROR: Directory none not found\n"),
        (
            "search_file",
            ("x",),
            "ERROR: No file specified or open. Use the open_file function first.\n",
        ),
        ("search_file", ("x", "none.txt"), "ERROR: File none.txt not found.\n"),
        ("append_file", ("none.txt", "x"), "ERROR: File none.txt not found.\n"),
        ("create_file", ("there.txt",), "ERROR: File 'there.txt' already exists.\n"),
        ("open_file", ("there.txt", 3), "ERROR: Line number must be between 1 and 2\n"),
        (
            "insert_content_at_line",
            ("there.txt", 4, "x"),
            "ERROR: Line number must be between 1 and 3\n",
        ),
        (
            "edit_file_by_replace",
            ("there.txt", "", "x"),
            "ERROR: `to_replace` must not be empty.\n",
        ),
        (
            "edit_file_by_replace",
            ("there.txt", "same", "same"),
            "ERROR: `to_replace` and `new_content` must be different.\n",
        ),
        (
            "edit_file_by_replace",
            ("there.txt", "same", "x"),
            "ERROR: `to_replace` appears more than once, please include enough lines to make code "
            "in `to_replace` unique.\n",
        ),
        (
            "edit_file_by_replace",
            ("there.txt", "other\nline", "x"),
            "[No exact match found in there.txt for\n```\nother\nline\n```\n]\n",
        ),
    ],
)
def test_errors_are_printed(
    skill: str,
    args: tuple[object, ...],
    printed: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there.txt").write_text("same\nsame\n")
    assert getattr(agentskills, skill)(*args) is None
    assert capsys.readouterr().out == printed
    assert (tmp_path / "there.txt").read_text() == "same\nsame\n"


def test_create_file_is_empty_and_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agentskills.create_file("new.py")
    assert capsys.readouterr().out == (
        f"[File: {tmp_path}/new.py (0 lines total)]\n(this is the beginning of the file)\n"
        "(this is the end of the file)\n[File new.py created.]\n"
    )
    assert (tmp_path / "new.py").read_bytes() == b""
    agentskills.append_file("new.py", "first")
    assert (tmp_path / "new.py").read_bytes() == b"first\n"


def test_edits_show_where_they_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"line 1\nline 3\nline 4\n")
    shown = window(path, 4, 1, 4, " after edit")
    agentskills.insert_content_at_line("f.txt", 2, "line 2")
    assert capsys.readouterr().out == shown + REVIEW.format(2)
    path.write_bytes(b"line 1\nline 2\nline 3\n")
    agentskills.append_file("f.txt", "line 4")
    assert capsys.readouterr().out == shown + REVIEW.format(4)
    path.write_bytes(b"line 1\nline 2\nline x\nline 4\n")
    agentskills.edit_file_by_replace("f.txt", "line x\n", "line 3")
    assert capsys.readouterr().out == shown + REVIEW.format(3)
    assert path.read_bytes() == b"line 1\nline 2\nline 3\nline 4\n"
    agentskills.goto_line(1)
    assert capsys.readouterr().out == window(path, 4, 1, 4)


def test_edits_keep_mark_endings_and_stray_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo \xe9\xff\r\nthree")
    agentskills.edit_file_by_replace("f.txt", "one", "1\nand a half")
    agentskills.insert_content_at_line("f.txt", 1, "zero")
    agentskills.append_file("f.txt", "four")
    assert path.read_bytes() == (
        b"\xef\xbb\xbfzero\r\n1\r\nand a half\r\ntwo \xe9\xff\r\nthree\r\nfour"
    )


def test_deleting_lines(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"a\nb\nc\n")
    agentskills.edit_file_by_replace("f.txt", "b\n", "")
    assert path.read_bytes() == b"a\nc\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src" / ".git").mkdir(parents=True)
    (tmp_path / "src" / ".git" / "config").write_text("needle\n")
    (tmp_path / "src" / ".hidden").write_text("needle\n")
    (tmp_path / "src" / "b.py").write_text("x = 1\n    needle = 2\nneedle\n")
    (tmp_path / "src" / "a.py").write_text("no\n")
    (tmp_path / "src" / "blob").write_bytes(b"needle\0\1\2")
    return tmp_path


def test_search_dir(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agentskills.search_dir("needle", "src")
    assert capsys.readouterr().out == (
        '[Found 2 matches for "needle" in src]\nsrc/b.py (Line 2): needle = 2\n'
        'src/b.py (Line 3): needle\n[End of matches for "needle" in src]\n'
    )
    agentskills.search_dir("haystack", "src")
    assert capsys.readouterr().out == 'No matches found for "haystack" in src\n'
    for number in range(101):
        (tree / "src" / f"f{number}").write_text("needle\n")
    agentskills.search_dir("needle", "src")
    assert capsys.readouterr().out == (
        'More than 100 files matched for "needle" in src. Please narrow your search.\n'
    )


def test_search_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agentskills.search_file("needle", "src/b.py")
    assert capsys.readouterr().out == (
        '[Found 2 matches for "needle" in src/b.py]\nLine 2:     needle = 2\nLine 3: needle\n'
        '[End of matches for "needle" in src/b.py]\n'
    )
    agentskills.open_file("src/b.py")
    capsys.readouterr()
    agentskills.search_file("haystack")
    assert capsys.readouterr().out == f'[No matches found for "haystack" in {tree}/src/b.py]\n'


def test_find_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agentskills.find_file(".py", "src")
    assert capsys.readouterr().out == (
        '[Found 2 matches for ".py" in src]\nsrc/a.py\nsrc/b.py\n'
        '[End of matches for ".py" in src]\n'
    )
    agentskills.find_file("none", "src")
    assert capsys.readouterr().out == '[No matches found for "none" in src]\n'
