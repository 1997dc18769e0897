"""Read drawn artists: bars, texts, and overlapping texts."""

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
    """Return the values of single bars by their labels, from the bottom up."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(labels, (patch.get_width() for patch in axes.patches), strict=True))


def numbers(axes: Axes) -> list[str]:
    """Return the numbers at the bars, from the bottom up."""
    return [text.get_text() for text in axes.texts]


def texts(axes: Axes) -> list[Text]:
    """Return the visible texts of the drawn figure."""
    axes.figure.get_figure(root=True).draw_without_rendering()
    return _seen(axes)


def flaws(axes: Axes) -> list[Any]:
    """Return the texts that the figure's edge cuts, and the pairs of overlapping texts."""
    drawn = texts(axes)
    shown = [text.get_text() for text in drawn]
    # Ignore half a pixel, which comes from rounding.
    x0, y0, x1, y1 = np.array([extent(text).padded(-0.5).extents for text in drawn]).T
    edge = axes.figure.bbox.padded(0.5)
    outside = (x0 < edge.x0) | (x1 > edge.x1) | (y0 < edge.y0) | (y1 > edge.y1)
    apart = (x0[:, None] >= x1) | (x0 >= x1[:, None]) | (y0[:, None] >= y1) | (y0 >= y1[:, None])
    overlapping = np.argwhere(np.triu(~apart, 1)).tolist()
    cut = [shown[place] for place in np.flatnonzero(outside)]
    return [*cut, *((shown[one], shown[other]) for one, other in overlapping)]


def _seen(axes: Axes) -> list[Text]:
    found = [text for text in axes.findobj(Text) if isinstance(text, Text)]
    unseen = set(_beyond(axes.xaxis)) | set(_beyond(axes.yaxis))
    shown = [text for text in found if text.get_visible() and text not in unseen]
    return [text for text in shown if text.get_text().strip()]


def _beyond(axis: Axis) -> Iterator[Text]:
    """Yield the labels of ticks beyond the ends of an axis, which Matplotlib does not draw."""
    low, high = sorted(axis.get_view_interval())
    for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
        if not low <= place <= high:
            yield label


def extent(text: Text) -> Bbox:
    """Return a text's extent in pixels, without the line of an annotation."""
    text.get_window_extent()  # places a label
    return Text.get_window_extent(text)


def plain_axes(**size: Any) -> Axes:
    """Return the axes of a figure without a layout engine or window."""
    return mpl.figure.Figure(**size).subplots()
