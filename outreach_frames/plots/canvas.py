"""Helpers for all plots: input checks, colours, text sizes, legends, titles and empty axes."""

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
    escape_formulas,
    fallback_families,
    shorten,
)
from outreach_frames.tables.interchange import A_FRAME, as_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette without yellow and black, which some backgrounds would hide.
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"
VERMILLION: Final = "#D55E00"
SERIES: Final = (BLUE, ORANGE, GREEN, SKY, PURPLE, VERMILLION)
# The hatches distinguish series in black and white.
HATCHES: Final = ("", "//", "..", "\\\\", "xx", "--")
OTHER_COLOR: Final = "#8C8C8C"

SMALLEST_FONT: Final = 6.5
# Minimum scales of a title's font: on one line, and after wrapping.
_ONE_LINE_SCALE: Final = 0.8
_MIN_TITLE_SCALE: Final = 0.6
_TITLE_LINES: Final = 4
_POINTS_PER_INCH: Final = 72
# The width of an average character and of a wide character, as multiples of the font size.
_CHARACTER_EMS: Final = 0.6
_WIDE_CHARACTER_EMS: Final = 1.0
_WIDE_CHARACTERS: Final = frozenset("MWmw@%")
# Maximum shares of the axes' width and height for tick labels, with and without a layout engine.
_ROOM_WITH_LAYOUT: Final = (0.55, 0.7)
_ROOM_WITHOUT: Final = (0.145, 0.1)
# A figure's default width and maximum width in inches, and the axes' share of the width.
_WIDTH: Final = 8
_MAX_WIDTH: Final = 13
_AXES_SHARE: Final = 0.775
# A layout engine enlarges axes without labels by this factor.
_GROWTH: Final = 1.25
# Minimum axes widths in points: for a large legend font, and for a legend with two columns.
_WIDE: Final = 450
_NARROW: Final = 250


def check_frame(data: object, what: str = A_FRAME) -> pd.DataFrame:
    """Convert a frame of any supported library to a pandas DataFrame."""
    return as_frame(data, "The plot", what)


def check_top(value: object) -> int:
    """Return `top` as an integer; reject numbers below 1."""
    top = check_integer("top", value)
    if top < 1:
        raise InvalidInputError(f"top={top} is too small. Pass 1 or more.")
    return top


