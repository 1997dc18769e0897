"""PeopleSearch in JupyterLab, by keyboard and by mouse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from outreach_frames.widgets.base import read_assets
from tests.browser.lab import Notebook, connect_to, expect
from tests.filter_values import good_value
from tests.scripted import Received, Reply, json, scripted

if TYPE_CHECKING:
    from playwright.sync_api import Locator

ALL = {one.name: good_value(one) for one in spec.FILTERS}
BUILDER = "builder = of.widgets.PeopleSearch()\nbuilder"
PAGING = {one.name for one in spec.SEARCH_PAGING}


def person(number: int) -> dict[str, Any]:
    """Return a person whose name has markup."""
    return {"id": f"p{number}", "name": f"<b>Person {number}</b>", "title": "CEO"}


def found(total: int) -> Callable[[Received], Reply]:
    """Return a service that finds this many people for any filters."""

    def respond(received: Received) -> Reply:
        number, size = received.json["page"], received.json["page_size"]
        rows = range((number - 1) * size, min(number * size, total))
        pagination = {"page": number, "page_size": size, "total": total}
        pages = {"total_pages": -(-total // size)}
        results = [person(row) for row in rows]
        return json({"results": results, "_pagination": pagination | pages})

    return respond


def filters_of(received: Received) -> dict[str, Any]:
    """Return a body without its paging fields."""
    return {name: value for name, value in received.json.items() if name not in PAGING}


def searches(requests: list[Received]) -> list[Received]:
    """Return the search requests without those that only count."""
    return [one for one in requests if one.json["page_size"] > 1]


def field(notebook: Notebook, name: str) -> Locator:
    """Return the input of a field with several values."""
    return notebook.widget.get_by_role("combobox", name=name, exact=True)


def tags(notebook: Notebook, name: str) -> list[str]:
    """Return the tags of a field in the page."""
    shown = notebook.widget.get_by_role("list", name=name, exact=True).get_by_role("listitem")
    return shown.locator("> span").all_inner_texts()


def cut(table: Locator) -> Any:
    """Return the texts of cells that are cut off."""
    return table.locator("td").evaluate_all(
        "cells => cells.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    )


def open_group(notebook: Notebook, title: str) -> None:
    """Expand a group by keyboard."""
    summary = notebook.widget.locator("summary").filter(has_text=title)
    summary.focus()
    summary.press("Enter")


def paste(notebook: Notebook, text: str) -> None:
    """Copy text to the clipboard, and paste it at the focus."""
    notebook.page.evaluate("text => navigator.clipboard.writeText(text)", text)
    notebook.page.keyboard.press("Control+V")


def test_tags_by_enter_tab_comma_and_backspace(notebook: Notebook, sandbox: Sandbox) -> None:
    """Enter, Tab, comma and leaving the field add a tag; its button and Backspace remove one."""
    notebook.run(connect_to(sandbox), BUILDER)
    keyboard = notebook.page.keyboard
    titles = field(notebook, "Titles")
    titles.focus()
    keyboard.type("CEO")
    keyboard.press("Enter")
    keyboard.type(" CTO ")
    keyboard.press("Tab")
    expect(titles).to_be_focused()
    keyboard.type("VP,COO")
    expect(titles).to_have_value("COO")
    keyboard.press("Enter")
    assert tags(notebook, "Titles") == ["CEO", "CTO", "VP", "COO"]
    keyboard.press("Backspace")
    assert tags(notebook, "Titles") == ["CEO", "CTO", "VP"]
    notebook.widget.get_by_role("button", name="Remove CTO").click()
    expect(titles).to_be_focused()
    assert tags(notebook, "Titles") == ["CEO", "VP"]
    keyboard.type("CEO,")
    assert tags(notebook, "Titles") == ["CEO", "VP"]
    keyboard.press("Tab")
    expect(titles).not_to_be_focused()
    keyboard.press("Shift+Tab")
    expect(titles).to_be_focused()
    keyboard.type("Head")
    notebook.widget.get_by_role("textbox", name="Name", exact=True).click()
    notebook.wait_until("builder.value == {'person_titles': ['CEO', 'VP', 'Head']}")
    assert tags(notebook, "Titles") == ["CEO", "VP", "Head"]


def test_a_tag_is_removed_while_another_is_typed(notebook: Notebook, sandbox: Sandbox) -> None:
    """A tag's button works at the first click while text is typed, and Tab reaches it."""
    notebook.run(connect_to(sandbox), BUILDER)
    titles = field(notebook, "Titles")
    titles.press_sequentially("CEO,CTO,hal")
    notebook.widget.get_by_role("button", name="Remove CEO").click()
    assert tags(notebook, "Titles") == ["CTO"]
    expect(titles).to_have_value("hal")
    titles.press("Shift+Tab")
    expect(notebook.widget.get_by_role("button", name="Remove CTO")).to_be_focused()
    notebook.page.keyboard.press("Enter")
    notebook.wait_until("builder.value == {'person_titles': ['hal']}")
    assert tags(notebook, "Titles") == ["hal"]


