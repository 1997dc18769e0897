"""What all plots share: the data they take, colours, room for texts, titles, and empty axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from unicodedata import east_asian_width

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.arguments import check_integer
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.labels import (
    Number,
    drawable,
    fallback_families,
    shorten,
    without_formulas,
)
from outreach_frames.tables.interchange import A_FRAME, as_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette, less yellow and black, which one of the two backgrounds swallows.
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"
VERMILLION: Final = "#D55E00"
SERIES: Final = (BLUE, ORANGE, GREEN, SKY, PURPLE, VERMILLION)
# What tells bars apart in black and white.
HATCHES: Final = ("", "//", "..", "\\\\", "xx", "--")
REST: Final = "#8C8C8C"

SMALLEST_FONT: Final = 6.5
# How much smaller the letters of a long title may be, before it has several lines.
_SMALLEST_TITLE: Final = 0.6
_TITLE_LINES: Final = 4
_POINTS_PER_INCH: Final = 72
# The widths of an average and of a wide character, in heights of their font.
_CHARACTER: Final = 0.6
_WIDE_CHARACTER: Final = 1.0
_WIDE_LETTERS: Final = frozenset("MWmw@%")
# What tick labels may take, in widths or heights of the axes: with a layout engine, and with none.
_ROOM_OF_LAYOUT: Final = (0.45, 0.7)
_ROOM_OF_NONE: Final = (0.145, 0.1)
# What axes without labels grow by where there is a layout engine.
_GROWTH: Final = 1.25
# From how many points on axes are wide enough for large letters, and for two names in a line.
_WIDE: Final = 450
_NARROW: Final = 250


def check_frame(data: object, what: str = A_FRAME) -> pd.DataFrame:
    """Return the data, which is a frame of any library, as a pandas frame."""
    return as_frame(data, "The plot", what)


def check_top(value: object) -> int:
    """Return how many bars are wanted."""
    top = check_integer("top", value)
    if top < 1:
        raise InvalidInputError(f"top={top} shows nothing. Give 1 or more.")
    return top


def check_numbers(data: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a column of numbers; what is infinite cannot be drawn, and is missing."""
    require_columns(data, [column], "numbers")
    try:
        numbers = data[column].astype("Float64")
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"The column {column!r} is not of numbers: {error}.") from error
    return numbers.mask(numbers.abs().eq(np.inf))


def ink(axes: Axes) -> Any:
    """Return the colour of the axes' own text, which its style has chosen."""
    return axes.title.get_color()


def paper(axes: Axes) -> Any:
    """Return the colour behind the bars."""
    return axes.get_facecolor()


