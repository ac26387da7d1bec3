"""Notebooks that are open in a real Jupyter server, with and without shared documents."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.loop import run_blocking
from oh_kernel.tools.live_notebook import LiveNotebook, live_notebook
from oh_kernel.tools.notebook_changes import Inserted, NewSource
from oh_kernel.tools.notebook_editor import (
    NotebookEditorAction,
    NotebookEditorExecutor,
    NotebookEditorObservation,
)
from oh_kernel.tools.open_notebooks import Room, Whereabouts, find_open, running_servers
from tests.live.agent_kernel import wait_until
from tests.live.jupyter_server import JupyterServer, jupyter_server
from tests.unit.test_notebook_editor import code, note, printed, sources, write


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """A server where each front end has its own copy of a notebook."""
    with jupyter_server(tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """A server with jupyter-collaboration."""
    with jupyter_server(tmp_path_factory.mktemp("shared"), shared=True) as server:
        yield server


def edit(
    server: JupyterServer, command: Any, path: str, **arguments: Any
) -> NotebookEditorObservation:
    executor = NotebookEditorExecutor(server.root, runtime=server.runtime)
    answer = executor(NotebookEditorAction(command=command, path=path, **arguments))
    assert server.token not in answer.to_json()
    return answer


def whereabouts(server: JupyterServer, path: Path) -> Whereabouts:
    return find_open(path, server.runtime)


# Without shared documents


def test_an_open_notebook_is_not_written_over(plain: JupyterServer) -> None:
    path = plain.root / "open.ipynb"
    before = write(path, code("x", 1, printed("1")))
    session = plain.open("open.ipynb")
    for command, arguments in (
        ("replace", {"cell": 0, "source": "y"}),
        ("insert", {"source": "y"}),
        ("clear_outputs", {}),
        ("undo_edit", {}),
    ):
        answer = edit(plain, command, "open.ipynb", **arguments)
        assert answer.is_error
        assert "is open in Jupyter" in answer.text
    assert f"127.0.0.1:{plain.info['port']}" in edit(plain, "delete", "open.ipynb", cell=0).text
    assert path.read_bytes() == before
    view = edit(plain, "view", "open.ipynb")
    assert not view.is_error
    assert "changes that are not saved there are not shown" in view.text
    plain.close(session)
    assert not edit(plain, "replace", "open.ipynb", cell=0, source="y").is_error
    assert sources(path) == ["y"]


def test_open_is_told_by_the_file_not_by_its_spelling(plain: JupyterServer) -> None:
    folder = plain.root / "Été 1"
    folder.mkdir()
    path = folder / "a b.ipynb"
    write(path, note("x"))
    (plain.root / "link.ipynb").symlink_to(path)
    session = plain.open("Été 1/a b.ipynb")
    other = plain.root / "other.ipynb"
    write(other, note("x"))
    try:
        for spelling in ("Été 1/a b.ipynb", "Été 1/../Été 1/a b.ipynb", "link.ipynb", str(path)):
            assert edit(plain, "insert", spelling, source="y").is_error
        assert not edit(plain, "insert", "other.ipynb", source="y").is_error
    finally:
        plain.close(session)


def test_a_notebook_opened_by_a_link_is_found(plain: JupyterServer) -> None:
    path = plain.root.parent / "outside.ipynb"
    write(path, note("x"))
    (plain.root / "inside.ipynb").symlink_to(path)
    session = plain.open("inside.ipynb")
    try:
        assert whereabouts(plain, path).is_open
    finally:
        plain.close(session)
    assert not whereabouts(plain, path).is_open


def test_servers_that_are_gone_or_not_ours_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    write(path, note("x"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    info = {"base_url": "/", "port": port, "root_dir": str(tmp_path), "token": "t", "secure": False}
    here = {**info, "hostname": "127.0.0.1", "pid": os.getpid()}
    for name, content in {
        "gone": {**here, "pid": 2**22 - 1},
        "elsewhere": {**here, "hostname": "192.0.2.1"},
        "socket": {**here, "sock": "/tmp/no.sock"},
        "of-another-kind": [],
        "incomplete": {"pid": 1},
    }.items():
        (tmp_path / f"jpserver-{name}.json").write_text(json.dumps(content))
    (tmp_path / "jpserver-half.json").write_text('{"pid"')
    assert find_open(path, tmp_path) == Whereabouts()
    # One that lives and does not answer: nobody knows, so the edit is made and that is said.
    (tmp_path / "jpserver-deaf.json").write_text(json.dumps(here))
    assert find_open(path, tmp_path).unasked == (
        f"127.0.0.1:{port} did not answer (ConnectionRefusedError)",
    )
    executor = NotebookEditorExecutor(tmp_path, runtime=tmp_path)
    answer = executor(NotebookEditorAction(command="insert", path="a.ipynb", source="y"))
    assert not answer.is_error
    assert "it must be reloaded" in answer.text


def test_a_server_that_wants_a_password_is_said_to(plain: JupyterServer, tmp_path: Path) -> None:
    write(plain.root / "guarded.ipynb", note("x"))
    info = {**plain.info, "token": "", "password": True}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(info))
    executor = NotebookEditorExecutor(plain.root, runtime=tmp_path)
    answer = executor(NotebookEditorAction(command="insert", path="guarded.ipynb", source="y"))
    assert not answer.is_error
    assert "asks for a login" in answer.text


# With shared documents


@asynccontextmanager
async def somebody_in(server: JupyterServer, path: Path) -> AsyncIterator[LiveNotebook]:
    """Another client that has the notebook open."""
    body = {"format": "json", "type": "notebook"}
    name = path.relative_to(server.root).as_posix()
    api = f"collaboration/session/{name}"
    answer = await asyncio.to_thread(server.request, api, "PUT", body)
    # Known to the server now, but nobody is there.
    assert not (await asyncio.to_thread(find_open, path, server.runtime)).is_open
    (running,) = running_servers(server.runtime)
    async with live_notebook(Room(running, name, answer["fileId"], answer["sessionId"])) as client:
        yield client


def saved(path: Path, expected: list[str]) -> bool:
    """Whether the server has written this; it writes in place, so half of it may be there."""
    try:
        return sources(path) == expected
    except ValueError:
        return False


async def call(
    server: JupyterServer, command: Any, path: Path, **arguments: Any
) -> NotebookEditorObservation:
    executor = NotebookEditorExecutor(server.root, runtime=server.runtime)
    action = NotebookEditorAction(command=command, path=str(path), **arguments)
    answer = await asyncio.to_thread(executor, action)
    assert not answer.is_error, answer.text
    return answer


async def texts(client: LiveNotebook) -> list[str]:
    await client.synchronize()
    return [cell["source"] for cell in client.value["cells"]]


def test_edits_of_a_shared_notebook_appear_in_the_open_document(shared: JupyterServer) -> None:
    path = shared.root / "together.ipynb"
    write(path, code("x = 1\nprint(x)", 3, printed("1\n")), note("end"))

    async def work() -> None:
        async with somebody_in(shared, path) as client:
            # What the person types is not on the disk yet, and must survive.
            await client.change([NewSource(1, "the end, typed by a person")])
            view = await call(shared, "view", path)
            assert "typed by a person" in view.text
            assert "this is the open document" in view.text
            answer = await call(
                shared, "str_replace", path, cell=0, old_str="x = 1", new_str="x = 2"
            )
            assert answer.live
            assert "typed by a person" in str(answer.old_content)
            assert await texts(client) == ["x = 2\nprint(x)", "the end, typed by a person"]
            assert client.value["cells"][0]["outputs"] == []
            assert client.value["cells"][0]["execution_count"] is None
            await call(shared, "insert", path, source="# new é🐍", cell_type="markdown", cell=0)
            await call(shared, "move", path, cell=2, target=0, position="before")
            await call(shared, "replace", path, cell=1, source="ü = '🐍é'", cell_type="raw")
            expected = ["the end, typed by a person", "ü = '🐍é'", "# new é🐍"]
            assert await texts(client) == expected
            await call(shared, "str_replace", path, cell=1, old_str="🐍", new_str="🐍🐍 ")
            await call(shared, "delete", path, cell=2)
            assert await texts(client) == [expected[0], "ü = '🐍🐍 é'"]
            await call(shared, "insert", path, source="last = 1")
            assert [cell["cell_type"] for cell in client.value["cells"]] == ["markdown", "raw"]
            assert (await texts(client))[2:] == ["last = 1"]

    run_blocking(_in_time(work()))
    expected = ["the end, typed by a person", "ü = '🐍🐍 é'", "last = 1"]
    wait_until(lambda: saved(path, expected), 20)
    notebook = json.loads(path.read_bytes())
    assert notebook["nbformat_minor"] == 4
    assert not any("id" in cell for cell in notebook["cells"])


def test_typing_elsewhere_in_the_cell_goes_on(shared: JupyterServer) -> None:
    """Both edit one source at the same moment; neither loses a character."""
    path = shared.root / "typing.ipynb"
    write(path, code("a = 1\nb = 2\n", id="one"), minor=5)

    async def work() -> None:
        async with somebody_in(shared, path) as client:
            before = client.value
            await call(shared, "str_replace", path, cell="one", old_str="b = 2", new_str="b = 3")
            assert client.value == before  # the person's copy does not have it yet
            await client.change([NewSource(0, "a = 100\nb = 2\n")])
            assert await texts(client) == ["a = 100\nb = 3\n"]

    run_blocking(_in_time(work()))
    wait_until(lambda: saved(path, ["a = 100\nb = 3\n"]), 20)


def test_a_session_alone_counts_as_open(shared: JupyterServer) -> None:
    path = shared.root / "session.ipynb"
    write(path, note("a"))
    session = shared.open("session.ipynb")
    try:
        answer = edit(shared, "insert", "session.ipynb", source="b")
        assert not answer.is_error, answer.text
        assert answer.live
        wait_until(lambda: saved(path, ["a", "b"]), 20)
    finally:
        shared.close(session)


def test_a_document_without_a_kernel_is_found_by_its_room(shared: JupyterServer) -> None:
    path = shared.root / "room.ipynb"
    write(path, note("a"))

    async def work() -> None:
        async with somebody_in(shared, path) as client:
            assert not await asyncio.to_thread(shared.request, "sessions")
            found = await asyncio.to_thread(find_open, path, shared.runtime)
            assert found.is_open and found.room is not None
            await client.change([Inserted(1, note("b"))])
            answer = await call(shared, "view", path)
            assert "--- [1] markdown ---\nb\n" in answer.text

    run_blocking(_in_time(work()))


def test_a_closed_notebook_is_edited_in_its_file(shared: JupyterServer) -> None:
    path = shared.root / "closed.ipynb"
    before = write(path, note("a"))
    answer = edit(shared, "replace", "closed.ipynb", cell=0, source="b")
    assert not answer.is_error
    assert not answer.live
    assert path.read_bytes() == before.replace(b'"a"', b'"b"')


def test_an_edit_that_would_break_the_open_document_is_refused(shared: JupyterServer) -> None:
    path = shared.root / "fixed.ipynb"
    write(path, note("a", metadata={"editable": False}))
    session = shared.open("fixed.ipynb")
    try:
        assert edit(shared, "replace", "fixed.ipynb", cell=0, source="b").is_error
        assert edit(shared, "delete", "fixed.ipynb", cell=7).is_error
    finally:
        shared.close(session)
    assert sources(path) == ["a"]


async def _in_time(work: Any) -> None:
    async with asyncio.timeout(60):
        await work
