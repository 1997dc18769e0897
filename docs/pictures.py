"""Take the pictures of README and the site: all states of the widgets, and one plot.

Run ``python -m docs.pictures``. It takes about two minutes and needs `chromium` and the extra
`test`. It runs the code of the pages and the notebook that show the pictures, with the sandbox's
people, so the pictures change only if these or the package change.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
import nbformat
from PIL import Image

from docs.gallery_pictures import STYLES, save_plot
from tests.browser.lab import DARK, LIGHT, Notebook, opened_lab, running_lab

if TYPE_CHECKING:
    from playwright.sync_api import Locator

DOCS: Final = Path(__file__).parent
FOLDER: Final = DOCS / "pictures"
PAGES: Final = DOCS / "widgets"
TUTORIAL: Final = DOCS.parent / "notebooks/03_filter_builder.ipynb"
LARGEST: Final = 130_000  # bytes
TALLEST: Final = 1_600  # pixels; long tables are cut
_THEMES: Final = {"light": LIGHT, "dark": DARK}
_COLORS: Final = 40
_SEQUENCE: Final = "Founders Nordics: profile visits"
# Hides the parts of a widget that are irrelevant to the picture.
_SHOW_ONLY: Final = """(widget, titles) => {
    const isKept = part => titles.some(title => part.textContent.startsWith(title));
    for (const part of widget.children) {
        part.style.cssText = titles.length === 0 || isKept(part) ? "" : "display: none";
    }
    const last = [...widget.children].findLast(isKept);
    if (last?.tagName === "SECTION") last.style.cssText = "margin: 0; padding: 0; border: 0";
}"""


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    picture_plot()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(Path(folder), "") as url,
        opened_lab(url, device_scale_factor=2) as (page, watched),
    ):
        taken = Path(folder)
        notebook = Notebook(page, watched, taken / "files", taken)
        for states in (picture_tutorial, picture_search, picture_adding):
            work = taken / states.__name__
            shutil.copytree(DOCS.parent / "data", work / "data")
            for name, widget in states(notebook, f"%cd -q {work}"):
                page.mouse.move(0, 0)  # hover over no button, and focus no field
                page.evaluate("document.activeElement.blur()")
                for theme, lab_theme in _THEMES.items():
                    notebook.theme(lab_theme)
                    keep(notebook.screenshot(f"{name}_{theme}", widget))
                notebook.theme(LIGHT)
                show_only(widget)
        notebook.close()
    for picture in sorted(FOLDER.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.name}: {size:,} bytes")
        if size > LARGEST:
            raise SystemExit(f"{picture.name} is over {LARGEST:,} bytes.")


def picture_plot() -> None:
    """Draw README's plot with README's code."""
    blocks = python_blocks(DOCS.parent / "README.md")
    shown = next(number for number, block in enumerate(blocks) if "of.plots" in block)
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work, chdir(work):
        shutil.copytree(DOCS.parent / "data", "data")
        for block in blocks[:shown]:
            exec(block, names)  # noqa: S102 - the code that README shows
        for name, style in STYLES.items():
            with plt.style.context(style):
                exec(blocks[shown], names)  # noqa: S102 - the same
                save_plot(plt.gcf(), FOLDER / f"headcount_{name}.png")
                plt.close("all")
        names["client"].close()


def python_blocks(page: Path) -> list[str]:
    """Return the Python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[str]:
    """Return a page's Python code up to the block that shows the widget."""
    blocks = python_blocks(PAGES / page)
    shows = [bool(re.search(r"of\.widgets\.(?s:.)*\n\w+\n$", block)) for block in blocks]
    return blocks[: shows.index(True) + 1]


def picture_tutorial(notebook: Notebook, place: str) -> Iterator[tuple[str, Locator]]:
    """Picture the tutorial's widgets; the cells' metadata name the pictures."""
    cells = [one for one in nbformat.read(TUTORIAL, as_version=4).cells if one.cell_type == "code"]
    notebook.run(place, *(cell.source for cell in cells))
    notebook.wait_until("builder.total is not None and not wizard.busy")
    names = [cell.metadata["picture"] for cell in cells if "picture" in cell.metadata]
    for number, name in enumerate(names):
        yield name, notebook.page.locator(".jp-OutputArea .outreach").nth(number)


def picture_search(notebook: Notebook, place: str) -> Iterator[tuple[str, Locator]]:
    """Picture a filter with a problem, a saved search and results."""
    notebook.run(place, *blocks_of("people-search.md"))
    notebook.wait_until("builder.total is not None")
    widget = notebook.widget
    widget.locator("summary").filter(has_text="Company").click()
    ids = widget.get_by_role("combobox", name="IDs", exact=True)
    ids.fill("Brightforge")
    ids.press("Enter")
    widget.get_by_text("Not counted").wait_for()
    widget.locator("summary").filter(has_text="Person").first.click()
    show_only(widget, "Not counted", "Person")
    yield "people_search_problem", widget
    notebook.run(place, *blocks_of("people-search.md"))
    notebook.wait_until("builder.total is not None")
    widget.get_by_label("Preset file").fill("leaders.json")
    widget.get_by_role("button", name="Save", exact=True).click()
    widget.get_by_text("Saved leaders.json.").wait_for()
    yield "people_search_saved", widget
    widget.get_by_role("button", name="Search", exact=True).click()
    widget.get_by_label("First people found").wait_for()
    show_only(widget, "64 people", "Read 64", ".results")
    yield "people_search_results", widget


def picture_adding(notebook: Notebook, place: str) -> Iterator[tuple[str, Locator]]:
    """Picture the guessed columns, problems, the confirmation and outcomes."""
    notebook.run(place, *blocks_of("add-to-sequence.md"))
    widget = notebook.widget
    notebook.wait_until("not adding.busy")
    yield "add_to_sequence_columns", widget
    widget.get_by_label("Sequence", exact=True).select_option(label=_SEQUENCE)
    widget.locator("summary").filter(has_text="Data fields").click()
    for column in ("First Name", "Company / Organisation"):
        widget.get_by_label(column, exact=True).check()
    show_only(widget, "1 ", "2 ")
    yield "add_to_sequence_fields", widget
    widget.locator("summary").filter(has_text="Overrides and mailboxes").click()
    show_only(widget, "3 ")
    yield "add_to_sequence_settings", widget
    widget.get_by_role("button", name="Check rows").click()
    widget.get_by_text("Problems by row").wait_for()
    show_only(widget, "4 ")
    yield "add_to_sequence_problems", widget
    show_only(widget, "5 ", "Code")
    yield "add_to_sequence_confirm", widget
    widget.get_by_role("button", name="Add ").click()
    notebook.wait_until("adding.report is not None and not adding.busy")
    widget.get_by_text("Outcomes of all runs.").wait_for()
    show_only(widget, "6 ")
    yield "add_to_sequence_outcome", widget


def show_only(widget: Locator, *titles: str) -> None:
    """Show only the parts of a widget whose text begins with these titles, or all parts."""
    widget.evaluate(_SHOW_ONLY, list(titles))


def keep(picture: Path) -> None:
    """Save the upper part of a picture with few colours, so that its file is small."""
    with Image.open(picture) as image:
        upper = image.crop((0, 0, image.width, min(image.height, TALLEST)))
        few = upper.convert("RGB").quantize(
            _COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        few.save(FOLDER / picture.name, optimize=True)


if __name__ == "__main__":
    main()
