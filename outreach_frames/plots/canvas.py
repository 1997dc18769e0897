"""Axes: new ones of fitting size, what is free around them, their titles, and empty ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.colors import ink, series_style
from outreach_frames.plots.labels import drawable, fallback_families

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

SMALLEST_FONT: Final = 6.5
_POINTS_PER_INCH: Final = 72
# What ticks, labels and a title take of a slot of the figure's grid.
_USED_BY_TITLES: Final = 0.8
_USED_BY_BARS: Final = 0.7
_TITLE_LINES: Final = 3
# No cut ends in a blank, or in the backslash of a character that it cut off.
_CUT_OFF: Final = " \\…"
# From how many points on axes are wide enough for large letters, and for two names in a line.
_WIDE: Final = 450
_NARROW: Final = 250
_LEAST_BELOW: Final = 110


def new_axes(ax: Axes | None, *, height: float = 4.5, width: float = 8) -> Axes:
    """Return the axes given, or those of a new figure of a size in inches."""
    if ax is not None:
        if getattr(ax, "name", None) != "rectilinear":
            raise InvalidInputError(
                "ax takes one Axes with an x and a y axis, such as axs[0] of "
                f"fig, axs = plt.subplots(1, 2), not {type(ax).__name__}."
            )
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def points(setting: str) -> float:
    """Return a font size of the style, such as "ytick.labelsize", in points."""
    settings: Any = mpl.rcParams
    return FontProperties(size=settings[setting]).get_size_in_points()


def pixels(axes: Axes, size: float) -> float:
    """Return how many pixels so many points are."""
    return float(size * _root(axes).dpi / _POINTS_PER_INCH)


def text_width(axes: Axes, texts: Iterable[str], size: float) -> float:
    """Return the width of the widest of the texts in pixels."""
    # The widest is among the longest; measuring thousands would take seconds.
    longest = sorted(texts, key=len)[-5:]
    return max((_width(axes, text, size) for text in longest), default=0.0)


def clip_text(axes: Axes, text: str, size: float, room: float) -> str:
    """Return a text that is at most so many pixels wide, with "…" where it was cut."""
    while len(text) > 1 and (width := _width(axes, text, size)) > room:
        keep = min(len(text) - 2, int(len(text) * room / width))
        text = f"{text[: max(keep, 0)].rstrip(_CUT_OFF)}…"
    return text


def axes_size(axes: Axes) -> tuple[float, float]:
    """Return the width and height in pixels, as they will be where there is a layout engine."""
    if not _laid_out(axes):
        return axes.bbox.width, axes.bbox.height
    width, height = _slot(axes)
    return width, height * _USED_BY_TITLES


def room_on_the_left(axes: Axes) -> float:
    """Return the pixels that tick labels may take, up to the next axes or the figure's edge."""
    if _laid_out(axes):
        return _slot(axes)[0] * 0.36
    box = axes.bbox
    others = [
        other.bbox.x1
        for other in axes.figure.axes
        if other is not axes
        and other.bbox.x1 <= box.x0 + 1
        and other.bbox.y0 < box.y1
        and other.bbox.y1 > box.y0
    ]
    edge = max(others, default=axes.figure.bbox.x0)
    return float(box.x0 - edge - pixels(axes, mpl.rcParams["ytick.major.pad"] + 6))


def room_below(axes: Axes) -> float:
    """Return the pixels that upright tick labels may be long, down to the next axes or the edge."""
    if _laid_out(axes):
        return max(_slot(axes)[1] * 0.4, pixels(axes, _LEAST_BELOW))
    box = axes.bbox
    others = [
        other.bbox.y1
        for other in axes.figure.axes
        if other is not axes
        and other.bbox.y1 <= box.y0 + 1
        and other.bbox.x0 < box.x1
        and other.bbox.x1 > box.x0
    ]
    edge = max(others, default=axes.figure.bbox.y0)
    return float(box.y0 - edge - pixels(axes, mpl.rcParams["xtick.major.pad"] + 2))


def set_title(axes: Axes, title: str) -> None:
    """Set a title that is no wider than the axes' part of the figure, on three lines at most."""
    title = drawable([title])[0]
    size = points("axes.titlesize")
    room = axes.bbox.width * 1.05
    if _laid_out(axes):
        labels = [label.get_text() for label in axes.get_yticklabels()]
        beside = text_width(axes, labels, axes.yaxis.get_tick_params().get("labelsize", size))
        room = _slot(axes)[0] - min(beside, room_on_the_left(axes)) - pixels(axes, size)
    while size > 8 and _lines(axes, title, size, room) > 1:
        size -= 1
    wrapped = _wrap(axes, title, size, room)
    axes.set_title("\n".join(wrapped), fontsize=size)


def show_empty(axes: Axes, message: str) -> Axes:
    """Say in the middle of axes with no ticks that there is nothing to draw."""
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    axes.spines[:].set_visible(False)
    width, _ = axes_size(axes)
    size = points("axes.labelsize")
    axes.text(
        0.5,
        0.5,
        "\n".join(_wrap(axes, message, size, width)),
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=ink(axes),
        fontsize=size,
    )
    return finish(axes)


