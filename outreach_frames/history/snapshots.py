"""Store the same search every day, in one folder of Parquet files per day."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack

import pandas as pd
import pyarrow.parquet as pq

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_day, is_day
from outreach_frames.common.atomic_files import expanded, unreadable, unwritable
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.export.people import export_people
from outreach_frames.files.parquet import reading
from outreach_frames.files.provenance import attrs_in_parquet
from outreach_frames.files.read import parts_of
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.search_arguments import check_columns, check_filters, shows_filters

PARTITION_KEY: Final = "snapshot"
_NAME: Final = re.compile(rf"{PARTITION_KEY}=(\d{{4}}-\d{{2}}-\d{{2}})")
_UNFINISHED: Final = re.compile(rf"\.{_NAME.pattern}\.partial")


@shows_filters()
def snapshot_people(
    folder: str | Path,
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    date: str | datetime.date | None = None,
    split_by: str | None = None,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> Path:
    """Search people, and store all matching people as the snapshot of a day.

    The cache is never used, and the number of people is not limited. After an interruption, a
    repetition on the same day resumes. An existing snapshot of that day is replaced when the new
    snapshot is complete.

    Parameters
    ----------
    folder : str or Path
        The folder of this search's snapshots; it is created if missing.
    filters : mapping or path, optional
        Search filters by name, or the path of a search that `save_filters` saved.
    columns : list of str, optional
        As for `search_people`. `compare_people` needs "id" or "profnet_url", and compares the
        columns that both snapshots have.
    date : str or date, optional
        The day, as YYYY-MM-DD or a date; by default today in this machine's time zone.
    split_by : str, optional
        A filter whose values are searched one by one. See `export_people`.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, for long runs.
    client : Client, optional
        By default the client of the last `connect`.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``; they override
        `filters`.

    Returns
    -------
    Path
        The folder ``snapshot=<date>``, with Parquet files of 10,000 people each.

    Raises
    ------
    InvalidInputError
        The folder has snapshots of another search or cannot be written; another process takes the
        snapshot of that day; a filter does not exist or has a wrong value; or the date is invalid.
    ServiceError
        The service or the connection failed; a note on the error gives the number of stored people.

    Notes
    -----
    Interface: POST /people/search. The folder is a Hive-partitioned data set: DuckDB, Polars, Dask
    and Spark read ``folder/snapshot=*/*.parquet`` directly, with the day in a column ``snapshot``.
    The folder holds personal data: `forget` finds people in its files, and SECURITY.md says who can
    read them.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     path = of.snapshot_people(
    ...         tempfile.mkdtemp(), date="2026-11-01", person_seniorities=["vp"]
    ...     )
    >>> path.name
    'snapshot=2026-11-01'
    """
    day = check_day("date", date).date().isoformat()
    body = check_filters(filters, fields, snapshot_people)
    chosen = check_columns(columns, [split_by])
    if chosen is not None and not {"id", "profnet_url"}.intersection(chosen):
        warn(
            f"{terms.function('compare_people')} cannot compare this snapshot: "
            f"{terms.name('columns')} has neither 'id' nor 'profnet_url' to match people by. Add "
            "one of these columns."
        )
    connected = resolve(client)
    root = expanded(folder)
    _require_same_search(root, body, split_by)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(root, error) from error
    return export_people(
        root / f"{PARTITION_KEY}={day}",
        body,
        columns=chosen,
        split_by=split_by,
        refresh=True,
        progress=progress,
        client=connected,
    )


def snapshots(folder: str | Path) -> pd.DataFrame:
    """List the snapshots in a folder.

    Parameters
    ----------
    folder : str or Path
        The folder passed to `snapshot_people`.

    Returns
    -------
    DataFrame
        One row per snapshot, the oldest first: date (datetime64), people (Int64, their number),
        filters (object, a dict) and path (str). `people` and `filters` are missing if the files
        cannot be read.

    Raises
    ------
    InvalidInputError
        The folder does not exist.

    Warns
    -----
    OutreachWarning
        A snapshot cannot be read, is unfinished, or lacks matching people.

    Notes
    -----
    The list is read from the Parquet files; no catalogue is stored.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> folder = tempfile.mkdtemp()
    >>> with of.connect("sandbox", cache=None):
    ...     _ = of.snapshot_people(folder, date="2026-11-01", person_seniorities=["vp"])
    >>> of.snapshots(folder)[["date", "people"]]
            date  people
    0 2026-11-01      61
    """
    root = expanded(folder)
    rows: list[tuple[str, int | None, Any, str]] = []
    for date, path in list_snapshots(root):
        people, attrs = None, {}
        try:
            people, attrs = count_stored_people(path), read_attrs(path)
        except InvalidInputError as error:
            warn(f"{error} Take the snapshot of {date} again, or delete its folder.")
        total = attrs.get("total")
        if people is not None and type(total) is int and people < total:
            warn(f"The snapshot of {date} has {people:,} of {total:,} matching people.")
        rows.append((date, people, attrs.get("filters"), str(path)))
    for message in describe_unfinished(root):
        warn(message)
    dtypes = {"date": "datetime64[us]", "people": "Int64", "filters": object, "path": STR}
    return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)


def list_snapshots(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the day and the path of each snapshot in a folder, the oldest first."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise unreadable(folder, error) from error
    for name in names:
        match = _NAME.fullmatch(name)
        if match and is_day(match[1]):
            yield match[1], folder / name


def describe_unfinished(folder: Path) -> Iterator[str]:
    """Yield a warning per unfinished snapshot in a folder."""
    for path in sorted(folder.iterdir()):
        match = _UNFINISHED.fullmatch(path.name)
        if match and path.is_dir():
            yield (
                f"The snapshot of {match[1]} in {folder} is not finished. Repeat "
                f"{terms.function('snapshot_people')} with {terms.argument('date', match[1])} to "
                f"resume the snapshot, or delete {path.name}."
            )


def count_stored_people(path: Path) -> int:
    """Count the people in a folder of Parquet files, from their metadata."""
    with reading(path):
        return sum(pq.read_metadata(part).num_rows for part in parts_of(path))


def read_attrs(path: Path) -> dict[str, Any]:
    """Return the `.attrs` stored in a folder of Parquet files."""
    with reading(path):
        return attrs_in_parquet(pq.read_metadata(parts_of(path)[0]).metadata, path)


def filter_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Describe the filters in which two searches differ; the order of values does not matter.

    >>> filter_differences({"person_titles": ["CEO"]}, {"person_titles": ["CTO"]})
    ["person_titles was ['CEO'] and is now ['CTO']"]
    """
    # Text, because filters from a file of another program may hold values of any type.
    old, new = (
        {
            name: sorted(set(map(str, value))) if isinstance(value, list) else value
            for name, value in filters.items()
        }
        for filters in (before, after)
    )
    return [
        f"{name} was {_filter_text(old, name)} and is now {_filter_text(new, name)}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _filter_text(filters: Mapping[str, Any], name: str) -> str:
    return "not set" if filters.get(name) is None else quoted(filters[name])


def _require_same_search(folder: Path, filters: Mapping[str, Any], split_by: str | None) -> None:
    """Reject a folder whose newest snapshot is of another search."""
    for _, path in reversed(list(list_snapshots(folder)) if folder.is_dir() else []):
        try:
            attrs = read_attrs(path)
        except InvalidInputError as error:
            warn(f"{error} The filters of that snapshot were not compared with this search.")
            continue
        if "filters" not in attrs:
            continue
        before = {"split_by": attrs.get("split_by"), **attrs["filters"]}
        if changed := filter_differences(before, {"split_by": split_by, **filters}):
            raise InvalidInputError(
                f"{folder} has snapshots of another search: in {path.name}, "
                f"{'; '.join(changed)}. Use a separate folder per search."
            )
        return
