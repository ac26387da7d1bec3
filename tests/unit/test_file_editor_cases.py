"""Field cases FE-01 to FE-08 and the file steps of LM-05: faults seen in comparable agents."""

import json
import os
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentskills.unified import unified_diff
from oh_kernel.events import ImageContent
from oh_kernel.tools.file_answers import MAX_CHARS
from oh_kernel.tools.file_editor import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
)

Call = Callable[..., FileEditorObservation]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """One executor over the workspace, called with the arguments of a case."""
    executor = FileEditorExecutor(workspace=tmp_path)

    def run(command: Any, path: str, **arguments: Any) -> FileEditorObservation:
        action = FileEditorAction(command=command, path=str(tmp_path / path), **arguments)
        started = time.monotonic()
        answer = executor(action)
        assert time.monotonic() - started < 5
        assert len(answer.text) <= MAX_CHARS
        return answer

    return run


def changed_lines(answer: FileEditorObservation) -> list[str]:
    assert answer.old_content is not None
    assert answer.new_content is not None
    return changed(answer.old_content, answer.new_content)


def changed(old: str, new: str) -> list[str]:
    rows = unified_diff(old, new).splitlines()[2:]
    return [row for row in rows if row.startswith(("-", "+"))]


def test_FE_01_undecodable_bytes_elsewhere_survive(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "settings.ini"
    original = b"; r\xe9glages\nowner = Zo\xeb\nverbose = no\n"
    path.write_bytes(original)
    edit = {"old_str": "verbose = no", "new_str": "verbose = yes"}
    offered = FileEditorExecutor(workspace=tmp_path).preview(
        FileEditorAction(command="str_replace", path=str(path), **edit)
    )
    assert offered is not None and offered.old_text is not None
    assert changed(offered.old_text, offered.new_text) == ["-verbose = no", "+verbose = yes"]
    answer = call("str_replace", "settings.ini", **edit)
    assert not answer.is_error
    assert path.read_bytes() == b"; r\xe9glages\nowner = Zo\xeb\nverbose = yes\n"
    assert b"\xef\xbf\xbd" not in path.read_bytes()
    assert changed_lines(answer) == ["-verbose = no", "+verbose = yes"]
    assert not call("undo_edit", "settings.ini").is_error
    assert path.read_bytes() == original


def test_FE_02_mark_and_crlf_are_kept_and_lf_text_matches(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "Program.cs"
    path.write_bytes(b"\xef\xbb\xbfusing System;\r\n\r\nclass P\r\n{\r\n    int n = 1;\r\n}\r\n")
    view = call("view", "Program.cs")
    assert "     1\tusing System;\n" in view.text
    assert "\ufeff" not in view.text
    assert "\r" not in view.text
    steps: list[tuple[str, dict[str, Any]]] = [
        (
            "str_replace",
            {"old_str": "{\n    int n = 1;\n}", "new_str": "{\n    int n = 1;\n    int m = 2;\n}"},
        ),
        ("insert", {"insert_line": 0, "new_str": "// header"}),
        (
            "str_replace",
            {"old_str": "// header\nusing System;", "new_str": "// header\nusing System.IO;"},
        ),
    ]
    contents = []
    for command, arguments in steps:
        assert not call(command, "Program.cs", **arguments).is_error
        content = path.read_bytes()
        contents.append(content)
        assert content.startswith(b"\xef\xbb\xbf")
        assert content.count(b"\xef\xbb\xbf") == 1
        assert content.count(b"\n") == content.count(b"\r\n")
    body = b"\r\n\r\nclass P\r\n{\r\n    int n = 1;\r\n    int m = 2;\r\n}\r\n"
    assert contents[1] == b"\xef\xbb\xbf// header\r\nusing System;" + body
    assert contents[2] == b"\xef\xbb\xbf// header\r\nusing System.IO;" + body


def test_FE_03_line_number_edges(tmp_path: Path, call: Call) -> None:
    notes, two, empty = tmp_path / "notes.txt", tmp_path / "two.txt", tmp_path / "empty.txt"
    notes.write_bytes(b"one\ntwo\nthree")
    two.write_bytes(b"a\nb\n")
    empty.write_bytes(b"")
    assert not call("insert", "notes.txt", insert_line=3, new_str="four").is_error
    assert notes.read_bytes() == b"one\ntwo\nthree\nfour"
    view = call("view", "notes.txt", view_range=[2, 99])
    assert not view.is_error
    assert view.text.endswith("     2\ttwo\n     3\tthree\n     4\tfour\n")
    assert "     1\t" not in view.text
    assert "only 4 lines" in view.text
    assert call("view", "two.txt").text.endswith(":\n     1\ta\n     2\tb\n")
    for line in (7, -1):
        answer = call("insert", "two.txt", insert_line=line, new_str="x")
        assert answer.is_error
        assert "[0, 2]" in answer.text
        assert two.read_bytes() == b"a\nb\n"
    view = call("view", "empty.txt")
    assert not view.is_error
    assert "\t" not in view.text
    assert not call("insert", "empty.txt", insert_line=0, new_str="first").is_error
    assert empty.read_bytes() == b"first\n"
    assert call("view", "two.txt", view_range=[9, 12]).is_error


def test_FE_04_links_stay_links(tmp_path: Path, call: Call) -> None:
    (tmp_path / "docs").mkdir()
    real = tmp_path / "docs" / "AGENTS.md"
    real.write_text("tone: formal\n")
    for name, target in {
        "CLAUDE.md": "docs/AGENTS.md",
        "second.md": "CLAUDE.md",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
    }.items():
        (tmp_path / name).symlink_to(target)

    def assert_links_stay() -> None:
        assert os.readlink(tmp_path / "CLAUDE.md") == "docs/AGENTS.md"
        assert os.readlink(tmp_path / "second.md") == "CLAUDE.md"

    answer = call("str_replace", "second.md", old_str="formal", new_str="plain")
    assert not answer.is_error
    assert real.read_bytes() == b"tone: plain\n"
    assert_links_stay()
    assert not call("insert", "CLAUDE.md", insert_line=1, new_str="lang: en").is_error
    assert real.read_bytes() == b"tone: plain\nlang: en\n"
    assert_links_stay()
    assert not call("undo_edit", "CLAUDE.md").is_error
    assert real.read_bytes() == b"tone: plain\n"
    assert_links_stay()
    started = time.monotonic()
    assert call("view", "loop_a").is_error
    assert time.monotonic() - started < 1


def test_FE_05_texts_are_taken_literally(tmp_path: Path, call: Call) -> None:
    files = {
        "log.js": b'log("done");\n',
        "re.txt": b"v = arr[0]+(a|b)*?^.\nv = arrX0\n",
        "Makefile": b"all:\n\tcc main.c\n        # eight blanks\n",
        "page.md": b"name:  \nend\n",
        "dup.txt": b"x\ny\nx\n",
    }
    for file, original in files.items():
        (tmp_path / file).write_bytes(original)

    def replace(name: str, old: str, new: str) -> FileEditorObservation:
        return call("str_replace", name, old_str=old, new_str=new)

    def content(name: str) -> bytes:
        return (tmp_path / name).read_bytes()

    template = 'log("$& $1 $$ \\1 \\g<0> {0} %s");'
    assert not replace("log.js", 'log("done");', template).is_error
    assert not replace("re.txt", "arr[0]+(a|b)*?^.", "C:\\new\\table").is_error
    assert replace("Makefile", "        cc main.c", "        cc -O2 main.c").is_error
    assert content("Makefile") == files["Makefile"]
    assert not replace("Makefile", "\tcc main.c", "\tcc -O2 main.c").is_error
    assert replace("page.md", "name:\nend", "name: q\nend").is_error
    assert content("page.md") == files["page.md"]
    refused = replace("dup.txt", "x", "z")
    assert refused.is_error
    assert "[1, 3]" in refused.text
    assert content("dup.txt") == files["dup.txt"]
    assert not replace("dup.txt", "y\n", "").is_error
    assert content("log.js") == b'log("$& $1 $$ \\1 \\g<0> {0} %s");\n'
    assert content("re.txt") == b"v = C:\\new\\table\nv = arrX0\n"
    assert content("Makefile") == b"all:\n\tcc -O2 main.c\n        # eight blanks\n"
    assert content("page.md") == b"name:  \nend\n"
    assert content("dup.txt") == b"x\nx\n"


def test_FE_06_what_others_saved_is_not_discarded(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "cfg.toml"
    path.write_bytes(b"a = 1\n")
    assert not call("str_replace", "cfg.toml", old_str="a = 1", new_str="a = 2").is_error
    with path.open("ab") as outside:
        outside.write(b"b = 9\n")
    answer = call("undo_edit", "cfg.toml")
    assert answer.is_error
    assert "has changed since the last edit" in answer.text
    assert path.read_bytes() == b"a = 2\nb = 9\n"
    answer = call("create", "cfg.toml", file_text="fresh\n")
    assert answer.is_error
    assert "File already exists" in answer.text
    assert path.read_bytes() == b"a = 2\nb = 9\n"
    assert not call("str_replace", "cfg.toml", old_str="a = 2", new_str="a = 3").is_error
    assert path.read_bytes() == b"a = 3\nb = 9\n"
    assert not call("undo_edit", "cfg.toml").is_error
    assert path.read_bytes() == b"a = 2\nb = 9\n"
    path.unlink()
    assert call("undo_edit", "cfg.toml").is_error
    assert not path.exists()


def test_FE_07_one_huge_line(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "data.json"
    original = b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(200000)) + b"}"
    path.write_bytes(original)
    for arguments in ({}, {"view_range": [1, 1]}):
        view = call("view", "data.json", **arguments)
        assert not view.is_error
        assert '     1\t{"k0":0,"k1":1,' in view.text
        assert "[line cut: " in view.text
        assert "view_range" not in view.text
        assert "line numbers" not in view.text
    answer = call("str_replace", "data.json", old_str='"k150000":150000', new_str='"k150000":-1')
    assert not answer.is_error
    assert path.read_bytes() == original.replace(b'"k150000":150000', b'"k150000":-1')
    assert json.loads(path.read_bytes())["k150000"] == -1
    assert '"k150000":-1,' in answer.text


def test_FE_08_binary_files_are_named_as_such(tmp_path: Path, call: Call) -> None:
    report, server = tmp_path / "report.pdf", tmp_path / "server"
    contents = {
        report: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</Length 8>>stream\n"
        b"\x00\x9c\xff\x10\x80\x81\x00\x02\nendstream\nendobj\n",
        server: b"\x7fELF" + bytes(range(256)) * 4096,
    }
    for path, content in contents.items():
        path.write_bytes(content)
    answers = {
        report: call("view", "report.pdf"),
        server: call("view", "server"),
    }
    answers_to_edit = call("str_replace", "server", old_str="ELF", new_str="elf")
    for path, answer in [*answers.items(), (server, answers_to_edit)]:
        assert answer.is_error
        assert "binary" in answer.text
        assert str(len(contents[path])) in answer.text
        assert answer.text.isprintable()
        assert "\ufffd" not in answer.text
    for path, content in contents.items():
        assert path.read_bytes() == content


def png(width: int, height: int, pixels: bytes) -> bytes:
    """A valid grey PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + pixels[y * width : (y + 1) * width] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 1))
        + chunk(b"IEND", b"")
    )


def test_LM_05_no_image_that_a_provider_refuses(tmp_path: Path, call: Call) -> None:
    (tmp_path / "tall.png").write_bytes(png(200, 9000, bytes(200 * 9000)))
    (tmp_path / "noisy.png").write_bytes(png(2600, 2600, os.urandom(2600 * 2600)))
    (tmp_path / "fake.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    (tmp_path / "fine.png").write_bytes(png(3, 2, bytes(6)))
    assert (tmp_path / "noisy.png").stat().st_size > 6 * 2**20
    for name, reason in {
        "tall.png": "200 x 9000 pixels",
        "noisy.png": "2600 x 2600 pixels",
        "fake.png": "its content is not that of a PNG",
    }.items():
        answer = call("view", name)
        assert answer.is_error
        assert reason in answer.text
        assert not any(isinstance(part, ImageContent) for part in answer.content)
    fine = call("view", "fine.png")
    assert not fine.is_error
    assert isinstance(fine.content[1], ImageContent)
    assert fine.content[1].image_urls[0].startswith("data:image/png;base64,iVBORw0KGgo")
