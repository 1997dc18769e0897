"""Helpers for all plots: input checks, colours, fonts, titles and empty axes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.ticker import MaxNLocator

from outreach_frames.common.arguments import check_integer
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.labels import count_text
from outreach_frames.tables.column_checks import require_columns, to_numbers
from outreach_frames.tables.interchange import A_FRAME, as_frame, is_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette without yellow and black, which some backgrounds would hide.
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
SERIES: Final = (BLUE, ORANGE, "#009E73", "#56B4E9", "#CC79A7", "#D55E00")
# The hatches distinguish series in black and white.
HATCHES: Final = ("", "//", "..", "\\\\", "xx", "--")
OTHER_COLOR: Final = "#8C8C8C"
# In grey, this red is darker than the blue, and the orange lighter.
DARK_RED: Final = "#882200"

_TITLE_CHARACTERS: Final = 55
# Fonts of common operating systems with characters that matplotlib's default font lacks.
_FALLBACK_FAMILIES: Final = (
    "Noto Sans CJK SC",
    "Microsoft YaHei",
    "Malgun Gothic",
    "PingFang SC",
    "Hiragino Sans",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)


class HasPeople(Protocol):
    """A result with a table of people, as of `find_people`."""

    people: pd.DataFrame


def check_frame(data: object, what: str = A_FRAME) -> pd.DataFrame:
    """Convert a frame of any supported library, or a result's people, to a pandas DataFrame."""
    if not is_frame(data):
        data = getattr(data, "people", data)
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
    numbers = to_numbers(data[[column]])[column]
    return numbers.mask(numbers.abs().eq(np.inf))


def text_color(axes: Axes) -> Any:
    """Return the colour of the axes' title, for all other texts."""
    return axes.title.get_color()


def series_style(axes: Axes, index: int) -> dict[str, Any]:
    """Return the colour and hatch of the series at `index`."""
    return {
        "facecolor": SERIES[index % len(SERIES)],
        "hatch": HATCHES[index % len(HATCHES)],
        "edgecolor": axes.get_facecolor(),
        "linewidth": 0.5,
    }


def new_axes(ax: Axes | None, height: float = 4.5) -> Axes:
    """Return `ax`, or the axes of a new figure with this height in inches."""
    if ax is None:
        return plt.subplots(figsize=(8, height), layout="constrained")[1]
    if getattr(ax, "name", None) != "rectilinear":
        raise InvalidInputError(
            f"ax must be one Axes with an x and a y axis, not {type(ax).__name__}. Pass, for "
            "example, axs[0] of fig, axs = plt.subplots(1, 2)."
        )
    return ax


def number_axis(
    axis: Axis, text: Callable[[float], str] = count_text, *, whole: bool = True
) -> None:
    """Place round ticks on an axis, formatted by `text`."""
    axis.set_major_locator(MaxNLocator(5, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: text(value))


def show_empty(axes: Axes, title: str, message: str) -> Axes:
    """Show a message on axes without data."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    middle = {"ha": "center", "va": "center", "color": text_color(axes)}
    axes.text(0.5, 0.5, message, transform=axes.transAxes, **middle)
    return finish(axes, title, xlabel="", ylabel="")


def finish(axes: Axes, title: str, **labels: str) -> Axes:
    """Set the title, the axis labels, and fonts that contain the characters of most languages."""
    axes.set_title(textwrap.fill(title, _TITLE_CHARACTERS))
    axes.set(**labels)
    axes.spines[["top", "right"]].set_visible(False)
    installed = set(font_manager.fontManager.get_font_names())
    fallback = [family for family in _FALLBACK_FAMILIES if family in installed]
    families = [*mpl.rcParams["font.family"], *fallback]
    legend = axes.get_legend()
    own = (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
    for text in (*own, *(legend.get_texts() if legend else ())):
        text.set_fontfamily(families)
    axes.tick_params(labelfontfamily=families)
    return axes