def check_numbers(data: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a column as numbers; replace infinite numbers by missing values."""
    require_columns(data, [column], "numbers")
    try:
        numbers = data[column].astype("Float64")
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"The column {column!r} is not numeric: {error}.") from error
    return numbers.mask(numbers.abs().eq(np.inf))


def text_color(axes: Axes) -> Any:
    """Return the colour of the axes' title, for all other texts."""
    return axes.title.get_color()


def background_color(axes: Axes) -> Any:
    """Return the background colour of the axes."""
    return axes.get_facecolor()


def series_style(axes: Axes, index: int, *, is_other: bool = False) -> dict[str, Any]:
    """Return the colour and hatch of the series at `index`; the series "other" is grey."""
    return {
        "facecolor": OTHER_COLOR if is_other else SERIES[index % len(SERIES)],
        "hatch": "" if is_other else HATCHES[index % len(HATCHES)],
        "edgecolor": background_color(axes),
        "linewidth": 0.5,
    }


def new_axes(ax: Axes | None, *, height: float = 4.5, width: float = _WIDTH) -> Axes:
    """Return `ax`, or the axes of a new figure with this size in inches."""
    if ax is not None:
        if getattr(ax, "name", None) != "rectilinear":
            raise InvalidInputError(
                f"ax must be one Axes with an x and a y axis, not {type(ax).__name__}. Pass, for "
                "example, axs[0] of fig, axs = plt.subplots(1, 2)."
            )
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def points(setting: str) -> float:
    """Return the value of a font size setting, such as "ytick.labelsize", in points."""
    settings: Any = mpl.rcParams
    return FontProperties(size=settings[setting]).get_size_in_points()


def axes_size(axes: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points, before a layout engine runs."""
    scale = _POINTS_PER_INCH / axes.figure.dpi
    return axes.bbox.width * scale, axes.bbox.height * scale


def width_for_labels(labels: Iterable[str]) -> float:
    """Return a figure width in inches with room for labels beside the axes, up to a maximum.

    >>> width_for_labels(["Legal"]), width_for_labels(["Hospitality, Germany" * 9])
    (8, 13)
    """
    needed = text_width(labels, points("ytick.labelsize")) / _ROOM_WITH_LAYOUT[0]
    return min(max(needed / _POINTS_PER_INCH / _AXES_SHARE, _WIDTH), _MAX_WIDTH)


def label_room(axes: Axes) -> tuple[float, float]:
    """Return the room for tick labels beside and below the axes, in points."""
    width, height = axes_size(axes)
    beside, below = _ROOM_WITH_LAYOUT if _has_layout_engine(axes) else _ROOM_WITHOUT
    return width * beside, height * below


def inner_size(axes: Axes, beside: float, below: float = 0) -> tuple[float, float]:
    """Return the width and height of the axes in points, minus the room for tick labels."""
    width, height = axes_size(axes)
    if not _has_layout_engine(axes):
        return width, height
    return width * _GROWTH - beside, height * _GROWTH - below


def text_width(texts: Iterable[str], size: float) -> float:
    """Estimate the width of the widest text in points.

    >>> text_width(["legal", "sales"], size=10)
    30.0
    """
    return max(map(_ems, texts), default=0.0) * size


def clip_text(text: str, size: float, room: float) -> str:
    """Shorten a text to fit a width of `room` points."""
    return shorten(text, _max_characters(text, size, room))


def add_legend(axes: Axes, names: Sequence[str], *, has_other: bool = False) -> float:
    """Add a legend at the top, and return the legend's height in points for `reserve_top`."""
    width, _ = axes_size(axes)
    size = min(points("legend.fontsize"), 11 if width > _WIDE else 7.5)
    handle = 4.5 * size
    # Limit the width of names, because a long name would force a single column.
    maximum = width / (2 if width > _NARROW else 1) - handle
    shown = [clip_text(name, size, maximum) for name in names]
    columns = int(width / (min(text_width(shown, size), maximum) + handle) + 0.01)
    columns = max(1, min(len(names), columns))
    axes.legend(
        [
            Patch(**series_style(axes, index, is_other=has_other and index == len(names) - 1))
            for index in range(len(names))
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


def reserve_top(axes: Axes, height: float) -> None:
    """Extend the y axis so that `height` points at the top stay free."""
    share = min(height / axes_size(axes)[1], 0.6)
    low, high = axes.get_ylim()
    axes.update_datalim([(axes.dataLim.x0, low + (high - low) / (1 - share))])
    axes.autoscale_view(scalex=False)


def mark_line(axes: Axes, x: float, text: str, top: float = 0) -> float:
    """Draw a labelled vertical line that ends `top` points below the top.

    Return the label's height.
    """
    size, color = points("xtick.labelsize"), text_color(axes)
    width, height = axes_size(axes)
    y = 1 - min(top / height, 0.6)
    axes.axvline(x, ymax=y, color=color, linestyle="--", linewidth=1, zorder=2)
    low, high = axes.get_xlim()
    right = x > (low + high) / 2
    room = width * abs(x - (low if right else high)) / (high - low) - 4
    axes.annotate(
        clip_text(text, size, room),
        (x, y),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-4 if right else 4, -2),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=size,
        color=color,
    )
    return 1.7 * size


def number_axis(axes: Axes, axis: Axis, number: Number) -> None:
    """Place round ticks on an axis: as many as fit, at most six."""
    size = points("xtick.labelsize")
    width, height = axes_size(axes)
    if axis is axes.xaxis:
        ends = [number.on_axis(value) for value in axes.get_xlim()]
        maximum = width / (text_width(ends, size) + size)
    else:
        maximum = height / (2 * size)
    axis.set_major_formatter(lambda value, _: number.on_axis(value))
    bins = int(min(max(maximum, 1), 6))
    axis.set_major_locator(MaxNLocator(bins, integer=number.whole, steps=[1, 2, 2.5, 5, 10]))


def show_empty(axes: Axes, title: str, message: str) -> Axes:
    """Show a message on axes without data."""
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
        color=text_color(axes),
        fontsize=size,
    )
    return finish(axes, title, xlabel="", ylabel="")


def finish(axes: Axes, title: str, **labels: str) -> Axes:
    """Set the title, the axis labels, and fonts that contain all characters used."""
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
        axes.tick_params(labelfontfamily=list(families))
    return axes


def _set_title(axes: Axes, title: str) -> None:
    """Set the title; if the title is wider than the axes, reduce its font, then wrap it."""
    (title,) = drawable([title])
    names = [label.get_text() for label in axes.get_yticklabels()]
    beside = text_width(names, points("ytick.labelsize"))
    width, _ = inner_size(axes, min(beside, label_room(axes)[0]))
    size = points("axes.titlesize")
    scale = min(width / text_width([title], size), 1)
    if scale < _ONE_LINE_SCALE:
        # Scale for two lines, which are never completely full.
        scale = min(max(1.8 * scale, _MIN_TITLE_SCALE), _ONE_LINE_SCALE)
    size *= scale
    axes.set_title(_wrap(title, size, width), fontsize=size)


def _wrap(text: str, size: float, room: float) -> str:
    """Wrap a text into lines of `room` points, and cut the text after the last allowed line."""
    # Check long words separately, because their letters may be wider than average.
    long = [word for word in text.split() if text_width([word], size) > room / 2]
    maximum = max(min(_max_characters(part, size, room) for part in [text, *long]), 2)
    lines = textwrap.wrap(text, maximum, max_lines=_TITLE_LINES, placeholder="…")
    # Balance the line lengths, because a single word in the last line looks bad.
    for shorter in range(len(text) // max(len(lines), 1), maximum):
        balanced = textwrap.wrap(text, shorter)
        if len(balanced) == len(lines):
            lines = balanced
            break
    return escape_formulas("\n".join(lines))


def _max_characters(text: str, size: float, room: float) -> int:
    """Estimate how many characters of a text fit in `room` points."""
    # The margin prevents a rounding error from cutting a text that just fits.
    return int(room / size / _ems(text) * len(text) + 0.01)


def _ems(text: str) -> float:
    """Estimate the width of a text as a multiple of the font size."""
    wide = sum(mark in _WIDE_CHARACTERS or east_asian_width(mark) in "WF" for mark in text)
    return wide * _WIDE_CHARACTER_EMS + (len(text) - wide) * _CHARACTER_EMS


def _has_layout_engine(axes: Axes) -> bool:
    figure: Any = axes.figure.get_figure(root=True)
    return figure.get_layout_engine() is not None
