"""Colours that colour-blind people tell apart, on light and on dark backgrounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matplotlib.colors import to_rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