def luminance(color: Any) -> float:
    """Return how light a colour is, from 0 to 1.

    >>> luminance("black"), round(luminance("white"), 6)
    (0.0, 1.0)
    """
    red, green, blue = to_rgb(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def series_style(axes: Axes, place: int, series: int = 0) -> dict[str, Any]:
    """Return the colour and hatch of the n-th series, so that either alone tells it apart.

    The last of `series` is the rest, in grey; with 0 there is no rest.
    """
    rest = place == series - 1
    return {
        "facecolor": REST if rest else SERIES[place % len(SERIES)],
        "hatch": "" if rest else HATCHES[place % len(HATCHES)],
        "edgecolor": paper(axes),
        "linewidth": 0.5,
    }


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


def axes_size(axes: Axes) -> tuple[float, float]:
    """Return the axes' width and height in points, before a layout engine changes them."""
    scale = _POINTS_PER_INCH / axes.figure.dpi
    return axes.bbox.width * scale, axes.bbox.height * scale


def label_room(axes: Axes) -> tuple[float, float]:
    """Return how many points tick labels may take beside the axes and below them."""
    width, height = axes_size(axes)
    beside, below = _ROOM_OF_LAYOUT if _laid_out(axes) else _ROOM_OF_NONE
    return width * beside, height * below


def inner_size(axes: Axes, beside: float, below: float = 0) -> tuple[float, float]:
    """Return the axes' width and height in points once labels of so many points have room."""
    width, height = axes_size(axes)
    if not _laid_out(axes):
        return width, height
    return width * _GROWTH - beside, height * _GROWTH - below


def text_width(texts: Iterable[str], size: float) -> float:
    """Estimate the width of the longest text in points, by its characters.

    >>> text_width(["legal", "sales"], size=10)
    30.0
    """
    return max(map(_heights, texts), default=0.0) * size


def clip_text(text: str, size: float, room: float) -> str:
    """Return a text to draw in so many points, by its characters."""
    return shorten(text, _characters(text, size, room))


def add_legend(axes: Axes, names: Sequence[str], *, rest: bool = False) -> float:
    """Name the series at the top, in as many columns as have room; return the height in points.

    `keep_clear` keeps that height free once all is drawn. With `rest` the last series is the rest.
    """
    width, _ = axes_size(axes)
    size = min(points("legend.fontsize"), 11 if width > _WIDE else 7.5)
    handle = 4.5 * size
    # One long name must not push all others below each other.
    most = width / (2 if width > _NARROW else 1) - handle
    shown = [clip_text(name, size, most) for name in names]
    columns = int(width / (min(text_width(shown, size), most) + handle) + 0.01)
    columns = max(1, min(len(names), columns))
    axes.legend(
        [
            Patch(**series_style(axes, place, len(names) if rest else 0))
            for place in range(len(names))
        ],
        shown,
        loc="upper left",
        ncols=columns,
        fontsize=size,
        frameon=False,
        borderaxespad=0.1,
        columnspacing=1.2,
    )
    return size * (1 + 1.7 * math.ceil(len(names) / columns))


def keep_clear(axes: Axes, height: float) -> None:
    """Extend the axes upwards by as many points as what is at their top takes."""
    share = min(height / axes_size(axes)[1], 0.6)
    low, high = axes.get_ylim()
    axes.update_datalim([(axes.dataLim.x0, low + (high - low) / (1 - share))])
    axes.autoscale_view(scalex=False)


def number_axis(axes: Axes, axis: Axis, number: Number) -> None:
    """Give an axis as many round ticks as have room, six at most."""
    size = points("xtick.labelsize")
    width, height = axes_size(axes)
    if axis is axes.xaxis:
        ends = [number.on_axis(value) for value in axes.get_xlim()]
        most = width / (text_width(ends, size) + size)
    else:
        most = height / (2 * size)
    axis.set_major_formatter(lambda value, _: number.on_axis(value))
    bins = int(min(max(most, 1), 6))
    axis.set_major_locator(MaxNLocator(bins, integer=number.whole, steps=[1, 2, 2.5, 5, 10]))


def show_empty(axes: Axes, title: str, message: str) -> Axes:
    """Say in the middle of axes with no ticks that there is nothing to draw."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    size = points("axes.labelsize")
    axes.text(
        0.5,
        0.5,
        _wrap(message, size, axes_size(axes)[0]),
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=ink(axes),
        fontsize=size,
    )
    return finish(axes, title, xlabel="", ylabel="")


def finish(axes: Axes, title: str, **labels: str) -> Axes:
    """Set the title and the axes' labels, in fonts that have the characters of every text."""
    _set_title(axes, title)
    axes.set(**labels)
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


def _set_title(axes: Axes, title: str) -> None:
    """Set a title that is no wider than the axes: a longer one in smaller letters, then wrapped."""
    (title,) = drawable([title])
    names = [label.get_text() for label in axes.get_yticklabels()]
    beside = text_width(names, points("ytick.labelsize"))
    width, _ = inner_size(axes, min(beside, label_room(axes)[0]))
    size = points("axes.titlesize")
    size *= max(min(width / text_width([title], size), 1), _SMALLEST_TITLE)
    axes.set_title(_wrap(title, size, width), fontsize=size)


def _wrap(text: str, size: float, room: float) -> str:
    """Break a text into lines of so many points, by its characters; what is over is cut."""
    # A long word may have wider letters than the rest.
    long = [word for word in text.split() if text_width([word], size) > room / 2]
    most = max(min(_characters(part, size, room) for part in [text, *long]), 2)
    lines = textwrap.wrap(text, most, max_lines=_TITLE_LINES, placeholder="…")
    return without_formulas("\n".join(lines))


def _characters(text: str, size: float, room: float) -> int:
    """Return how many characters of a text have room in so many points."""
    # A little more, as what just fits must not be cut by a rounding error.
    return int(room / size / _heights(text) * len(text) + 0.01)


def _heights(text: str) -> float:
    """Estimate how wide a text is, in heights of its font."""
    wide = sum(mark in _WIDE_LETTERS or east_asian_width(mark) in "WF" for mark in text)
    return wide * _WIDE_CHARACTER + (len(text) - wide) * _CHARACTER


def _laid_out(axes: Axes) -> bool:
    """Return whether a layout engine will make room for what is around the axes."""
    figure: Any = axes.figure.get_figure(root=True)
    return figure.get_layout_engine() is not None
