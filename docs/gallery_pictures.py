"""Run the gallery's code once per theme, and save its pictures beside the page."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from outreach_frames.client import connect

PAGE: Final = Path(__file__).parent / "gallery" / "index.md"
STYLES: Final = {"light": "default", "dark": "dark_background"}
# A code block, and the name of the picture below it, if any.
_BLOCK: Final = re.compile(
    r"^```python\n(.*?)^```(?:\s+!\[[^]]*\]\(made/(\w+)_light\.png\))?", re.DOTALL | re.MULTILINE
)


def draw_gallery(folder: Path = PAGE.parent / "made") -> None:
    """Draw all pictures of the page, light and dark."""
    folder.mkdir(exist_ok=True)
    for theme, style in STYLES.items():
        with plt.style.context(style), tempfile.TemporaryDirectory() as aside, chdir(aside):
            for name, figure in _drawn():
                save_plot(figure, folder / f"{name}_{theme}.png")


def _drawn() -> Iterator[tuple[str, Figure]]:
    names: dict[str, Any] = {}
    try:
        for code, name in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            exec(code, names)  # noqa: S102 - the code that the page shows
            if name:
                yield name, plt.gcf()
            plt.close("all")
    finally:
        connect.resolve(None).close()


def save_plot(figure: Figure, file: Path) -> None:
    """Save a plot with a transparent background, which suits any page."""
    figure.savefig(file, dpi=160, transparent=True, metadata={"Software": None})
