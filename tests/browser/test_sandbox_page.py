"""The sandbox's page in a real browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from outreach_frames.sandbox import Sandbox
from tests.browser.accessibility import violations
from tests.browser.lab import SCREENSHOTS_VARIABLE, Watched

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("width", [380, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_accessible(
    lab: tuple[Page, Watched],
    sandbox: Sandbox,
    tmp_path: Path,
    theme: Literal["light", "dark"],
    width: int,
) -> None:
    """In any width and theme the page fits, axe-core finds nothing, and no other URL is loaded."""
    browser = lab[0].context.browser
    assert browser is not None
    context = browser.new_context(
        bypass_csp=True,  # axe-core needs this.
        color_scheme=theme,
        viewport={"width": width, "height": 900},
    )
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(sandbox.url)
    folder = Path(os.environ.get(SCREENSHOTS_VARIABLE, tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"sandbox_{theme}_{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert violations(page.locator("html")) == []
    assert asked == [f"{sandbox.url}/"]
    context.close()
