"""Run the code of the gallery's pages, and save the pictures for both themes next to the pages."""

from __future__ import annotations

import re
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from outreach_frames.client import connect

FOLDER: Final = Path(__file__).parent / "gallery"
THUMBNAIL: Final = (4.4, 2.75)  # inches
THUMBNAIL_PIXELS: Final = 400  # the width of a card
STYLES: Final = {"light": "default", "dark": "dark_background"}
# A code block, and the name of the picture below it if it has one.
_BLOCK: Final = re.compile(
    r"^```python\n(.*?)^```(?:\s+!\[[^]]*\]\(made/(\w+)_light\.png\))?", re.DOTALL | re.MULTILINE
)


def pages() -> list[Path]:
    """Return the pages that show one plot each."""
    return sorted(set(FOLDER.glob("*.md")) - {FOLDER / "index.md"})


def draw_gallery(folder: Path = FOLDER / "made") -> None:
    """Draw the pictures of all pages, light and dark."""
    folder.mkdir(exist_ok=True)
    for page in pages():
        with tempfile.TemporaryDirectory() as aside, chdir(aside):
            _draw_page(page, folder)


def _draw_page(page: Path, folder: Path) -> None:
    """Run a page's code blocks; run a block with a picture once per theme."""
    names: dict[str, Any] = {}
    try:
        for code, picture in _BLOCK.findall(page.read_text(encoding="utf-8")):
            for theme, style in STYLES.items() if picture else [("", "default")]:
                with plt.style.context(style):
                    exec(compile(code, page, "exec"), names)  # noqa: S102 - what the page shows
                    if picture:
                        save_plot(plt.gcf(), folder / f"{picture}_{theme}.png")
                        save_thumbnail(plt.gcf(), folder / f"{picture}_small_{theme}.png")
                plt.close("all")
    finally:
        connect.resolve(None).close()


def save_thumbnail(figure: Figure, file: Path) -> None:
    """Save a plot as a small picture with readable text, without what the card's title says."""
    [axes] = figure.axes
    axes.set(title="", xlabel="", ylabel="")
    if legend := axes.get_legend():
        legend.remove()
    if axes.containers[0].orientation == "horizontal":
        axes.xaxis.set_visible(False)  # labels show the values of bars
        for text in axes.texts if axes.get_xlim()[0] < 0 else []:
            text.remove()  # bars to the left have no room for labels
    figure.set_size_inches(THUMBNAIL)
    save_plot(figure, file, dpi=THUMBNAIL_PIXELS / THUMBNAIL[0])


def save_plot(figure: Figure, file: Path, *, dpi: float = 160) -> None:
    """Save a plot with a transparent background, so that it suits any page."""
    figure.savefig(file, dpi=dpi, transparent=True, metadata={"Software": None})