def test_a_pasted_list_becomes_tags(notebook: Notebook, sandbox: Sandbox) -> None:
    """Each pasted line becomes a tag without duplicates and trailing commas.

    Commas in locations are kept, and a paste replaces selected text.
    """
    notebook.run(connect_to(sandbox), BUILDER)
    titles = field(notebook, "Titles")
    titles.press_sequentially("CEO,")
    paste(notebook, "CTO\r\nCEO\r\n Head of Sales, EMEA\r\nCTO\r\n\r\n")
    assert tags(notebook, "Titles") == ["CEO", "CTO", "Head of Sales, EMEA"]
    paste(notebook, "COO, CFO")
    assert tags(notebook, "Titles")[3:] == ["COO", "CFO"]
    paste(notebook, "one word")
    expect(titles).to_have_value("one word")
    notebook.page.keyboard.press("Control+A")
    paste(notebook, "VP,\tHead , \n")
    assert tags(notebook, "Titles")[5:] == ["VP", "Head"]
    open_group(notebook, "Location")
    field(notebook, "Person locations").focus()
    paste(notebook, "Austin, Texas, United States\tBerlin, Germany")
    notebook.page.keyboard.type("Lyon, France")
    notebook.page.keyboard.press("Enter")
    places = ["Austin, Texas, United States", "Berlin, Germany", "Lyon, France"]
    assert tags(notebook, "Person locations") == places
    notebook.wait_until(f"builder.filters['person_locations'] == {places!r}")


def test_thousands_of_values_do_not_hide_the_page(notebook: Notebook) -> None:
    """A long list scrolls in its field and in the code, and newly typed text is visible."""
    with scripted(found(3)) as service:
        notebook.run(connect_to(service), BUILDER)
        titles = field(notebook, "Titles")
        titles.focus()
        paste(notebook, "\r\n".join(f"Head of {number}" for number in range(5000)))
        notebook.wait_until("len(builder.filters['person_titles']) == 5000")
        notebook.page.keyboard.type("CEO\n")
        notebook.wait_until("builder.filters['person_titles'][-1] == 'CEO'")
        assert notebook.widget.evaluate("element => element.scrollHeight") < 2000
        last = notebook.widget.get_by_role("button", name="Remove CEO").bounding_box()
        box = titles.locator("xpath=..").bounding_box()
        assert last is not None
        assert box is not None
        assert box["y"] < last["y"] < box["y"] + box["height"]
        notebook.page.keyboard.press("Backspace")
        notebook.wait_until("builder.filters['person_titles'][-1] == 'Head of 4999'")


def test_composed_text_is_not_added(notebook: Notebook, sandbox: Sandbox) -> None:
    """The Enter that ends an input method's composition adds no tag."""
    notebook.run(connect_to(sandbox), BUILDER)
    titles = field(notebook, "Titles")
    titles.fill("とう")
    for sign in ({"isComposing": True}, {"keyCode": 229}):
        titles.evaluate(
            """(element, sign) => element.dispatchEvent(new KeyboardEvent(
                'keydown', {key: 'Enter', bubbles: true, ...sign}))""",
            sign,
        )
        assert tags(notebook, "Titles") == []
    titles.press("Enter")
    assert tags(notebook, "Titles") == ["とう"]


