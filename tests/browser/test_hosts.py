"""The widgets in each supported host: displayed, working, and readable in both themes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outreach_frames.sandbox import Sandbox
from tests.browser.accessibility import violations
from tests.browser.hosts import Notebook7, running_marimo
from tests.browser.lab import (
    DARK,
    LIGHT,
    SCREENSHOTS_VARIABLE,
    Notebook,
    Watched,
    connect_to,
    expect,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

WIDGETS = {
    "search": "of.widgets.PeopleSearch(limit=5)",
    "adding": "of.widgets.AddToSequence(pd.DataFrame({'email': ['ada@example.com']}))",
}
# Prints what Python sees after the widgets were used.
SEEN = {
    "search.filters": {"person_titles": ["manager"]},
    "search.results is not None and len(search.results)": 5,
    "adding.plan is not None": True,
}


@pytest.fixture
def notebook7(lab: tuple[Page, Watched], lab_folder: Path, tmp_path: Path) -> Iterator[Notebook]:
    """Yield a notebook in a page of Notebook 7."""
    lab_page, watched = lab
    watched.forget()
    page = lab_page.context.new_page()
    page.goto(lab_page.url.partition("/lab")[0] + "/tree")
    notebook = Notebook7(page, watched, lab_folder / "files", tmp_path)
    try:
        yield notebook
    finally:
        notebook.close()
        page.close()
    assert watched.outgoing == []
    assert watched.errors == []


def marimo_cell(code: str, takes: Sequence[str] = (), gives: Sequence[str] = ()) -> str:
    """Return a cell of a marimo notebook: a function of the variables of other cells."""
    body = "\n    ".join([*code.splitlines(), f"return {''.join(f'{name}, ' for name in gives)}"])
    return f"def _({', '.join(takes)}):\n    {body}"


def use(widgets: list[Locator]) -> None:
    """Search people, change a limit and check rows; wait until the page shows each result."""
    search, adding = widgets
    titles = search.get_by_role("combobox", name="Titles", exact=True)
    # Each widget loads the common styles again, but its own styles still win.
    expect(titles).to_have_css("border-top-width", "0px")
    titles.press_sequentially("manager\n")
    expect(titles).to_be_focused()
    search.get_by_role("button", name="Search", exact=True).click()
    expect(search.get_by_text(".results has 5 rows")).to_be_visible()
    adding.get_by_label("Sequence", exact=True).select_option(index=1)
    adding.get_by_role("button", name="Check rows").click()
    expect(adding.get_by_text("1 of 1 row will be sent")).to_be_visible()


def look(host: str, theme: str, widgets: list[Locator], folder: Path) -> None:
    """Save a picture of each widget; axe-core finds no violations."""
    place = Path(os.environ.get(SCREENSHOTS_VARIABLE, folder))
    place.mkdir(parents=True, exist_ok=True)
    for name, widget in zip(WIDGETS, widgets, strict=True):
        picture = place / f"{host}_{name}_{theme}.png"
        widget.screenshot(path=picture)
        assert picture.stat().st_size > 5_000
        assert violations(widget) == []


@pytest.mark.parametrize("host", ["notebook", "notebook7"])
def test_widgets_work_in_jupyter(
    host: str, request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path
) -> None:
    """All three widgets work in JupyterLab and Notebook 7, and Python sees the clicks."""
    notebook: Notebook = request.getfixturevalue(host)
    cells = [f"{name} = {code}\n{name}" for name, code in WIDGETS.items()]
    notebook.run(connect_to(sandbox), "import pandas as pd", *cells)
    shown = notebook.page.locator(".jp-OutputArea .outreach")
    widgets = [shown.nth(place) for place in range(len(WIDGETS))]
    use(widgets)
    for expression, value in SEEN.items():
        notebook.wait_until(f"({expression}) == {value!r}")
    for theme in (LIGHT, DARK):
        notebook.theme(theme)
        look(host, theme.split()[1].lower(), widgets, tmp_path)


def test_widgets_work_in_marimo(
    lab: tuple[Page, Watched], sandbox: Sandbox, tmp_path: Path
) -> None:
    """All three widgets work in marimo, and dependent cells run again, also after results."""
    cells = [marimo_cell("import marimo as mo\nimport pandas as pd", gives=["mo", "pd"])]
    cells += [marimo_cell(connect_to(sandbox), gives=["client", "of"])]
    for name, code in WIDGETS.items():
        shown = f"{name} = mo.ui.anywidget({code})\n{name}"
        cells += [marimo_cell(shown, takes=["client", "mo", "of", "pd"], gives=[name])]
    for expression in SEEN:
        shown = f"mo.plain_text(f'{{{expression.replace(chr(39), chr(34))}}}')"
        cells += [marimo_cell(shown, takes=["mo", expression.partition(".")[0]])]
    page = lab[0].context.new_page()
    watched = lab[1]
    watched.forget()
    with running_marimo(tmp_path / "marimo", sandbox.api_key, cells) as url:
        page.goto(url)
        widgets = [page.locator(".outreach").nth(place) for place in range(len(WIDGETS))]
        use(widgets)
        for value in SEEN.values():
            expect(page.locator("pre").get_by_text(str(value), exact=True)).to_be_visible()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            look("marimo", theme, widgets, tmp_path)
        page.close()
    assert watched.outgoing == []
    assert watched.errors == []
