"""A map of people's locations."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from outreach_frames import spec
from outreach_frames.analysis.companies import COMPANY_PREFIX, require_columns
from outreach_frames.common.text import plural
from outreach_frames.plots import canvas
from outreach_frames.plots.labels import count_text, drawable, fallback_families, shorten
from outreach_frames.tables.interchange import FrameLike
from outreach_frames.tables.result_columns import PEOPLE_IN_FRAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LATITUDE: Final = "location_details_lat"
_LONGITUDE: Final = "location_details_long"
_POINT: Final = ["latitude", "longitude"]
_NAMES: Final = ("location_details_city", "location_details_state", "location_details_country")
# Columns of a frame of companies that a frame of people lacks.
_ONLY_COMPANIES: Final = {field.name for field in (*spec.COMPANY, PEOPLE_IN_FRAME)} - {
    field.name for field in spec.PERSON
}
# In degrees: margin around the people, minimum span, maximum span; wider maps show the world.
_MARGIN: Final = 8
_MIN_SPAN: Final = 30
_MAX_SPAN: Final = 180
_WORLD: Final = ((-180, 180), (-58, 84))
# Diameters of circles in points.
_MAX_DIAMETER: Final = 30
_MIN_DIAMETER: Final = 4
# Extra space, because a layout engine that shrinks the axes must not cut off circles.
_LAYOUT_MARGIN: Final = 1.3
# Longer names are shortened, because they would hide the map.
_MAX_LETTERS: Final = 30
# Possible positions of a circle's name: direction from the circle and text alignment.
_SIDES: Final = (
    (1, 0, "left", "center"),
    (-1, 0, "right", "center"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
    (0.7, 0.7, "left", "bottom"),
    (-0.7, 0.7, "right", "bottom"),
    (0.7, -0.7, "left", "top"),
    (-0.7, -0.7, "right", "top"),
)
# Gaps between a circle and its name, in points; a line bridges all but the smallest gap.
_GAPS: Final = (2, 10, 20, 30, 40)


def people_map(data: FrameLike, *, top: int = 10, ax: Axes | None = None) -> Axes:
    """Plot the locations of people or companies on a map.

    Parameters
    ----------
    data : DataFrame, also of Polars, DuckDB or Arrow
        People (`search_people`) or companies (`companies()`).
    top : int
        Maximum number of places to label, the largest first. Labels that do not fit are dropped.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        A map in degrees with one circle per place; the area of a circle is proportional to the
        number of people or companies. If small circles are enlarged to be visible, a legend shows
        the sizes. Points with the same city, state and country are one place, drawn at the most
        frequent point. Points without a city are one place if they round to the same tenth of a
        degree. A point with several names gets the most frequent name. The title counts people or
        companies without coordinates.

    Raises
    ------
    InvalidInputError
        The data has no coordinates.

    Notes
    -----
    Interface: Person and Company, `location_details`. The outlines are from Natural Earth (public
    domain).

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
    nouns = ("company", "companies") if _are_companies(data) else ("person", "people")
    title = f"{plural(placed, *nouns)} in {plural(len(places), 'place')}"
    if placed < len(data):
        title += f"; {len(data) - placed:,} more without coordinates"
    if places.empty:
        return canvas.show_empty(axes, title, "No places to show")
    sizes = _diameters(axes, places["people"].to_numpy(dtype=float), nouns)
    _draw_land(axes, places, sizes)
    _draw_places(axes, places, sizes)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    canvas.finish(axes, title)
    _label_places(axes, places, sizes, top)
    return axes


def _are_companies(data: pd.DataFrame) -> bool:
    """Return whether the rows are companies, not people with company columns."""
    names = {str(name) for name in data.columns}
    is_person = any(name.startswith(COMPANY_PREFIX) for name in names)
    return not is_person and bool(names & _ONLY_COMPANIES)


def _places(data: pd.DataFrame) -> pd.DataFrame:
    """Count the rows per place, the largest place first."""
    frame = pd.DataFrame({name: _texts(data, name) for name in _NAMES})
    frame["latitude"] = canvas.check_numbers(data, _LATITUDE).astype(float)
    frame["longitude"] = canvas.check_numbers(data, _LONGITUDE).astype(float)
    on_earth = frame["latitude"].abs().le(90) & frame["longitude"].abs().le(180)
    counted = frame[on_earth].value_counts([*_POINT, *_NAMES], dropna=False)
    points = counted.reset_index(name="people")
    points["people"] = points.groupby(_POINT)["people"].transform("sum")
    # Keep the most frequent name of each point, preferably a name with a city.
    points = points.sort_values(_NAMES[0], key=pd.isna, kind="stable").drop_duplicates(_POINT)
    points = points.sort_values("people", ascending=False, kind="stable")
    city, *region = (points[name] for name in _NAMES)
    cities = city.str.cat(points[list(_NAMES[1:])].fillna(""), sep="\n")
    rounded = points["latitude"].map("{:.1f} ".format) + points["longitude"].map("{:.1f}".format)
    points["place"] = cities.str.normalize("NFKC").str.casefold().fillna(rounded)
    points["people"] = points.groupby("place")["people"].transform("sum")
    points["name"] = city.fillna(region[0]).fillna(region[1])
    places = points.drop_duplicates("place")
    return places.sort_values("people", ascending=False, kind="stable", ignore_index=True)


