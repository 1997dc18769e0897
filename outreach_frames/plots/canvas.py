"""Helpers for all plots: input checks, colours, fonts, titles and empty axes."""

from __future__ import annotations

import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
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
    from matplotlib.text import Text

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
# Wide enough for most texts, in font sizes.
_CHARACTER_WIDTH: Final = 0.7
# Matplotlib has this font since 3.11. It draws missing characters as boxes, without warnings.
_BOXES: Final = "Last Resort High-Efficiency"
_BOX_WIDTH: Final = 1.15
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
    "Noto Sans Thai",
    _BOXES,
)
_SCRIPTS: Final = {"Cjk": "Chinese or Japanese", "Devanagari": "Hindi", "Hangul": "Korean"}


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
    return unique_names(names, _text_width(), _NAME_SHARE * _width(axes))


def max_ticks(axes: Axes, label: str, share: float = 1) -> int:
    """Return how many tick labels of this width fit on a share of the x axis."""
    return max(1, int(share * _width(axes) / _text_width()(f"{label}0")))


def number_axis(
    axis: Axis, text: Callable[[float], str] = count_text, *, whole: bool = True
) -> None:
    """Place round ticks on an axis, formatted by `text`."""
    ticks = 5
    if axis is axis.axes.xaxis:
        # Names may take the other part of the width.
        longest = max((text(float(f"{end:.1g}")) for end in axis.get_view_interval()), key=len)
        ticks = min(ticks, max_ticks(axis.axes, longest, share=0.6))
    axis.set_major_locator(MaxNLocator(ticks, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: text(value))


def legend_above(axes: Axes) -> float:
    """Place the legend above the bars, and return the padding of a title above it in points."""
    legend = axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=2, frameon=False
    )
    for text in legend.get_texts():
        text.set_fontfamily(_families())
    height = float(legend.get_window_extent().height)
    return height * 72 / axes.figure.dpi + float(mpl.rcParams["axes.titlepad"])


def show_empty(axes: Axes, title: str, message: str) -> Axes:
    """Show a message on axes without data."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    middle = {"ha": "center", "va": "center", "color": text_color(axes)}
    _wrap(axes, axes.text(0.5, 0.5, message, transform=axes.transAxes, **middle))
    return finish(axes, title, xlabel="", ylabel="")


def finish(axes: Axes, title: str, pad: float | None = None, **labels: str) -> Axes:
    """Set the title, the axis labels, and fonts that contain the characters of most languages."""
    axes.set_title(title, pad=pad)
    axes.set(**labels)
    _wrap(axes, axes.title)
    _wrap(axes, axes.xaxis.label)
    axes.spines[["top", "right"]].set_visible(False)
    families = _families()
    legend = axes.get_legend()
    texts = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
    texts += legend.get_texts() if legend else []
    for text in texts:
        text.set_fontfamily(families)
    axes.tick_params(labelfontfamily=families)
    _warn_of_boxes("".join(text.get_text() for text in [*texts, *axes.get_yticklabels()]))
    return axes


def _width(axes: Axes) -> float:
    """Return the width of the axes in points, before a layout engine makes room for texts."""
    return axes.bbox.width * 72 / axes.figure.dpi


def _wrap(axes: Axes, text: Text) -> None:
    """Break the lines of a text that are longer than the axes."""
    characters = max(10, int(_width(axes) / (_CHARACTER_WIDTH * float(text.get_fontsize()))))
    lines = text.get_text().splitlines()
    text.set_text("\n".join(textwrap.fill(line, characters) for line in lines))


def _families() -> list[str]:
    """Return the user's fonts, and installed fonts for characters that those lack."""
    installed = set(font_manager.fontManager.get_font_names())
    fallback = [family for family in _FALLBACK_FAMILIES if family in installed]
    return [*mpl.rcParams["font.family"], *fallback]


def _text_width() -> Callable[[str], float]:
    """Return a function that returns the width of a tick's label in points."""
    label = FontProperties(size=mpl.rcParams["ytick.labelsize"])
    size, families = float(label.get_size_in_points()), tuple(_families())

    def width(text: str) -> float:
        widths = [_character_width(character, families) for character in text]
        return size * sum(_BOX_WIDTH if width is None else width for width in widths)

    return width


@lru_cache(maxsize=10_000)
def _character_width(character: str, families: tuple[str, ...]) -> float | None:
    """Return a character's width in font sizes; None if no font has the character."""
    for family in families:
        font = font_manager.get_font(font_manager.findfont(FontProperties(family=[family])))
        if family != _BOXES and font.get_char_index(ord(character)):
            font.set_size(100, 72)
            return font.load_char(ord(character)).horiAdvance / 6400
    return None


def _warn_of_boxes(text: str) -> None:
    """Warn once about characters that no font has, in place of matplotlib's many warnings."""
    families = _families()
    characters = sorted(set(text) - {"\n"})
    missing = [mark for mark in characters if _character_width(mark, tuple(families)) is None]
    if not missing:
        return
    if _BOXES not in families:
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
    warn(
        f"The plot has boxes in place of {' and '.join(dict.fromkeys(map(_script, missing)))} "
        "characters, because none of its fonts has them. Install a font that has them, such as "
        "one of Noto Sans. Before you plot, call "
        "matplotlib.font_manager.fontManager.addfont('FILE_OF_THE_FONT.ttf'), and set "
        "matplotlib.rcParams['font.family'] = ['sans-serif', 'NAME OF THE FONT']."
    )


def _script(character: str) -> str:
    """Return the name of a character's writing system.

    >>> _script("x"), _script("\N{SNOWMAN}")
    ('Latin', 'other')
    """
    is_letter = unicodedata.category(character)[0] in "LM"
    script = unicodedata.name(character, "other").split()[0].title() if is_letter else "other"
    return _SCRIPTS.get(script, script)
