"""Draw every plot with no, one, few, many and very many categories.

Run ``python -m tests.gallery FOLDER``, which takes some minutes. It writes PNG files in light and
dark, in the sizes of a notebook and a slide, and an index.html with all pictures.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import outreach_frames as of
from tests.gallery import frames

NUMBERS = (0, 1, 5, 50, 1000)
STYLES = {"light": "default", "dark": "dark_background"}
# A slide has larger letters, and gets existing axes, as in a user's own figure.
SLIDE = {"font.size": 16, "figure.figsize": (13.33, 7.5), "figure.dpi": 72}
Draw = Callable[[int, Axes | None], Axes]


def few(number: int) -> int:
    """Return the number of companies in a comparison."""
    return min(number, 6)


PLOTS: dict[str, Draw] = {
    "headcount": lambda n, ax: of.plots.headcount(frames.departments(n), ax=ax),
    "headcount_share": lambda n, ax: of.plots.headcount(frames.companies(n), share=True, ax=ax),
    "headcount_side_by_side": lambda n, ax: of.plots.headcount(
        frames.companies(few(n)), company=frames.names(few(n)), share=True, ax=ax
    ),
    "companies": lambda n, ax: of.plots.companies(frames.companies(n), ax=ax),
    "companies_share": lambda n, ax: of.plots.companies(frames.companies(n), share=True, ax=ax),
    "job_functions": lambda n, ax: of.plots.headcount(
        frames.job_functions(n), level="job_function", department="finance", ax=ax
    ),
    "segments": lambda n, ax: of.plots.segments(frames.segments(n), ax=ax),
    "segments_median": lambda n, ax: of.plots.segments(
        frames.segments(n), value="median_employees", ax=ax
    ),
    "company_sizes": lambda n, ax: of.plots.segments(
        frames.company_sizes(n), value="companies", ax=ax
    ),
    "outcomes": lambda n, ax: of.plots.outcomes(frames.outcomes(n), ax=ax),
    "capacity": lambda n, ax: of.plots.capacity(frames.sending_days(n), ax=ax),
    "capacity_top": lambda n, ax: of.plots.capacity(frames.sending_days(n), top=3, ax=ax),
    "headcount_change": lambda n, ax: of.plots.headcount_change(frames.changes(n), ax=ax),
    "headcount_change_companies": lambda n, ax: of.plots.headcount_change(
        frames.changes(n), by="company", ax=ax
    ),
}


def main() -> None:
    """Draw all plots, and write the page that shows them."""
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go; it is made if missing")
    parser.add_argument("--only", default="", help="plots whose name contains this")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    written = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, style in STYLES.items():
            with plt.style.context(style):
                for file in draw_all(options.folder, name, options.only):
                    written.append(file)
                    print(file.name, flush=True)
    rows = "\n".join(f'<figure><img src="{file.name}">{file.stem}</figure>' for file in written)
    page = f'<!doctype html><meta charset="utf-8"><title>Gallery</title>\n{rows}\n'
    (options.folder / "index.html").write_text(page, encoding="utf-8")


def draw_all(folder: Path, style: str, only: str) -> Iterator[Path]:
    """Draw all plots in the current style, and yield the files."""
    for name, draw in PLOTS.items():
        if only not in name:
            continue
        for number in NUMBERS:
            yield save(folder / f"{name}_{number}_notebook_{style}.png", draw(number, None))
            with plt.rc_context(SLIDE):
                axes = plt.subplots(layout="constrained")[1]
                yield save(folder / f"{name}_{number}_slide_{style}.png", draw(number, axes))


def save(path: Path, axes: Axes) -> Path:
    """Save the figure of the axes and close it."""
    figure: Any = axes.figure
    figure.savefig(path)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main()