def _texts(data: pd.DataFrame, column: str) -> pd.Series:
    """Return a column as text; blank text and absent columns become missing values."""
    if column not in data.columns:
        return pd.Series(pd.NA, index=data.index, dtype="str")
    texts = data[column].astype("str").str.strip()
    return texts.mask(texts.eq(""))


def _draw_land(axes: Axes, places: pd.DataFrame, sizes: np.ndarray[Any, Any]) -> None:
    """Draw the land and set axis limits that cut off no circle."""
    land = PathPatch(_land(), facecolor=canvas.text_color(axes), alpha=0.16, linewidth=0, zorder=0)
    # Do not use add_patch: it searches the outlines for curves, which doubles the plot's time.
    axes.add_artist(land)
    axes.update_datalim(land.get_path().get_extents().get_points())
    x, y = _span(places["longitude"]), _span(places["latitude"])
    is_world = x[1] - x[0] > _MAX_SPAN
    if is_world:
        x = _WORLD[0]
        y = min(y[0], _WORLD[1][0]), max(y[1], _WORLD[1][1])
    # A degree of longitude becomes shorter with the distance from the equator.
    aspect = 1 / np.cos(np.deg2rad(sum(y) / 2))
    width, height = canvas.axes_size(axes)
    points_per_degree = min(width / (x[1] - x[0]), height / (y[1] - y[0]) / aspect)
    radii = sizes / 2 / points_per_degree * _LAYOUT_MARGIN
    axes.set(
        xlim=_include(x, places["longitude"], radii),
        ylim=_include(y, places["latitude"], radii / aspect),
    )
    axes.set_aspect(aspect, adjustable="box" if is_world else "datalim")


def _include(
    limits: tuple[float, float], values: pd.Series, radii: np.ndarray[Any, Any]
) -> tuple[float, float]:
    """Extend axis limits to include all circles."""
    return min(limits[0], (values - radii).min()), max(limits[1], (values + radii).max())


def _span(values: pd.Series) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    half = max((high - low) / 2 + _MARGIN, _MIN_SPAN / 2)
    return (low + high) / 2 - half, (low + high) / 2 + half


def _diameters(
    axes: Axes, people: np.ndarray[Any, Any], nouns: tuple[str, str]
) -> np.ndarray[Any, Any]:
    """Return the circles' diameters in points; add a legend if small circles are enlarged."""
    largest = min(_MAX_DIAMETER, canvas.axes_size(axes)[1] / 10)
    exact: np.ndarray[Any, Any] = largest * np.sqrt(people / people.max())
    if exact.min() >= _MIN_DIAMETER:
        return exact
    enlarged = int(people.max() * (_MIN_DIAMETER / largest) ** 2)
    smallest = f"up to {plural(enlarged, *nouns)}"
    labels = {smallest: _MIN_DIAMETER, plural(int(people.max()), *nouns): largest}
    size = min(canvas.points("legend.fontsize"), 9)
    color = _color(axes)
    axes.legend(
        [
            Line2D([], [], linestyle="", marker="o", markersize=diameter, color=color)
            for diameter in labels.values()
        ],
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        fontsize=size,
        frameon=False,
        handlelength=largest / size,
        handleheight=largest / size,
    )
    return exact.clip(_MIN_DIAMETER)


def _color(axes: Axes) -> str:
    dark = canvas.luminance(canvas.background_color(axes)) < 0.5
    return canvas.SKY if dark else canvas.BLUE


def _draw_places(axes: Axes, places: pd.DataFrame, sizes: np.ndarray[Any, Any]) -> None:
    """Draw the circles, large ones first."""
    axes.scatter(
        places["longitude"],
        places["latitude"],
        s=sizes**2,
        color=_color(axes),
        alpha=0.75,
        edgecolors=[canvas.background_color(axes)],
        linewidths=0.5,
    )


def _label_places(axes: Axes, places: pd.DataFrame, sizes: np.ndarray[Any, Any], top: int) -> None:
    """Label the largest circles, each at a free position inside the map."""
    figure: Any = axes.figure.get_figure(root=True)
    figure.draw_without_rendering()
    size = min(canvas.points("xtick.labelsize"), 9)
    names = drawable(places["name"].head(top))
    families = list(fallback_families(names))
    spots = axes.transData.transform(places[["longitude", "latitude"]].to_numpy())
    radii = sizes / 2 * figure.dpi / 72
    color = canvas.text_color(axes)
    taken: list[Bbox] = []
    for row, name in enumerate(names):
        for gap, (x, y, ha, va) in product(_GAPS, _SIDES):
            distance = sizes[row] / 2 + gap
            line = {"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
            label = axes.annotate(
                f"{shorten(name, _MAX_LETTERS)} {count_text(places['people'][row])}",
                (places["longitude"][row], places["latitude"][row]),
                xytext=(x * distance, y * distance),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=size,
                fontfamily=families,
                color=color,
                path_effects=[withStroke(linewidth=2, foreground=canvas.background_color(axes))],
                arrowprops=line if gap > _GAPS[0] else None,
            )
            label.get_window_extent()  # positions the text; the result includes the line
            box = Text.get_window_extent(label)
            nearest = np.clip(spots, box.min, box.max)
            on_circle = (np.hypot(*(spots - nearest).T) < radii).any()
            # The line from the circle to the label's centre must not cross another label.
            to_label = Path([spots[row], box.get_points().mean(axis=0)])
            on_label = any(box.overlaps(one) or to_label.intersects_bbox(one) for one in taken)
            inside = axes.bbox.count_contains(box.get_points()) == 2
            if inside and not on_circle and not on_label:
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
