"""Field case SR-01, and the searches of FE-07 and FE-08: faults seen in comparable agents."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.tools.glob import GlobAction, GlobExecutor, GlobObservation
from oh_kernel.tools.grep import GrepAction, GrepExecutor, GrepObservation
from oh_kernel.tools.search.answers import MAX_CHARS
from tests.ripgrep import on_search_path

Answer = GlobObservation | GrepObservation
SPACED = "src/b [1] x.py"


@pytest.fixture(params=["ripgrep", "no ripgrep"])
def search_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "ripgrep":
        with on_search_path():
            yield request.param
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(tmp_path_factory.mktemp("bin")))
            yield request.param


def run(work: Path, tool: str, **args: Any) -> Answer:
    args = {k: v.replace("$WORK", str(work)) for k, v in args.items()}
    if tool == "glob":
        return GlobExecutor(workspace=work)(GlobAction(**args))
    return GrepExecutor(workspace=work)(GrepAction(**args))


STEPS: list[dict[str, str]] = [
    {"tool": "glob", "pattern": "**/*.py", "path": "$WORK"},
    {"tool": "glob", "pattern": "$WORK/src/*.py"},
    {"tool": "glob", "pattern": ".github/*.yml", "path": "$WORK"},
    {"tool": "grep", "pattern": "needle", "path": "$WORK"},
    {"tool": "grep", "pattern": "rule", "path": "$WORK/AGENTS.md"},
    {"tool": "grep", "pattern": "^(foo|bar)+[0-9]{2}$", "path": "$WORK"},
    {"tool": "grep", "pattern": r"foo\(bar\)\+", "path": "$WORK", "include": "*.py"},
    {"tool": "grep", "pattern": "(unclosed", "path": "$WORK"},
    {"tool": "grep", "pattern": "-e", "path": "$WORK"},
]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    files = {
        "src/a.py": "def needle(): pass\n",
        SPACED: "foobar12\nfoo(bar)+\n",
        ".github/ci.yml": "needle: 1\n",
        "docs/real.md": "rule one\n",
        "dash": "gcc -e main\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "AGENTS.md").symlink_to("docs/real.md")
    (tmp_path / "dead").symlink_to("missing")
    with locked_folder(tmp_path):
        yield tmp_path


@contextmanager
def locked_folder(work: Path) -> Iterator[None]:
    if os.geteuid() == 0:  # who may read everything
        yield
        return
    (work / "locked").mkdir()
    (work / "locked/x.py").write_text("needle\n")
    (work / "locked").chmod(0)
    yield
    (work / "locked").chmod(0o755)


def files(answer: Answer, work: Path) -> set[str]:
    found = answer.files if isinstance(answer, GlobObservation) else answer.matches
    return {str(Path(path).relative_to(work)) for path in found}


def test_SR_01_nothing_is_missed_silently(search_path: str, work: Path) -> None:
    answers = [run(work, **step) for step in STEPS]
    sets = [files(answer, work) for answer in answers]
    for python_files in sets[:2]:
        assert python_files - {"locked/x.py"} == {"src/a.py", SPACED}
    if (work / "locked").exists():
        assert f"could not be read: {work}/locked" in answers[0].text
        assert f"could not be read: {work}/locked" in answers[3].text
    assert sets[2] == {".github/ci.yml"}
    assert "src/a.py" in sets[3]
    assert sets[4] == {"AGENTS.md"}
    assert sets[5] == {SPACED}
    assert sets[6] == {SPACED}
    assert answers[7].is_error
    assert "Invalid regex pattern" in answers[7].text
    assert sets[8] == {"dash"}
    assert [answer.is_error for answer in answers] == [False] * 7 + [True, False]


def test_SR_01_the_same_with_ripgrep_and_without(
    work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with on_search_path():
        first = [run(work, **step) for step in STEPS]
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("bin")))
    second = [run(work, **step) for step in STEPS]
    assert [files(a, work) for a in first] == [files(a, work) for a in second]
    assert [a.text for a in first] == [a.text for a in second]


def test_FE_07_a_huge_line_is_found_and_not_poured_out(search_path: str, tmp_path: Path) -> None:
    data = b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(200000)) + b"}"
    (tmp_path / "data.json").write_bytes(data)
    answers = []
    for output in ("files", "lines", "counts"):
        began = time.monotonic()
        action = GrepAction.model_validate({"pattern": "k150000", "output": output})
        answers.append(GrepExecutor(workspace=tmp_path)(action))
        assert time.monotonic() - began < 5
    for answer in answers:
        assert answer.matches == [f"{tmp_path}/data.json"]
        assert len(answer.text) <= MAX_CHARS
        assert len(answer.to_json()) <= MAX_CHARS
    assert '"k150000":150000' in answers[1].text


def test_FE_08_a_binary_file_is_not_printed(search_path: str, tmp_path: Path) -> None:
    (tmp_path / "server").write_bytes(b"\x7fELF" + bytes(range(256)) * 4096)
    (tmp_path / "report.pdf").write_bytes(
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</Length 8>>stream\n\x00\x9c\xff\x10\x80\x81\x00\x02"
        b"\nendstream\nendobj\n"
    )
    for pattern, path in (("ELF", "."), ("ELF", "server"), ("PDF", "."), ("PDF", "report.pdf")):
        answer = GrepExecutor(workspace=tmp_path)(
            GrepAction(pattern=pattern, path=path, output="lines")
        )
        assert not answer.is_error
        assert answer.matches == []
        assert answer.text.isprintable()