def test_a_suggestion_is_picked_by_keyboard(notebook: Notebook, sandbox: Sandbox) -> None:
    """Arrows and Enter choose a suggestion; Enter without arrows adds the typed text."""
    rows = "['VP, Sales', 'VP, Sales', 'Vet']"
    notebook.run(
        connect_to(sandbox),
        "import pandas as pd\n"
        f"titles = pd.DataFrame({{'title': {rows}}})\n"
        "builder = of.widgets.PeopleSearch(suggest_from=titles)\nbuilder",
    )
    functions = field(notebook, "Job functions")
    keyboard = notebook.page.keyboard
    options = notebook.widget.get_by_role("option")
    functions.focus()
    expect(options).to_have_count(0)
    keyboard.type("quality AS")
    expect(options).to_have_text(["test_quality_assurance", "quality_assurance"])
    expect(functions).to_have_attribute("aria-expanded", "true")
    keyboard.press("ArrowDown")
    lit = options.nth(0)
    expect(lit).to_have_attribute("aria-selected", "true")
    assert functions.get_attribute("aria-activedescendant") == lit.get_attribute("id")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    assert tags(notebook, "Job functions") == ["quality_assurance"]
    keyboard.type("engineer")
    expect(options.first).to_be_visible()
    keyboard.press("Enter")
    assert tags(notebook, "Job functions") == ["quality_assurance", "engineer"]
    keyboard.type("tax")
    keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(functions).to_have_value("tax")
    functions.fill("")
    functions.click()
    expect(options).to_have_count(50)
    expect(notebook.widget.get_by_text("more: type to narrow")).to_be_visible()
    titles = field(notebook, "Titles")
    titles.press_sequentially("vp,")
    expect(titles).to_have_value("vp,")
    titles.press("Enter")
    assert tags(notebook, "Titles") == ["vp"]
    titles.press("Backspace")
    titles.press_sequentially("vp,")
    notebook.widget.get_by_role("option", name="VP, Sales").click()
    assert tags(notebook, "Titles") == ["VP, Sales"]
    expect(titles).to_be_focused()
    paste(notebook, "VP, Sales")
    expect(titles).to_have_value("VP, Sales")


def test_results_are_not_cut_off(notebook: Notebook, sandbox: Sandbox) -> None:
    """All columns of the first people fit into the notebook, and no text is cut off."""
    notebook.run(connect_to(sandbox), BUILDER)
    notebook.widget.get_by_role("button", name="Search", exact=True).click()
    table = notebook.widget.get_by_label("First people found")
    table.wait_for()
    assert cut(table) == []
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_busy_kernel_shows_no_outdated_total(notebook: Notebook) -> None:
    """While a cell runs, the total of earlier filters is not shown next to new filters."""
    with scripted(found(12345)) as service:
        notebook.run(connect_to(service), BUILDER, "import pathlib, time")
        total = notebook.widget.get_by_text("12,345 people")
        expect(total).to_be_visible()
        end = notebook.path.parent / f"{notebook.path.stem}.end"
        wait = f"while not pathlib.Path({str(end)!r}).exists(): time.sleep(0.05)"
        notebook.page.evaluate(
            """code => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
                .requestExecute({code}); }""",
            wait,
        )
        field(notebook, "Titles").press_sequentially("CEO\n")
        expect(notebook.widget.get_by_text("Counting …")).to_be_visible()
        notebook.page.keyboard.press("Backspace")
        expect(total).to_be_visible()
        notebook.page.keyboard.type("CTO\n")
        expect(total).to_have_count(0)
        end.touch()
        expect(total).to_be_visible()
        notebook.wait_until("builder.filters == {'person_titles': ['CTO']}")


def test_search_sends_the_filters_and_nothing_empty(notebook: Notebook) -> None:
    """The body has `.filters` and the paging; the table shows the first people as text."""
    with scripted(found(130)) as service:
        notebook.run(connect_to(service), BUILDER)
        keyboard = notebook.page.keyboard
        field(notebook, "Titles").press_sequentially("CEO\nCTO\n")
        notebook.page.keyboard.press("Backspace")
        notebook.widget.get_by_role("radio", name="No", exact=True).first.check()
        name = notebook.widget.get_by_role("textbox", name="Name", exact=True)
        name.press_sequentially(" Ada ")
        name.fill("")
        field(notebook, "Seniorities").press_sequentially("vp")
        limit = notebook.widget.get_by_label("Fetch at most")
        limit.fill("120")
        keyboard.press("Enter")
        notebook.wait_until("builder.results is not None")
        filters = {
            "person_titles": ["CEO"],
            "person_title_exact_match": False,
            "person_seniorities": ["vp"],
        }
        sent = searches(service.requests)
        assert [filters_of(one) for one in sent] == [filters, filters]
        assert notebook.ask("print(builder.filters)") == f"{filters}\n"
        assert notebook.ask("print(len(builder.results))") == "120\n"
        expect(notebook.widget.get_by_text(".results has 120 rows")).to_be_visible()
        expect(notebook.widget.get_by_role("cell", name="<b>Person 19</b>")).to_be_visible()
        expect(notebook.widget.get_by_role("cell", name="<b>Person 20</b>")).to_have_count(0)
        expect(notebook.widget.get_by_text("Read 120 of 130 people")).to_be_visible()


