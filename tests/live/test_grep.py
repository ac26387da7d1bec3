"""Finding text: one suite for ripgrep and for Python's `re`, which must find the same."""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_kernel.errors import OpenHandsError
from oh_kernel.loop import run_blocking, spawn
from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.grep import Backend, GrepAction, GrepExecutor, GrepObservation, GrepTool
from oh_kernel.tools.search.answers import MAX_CHARS
from oh_kernel.tools.search.lines import BLOCK_BYTES
from tests.folders import make_files
from tests.ripgrep import on_search_path

Grep = Callable[..., GrepObservation]
Found = Callable[..., list[str]]
FOREVER = "(a+)+(?!x)$"  # for re alone, and without an end on a line like "aaaa...b"


@pytest.fixture(params=["ripgrep", "python"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with on_search_path():
        yield request.param


@pytest.fixture
def grep(backend: Backend, tmp_path: Path) -> Grep:
    executor = GrepExecutor(workspace=tmp_path, backend=backend)
    return lambda pattern, **more: executor(GrepAction(pattern=pattern, **more))


@pytest.fixture
def found(grep: Grep, tmp_path: Path) -> Found:
    """What is found, as sorted paths relative to the workspace."""

    def names(pattern: str, **more: Any) -> list[str]:
        answer = grep(pattern, **more)
        assert not answer.is_error, answer.text
        return sorted(os.path.relpath(file, tmp_path) for file in answer.matches)

    return names


# The contract


def test_says_what_was_found(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a.py", "sub/b.py", "c.txt", text="a Needle\n")
    answer = grep("needle")
    assert answer.text.split("\n") == [
        f"Found 3 file(s) containing pattern 'needle' in '{tmp_path}':",
        *answer.matches,
    ]
    assert (answer.pattern, answer.search_path) == ("needle", str(tmp_path))
    assert (answer.include_pattern, answer.truncated) == (None, False)
    answer = grep("needle", include="*.{py,pyi}")
    assert answer.text.startswith(
        f"Found 2 file(s) containing pattern 'needle' in '{tmp_path}' (filtered by '*.{{py,pyi}}'):"
    )
    assert answer.include_pattern == "*.{py,pyi}"


def test_says_that_nothing_was_found(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a.py", text="hay\n")
    nothing = f"No files found containing pattern 'needle' in directory '{tmp_path}'"
    assert grep("needle").text == nothing
    assert grep("needle", include="*.py").text == f"{nothing} (filtered by '*.py')"
    assert not grep("needle").is_error


def test_refuses_what_cannot_be_searched(grep: Grep, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("missing", "pipe", "long" * 1000):
        answer = grep("x", path=path)
        assert answer.is_error
        assert answer.text == f"Search path '{tmp_path}/{path}' is not a valid directory"
    answer = grep("x", include="{a,b,c,d,e,f,g,h,i,j}" * 4)
    assert answer.is_error
    assert "more than 1000 patterns" in answer.text


@pytest.mark.parametrize("pattern", ["(unclosed", "[a", "a**", "*", "\\p{L}", "(?P<1>a)", "\\"])
def test_an_invalid_expression_is_an_error(grep: Grep, pattern: str) -> None:
    with pytest.raises(re.error) as problem:
        re.compile(pattern)
    answer = grep(pattern)
    assert answer.is_error
    assert answer.text == f"Invalid regex pattern: {problem.value}"


def test_a_line_break_in_an_expression_is_an_error(grep: Grep) -> None:
    for pattern in ("a\\nb", "a\nb", "[\\n]", "\\x0a"):
        answer = grep(pattern)
        assert answer.is_error
        assert "every line is searched by itself" in answer.text


def test_a_hundred_are_all_and_one_more_is_too_many(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, *(f"{i}.txt" for i in range(100)), text="x")
    answer = grep("x")
    assert (len(answer.matches), answer.truncated) == (100, False)
    make_files(tmp_path, "100.txt", text="x")
    answer = grep("x")
    assert (len(answer.matches), answer.truncated) == (100, True)
    assert answer.text.endswith(
        "\n\n[Results truncated to first 100 files. Consider using a more specific pattern.]"
    )


def test_the_newest_is_first_across_folders_and_ties_go_by_path(grep: Grep, tmp_path: Path) -> None:
    ages = {"a/old": 1, "b/new": 9, "c/mid": 5, "a/mid": 5, "d/oldest": 0}
    make_files(tmp_path, *ages, text="x")
    for name, when in ages.items():
        os.utime(tmp_path / name, ns=(when, when))
    order = ["b/new", "a/mid", "c/mid", "a/old", "d/oldest"]
    assert grep("x").matches == [f"{tmp_path}/{name}" for name in order]


def test_a_call_at_its_defaults_is_stored_as_the_contract_has_it() -> None:
    assert GrepAction(pattern="x").to_json() == '{"kind":"GrepAction","pattern":"x"}'
    assert GrepTool.hints.readOnlyHint
    assert GrepExecutor(workspace="/").resources(GrepAction(pattern="x")) == ()


# Nothing in an expression is an option


@pytest.mark.parametrize(
    "pattern", ["-e", "--pre=./script", "-f/etc/passwd", "--", "-", "--files", "-c"]
)
def test_an_expression_is_never_an_option(found: Found, tmp_path: Path, pattern: str) -> None:
    make_files(tmp_path, "has", text=f"say {pattern} here\n")
    make_files(tmp_path, "not", text="root\n")
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    expected = {"has", "script"} if pattern == "-" else {"has"}
    assert set(found(pattern)) - {"script"} == expected - {"script"}
    assert found("root", include=pattern) == []
    assert not (tmp_path / "ran").exists()


# Which files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files of all kinds; each has a line with `needle`."""
    names = ["a.py", "b.log", "keep.log", "build/gen.py", "sub/c.log", "sub/gen.py", "sub/d/gen.py"]
    names += [".env", ".github/ci.yml", ".git/config", "sub/.hidden.py", "skip/me.txt"]
    names += ["odd/b [1] x.py", "odd/-e.py", "odd/new\nline.py", "odd/{a}.py", "odd/ü.py"]
    make_files(tmp_path, *names, text="the needle\n")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n!.env\n")
    (tmp_path / "sub/.gitignore").write_text("/gen.py\n!c.log\n")
    (tmp_path / ".ignore").write_text("skip\n")
    for name, target in {"link.md": "a.py", "dead": "missing", "loop": ".", "odd/up": ".."}.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


ODD = ["odd/-e.py", "odd/b [1] x.py", "odd/new\nline.py", "odd/{a}.py", "odd/ü.py"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["a.py", "keep.log", *ODD, "sub/c.log", "sub/d/gen.py"]),
        ({"include": "*.log"}, ["keep.log", "sub/c.log"]),
        ({"include": "*.py"}, ["a.py", *ODD, "sub/.hidden.py", "sub/d/gen.py"]),
        ({"include": "./*.py"}, ["a.py"]),
        ({"include": "sub/**/*.py"}, ["sub/.hidden.py", "sub/d/gen.py"]),
        ({"include": "sub/*.{log,py}"}, ["sub/.hidden.py", "sub/c.log"]),
        ({"include": ".env"}, [".env"]),
        ({"include": ".github/*.yml"}, [".github/ci.yml"]),
        ({"include": "build/*.py"}, ["build/gen.py"]),
        ({"include": "b [[]1] x.py"}, ["odd/b [1] x.py"]),
        ({"include": "b [1] x.py"}, ["odd/b [1] x.py"]),
        ({"include": "-*"}, ["odd/-e.py"]),
        ({"include": ""}, ["a.py", "keep.log", *ODD, "sub/c.log", "sub/d/gen.py"]),
        ({"path": "build"}, ["build/gen.py"]),
        ({"path": ".github"}, [".github/ci.yml"]),
        ({"path": "sub"}, ["sub/c.log", "sub/d/gen.py"]),
        ({"path": "b.log"}, ["b.log"]),
        ({"path": "link.md"}, ["link.md"]),
        ({"path": "loop/sub"}, ["loop/sub/c.log", "loop/sub/d/gen.py"]),
        ({"path": "loop", "include": "a.*"}, ["loop/a.py"]),
        ({"include": "a.py/*.py"}, []),
        ({"path": "odd/b [1] x.py"}, ["odd/b [1] x.py"]),
        ({"path": "odd/-e.py"}, ["odd/-e.py"]),
        ({"path": "odd", "include": "*.md"}, []),
    ],
)
def test_which_files_are_searched(
    found: Found, tree: Path, more: dict[str, Any], expected: list[str]
) -> None:
    assert found("needle", **more) == sorted(expected)


def test_a_repository_has_rules_for_its_folders(found: Found, tmp_path: Path) -> None:
    make_files(tmp_path, "repo/.git/HEAD", "repo/sub/a.log", "repo/sub/b", "repo/in/.git/HEAD")
    make_files(tmp_path, "repo/in/c.log", "repo/sub/a.log", "repo/sub/gen/d", text="x")
    make_files(tmp_path, "repo/sub/b", text="x")
    (tmp_path / "repo/.gitignore").write_text("*.log\nsub/gen\n")
    assert found("x", path="repo/sub") == ["repo/sub/b"]
    assert found("x", path="repo/in") == ["repo/in/c.log"]


def test_a_name_that_is_no_utf8_is_told(grep: Grep, tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.py", "wb") as file:
        file.write(b"needle\n")
    assert grep("needle", include="caf?.py").text.endswith(f"{tmp_path}/caf\\xe9.py")
    assert grep("needle", output="lines").text.endswith("caf\\xe9.py\n1: needle")


def test_what_was_left_out_is_told_when_nothing_was_found(grep: Grep, tree: Path) -> None:
    (tree / "skip/me.txt").write_text("special\n")
    (tree / ".git/config").write_text("special\n")
    head, note = grep("special").text.split("\n\n")
    assert head == f"No files found containing pattern 'special' in directory '{tree}'"
    assert note == f"[1 file(s) hidden or ignored would match: {tree}/skip/me.txt]"


def test_a_folder_that_cannot_be_read_is_told(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a.py", text="needle\n")
    unreadable = deeper_than_any_path(tmp_path)
    answer = grep("needle")
    assert answer.matches == [f"{tmp_path}/a.py"]
    assert answer.text.endswith(f"\n\n[1 path(s) could not be read: {unreadable}]")
    (tmp_path / "a.py").unlink()
    answer = grep("needle")
    assert answer.text.startswith("No files found")
    assert answer.text.endswith(f"\n\n[1 path(s) could not be read: {unreadable}]")


def deeper_than_any_path(folder: Path) -> Path:
    """Make folders in folders, until one has a path that is too long for the system to open."""
    here = os.open(folder, os.O_RDONLY)
    while len(str(folder)) < 4096:
        folder /= "d" * 200
        os.mkdir(folder.name, dir_fd=here)
        below = os.open(folder.name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    return folder


# What a line is, and when it matches


@pytest.mark.parametrize(
    ("data", "pattern", "matches"),
    [
        (b"one\r\ntwo\r\n", "one$", True),
        (b"one\r\ntwo\r\n", "^two$", True),
        (b"one\r\ntwo", r"two\Z", True),
        (b"one\r\n", "one.$", False),
        (b"one;\r\n", r";[^x]+$", False),
        (b"one\r\n", r"one\s+$", False),
        (b"one\r\n", r"one\r$", True),
        (b"one\r\n", r"e[\r\n]", True),
        (b"one\n\ntwo\n", "^$", True),
        (b"one\ntwo\n", "^$", False),
        (b"", "^", False),
        (b"one\ntwo\n", r"one\s+two", False),
        (b"one\ntwo\n", "one[^x]*two", False),
        (b"one\ntwo\n", r"e\W+t", False),
        ("naïve".encode(), "NAÏVE", True),
        ("naïve".encode(), r"na\wve", True),
        (b"na\xefve needle\n", "needle", True),
        (b"na\xefve\n", "na.ve", False),
        (b"na\xefve\n", r"na\Wve", False),
        (b"na\xefve\n", "na[^x]ve", False),
        ("needle\n".encode("utf-16"), "^needle$", True),
        (b"\xfe\xff" + "ü\n".encode("utf-16-be"), "Ü", True),
        (b"\xef\xbb\xbfneedle\n", "^needle", True),
        (b"\x7fELF needle\n\x00\x01", "needle", False),
        (b"n\n\x00", "n", False),
        (b"needle\n" * 30_000 + b"\x00", "needle", False),
        (b"x" * 100_000 + b"needle", "needle", True),
        (b"colou?r (b)+ {2}", r"u\?r \(b\)\+ \{2\}", True),
        (b"a{2}b{x}", "a{2}b", False),
        (b"aab{x}", "a{2}b{x}", True),
        (b"foo(bar)+", r"o\(bar\)\+", True),
        (b"one two", "(?x) one \\s two # both", True),
        (b"a-b", "[[:alpha:]]-[[:alpha:]_]", True),
        (b"a&b", "[a&&b]&b", True),
        (b"price 42", r"(?<=price )\d+", True),
        (b"abab", r"(ab)\1", True),
        (b"aaa", "a++a", False),
        (b"aaa", "(?>a+)b|aa", True),
        (b"Needle", "(?-i:needle)", False),
        (b"Needle", "(?:N)eedle|x", True),
        ("x½".encode(), r"x\w", True),
        ("Kelvin \u212a".encode(), "vin k", True),
        (b"tab\there", r"tab\there", True),
        (b"1.5", r"^\d+[.,]\d$", True),
        (b"q" * 50, "q{50}", True),
        (b"q" * 10, "q{,3}$", True),
    ],
)
def test_lines(found: Found, tmp_path: Path, data: bytes, pattern: str, matches: bool) -> None:
    (tmp_path / "file").write_bytes(data)
    assert found(pattern) == (["file"] if matches else [])


def test_a_file_by_its_name_is_read_as_in_a_folder(found: Found, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("needle\n".encode("utf-16"))
    (tmp_path / "binary").write_bytes(b"needle\n\x00")
    assert found("^needle$", path="text") == ["text"]
    assert found("needle", path="binary") == []


def test_case_matters_when_asked(found: Found, tmp_path: Path) -> None:
    make_files(tmp_path, "upper", text="NEEDLE\n")
    make_files(tmp_path, "lower", text="needle\n")
    assert found("needle") == ["lower", "upper"]
    assert found("needle", case_sensitive=False) == ["lower", "upper"]
    assert found("needle", case_sensitive=True) == ["lower"]
    assert found("(?i)needle", case_sensitive=True) == ["lower", "upper"]


def test_an_expression_too_large_for_ripgrep_is_searched_all_the_same(
    found: Found, tmp_path: Path
) -> None:
    make_files(tmp_path, "a", text="é" * 999 + "!")
    assert found(r"(\w{300}){3}[\w-]{99}!") == ["a"]


def test_a_file_of_many_blocks(found: Found, grep: Grep, tmp_path: Path) -> None:
    line = b"hay " * 20 + b"\n"
    times = BLOCK_BYTES // len(line) + 10
    (tmp_path / "big").write_bytes(line * times + b"the needle\n" + b"no end")
    assert found("^the needle$") == ["big"]
    assert found("^no end$") == ["big"]
    assert f"\n{times + 1}: the needle" in grep("the needle", output="lines").text


# How much is told


def test_lines_are_told_with_their_numbers(grep: Grep, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one needle\r\ntwo\nthree NEEDLE\n")
    answer = grep("needle", output="lines")
    assert answer.matches == [f"{tmp_path}/a"]
    assert answer.text == (
        f"Found 1 file(s) containing pattern 'needle' in '{tmp_path}':\n"
        f"{tmp_path}/a\n1: one needle\n3: three NEEDLE"
    )


def test_lines_are_told_with_what_is_around_them(grep: Grep, tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(1, 21))
    make_files(tmp_path, "a", text=text)
    lines = grep("line (1|3|9|20)$", context=1).text.split("\n")[2:]
    assert lines == [
        *("1: line 1", "2- line 2", "3: line 3", "4- line 4", "--"),
        *("8- line 8", "9: line 9", "10- line 10", "--"),
        *("19- line 19", "20: line 20"),
    ]


def test_lines_of_several_files_stand_below_their_paths(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a", "b", text="x\n")
    for name, when in {"a": 2, "b": 1}.items():
        os.utime(tmp_path / name, ns=(when, when))
    text = grep("x", output="lines").text
    assert text.split("\n", 1)[1] == f"{tmp_path}/a\n1: x\n\n{tmp_path}/b\n1: x"


def test_lines_that_match_are_counted(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a", text="x x\ny\nx\n")
    answer = grep("x", output="counts")
    assert answer.text.endswith(f":\n{tmp_path}/a: 2")
    assert answer.matches == [f"{tmp_path}/a"]


def test_a_long_line_and_a_long_answer_are_cut(grep: Grep, tmp_path: Path) -> None:
    make_files(tmp_path, "a", text="b" * 10_000 + "needle" + "c" * 10_000)
    text = grep("needle", output="lines").text
    assert "needle" in text
    assert len(text) < 1000
    assert re.search(r"\[\d+ characters\] b+needlec+ \[\d+ characters\]$", text)
    make_files(tmp_path, "many", text="needle\n" * 20_000)
    text = grep("needle", output="lines").text
    assert len(text) == MAX_CHARS
    assert "<response clipped>" in text


# Time


def searchers() -> list[psutil.Process]:
    """The children that search."""
    return [child for child in psutil.Process().children(recursive=True) if _searches(child)]


def _searches(child: psutil.Process) -> bool:
    try:
        words = child.cmdline()
    except psutil.Error:
        return False  # it has just ended
    return bool({"rg", "oh_kernel.tools.search.worker"} & {Path(word).name for word in words})


def test_a_search_that_takes_too_long_is_ended_and_tells_what_it_has(
    backend: Backend, tmp_path: Path
) -> None:
    make_files(tmp_path, "quick", text="aaa\n")  # files come before the folders beside them
    make_files(tmp_path, "folder/slow", text="a" * 40 + "b\n")
    executor = GrepExecutor(workspace=tmp_path, backend=backend, timeout_s=2)
    answer = executor(GrepAction(pattern=FOREVER))
    assert answer.matches == [f"{tmp_path}/quick"]
    assert answer.truncated
    assert not answer.is_error
    assert "[The search was stopped after 2 s." in answer.text
    assert searchers() == []


def test_no_time_at_all(backend: Backend, tmp_path: Path) -> None:
    make_files(tmp_path, "a", text="x\n")
    executor = GrepExecutor(workspace=tmp_path, backend=backend, timeout_s=0)
    answer = executor(GrepAction(pattern="x"))
    assert answer.truncated
    assert "[The search was stopped after 0 s." in answer.text
    assert searchers() == []


def test_the_paths_are_told_when_there_is_no_time_for_their_lines(
    backend: Backend, tmp_path: Path
) -> None:
    make_files(tmp_path, "quick", text="aaa\n")
    make_files(tmp_path, "folder/slow", text="a" * 40 + "b\n")
    executor = GrepExecutor(workspace=tmp_path, backend=backend, timeout_s=2)
    answer = executor(GrepAction(pattern=FOREVER, output="lines"))
    assert f":\n{tmp_path}/quick\n\n[The search was stopped after 2 s." in answer.text


def test_a_cancelled_search_leaves_no_process(backend: Backend, tmp_path: Path) -> None:
    make_files(tmp_path, "slow", text="a" * 40 + "b\n")
    executor = GrepExecutor(workspace=tmp_path, backend=backend)
    context = ToolContext(workspace=tmp_path)
    call = spawn(executor.run(GrepAction(pattern=FOREVER), context))
    run_blocking(until(lambda: bool(searchers())))
    call.cancel()
    run_blocking(until(call.done))
    assert call.cancelled()
    assert searchers() == []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


# Which engine


def test_without_ripgrep_python_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(tmp_path, "a", text="x\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert GrepExecutor(workspace=tmp_path)(GrepAction(pattern="x")).matches == [f"{tmp_path}/a"]
    with pytest.raises(OpenHandsError, match="no rg on the search path"):
        GrepExecutor(workspace=tmp_path, backend="ripgrep")
