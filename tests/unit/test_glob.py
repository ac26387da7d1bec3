"""Finding files by name: texts and limits of the contract, patterns, ignore rules, links, names."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from oh_kernel.tools.base import ToolContext
from oh_kernel.tools.glob import GlobAction, GlobExecutor, GlobObservation, GlobTool
from oh_kernel.tools.search.globs import PathPattern
from oh_kernel.tools.search.tree import Tree
from tests.folders import as_nobody, make_files, open_folder

Names = Callable[..., list[str]]


@pytest.fixture
def names(tmp_path: Path) -> Names:
    """What a pattern finds in the workspace, as sorted paths relative to it."""
    executor = GlobExecutor(workspace=tmp_path)

    def found(pattern: str, path: str | None = None) -> list[str]:
        answer = executor(GlobAction(pattern=pattern, path=path))
        assert not answer.is_error, answer.text
        return sorted(os.path.relpath(file, tmp_path) for file in answer.files)

    return found


def glob(folder: Path, pattern: str, **more: str) -> GlobObservation:
    return GlobExecutor(workspace=folder)(GlobAction(pattern=pattern, **more))


def test_says_what_was_found(tmp_path: Path) -> None:
    make_files(tmp_path, "a.py", "sub/b.py", "c.txt")
    answer = glob(tmp_path, "**/*.py")
    assert answer.text.split("\n") == [
        f"Found 2 file(s) matching pattern '**/*.py' in '{tmp_path}':",
        *answer.files,
    ]
    assert sorted(answer.files) == [f"{tmp_path}/a.py", f"{tmp_path}/sub/b.py"]
    assert (answer.pattern, answer.search_path) == ("**/*.py", str(tmp_path))
    assert not answer.truncated


def test_says_that_nothing_was_found(tmp_path: Path) -> None:
    answer = glob(tmp_path, "*.py")
    assert answer.text == f"No files found matching pattern '*.py' in directory '{tmp_path}'"
    assert not answer.is_error
    assert answer.files == []


def test_a_missing_folder_and_a_file_are_no_folder_to_search(tmp_path: Path) -> None:
    make_files(tmp_path, "a.py")
    for path in ("missing", "a.py"):
        answer = glob(tmp_path, "*", path=path)
        assert answer.is_error
        assert answer.text == f"Search path '{tmp_path}/{path}' is not a valid directory"
    assert glob(tmp_path, "/no/such/*.py").text == "Search path '/no/such' is not a valid directory"


def test_a_pattern_of_nothing_or_of_too_much_is_refused(tmp_path: Path) -> None:
    assert glob(tmp_path, "").text == "The pattern is empty."
    many = "{a,b,c,d,e,f,g,h,i,j}" * 4
    assert "more than 1000 patterns" in glob(tmp_path, many).text
    assert glob(tmp_path, many).is_error


def test_a_hundred_are_all_and_one_more_is_too_many(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"{i}.py" for i in range(100)))
    answer = glob(tmp_path, "*.py")
    assert (len(answer.files), answer.truncated) == (100, False)
    make_files(tmp_path, "100.py")
    answer = glob(tmp_path, "*.py")
    assert (len(answer.files), answer.truncated) == (100, True)
    assert answer.text.startswith("Found 100 file(s)")
    assert answer.text.endswith(
        "\n\n[Results truncated to first 100 files. Consider using a more specific pattern.]"
    )


def test_the_newest_is_first_across_folders_and_ties_go_by_path(tmp_path: Path) -> None:
    ages = {"a/old.py": 1, "b/new.py": 9, "c/mid.py": 5, "a/mid.py": 5, "d/oldest.py": 0}
    make_files(tmp_path, *ages)
    for name, when in ages.items():
        os.utime(tmp_path / name, ns=(when, when))
    order = ["b/new.py", "a/mid.py", "c/mid.py", "a/old.py", "d/oldest.py"]
    assert glob(tmp_path, "*.py").files == [f"{tmp_path}/{name}" for name in order]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.ts", ["a.ts", "src/b.ts", "src/deep/er/c.ts"]),
        ("src/**/*.ts", ["src/b.ts", "src/deep/er/c.ts"]),
        ("src/*.ts", ["src/b.ts"]),
        ("./*.ts", ["a.ts"]),
        ("**/*.{ts,tsx}", ["a.ts", "src/b.ts", "src/d.tsx", "src/deep/er/c.ts"]),
        ("src/{deep/**/,}*.{ts,ts{x}}", ["src/b.ts", "src/deep/er/c.ts"]),
        ("s?c/[ab].ts", ["src/b.ts"]),
        ("src/[!a-c].*", ["src/d.tsx"]),
        ("**", ["a.ts", "src/b.ts", "src/d.tsx", "src/deep/er/c.ts", "{{name}}/x.py"]),
        ("src", ["src/b.ts", "src/d.tsx", "src/deep/er/c.ts"]),
        ("src/", ["src/b.ts", "src/d.tsx", "src/deep/er/c.ts"]),
        ("**/deep/**", ["src/deep/er/c.ts"]),
        ("c.ts", ["src/deep/er/c.ts"]),
        ("{{name}}/*.py", ["{{name}}/x.py"]),
        ("src/../a.*", ["a.ts"]),
        ("*.TS", []),
        ("*e*r*c*x*", []),
    ],
)
def test_patterns(tmp_path: Path, names: Names, pattern: str, expected: list[str]) -> None:
    make_files(tmp_path, "a.ts", "src/b.ts", "src/d.tsx", "src/deep/er/c.ts", "{{name}}/x.py")
    assert names(pattern) == expected


def test_patterns_are_below_the_folder_wherever_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path, "w/src/a/x.ts", "elsewhere/src/no.ts")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert glob(tmp_path / "w", "src/**/*.ts").files == [f"{tmp_path}/w/src/a/x.ts"]
    assert glob(tmp_path, "*.ts", path="w/src").files == [f"{tmp_path}/w/src/a/x.ts"]


def test_absolute_patterns_begin_where_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path, "w/a.py", "home/notes/b.md")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    answer = glob(tmp_path / "w", f"{tmp_path}/home/**/*.md")
    assert answer.search_path == f"{tmp_path}/home"
    assert answer.files == [f"{tmp_path}/home/notes/b.md"]
    for pattern in ("~/notes/*.md", f"{tmp_path}/home", f"{tmp_path}/home/notes/b.md", "~/notes"):
        assert glob(tmp_path / "w", pattern).files == answer.files, pattern
    assert glob(tmp_path / "w", "*.md", path="~").files == answer.files


def test_hidden_files_are_found_when_the_pattern_says_so(tmp_path: Path, names: Names) -> None:
    make_files(tmp_path, ".env", ".github/ci.yml", ".git/config", "sub/.env.local", "seen.yml")
    assert names("*") == names("**") == names("**/*") == ["seen.yml"]
    assert names(".github/*.yml") == names("**/.github/*") == [".github/ci.yml"]
    assert names(".env*") == [".env", "sub/.env.local"]
    assert names(".env") == [".env"]
    assert names(".git/*") == [".git/config"]
    assert names("{.github,sub}/{*.yml,.env*}") == [".github/ci.yml", "sub/.env.local"]


def test_ignored_files_are_found_when_the_pattern_spells_them_out(
    tmp_path: Path, names: Names
) -> None:
    make_files(tmp_path, "a.py", "a.log", "keep.log", "build/x.py", "sub/b.log", "sub/gen.py")
    make_files(tmp_path, "sub/deep/gen.py", "sub/build/y.py", "tmp/z.py", "sub/keep/b.log")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/tmp\n# a.py\n")
    (tmp_path / "sub/.gitignore").write_text("/gen.py\n!b.log\n")
    (tmp_path / "sub/keep/.ignore").write_text("*.log")
    assert names("*.log") == ["keep.log", "sub/b.log"]
    assert names("**/*.py") == ["a.py", "sub/deep/gen.py"]
    assert names("build/*.py") == ["build/x.py"]
    assert names("**/build/*.py") == ["build/x.py", "sub/build/y.py"]
    assert names("a.log") == ["a.log"]
    assert names("*.py", "build") == ["build/x.py"]


def test_the_rules_of_a_repository_hold_in_its_folders(tmp_path: Path, names: Names) -> None:
    make_files(tmp_path, "repo/.git/HEAD", "repo/sub/a.log", "repo/sub/b.py", "repo/in/.git/HEAD")
    make_files(tmp_path, "repo/in/c.log", "repo/sub/gen/d.py")
    (tmp_path / "repo/.gitignore").write_text("*.log\nsub/gen\n")
    (tmp_path / ".gitignore").write_text("*.py")
    assert names("*", "repo/sub") == ["repo/sub/b.py"]
    assert names("*", "repo/in") == ["repo/in/c.log"]
    assert names("*", "repo") == ["repo/in/c.log", "repo/sub/b.py"]


def test_links_to_files_are_files_and_links_to_folders_are_not_followed(
    tmp_path: Path, names: Names
) -> None:
    make_files(tmp_path, "w/docs/real.md", "outside/far.md")
    for name, target in {
        "AGENTS.md": "docs/real.md",
        "dead.md": "missing",
        "loop": ".",
        "far": "../outside",
        "self.md": "self.md",
    }.items():
        (tmp_path / "w" / name).symlink_to(target)
    assert names("*.md", "w") == ["w/AGENTS.md", "w/docs/real.md"]
    assert names("far/*.md", "w") == ["w/far/far.md"]
    assert names("loop/loop/*.md", "w") == ["w/loop/loop/AGENTS.md"]
    assert names("*.md", "w/far") == ["w/far/far.md"]


ODD = ["b [1] x.py", "-e.py", "new\nline.py", "*.py", "{a,b}.py", "tab\t.py", "ü.py", "back\\.py"]


def test_odd_names(tmp_path: Path, names: Names) -> None:
    make_files(tmp_path, *(f"odd/{name}" for name in ODD))
    assert names("**/*.py") == sorted(f"odd/{name}" for name in ODD)
    for name in ("b [1] x.py", "-e.py", "new\nline.py", "tab\t.py", "ü.py"):
        assert names(f"odd/{name}") == [f"odd/{name}"]
    assert names(r"odd/b \[1\] x.py") == ["odd/b [1] x.py"]
    assert names(r"odd/\{a,b\}.py") == ["odd/{a,b}.py"]
    lines = glob(tmp_path, "*.py").text.split("\n")
    assert len(lines) == 1 + len(ODD), "one line for each"
    assert f"{tmp_path}/odd/new\\nline.py" in lines


def test_a_name_that_is_no_utf8_is_told(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.py", "wb"):
        pass
    answer = glob(tmp_path, "caf?.py")
    assert answer.text.endswith(f"{tmp_path}/caf\\xe9.py")
    assert "caf" in answer.to_json()


def test_what_was_left_out_is_told_when_nothing_was_found(tmp_path: Path) -> None:
    make_files(tmp_path, "dist/a.js", ".cache/b.js", ".git/c.js", "sub/src/d.ts")
    (tmp_path / ".gitignore").write_text("dist\n")
    head, note = glob(tmp_path, "*.js").text.split("\n\n")
    assert head == f"No files found matching pattern '*.js' in directory '{tmp_path}'"
    assert note.startswith("[2 file(s) deeper down, hidden or ignored would match: ")
    assert f"{tmp_path}/dist/a.js" in note
    assert ".git/c.js" not in note
    assert f"{tmp_path}/sub/src/d.ts" in glob(tmp_path, "src/*.ts").text


def test_a_folder_that_cannot_be_read_is_told() -> None:
    with open_folder() as folder:
        make_files(folder, "locked/x.py", "a.py")
        (folder / "locked").chmod(0)
        with as_nobody():
            answer = glob(folder, "*.py")
        (folder / "locked").chmod(0o755)
    assert answer.files == [f"{folder}/a.py"]
    assert answer.text.endswith(f"\n\n[1 path(s) could not be read: {folder}/locked]")


def test_a_search_that_takes_too_long_tells_what_it_has(tmp_path: Path) -> None:
    make_files(tmp_path, "a.py")
    answer = GlobExecutor(workspace=tmp_path, timeout_s=0)(GlobAction(pattern="*.py"))
    assert answer.truncated
    assert "[The search was stopped after 0 s." in answer.text


def test_the_walk_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    make_files(tmp_path, *(f"d{i}/f.py" for i in range(50)))
    executor = GlobExecutor(workspace=tmp_path)
    context = ToolContext(workspace=tmp_path)

    async def cancelled() -> None:
        call = asyncio.create_task(executor.run(GlobAction(pattern="**"), context))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())  # waits for the threads that were started
    folders = iter(range(3))
    tree = Tree(
        str(tmp_path),
        PathPattern.parse("**"),
        outright=True,
        stopped=lambda: next(folders, None) is None,
    )
    assert len(list(tree.files())) == 3
    assert not tree.is_complete


def test_many_stars_take_no_time(tmp_path: Path, names: Names) -> None:
    make_files(tmp_path, "a" * 200)
    assert names("*a" * 60 + "*b") == []


def test_the_tool_only_reads(tmp_path: Path) -> None:
    assert GlobTool.hints.readOnlyHint
    assert GlobExecutor(workspace=tmp_path).resources(GlobAction(pattern="*")) == ()


@pytest.mark.parametrize("odd", ["a" * 5000, "a\0b", "{" * 60 + "a" + "}" * 60, "[" * 500])
def test_odd_patterns_and_folders_get_an_answer(tmp_path: Path, odd: str) -> None:
    for answer in (glob(tmp_path, odd), glob(tmp_path, f"{odd}/*"), glob(tmp_path, "*", path=odd)):
        assert answer.files == []
        assert "\0" not in answer.text
    assert glob(tmp_path, "*", path=odd).is_error