def test_an_invalid_limit_disables_the_search(notebook: Notebook) -> None:
    """A limit of 0 shows an error at its field; an empty limit fetches all people."""
    with scripted(found(130)) as service:
        notebook.run(connect_to(service), BUILDER)
        limit = notebook.widget.get_by_label("Fetch at most")
        button = notebook.widget.get_by_role("button", name="Search", exact=True)
        limit.fill("0")
        expect(notebook.widget.get_by_text("A whole number from 1")).to_be_visible()
        expect(button).to_be_disabled()
        limit.fill("")
        button.click()
        notebook.wait_until("builder.results is not None and len(builder.results) == 130")
        expect(notebook.widget.get_by_text("limit=None")).to_be_visible()


def test_a_preset_is_restored_after_a_restart(notebook: Notebook, sandbox: Sandbox) -> None:
    """A saved preset restores every field of the interface; a damaged one shows an error."""
    notebook.run(connect_to(sandbox), f"builder = of.widgets.PeopleSearch({ALL!r})\nbuilder")
    widget = notebook.widget
    widget.get_by_label("Preset file").fill("all.json")
    widget.get_by_role("button", name="Save").click()
    expect(widget.get_by_text("Saved all.json.")).to_be_visible()
    preset = notebook.path.parent / "all.json"
    assert of.load_filters(preset) == ALL
    damaged = notebook.path.parent / "damaged.json"
    damaged.write_text(preset.read_text(encoding="utf-8")[:-20], encoding="utf-8")

    notebook.restart(connect_to(sandbox), BUILDER)
    widget.get_by_label("Preset file").fill("damaged.json")
    widget.get_by_role("button", name="Load").click()
    expect(widget.get_by_role("alert").filter(has_text="damaged.json is damaged")).to_be_visible()
    notebook.screenshot("people_search_error")
    assert notebook.ask("print(builder.value)") == "{}\n"
    widget.get_by_label("Preset file").fill("all.json")
    widget.get_by_role("button", name="Load").click()
    expect(widget.get_by_text("Loaded all.json.")).to_be_visible()
    notebook.wait_until(f"builder.filters == {ALL!r}")
    for one in spec.FILTERS:
        shown = widget.locator(f"[title^='{one.name}.'], [title='{one.name}']")
        shown = shown.or_(widget.locator(f"[title^='{one.name}:']")).last
        if one.type == "array":
            row = shown.locator("xpath=..").get_by_role("listitem")
            expect(row).to_contain_text(ALL[one.name])
        elif one.type == "boolean":
            expect(shown.get_by_role("radio", name="Yes")).to_be_checked()
        else:
            expect(shown).to_have_value(ALL[one.name])


def test_an_invalid_value_is_shown_at_its_field(notebook: Notebook, sandbox: Sandbox) -> None:
    """An invalid id is marked in its field; Search shows the same error and sends nothing."""
    notebook.run(connect_to(sandbox), BUILDER)
    widget = notebook.widget
    open_group(notebook, "Company")
    field(notebook, "IDs").press_sequentially("Brightforge\n")
    expect(widget.get_by_role("alert").filter(has_text="not 'Brightforge'")).to_be_visible()
    expect(field(notebook, "IDs")).to_have_attribute("aria-invalid", "true")
    expect(field(notebook, "IDs")).to_have_accessible_description(re.compile("not 'Brightforge'"))
    expect(widget.get_by_text("Not counted: correct the marked fields first.")).to_be_visible()
    widget.get_by_role("button", name="Search", exact=True).click()
    expect(widget.locator(".outreach-error")).to_contain_text("not 'Brightforge'")
    widget.get_by_role("button", name="Clear all").click()
    expect(widget.get_by_text(re.compile(r"^[\d,]+ people$"))).to_be_visible()
    expect(field(notebook, "IDs")).to_have_attribute("aria-invalid", "false")


