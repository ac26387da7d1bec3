"""Any sequence of edits, undos, outside changes and restarts leaves the file equal to a model's."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentskills.journal import Journal
from oh_kernel.store import EventStore
from oh_kernel.tools.file_editor import FileEditorAction, FileEditorExecutor, FileEditorObservation
from oh_kernel.tools.files import Files
from tests.experiments import count

MARK = b"\xef\xbb\xbf"
PIECES = [b"a", b"b", b"ab", b" ", b"\n", b"\r\n", "é中".encode(), b"\xe9", b"\xff", b"\t"]
contents = st.tuples(
    st.sampled_from([b"", MARK]), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
).map(b"".join)
words = st.text("abX ", max_size=3)
numbers = st.integers(0, 6)
operations = st.one_of(
    st.tuples(st.just("create"), words),
    st.tuples(st.just("replace"), st.sampled_from(["a", "b", "ab", "X"]), words),
    st.tuples(st.just("replace"), words, words),
    st.tuples(st.just("insert"), numbers, st.sampled_from(["a", "b\na", "X", " "])),
    st.tuples(st.just("undo")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("view")),
    st.tuples(st.just("change"), contents),
    st.tuples(st.just("delete")),
    st.tuples(st.just("restart")),
)


class Model:
    """What the file should hold, what the agent saw of it, and what it can take back."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self.seen: bytes | None = None
        self.edits: list[tuple[bytes | None, bytes | None]] = []

    def edited(self, content: bytes | None) -> None:
        self.edits = [*self.edits, (self.content, content)][-10:]
        self.content = self.seen = content

    def knows(self) -> bool:
        """Whether an edit may begin; a refusal shows what changed."""
        if self.seen is None or self.seen == self.content:
            return True
        self.seen = self.content
        return False

    def create(self, text: str) -> bool:
        if self.content is not None:
            return False
        self.edited(text.encode())
        return True

    def replace(self, old: str, new: str) -> bool:
        content = self.content
        if content is None or not self.knows() or old == new or occurrences(content, old) != 1:
            return False
        body = content.removeprefix(MARK)
        mark = content[: len(content) - len(body)]
        self.edited(mark + body.replace(old.encode(), new.encode()))
        return True

    def insert(self, after_line: int, new: str) -> bool:
        if self.content is None or not self.knows():
            return False
        body = self.content.removeprefix(MARK)
        mark = self.content[: len(self.content) - len(body)]
        lines = body.splitlines(keepends=True)
        if after_line > len(lines):
            return False
        end = ending(lines, after_line)
        text = new.replace("\n", end.decode()).encode()
        if after_line == len(lines) and lines and not lines[-1].endswith(b"\n"):
            added = [end + text]
        else:
            added = [text + end]
        self.edited(mark + b"".join(lines[:after_line] + added + lines[after_line:]))
        return True

    def undo(self) -> bool:
        if self.content is None or not self.edits:
            return False
        before, after = self.edits[-1]
        self.seen = self.content
        if after != self.content:
            return False
        self.edits.pop()
        self.content = self.seen = before
        return True


def occurrences(content: bytes, old: str) -> int:
    body, part = content.removeprefix(MARK), old.encode()
    return sum(body.startswith(part, at) for at in range(len(body) + 1))


def ending(lines: list[bytes], index: int) -> bytes:
    """That of the line which is moved down, or of the last line that has one."""
    ended = [line for line in lines[: index + 1] if line.endswith(b"\n")]
    return b"\r\n" if ended and ended[-1].endswith(b"\r\n") else b"\n"


def is_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def check(start: bytes | None, steps: list[tuple[Any, ...]], folder: Path) -> None:
    path, model = folder / "f.txt", Model(start)
    if start is not None:
        path.write_bytes(start)
    with EventStore.open(folder / "events.db") as store:

        def opened() -> FileEditorExecutor:
            journal = Journal(folder / "journal")
            files = Files(folder, history=store.edits_of("c"), journal=journal)
            return FileEditorExecutor(workspace=folder, files=files)

        executor = opened()
        for name, *arguments in steps:
            if name == "restart":
                executor, model.seen = opened(), None
            elif name == "change":
                path.write_bytes(arguments[0])
                model.content = arguments[0]
            elif name == "delete":
                path.unlink(missing_ok=True)
                model.content = None
            elif name == "view":
                if not call(executor, path, "view", []).is_error:
                    model.seen = model.content
            else:
                one_edit(executor, path, model, name, arguments)
            assert (path.read_bytes() if path.exists() else None) == model.content


def one_edit(
    executor: FileEditorExecutor, path: Path, model: Model, name: str, arguments: list[Any]
) -> None:
    """Both do the same; in other charsets than UTF-8 the tool may see other text and refuse."""
    before = vars(model).copy()
    edit: Callable[..., bool] = getattr(model, name)
    expected = edit(*arguments)
    answer = call(executor, path, name, arguments)
    if answer.is_error and expected and not is_utf8(before["content"]) and name != "undo":
        vars(model).update(before, seen=before["content"])
        return
    assert answer.is_error is not expected, answer.text


def call(
    executor: FileEditorExecutor, path: Path, name: str, arguments: list[Any]
) -> FileEditorObservation:
    commands: dict[str, tuple[Any, list[str]]] = {
        "create": ("create", ["file_text"]),
        "replace": ("str_replace", ["old_str", "new_str"]),
        "insert": ("insert", ["insert_line", "new_str"]),
        "undo": ("undo_edit", []),
        "view": ("view", []),
    }
    command, keys = commands[name]
    more = dict(zip(keys, arguments, strict=True))
    return executor(FileEditorAction(command=command, path=str(path), **more))


@pytest.mark.repeated
@settings(max_examples=count(80, long=5000), deadline=None)
@given(st.none() | contents, st.lists(operations, max_size=20))
def test_any_sequence_leaves_the_file_equal_to_a_models(
    start: bytes | None, steps: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        check(start, steps, Path(name).resolve())
