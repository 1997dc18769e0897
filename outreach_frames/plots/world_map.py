"""A map of people's locations."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from outreach_frames.analysis.companies import require_columns
from outreach_frames.common.text import plural
from outreach_frames.plots import canvas
from outreach_frames.plots.labels import count_text, drawable, fallback_families, shorten
from outreach_frames.tables.interchange import FrameLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LATITUDE: Final = "location_details_lat"
_LONGITUDE: Final = "location_details_long"
_NAMES: Final = ("location_details_city", "location_details_state", "location_details_country")
# Degrees: the margin around the people, the minimum span, and the span that shows the whole world.
_MARGIN: Final = 8
_MIN_SPAN: Final = 30
_MAX_SPAN: Final = 180
_WORLD: Final = ((-180, 180), (-58, 84))
# Diameters of circles in points.
_MAX_DIAMETER: Final = 30
_MIN_DIAMETER: Final = 4
# Longer names would hide the map.
_MAX_LETTERS: Final = 30
# The sides of a circle where its name may go: directions and alignments.
_SIDES: Final = (
    (1, 0, "left", "center"),
    (-1, 0, "right", "center"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
)


def people_map(data: FrameLike, *, top: int = 10, ax: Axes | None = None) -> Axes:
    """Plot people's locations on a map.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`).
    top : int
        Maximum number of labelled places, the largest first; labels that do not fit are dropped.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        In degrees, with one circle per place, its area proportional to the number of people. The
        title has the number of people without coordinates.

    Raises
    ------
    InvalidInputError
        The data has no coordinates.

    Notes
    -----
    Interface: Person, `location_details`. The outlines are Natural Earth's, in the public domain.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> of.plots.people_map(people).get_title()
    '20 people in 19 places'
    """
    data = canvas.check_frame(data)
    top = canvas.check_top(top)
    columns = [_LATITUDE, _LONGITUDE]
    require_columns(data, columns, "coordinates", "a frame from search_people()")
    places = _places(data)
    placed = int(places["people"].sum())
    axes = canvas.new_axes(ax, width=9, height=5)
    title = f"{plural(placed, 'person', 'people')} in {plural(len(places), 'place')}"
    if placed < len(data):
        title += f"; {len(data) - placed:,} more without coordinates"
    if places.empty:
        return canvas.show_empty(axes, title, "No places to show")
    _draw_land(axes, places)
    sizes = _draw_places(axes, places)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    canvas.finish(axes, title)
    _label_places(axes, places.head(top), sizes)
    return axes


def _places(data: pd.DataFrame) -> pd.DataFrame:
    """Count the people per place, the largest place first."""
    frame = pd.DataFrame(
        {
            "latitude": canvas.check_numbers(data, _LATITUDE).astype(float),
            "longitude": canvas.check_numbers(data, _LONGITUDE).astype(float),
            "name": _place_names(data),
        }
    )
    on_earth = frame["latitude"].abs().le(90) & frame["longitude"].abs().le(180)
    frame = frame[on_earth].round({"latitude": 1, "longitude": 1})
    grouped = frame.groupby(["latitude", "longitude"], sort=False)
    places = grouped.agg(name=("name", "first"), people=("name", "size")).reset_index()
    return places.sort_values("people", ascending=False, kind="stable").reset_index(drop=True)


def _place_names(data: pd.DataFrame) -> pd.Series:
    """Return each person's city, or else state or country."""
    names = pd.Series(pd.NA, index=data.index, dtype="str")
    for column in _NAMES:
        if column in data.columns:
            names = names.fillna(data[column].astype("str"))
    return names


def _draw_land(axes: Axes, places: pd.DataFrame) -> None:
    land = PathPatch(_land(), facecolor=canvas.text_color(axes), alpha=0.16, linewidth=0, zorder=0)
    axes.add_patch(land)
    x, y = _span(places["longitude"]), _span(places["latitude"])
    world = x[1] - x[0] > _MAX_SPAN
    if world:
        x = _WORLD[0]
        y = min(y[0], _WORLD[1][0]), max(y[1], _WORLD[1][1])
    # A degree of longitude becomes shorter with the distance from the equator.
    aspect = 1 / np.cos(np.deg2rad(sum(y) / 2))
    if not world:
        width, height = canvas.axes_size(axes)
        excess = (x[1] - x[0]) - (y[1] - y[0]) * aspect * width / height
        x = _widen(x, -excess)
        y = _widen(y, excess / aspect / width * height)
    axes.set(xlim=x, ylim=y)
    axes.set_aspect(aspect)


def _widen(limits: tuple[float, float], degrees: float) -> tuple[float, float]:
    """Widen limits by some degrees; a negative number changes nothing."""
    return limits[0] - max(degrees, 0) / 2, limits[1] + max(degrees, 0) / 2


def _span(values: pd.Series) -> tuple[float, float]:
    low, high = float(values.min()) - _MARGIN, float(values.max()) + _MARGIN
    return _widen((low, high), _MIN_SPAN - (high - low))


def _draw_places(axes: Axes, places: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Draw the circles, large ones first, and return their diameters in points."""
    largest = min(_MAX_DIAMETER, canvas.axes_size(axes)[1] / 10)
    people = places["people"].to_numpy(dtype=float)
    sizes: np.ndarray[Any, Any] = np.maximum(
        largest * np.sqrt(people / people.max()), _MIN_DIAMETER
    )
    dark = canvas.luminance(canvas.background_color(axes)) < 0.5
    axes.scatter(
        places["longitude"],
        places["latitude"],
        s=sizes**2,
        color=canvas.SKY if dark else canvas.BLUE,
        alpha=0.75,
        edgecolors=[canvas.background_color(axes)],
        linewidths=0.5,
    )
    return sizes


def _label_places(axes: Axes, places: pd.DataFrame, sizes: np.ndarray[Any, Any]) -> None:
    """Label the circles where a label overlaps no circle or label and stays on the map."""
    figure: Any = axes.figure.get_figure(root=True)
    figure.draw_without_rendering()
    size = min(canvas.points("xtick.labelsize"), 9)
    names = drawable(places["name"])
    families = list(fallback_families(names))
    spots = axes.transData.transform(places[["longitude", "latitude"]].to_numpy())
    radii = sizes / 2 * figure.dpi / 72
    taken = [
        Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)
        for (x, y), radius in zip(spots, radii, strict=False)
    ]
    for row, (name, people) in enumerate(zip(names, places["people"], strict=True)):
        for x, y, ha, va in _SIDES:
            gap = sizes[row] / 2 + 2
            label = axes.annotate(
                f"{shorten(name, _MAX_LETTERS)} {count_text(people)}",
                (places["longitude"][row], places["latitude"][row]),
                xytext=(x * gap, y * gap),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=size,
                fontfamily=families,
                color=canvas.text_color(axes),
                path_effects=[withStroke(linewidth=2, foreground=canvas.background_color(axes))],
            )
            box = label.get_window_extent()
            inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            label.remove()


@cache
def _land() -> Path:
    text = resources.files("outreach_frames.plots").joinpath("land.json").read_text("utf-8")
    rings = [np.array(ring) for ring in json.loads(text)]
    # A ring that crosses the date line continues beyond 180 degrees: repeat it on the other side.
    rings += [ring - (360, 0) for ring in rings if ring[:, 0].max() > 180]
    return Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))
