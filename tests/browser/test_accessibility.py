"""Accessibility of all three widgets by keyboard and for screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import outreach_frames as of
from outreach_frames.sandbox import Sandbox
from tests.browser.accessibility import out_of_reach, press, tab_to, violations
from tests.browser.lab import DARK, LIGHT, Notebook, connect_to, expect, expect_text

if TYPE_CHECKING:
    from playwright.sync_api import Locator

SEARCH = """
search = of.widgets.PeopleSearch(
    {
        "person_titles": ["manager", "engineer"],
        "company_names": ["a", "Brightforge"],
        "company_exclude_names": ["Brightforge"],
    },
    limit=3,
)
search.value = {**search.value, "company_ids": ["no id"]}
search
"""
ADDING = """
import pandas as pd
df = pd.DataFrame({
    "email": ["ada@example.com", "bo@", "cy@example.com", "cy@example.com"],
    "First Name": ["Ada", "Bo", "Cy", "Cy"],
    "first name": ["Ada", "Bo", "Cy", "Cy"],
})
adding = of.widgets.AddToSequence(df)
adding
"""


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    """Start a separate sandbox, whose mailboxes and sequences a test may change."""
    with of.sandbox.serve(people=60, seed=1) as running:
        yield running


def button(widget: Locator, name: str) -> Locator:
    """Return a button by its text."""
    return widget.get_by_role("button", name=name, exact=True)


def unfold(widget: Locator) -> None:
    """Expand all collapsed sections by keyboard."""
    folded = widget.locator("details:not([open]) > summary")
    while folded.count():
        folded.first.press("Enter")


def look(notebook: Notebook, name: str) -> None:
    """Check that axe-core finds no violations in either theme, and save pictures."""
    for theme in (DARK, LIGHT):
        notebook.theme(theme)
        notebook.screenshot(f"{name}_{theme.split()[1].lower()}")
        assert violations(notebook.widget) == []


class TestPeopleSearch:
    """The search builder."""

    def test_nothing_is_wrong(self, notebook: Notebook, sandbox: Sandbox) -> None:
        """axe-core finds nothing with open groups, a problem, suggestions and results."""
        notebook.run(connect_to(sandbox), SEARCH)
        widget, page = notebook.widget, notebook.page
        unfold(widget)
        assert out_of_reach(widget) == []
        look(notebook, "accessible_search_open")
        button(widget, "Remove no id").click()
        button(widget, "Search").click()
        expect_text(widget, ".results has")
        widget.get_by_role("combobox", name="Seniorities").focus()
        page.keyboard.press("ArrowDown")
        look(notebook, "accessible_search_options")

    def test_two_builders_do_not_mix(self, notebook: Notebook, sandbox: Sandbox) -> None:
        """Each label belongs to the field of its own builder, although both have the same names."""
        notebook.run(connect_to(sandbox), SEARCH, "of.widgets.PeopleSearch()")
        second = notebook.page.locator(".jp-OutputArea .outreach").nth(1)
        second.get_by_text("Titles", exact=True).click()
        expect(second.get_by_role("combobox", name="Titles", exact=True)).to_be_focused()

    def test_all_actions_by_keyboard(self, notebook: Notebook, sandbox: Sandbox) -> None:
        """Every action of the search builder works with Tab and Enter."""
        notebook.run(connect_to(sandbox), SEARCH)
        widget, keyboard = notebook.widget, notebook.page.keyboard
        tab_to(widget.get_by_role("spinbutton", name="Fetch at most"))
        press(button(widget, "Remove engineer"))
        press(button(widget, "Remove no id"))
        press(widget.get_by_role("combobox", name="Exclude names"), "Backspace")
        notebook.wait_until("search.filters['person_titles'] == ['manager']")
        press(widget.get_by_role("textbox", name="Preset file"))
        keyboard.type("kept.json")
        press(button(widget, "Save"))
        expect_text(widget, "Saved kept.json.")
        press(button(widget, "Save"))
        expect_text(widget, "kept.json exists. Replace it?")
        press(button(widget, "Replace"))
        expect_text(widget, "Saved kept.json.")
        expect(button(widget, "Replace")).to_have_count(0)
        expect(button(widget, "Save")).to_be_focused()
        press(button(widget, "Copy code"))
        expect_text(widget, "Copied")
        keyboard.press("Shift+Tab")
        while not button(widget, "Clear all").evaluate("one => one === document.activeElement"):
            keyboard.press("Shift+Tab")
        keyboard.press("Enter")
        notebook.wait_until("search.filters == {}")
        press(button(widget, "Load"))
        notebook.wait_until("search.filters['person_titles'] == ['manager']")
        keyboard.press("Shift+Tab")
        while not button(widget, "Search").evaluate("one => one === document.activeElement"):
            keyboard.press("Shift+Tab")
        keyboard.press("Enter")
        notebook.wait_until("search.results is not None")


class TestAddToSequence:
    """Adding a frame's rows to a sequence."""

    def test_nothing_is_wrong(self, notebook: Notebook, sandbox: Sandbox) -> None:
        """axe-core finds nothing with open sections, disabled fields and problems."""
        notebook.run(connect_to(sandbox), ADDING)
        widget = notebook.widget
        unfold(widget)
        for name in ("First Name", "first name"):
            widget.get_by_label(name, exact=True).check()
        expect_text(widget, "The column First Name already uses this name. Enter another one.")
        look(notebook, "accessible_adding_open")
        widget.get_by_label("first name", exact=True).uncheck()
        widget.get_by_label("Sequence", exact=True).select_option(index=1)
        button(widget, "Check rows").click()
        expect_text(widget, "2 of 4 rows will be sent")
        assert out_of_reach(widget) == []
        look(notebook, "accessible_adding_checked")

    def test_all_actions_by_keyboard(self, notebook: Notebook, own_sandbox: Sandbox) -> None:
        """Every action of adding leads works by keyboard."""
        notebook.run(connect_to(own_sandbox, api_key=own_sandbox.api_key), ADDING)
        widget, keyboard = notebook.widget, notebook.page.keyboard
        select = widget.get_by_label("Sequence", exact=True)
        expect(select).to_be_enabled()
        widget.get_by_label("Filter sequences").focus()
        press(button(widget, "Reload"))
        expect(select).to_be_enabled()
        identity = own_sandbox.sequence_ids["accepts_any"]
        name = select.locator(f"option[value='{identity}']").inner_text()
        widget.get_by_label("Filter sequences").focus()
        keyboard.type(name)
        tab_to(select)
        keyboard.press("ArrowDown")
        notebook.wait_until(f"adding.value['sequence_id'] == {identity!r}")
        press(button(widget, "Check rows"))
        expect_text(widget, "2 of 4 rows will be sent")
        press(widget.locator("button.outreach-primary"))
        expect_text(widget, "2 of 4 rows are in the sequence now.")
        tab_to(widget.get_by_label("Show rows with status"))
        keyboard.type("added")
        expect(widget.get_by_label("Outcomes by row").locator("tbody tr")).to_have_count(2)
        assert len(own_sandbox.leads(identity)) == 2
