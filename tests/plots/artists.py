"""What is drawn, read from the artists: bars, texts, and which of them overlap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def bars(axes: Axes) -> dict[str, float]:
    """Return what single bars show, by their label, from the bottom up."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(labels, (patch.get_width() for patch in axes.patches), strict=True))


def texts(axes: Axes) -> list[Text]:
    """Return the texts that are seen once the figure is drawn."""
    draw(axes)
    return _seen(axes)


def overlapping(*several: Axes) -> list[tuple[str, str]]:
    """Return the pairs of texts, of one or several axes, that overprint each other."""
    draw(several[0])
    return _overlapping([text for axes in several for text in _seen(axes)])


def flaws(axes: Axes) -> list[Any]:
    """Return the texts that lie partly outside the figure, and the pairs that overprint."""
    shown = texts(axes)
    edge = axes.figure.bbox.padded(1)
    boxes = [(text.get_text(), extent(text)) for text in shown]
    outside = [
        text
        for text, box in boxes
        if box.x0 < edge.x0 or box.x1 > edge.x1 or box.y0 < edge.y0 or box.y1 > edge.y1
    ]
    return [*outside, *_overlapping(shown)]


def _overlapping(shown: list[Text]) -> list[tuple[str, str]]:
    # Half a pixel is rounding, not overprinting.
    boxes = np.array([extent(text).padded(-0.5).extents for text in shown])
    x0, y0, x1, y1 = boxes.T
    apart = (x0[:, None] >= x1) | (x0 >= x1[:, None]) | (y0[:, None] >= y1) | (y0 >= y1[:, None])
    one, other = np.nonzero(np.triu(~apart, 1))
    return [(shown[i].get_text(), shown[j].get_text()) for i, j in zip(one, other, strict=True)]


def draw(axes: Axes) -> None:
    """Lay the whole figure out, with no picture of it."""
    axes.figure.get_figure(root=True).draw_without_rendering()


def _seen(axes: Axes) -> list[Text]:
    found = [text for text in axes.findobj(Text) if isinstance(text, Text)]
    unseen = set(_beyond(axes.xaxis)) | set(_beyond(axes.yaxis))
    shown = [text for text in found if text.get_visible() and text not in unseen]
    return [text for text in shown if text.get_text().strip()]


def _beyond(axis: Axis) -> Iterator[Text]:
    """Yield the labels of ticks beyond the ends of an axis, which are not drawn."""
    low, high = sorted(axis.get_view_interval())
    for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
        if not low <= place <= high:
            yield label


def extent(artist: Any) -> Bbox:
    """Return where an artist is, in pixels."""
    if isinstance(artist, Text):
        artist.get_window_extent()  # places a label with a line, which it includes
        return Text.get_window_extent(artist)
    return artist.get_window_extent()


def plain_axes(**size: Any) -> Axes:
    """Return axes of a figure that has no layout engine and no window."""
    return mpl.figure.Figure(**size).subplots()