def add_legend(axes: Axes, names: Sequence[str], *, rest: bool = False) -> float:
    """Name the series at the top, in as many columns as have room; return the height in pixels.

    `keep_clear` keeps that height free once all is drawn. With `rest` the last series is the rest.
    """
    width, _ = axes_size(axes)
    if _laid_out(axes):
        width *= _USED_BY_BARS
    size = min(points("legend.fontsize"), 11 if width > pixels(axes, _WIDE) else 7.5)
    handle = pixels(axes, 4.5 * size)
    # One long name must not push all others below each other.
    most = width / (2 if width > pixels(axes, _NARROW) else 1) - handle
    shown = [clip_text(axes, name, size, most) for name in names]
    columns = int(width / (text_width(axes, shown, size) + handle))
    legend = axes.legend(
        [
            Patch(**series_style(axes, place, len(names) if rest else 0))
            for place in range(len(names))
        ],
        shown,
        loc="upper left",
        ncols=max(1, min(len(names), columns)),
        fontsize=size,
        frameon=False,
        borderaxespad=0.1,
        columnspacing=1.2,
    )
    # It lies within the axes; a layout engine need not make room for it.
    legend.set_in_layout(False)
    return float(legend.get_window_extent().height)


def keep_clear(axes: Axes, height: float) -> None:
    """Extend the axes upwards by as many pixels as what is at their top takes."""
    share = min(height / axes_size(axes)[1], 0.6)
    low, high = axes.get_ylim()
    axes.update_datalim([(axes.dataLim.x0, low + (high - low) / (1 - share))])
    axes.autoscale_view(scalex=False)


def number_axis(axis: Axis, text: Callable[[float, int | None], str], *, whole: bool) -> None:
    """Give an axis as many round ticks as have room, however wide it is drawn."""
    axis.set_major_formatter(FuncFormatter(text))
    axis.set_major_locator(_RoomyLocator(integer=whole, steps=[1, 2, 2.5, 5, 10]))


def finish(axes: Axes) -> Axes:
    """Drop the frame that carries nothing, and give every text a font that has its characters."""
    axes.spines[["top", "right"]].set_visible(False)
    texts = [text for text in axes.findobj(Text) if isinstance(text, Text)]
    words = [text.get_text() for text in texts]
    words += [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    families = fallback_families(words)
    if families != tuple(mpl.rcParams["font.family"]):
        for text in texts:
            text.set_fontfamily(list(families))
        axes.tick_params(axis="both", labelfontfamily=list(families))
    return axes


class _RoomyLocator(MaxNLocator):
    """As many ticks as the labels leave room for when the axes are drawn."""

    def __call__(self) -> Any:
        axis: Any = self.axis
        low, high = axis.get_view_interval()
        box, size = axis.axes.bbox, points("xtick.labelsize")
        if axis.axis_name == "x":
            longest = max((axis.major.formatter(value, None) for value in (low, high)), key=len)
            # A digit is some 0.64 of the font's size wide.
            label, room = pixels(axis.axes, len(longest) * 0.64 * size), box.width
        else:
            label, room = pixels(axis.axes, size), box.height
        needed = label + pixels(axis.axes, size)
        self.set_params(nbins=int(min(max(room / needed, 1), 6)))
        ticks = np.asarray(super().__call__())
        ticks = ticks[(ticks >= low) & (ticks <= high - (high - low) * (label / 2 - 4) / room)]
        apart = np.diff(ticks).min() * room / (high - low) if len(ticks) > 1 else needed
        return ticks[:: max(math.ceil(needed / apart), 1)]


def _root(axes: Axes) -> Any:
    return axes.figure.get_figure(root=True)


def _laid_out(axes: Axes) -> bool:
    """Return whether a layout engine will make room for what is around the axes."""
    return _root(axes).get_layout_engine() is not None


def _slot(axes: Axes) -> tuple[float, float]:
    """Return the size in pixels of the axes' part of the figure's grid."""
    box = axes.figure.bbox
    place = axes.get_subplotspec()
    if place is None:
        return axes.bbox.width, axes.bbox.height
    rows, columns = place.get_gridspec().get_geometry()
    return (
        box.width * len(place.colspan) / columns,
        box.height * len(place.rowspan) / rows,
    )


def _width(axes: Axes, text: str, size: float) -> float:
    return pixels(axes, size) * _relative_width(text, fallback_families([text]))


@lru_cache(maxsize=10_000)
def _relative_width(text: str, families: tuple[str, ...]) -> float:
    """Return the width of a text in heights of its font; to draw it would take far longer."""
    font = FontProperties(family=list(families), size=100)
    shown = text.replace(r"\$", "$")
    return float(text_to_path.get_text_width_height_descent(shown, font, ismath=False)[0]) / 100


def _lines(axes: Axes, text: str, size: float, room: float) -> int:
    return len(_wrap(axes, text, size, room, most=len(text)))


def _wrap(axes: Axes, text: str, size: float, room: float, most: int = _TITLE_LINES) -> list[str]:
    """Break a text at blanks into lines that fit; what is behind the last line is cut."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _width(axes, longer, size) > room and len(lines) < most:
            lines.append(word)
        else:
            lines[-1] = longer
    return [clip_text(axes, line, size, room) for line in lines]
