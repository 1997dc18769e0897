"""Fixtures of the browser tests: one Lab per run, and one notebook per test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import (
    LIGHT,
    SCREENSHOTS_VARIABLE,
    Notebook,
    Watched,
    opened_lab,
    running_lab,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from outreach_frames.sandbox import Sandbox

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder, because a live browser conflicts with asyncio tests."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all files of the Lab server."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(lab_folder: Path, sandbox: Sandbox) -> Iterator[tuple[Page, Watched]]:
    """Start one Lab server and open it in one page for the whole run."""
    with running_lab(lab_folder, sandbox.api_key) as url, opened_lab(url) as opened:
        yield opened


@pytest.fixture
def notebook(lab: tuple[Page, Watched], lab_folder: Path, tmp_path: Path) -> Iterator[Notebook]:
    """Yield a notebook in JupyterLab, and check that no request leaves the machine."""
    page, watched = lab
    watched.forget()
    screenshots = Path(os.environ.get(SCREENSHOTS_VARIABLE, tmp_path))
    screenshots.mkdir(parents=True, exist_ok=True)
    opened = Notebook(page, watched, lab_folder / "files", screenshots)
    try:
        yield opened
    finally:
        opened.close()
        opened.theme(LIGHT)
    assert watched.outgoing == []
    assert watched.errors == []
