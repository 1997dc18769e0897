"""Describe the look of every plot as text.

`python -m tests.plots.looks` writes the file next to this one; `tests.gallery` draws pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from tests.gallery.__main__ import PLOTS
from tests.plots.artists import plain_axes

SNAPSHOT: Final = Path(__file__).with_name("looks.txt")


def looks() -> list[str]:
    """Describe every plot with few bars in its own figure, and with many on dark axes."""
    lines = []
    for name, plot in PLOTS.items():
        lines += [f"# {name}: few", *described(plot(7, None))]
        plt.close()
        with plt.style.context("dark_background"):
            lines += [f"# {name}: many", *described(plot(50, plain_axes()))]
    return lines


def kept() -> list[str]:
    """Return the looks that were last reviewed."""
    return SNAPSHOT.read_text(encoding="utf-8").splitlines()


def described(axes: Axes) -> Iterator[str]:
    """Yield one line for each part of a plot."""
    spines = [side for side, spine in axes.spines.items() if spine.get_visible()]
    yield f"figure: {short(axes.figure.get_size_inches())}, {short([axes.get_aspect()])}, {spines}"
    yield f"title: {shown(axes.title)} {axes.title.get_text()!r}"
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        yield from described_axis(name, axis)
    yield f"series: {[container.get_label() for container in axes.containers]}"
    yield from grouped("patches", ((look_of(one), place_of(one)) for one in axes.patches))
    for line in axes.lines:
        look = f"{to_hex(line.get_color())} {line.get_linestyle()} {line.get_linewidth()}"
        yield f"line: {look} {short(line.get_xdata())} to {short(line.get_ydata())}"
    places = ((shown(text), f"{text.get_text()!r} {place_of(text)}") for text in axes.texts)
    yield from grouped("texts", places)
    if legend := axes.get_legend():
        anchor = axes.transAxes.inverted().transform(legend.get_bbox_to_anchor().min)
        look = f"{legend.get_frame_on()} {short(anchor)}"
        yield f"legend: {shown(legend.get_texts()[0])} {look}"
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            yield f"legend: {look_of(handle)} {text.get_text()!r}"


def grouped(title: str, described: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield one line per look, with the first few artists of that look."""
    by_look: dict[str, list[str]] = defaultdict(list)
    for look, place in described:
        by_look[look].append(place)
    for look, places in by_look.items():
        yield f"{title}: {len(places)} {look}: {'; '.join(places[:8])}"


def look_of(artist: Any) -> str:
    """Return the colours, hatch and line of a bar, an area or a legend's mark."""
    if isinstance(artist, Line2D):
        return f"{to_hex(artist.get_color())} {artist.get_marker()} {artist.get_markersize():.4g}"
    face = to_hex(artist.get_facecolor(), keep_alpha=True)
    hatch = str(artist.get_hatch() or "plain")
    return f"{face} {to_hex(artist.get_edgecolor())} {hatch} {artist.get_linewidth()}"


def place_of(artist: Any) -> str:
    """Return the position of a bar or a text."""
    if isinstance(artist, Rectangle):
        return short(artist.get_bbox().bounds)
    return short(artist.get_position()) if isinstance(artist, Text) else ""


def described_axis(name: str, axis: Axis) -> Iterator[str]:
    """Yield an axis's ticks, limits and label."""
    low, high = sorted(axis.get_view_interval())
    places = [float(place) for place in axis.get_majorticklocs()]
    labels = axis.get_major_formatter().format_ticks(places)
    ticks = [
        f"{short([place])}={label!r}"
        for place, label in zip(places, labels, strict=True)
        if low <= place <= high
    ]
    tick = axis.get_major_ticks(1)[0]
    yield f"{name}: {short(axis.get_view_interval())} {axis.label.get_text()!r}; {', '.join(ticks)}"
    length, pad = tick.tick1line.get_markersize(), tick.get_pad()
    yield f"{name}: {shown(tick.label1)} {short([length, pad, tick.label1.get_rotation()])}"


def shown(text: Text) -> str:
    """Return the size, colour and alignment of a text."""
    return f"{text.get_fontsize():.4g} {to_hex(text.get_color())} {text.get_ha()} {text.get_va()}"


def short(values: Iterable[Any]) -> str:
    """Return numbers rounded to six digits."""
    return " ".join(
        f"{value:.6g}" if isinstance(value, float | int | np.number) else str(value)
        for value in np.asarray(values, dtype=object).tolist()
    )


if __name__ == "__main__":
    mpl.use("agg")
    SNAPSHOT.write_text("\n".join(looks()) + "\n", encoding="utf-8")
