"""A real JupyterLab on loopback, and a notebook in it as a person would use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import nbformat
from playwright.sync_api import Locator, Page, expect

from tests.ports import free_port

TOKEN = "browser-tests"
START_TIMEOUT_S = 60
FINDERS = ("chromium", "chromium-browser", "google-chrome")
# The page may talk to the server under test and to nobody else; Chromium must not try either.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
IDLE = re.compile(r"Python 3 \(\w+\) \| Idle")
SCRIPT = Path(__file__).parents[2] / "notebooks" / "quickstart.script.json"
NUMBERED = re.compile(r"\[\d+\]")
SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False},
    # The theme follows the colour scheme that the browser asks for.
    "themes": {"adaptive-theme": True},
}


def find_chromium() -> str | None:
    """The browser to use: $OH_CHROMIUM, else what is on PATH."""
    if named := os.environ.get("OH_CHROMIUM"):
        return shutil.which(named)
    return next(filter(None, map(shutil.which, FINDERS)), None)


class Lab:
    """JupyterLab with every directory of its own below `home`."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        self._log_path = home / "server.log"
        self._port = free_port()
        self.base = f"http://127.0.0.1:{self._port}"
        self._environment = _environment(home)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                    *("--ip=127.0.0.1", f"--port={self._port}", "--ServerApp.port_retries=0"),
                    f"--IdentityProvider.token={TOKEN}",
                ],
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, START_TIMEOUT_S, self.log)

    def stop(self) -> None:
        """End the kernels, then the server."""
        assert self._process is not None
        self.end_sessions()
        self._process.terminate()
        self._process.wait(20)

    def end_sessions(self) -> None:
        """Shut down every kernel, as closing a notebook would."""
        for session in self.request("sessions"):
            self.request(f"sessions/{session['id']}", method="DELETE")

    def request(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(f"{self.base}/api/{path}", method=method)
        request.add_header("Authorization", f"token {TOKEN}")
        with urllib.request.urlopen(request, timeout=15) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def write_notebook(self, name: str, cells: Sequence[str], kernel: str = "openhands") -> Path:
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells],
            metadata={"kernelspec": {"name": kernel, "display_name": kernel}},
        )
        nbformat.write(notebook, self.folder / name)
        return self.folder / name

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"jupyter-lab ended at once:\n{self.log()}")
        try:
            self.request("status")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return True


class NotebookPage:
    """One notebook open in the browser, with what its page asked for and complained about."""

    def __init__(self, page: Page, lab: Lab) -> None:
        self.page = page
        self._lab = lab
        self._name = ""
        self.foreign_requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self._note_request(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))

    def open(self, name: str) -> None:
        self._name = name
        self.page.goto(f"{self._lab.base}/lab/tree/{name}?reset&token={TOKEN}")
        expect(self.page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=60_000)
        self.wait_idle()

    def run(self, index: int) -> None:
        """Run the cell without waiting for its end."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        prompt = self.cell(index).locator(".jp-InputPrompt")
        expect(prompt).not_to_have_text("[ ]:")

    def run_all(self) -> None:
        """Run every cell without waiting for the end."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    @property
    def stderr(self) -> Locator:
        """What cells wrote to stderr; a view that fails ends up there."""
        return self.page.locator('[data-mime-type="application/vnd.jupyter.stderr"]')

    def cell(self, index: int) -> Locator:
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def output(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-Cell-outputArea")

    def wait_idle(self, timeout_s: float = 60) -> None:
        """Wait until the kernel is idle and the page is connected to it and knows."""
        wait_until(self._kernel_is_idle, timeout_s, self._lab.log)
        bar = self.page.locator("#jp-main-statusbar")
        expect(bar).to_contain_text(
            re.compile(r"Python 3 \(\w+\) \| Idle"), timeout=timeout_s * 1000
        )

    def wait_done(self, index: int, timeout_s: float = 60) -> None:
        """Wait until the cell has a number, so its execution has ended."""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        expect(prompt).to_have_text(NUMBERED, timeout=timeout_s * 1000)

    def save(self) -> None:
        self.page.keyboard.press("Control+s")
        expect(self.page.locator(".jp-mod-dirty.lm-TabBar-tab")).to_have_count(0)

    def theme(self, theme: Literal["light", "dark"]) -> None:
        self.page.emulate_media(color_scheme=theme)
        is_light = "true" if theme == "light" else "false"
        body = self.page.locator("body")
        expect(body).to_have_attribute("data-jp-theme-light", is_light)
        # A change of theme is hidden behind the splash for a moment.
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)

    def screenshots(self, stem: Path) -> None:
        """Write STEM-light.png and STEM-dark.png."""
        for theme in ("light", "dark"):
            self.theme(theme)
            self.page.screenshot(path=f"{stem}-{theme}.png")
        self.theme("light")

    def _kernel_is_idle(self) -> bool:
        self.page.wait_for_timeout(50)  # lets the page work while we look
        mine = [s for s in self._lab.request("sessions") if s["path"] == self._name]
        return bool(mine) and mine[0]["kernel"]["execution_state"] == "idle"

    def _note_request(self, url: str) -> None:
        if not url.startswith(
            (self._lab.base, "data:", "blob:", self._lab.base.replace("http", "ws"))
        ):
            self.foreign_requests.append(url)


def wait_until(
    condition: Callable[[], bool], timeout_s: float, explain: Callable[[], str] = str
) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {timeout_s} s\n{explain()}")
        time.sleep(0.1)


def _environment(home: Path) -> dict[str, str]:
    folders = {
        "HOME": home / "home",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "IPYTHONDIR": home / "ipython",
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    _write_settings(folders["JUPYTER_CONFIG_DIR"])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {name: str(folder) for name, folder in folders.items()}
    own |= {"OPENHANDS_MODEL": f"scripted:{SCRIPT}", "OPENHANDS_STORE_PATH": str(home / "store.db")}
    return {**os.environ, **own, "PATH": path, "JUPYTER_PLATFORM_DIRS": "0"}


def _write_settings(config: Path) -> None:
    folder = config / "lab/user-settings/@jupyterlab/apputils-extension"
    folder.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (folder / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
