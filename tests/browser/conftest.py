"""Chromium and JupyterLab for the browser tests: one of each for all, a fresh profile for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS, Lab, NotebookPage, find_chromium

# What is expected comes soon; this is for a machine that does much else.
expect.set_options(timeout=30_000)
MISSING = (
    "No browser found: set OH_CHROMIUM or run `apt-get install -y chromium`"
    " (elsewhere: install Chromium or Chrome)."
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    server = Lab(tmp_path_factory.mktemp("lab"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def notebook(chromium: Browser, lab: Lab) -> Iterator[NotebookPage]:
    """A page of a fresh profile that may talk to loopback only, without an error anywhere."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    page = NotebookPage(context.new_page(), lab)
    yield page
    expect(page.stderr).to_have_count(0)
    context.close()
    lab.end_sessions()
    assert page.foreign_requests == []
    assert page.complaints == []


@pytest.fixture(scope="session")
def images() -> Path:
    """Where screenshots go; OH_IMAGES=docs/images renews those of the documentation."""
    folder = Path(__file__).parents[2] / os.environ.get("OH_IMAGES", "build/images")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