def test_python_and_two_views_show_the_same(notebook: Notebook, sandbox: Sandbox) -> None:
    """Values assigned in Python or typed in one view appear in every view."""
    notebook.run(connect_to(sandbox), BUILDER, "builder")
    first, second = notebook.page.locator(".jp-OutputArea .outreach").all()
    notebook.ask('builder.value = {"person_name": "Ada", "company_names": ["Brightforge"]}')
    for view in (first, second):
        expect(view.get_by_role("textbox", name="Name", exact=True)).to_have_value("Ada")
        expect(view.get_by_role("button", name="Remove Brightforge")).to_be_visible()
        expect(view.locator("summary").filter(has_text="Company")).to_contain_text("1 set")
    titles = second.get_by_role("combobox", name="Titles", exact=True)
    titles.press_sequentially("CEO\n")
    expect(first.get_by_role("button", name="Remove CEO")).to_be_visible()
    first.get_by_role("radio", name="Yes").first.check()
    expect(second.get_by_role("radio", name="Yes").first).to_be_checked()
    notebook.wait_until("len(builder.value) == 4")
    second.get_by_role("button", name="Search", exact=True).click()
    for view in (first, second):
        expect(view.get_by_text(".results has")).to_be_visible()


def test_a_later_view_has_everything(notebook: Notebook) -> None:
    """A view displayed after a search shows its people and suggestions."""
    with scripted(found(3)) as service:
        notebook.run(connect_to(service), BUILDER)
        notebook.widget.get_by_role("button", name="Search", exact=True).click()
        notebook.wait_until("builder.results is not None")
        notebook.add("builder")
        later = notebook.page.locator(".jp-OutputArea .outreach").nth(1)
        expect(later.get_by_role("cell", name="<b>Person 2</b>")).to_be_visible()
        later.get_by_role("combobox", name="Titles", exact=True).click()
        expect(later.get_by_role("option")).to_have_text(["CEO"])


def test_a_restarted_kernel_is_an_error(notebook: Notebook, sandbox: Sandbox) -> None:
    """After a restart of the kernel, a widget's button shows that nothing was done."""
    notebook.run(connect_to(sandbox), BUILDER)
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    field(notebook, "Titles").press_sequentially("CEO\n")
    notebook.widget.get_by_role("button", name="Search", exact=True).click()
    told = notebook.widget.get_by_role("alert").filter(has_text="kernel")
    expect(told).to_contain_text("Run the cell again.")


@pytest.mark.parametrize(
    ("style", "is_dark"),
    [
        ("body { color: #ddd; background: #111; }", False),
        (":root { color-scheme: dark; }", True),
        (":root { --vscode-editor-foreground: #ddd; --vscode-editor-background: #111; }", True),
    ],
    ids=["no_colours_named", "colour_scheme", "editor"],
)
def test_the_text_is_legible_without_lab_colours(
    notebook: Notebook, style: str, is_dark: bool
) -> None:
    """In another host, dark or light, the text has enough contrast."""
    page = notebook.page.context.new_page()
    sheet = read_assets("common.css", "people_search/widget.css")
    shown = "<button>Search</button><div class='ops-tags'>CEO</div>"
    body = f"<div class='outreach outreach-people-search'>{shown}</div>"
    page.set_content(f"<style>{style}</style><style>{sheet}</style>{body}")
    for name in (".outreach", "button", ".ops-tags"):
        text, ground = page.locator(name).evaluate(
            """element => {
                const context = document.createElement('canvas').getContext('2d');
                const { color, backgroundColor } = getComputedStyle(element);
                return [color, backgroundColor].map(one => {
                    context.fillStyle = one;
                    context.fillRect(0, 0, 1, 1);
                    return context.getImageData(0, 0, 1, 1).data[1];
                });
            }"""
        )
        assert abs(text - ground) > 150
        assert (ground < text) == is_dark
    page.close()
