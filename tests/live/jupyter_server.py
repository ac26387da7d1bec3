"""A real Jupyter server on loopback for tests, with or without shared documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.live.agent_kernel import wait_until

START_S = 60


@dataclass
class JupyterServer:
    """A running server: its root folder, and where it leaves word of itself."""

    root: Path
    runtime: Path
    log: Path
    process: subprocess.Popen[bytes]
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.info['port']}{self.info['base_url']}"

    @property
    def token(self) -> str:
        return str(self.info["token"])

    def request(self, api: str, method: str = "GET", body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}api/{api}", data, method=method)
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=20) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def open(self, name: str, kernel: str = "python3") -> dict[str, Any]:
        """Start a session for a notebook, as a front end does when it opens one."""
        body = {"path": name, "name": Path(name).name, "type": "notebook"}
        session: dict[str, Any] = self.request(
            "sessions", "POST", {**body, "kernel": {"name": kernel}}
        )
        return session

    def close(self, session: dict[str, Any]) -> None:
        self.request(f"sessions/{session['id']}", "DELETE")

    def content(self, name: str) -> Any:
        """The notebook as the server reads it from the disk."""
        return self.request(f"contents/{quote(name)}?content=1")["content"]


@contextmanager
def jupyter_server(
    folder: Path, *arguments: str, shared: bool = False, token: str = "secret-of-the-server"
) -> Iterator[JupyterServer]:
    """A server whose root is `folder`/work, ended with its kernels at the end of the block."""
    root = folder / "work"
    root.mkdir(exist_ok=True)
    runtime = folder / "runtime"
    log = folder / "server.log"
    config = folder / "config"
    config.mkdir(exist_ok=True)
    extensions = {"ServerApp": {"jpserver_extensions": {"jupyter_server_ydoc": shared}}}
    (config / "jupyter_server_config.json").write_text(json.dumps(extensions))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_CONFIG_DIR": str(config),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={root}"),
        f"--IdentityProvider.token={token}",
    ]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*command, *arguments], cwd=root, env=environment, stdout=sink, stderr=sink
        )
    server = JupyterServer(root, runtime, log, process)
    try:
        wait_until(lambda: _answers(server), START_S)
        yield server
    finally:
        _end(server)


def _answers(server: JupyterServer) -> bool:
    assert server.process.poll() is None, server.log.read_text()
    for file in server.runtime.glob("jpserver-*.json"):
        try:
            server.info = json.loads(file.read_text())
            with urllib.request.urlopen(f"{server.url}api", timeout=5):
                return True
        except (ValueError, OSError):  # half written, or not listening yet, or too busy to answer
            return False
    return False


def _end(server: JupyterServer) -> None:
    server.process.terminate()
    try:
        server.process.wait(20)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
