"""Helpers for all plots: input checks, colours, fonts, titles and empty axes."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from outreach_frames.common.arguments import check_integer
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.plots.labels import count_text, unique_names
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

# Axes without a layout engine have 0.775 of a figure's width, and names at most a third.
_NAME_SHARE: Final = 0.32 / 0.775
# Matplotlib has this font since 3.11. It draws missing characters as boxes, without warnings.
_BOXES: Final = "Last Resort High-Efficiency"
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
    "Nirmala UI",
    "Noto Sans Devanagari",
    _BOXES,
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


def names_that_fit(axes: Axes, names: Iterable[object]) -> list[str]:
    """Return unique names that are at most as wide as a third of the figure."""
    width = partial(_text_width, families=_families())
    return unique_names(names, width, _NAME_SHARE * _axes_width(axes))


def max_ticks(axes: Axes, label: str, share: float = 1) -> int:
    """Return how many tick labels of this width fit on a share of the x axis."""
    return max(1, int(share * _axes_width(axes) / _text_width(f"{label}0", _families())))


def number_axis(
    axis: Axis, text: Callable[[float], str] = count_text, *, whole: bool = True
) -> None:
    """Place round ticks on an axis, formatted by `text`."""
    longest = max((text(float(f"{end:.1g}")) for end in axis.get_view_interval()), key=len)
    # Names may take the other part of the width.
    ticks = min(5, max_ticks(axis.axes, longest, share=0.6))
    axis.set_major_locator(MaxNLocator(ticks, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: text(value))


def legend_above_bars(axes: Axes) -> None:
    """Add a legend, and free space for it above the bars."""
    font = FontProperties(family=_families(), size=mpl.rcParams["legend.fontsize"])
    legend = axes.legend(loc="upper right", ncols=2, borderaxespad=0, prop=font)
    low, high = axes.get_ylim()
    # Rounded up, because heights differ slightly between versions of matplotlib.
    share = min(np.ceil(20 * legend.get_window_extent().height / axes.bbox.height) / 20, 0.9)
    axes.set_ylim(low, low + (high - low) / (1 - share))


def show_empty(axes: Axes, title: str, message: str) -> Axes:
    """Show a message on axes without data."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    middle = {"ha": "center", "va": "center", "color": text_color(axes)}
    axes.text(0.5, 0.5, message, transform=axes.transAxes, wrap=True, **middle)
    return finish(axes, title, xlabel="", ylabel="")


def finish(axes: Axes, title: str, **labels: str) -> Axes:
    """Set the title, the axis labels, and fonts that contain the characters of most languages."""
    axes.set_title(title, wrap=True)
    axes.set(**labels)
    axes.xaxis.label.set_wrap(True)
    axes.spines[["top", "right"]].set_visible(False)
    legend = axes.get_legend()
    texts = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
    for text in texts:
        text.set_fontfamily(_families())
    axes.tick_params(labelfontfamily=_families())
    texts += [*axes.get_yticklabels(), *(legend.get_texts() if legend else ())]
    _warn_of_boxes("".join(text.get_text() for text in texts))
    return axes


def _axes_width(axes: Axes) -> float:
    """Return the width of the axes in points, before a layout engine makes room for texts."""
    return axes.bbox.width * 72 / axes.figure.dpi


def _families() -> tuple[str, ...]:
    """Return the user's fonts, and installed fonts for characters that those lack."""
    installed = set(font_manager.fontManager.get_font_names())
    fallback = [family for family in _FALLBACK_FAMILIES if family in installed]
    return (*mpl.rcParams["font.family"], *fallback)


def _text_width(text: str, families: tuple[str, ...]) -> float:
    """Return the width of a tick's label in points."""
    size = FontProperties(size=mpl.rcParams["ytick.labelsize"]).get_size_in_points()
    # A box in place of a missing character is wider than most characters.
    return size * sum(_character_width(character, families) or 1.15 for character in text)


@lru_cache(maxsize=10_000)
def _character_width(character: str, families: tuple[str, ...]) -> float | None:
    """Return a character's width in font sizes; None if no font has the character."""
    for family in families:
        font = font_manager.get_font(font_manager.findfont(FontProperties(family=[family])))
        if family != _BOXES and font.get_char_index(ord(character)):
            font.set_size(100, 72)
            return font.load_char(ord(character)).linearHoriAdvance / 6_553_600
    return None


def _warn_of_boxes(text: str) -> None:
    """Warn once about characters that no font has, in place of matplotlib's many warnings."""
    families = _families()
    marks = sorted(set(text) - {"\n"}, reverse=True)
    missing = [mark for mark in marks if _character_width(mark, families) is None]
    if not missing:
        return
    # Matplotlib before 3.11 has no such font.
    if _BOXES not in families:
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
    # The first word of a character's name is its writing system.
    examples = {unicodedata.name(mark, "UNNAMED").split()[0]: mark for mark in missing}
    shown = ", ".join(f"{script} (such as {mark})" for script, mark in examples.items())
    warn(
        f"The plot has boxes in place of characters that its fonts lack: {shown}. Install a font "
        "that has them, such as one of Noto Sans. Before you plot, call "
        "matplotlib.font_manager.fontManager.addfont('FILE_OF_THE_FONT.ttf'), and set "
        "matplotlib.rcParams['font.family'] = ['sans-serif', 'NAME OF THE FONT']."
    )
