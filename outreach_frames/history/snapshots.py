"""The same search, kept day by day: one folder of Parquet files for each day."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.atomic_files import expanded, unreadable, unwritable
from outreach_frames.common.text import quoted, shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.export.checkpoint import kept_filters
from outreach_frames.export.people import export_people
from outreach_frames.files.read import parts_of
from outreach_frames.resources.search_arguments import check_filters

KEY: Final = "snapshot"
_NAME: Final = re.compile(rf"{KEY}=(\d{{4}}-\d{{2}}-\d{{2}})")
_UNFINISHED: Final = re.compile(rf"\.{_NAME.pattern}\.partial")


class Snapshot(NamedTuple):
    """A day's folder."""

    date: str
    path: Path


def snapshot_people(
    folder: str | Path,
    filters: Mapping[str, Any] | None = None,
    *,
    date: str | datetime.date | None = None,
    split_by: str | None = None,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Any,
) -> Path:
    """Search people, and keep everybody who matches as the snapshot of a day.

    The service is always asked anew. Any number of people fits; after an interruption the same call
    for the same day goes on where it stopped. A snapshot that is there is replaced once the new one
    is whole.

    Parameters
    ----------
    folder : str or Path
        Where the snapshots of this one search are; it is made where it is missing.
    filters : mapping, optional
        Search filters by name, for example from `load_filters`.
    date : str or date, optional
        The day, as text YYYY-MM-DD; by default today in this machine's time zone.
    split_by : str, optional
        As for `export_people`.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, when it takes a while.
    client : Client, optional
        By default the one of the last `connect`.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``.

    Returns
    -------
    Path
        The folder ``snapshot=<date>``, with Parquet files of 10,000 people each.

    Raises
    ------
    InvalidInputError
        The folder has snapshots of another search, cannot be written, or another process takes that
        day's snapshot; a filter does not exist or has a wrong value; the date is not one.
    ServiceError
        The service, or the way to it, failed; a note says how many people are kept.

    Notes
    -----
    Interface: POST /people/search. The folder is a Hive-partitioned data set: DuckDB, Polars, Dask
    and Spark read ``folder/snapshot=*/*.parquet`` as it is, with the day in a column ``snapshot``.
    It holds personal data: `forget` finds people in it, and SECURITY.md says who can read it.

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
    day = _day(date)
    body = check_filters(filters, fields)
    connected = resolve(client)
    place = expanded(folder)
    _require_same_search(place, day, body, split_by)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(place, error) from error
    return export_people(
        place / f"{KEY}={day}",
        body,
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
        What `snapshot_people` was given.

    Returns
    -------
    DataFrame
        One row per snapshot, the oldest first: date (datetime64), people (Int64), filters (object,
        a dict) and path (str). People and filters are missing where the files cannot be read.

    Raises
    ------
    InvalidInputError
        There is no such folder.

    Warns
    -----
    OutreachWarning
        A snapshot cannot be read, is not finished, or lacks people who matched.

    Notes
    -----
    Read from the Parquet files themselves; there is no catalogue to keep in step.

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
    place = expanded(folder)
    found = list(list_snapshots(place))
    facts: list[tuple[int | None, Any]] = []
    for one in found:
        try:
            people, attrs = count_people(one.path), read_attrs(one.path)
            facts.append((people, attrs.get("filters")))
            total = attrs.get("total")
            if isinstance(total, int) and people < total:
                warn(f"The snapshot of {one.date} has {people:,} of the {total:,} who matched.")
        except InvalidInputError as error:
            warn(f"{error} Take the snapshot of {one.date} again, or delete that folder.")
            facts.append((None, None))
    for message in unfinished(place):
        warn(message)
    return pd.DataFrame(
        {
            "date": pd.array([one.date for one in found], dtype="datetime64[us]"),
            "people": pd.array([people for people, _ in facts], dtype="Int64"),
            "filters": pd.Series([filters for _, filters in facts], dtype=object),
            "path": pd.array([str(one.path) for one in found], dtype="str"),
        }
    )


def list_snapshots(folder: Path) -> Iterator[Snapshot]:
    """Yield the snapshots in a folder, the oldest first."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise unreadable(folder, error) from error
    for name in names:
        match = _NAME.fullmatch(name)
        if match and _is_date(match[1]):
            yield Snapshot(match[1], folder / name)


def unfinished(folder: Path) -> Iterator[str]:
    """Say which snapshots in a folder were begun and are not finished."""
    for path in sorted(folder.iterdir()):
        match = _UNFINISHED.fullmatch(path.name)
        if match and path.is_dir():
            yield (
                f"The snapshot of {match[1]} in {folder} is not finished. The same call with "
                f'date="{match[1]}" goes on there; delete {path.name} if nobody needs it.'
            )


def count_people(path: Path) -> int:
    """Count the people in a folder of Parquet files, from their metadata."""
    with reading(path):
        return sum(pq.read_metadata(part).num_rows for part in parts_of(path))


def read_attrs(path: Path) -> dict[str, Any]:
    """Return the `.attrs` that are noted in a folder of Parquet files."""
    with reading(path):
        return noted_attrs(pq.read_metadata(parts_of(path)[0]).metadata)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise errors of Parquet files as errors that say which."""
    try:
        yield
    except InvalidInputError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    # A column that is there twice is a KeyError.
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise InvalidInputError(f"{path} is damaged: {shorten(str(error))}.") from error


def noted_attrs(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return the `.attrs` that pandas notes in the metadata of Parquet."""
    notes = json.loads((metadata or {}).get(b"pandas", b"{}"))
    attrs = notes.get("attributes") if isinstance(notes, dict) else None
    return attrs if isinstance(attrs, dict) else {}


def as_said(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return filters in the form in which they are compared: the order of values says nothing.

    >>> as_said({"person_titles": ["CTO", "CEO", "CTO"]})
    {'person_titles': ['CEO', 'CTO']}
    """
    return {
        name: _in_order(value) if isinstance(value, list) else value
        for name, value in filters.items()
    }


def _in_order(values: list[Any]) -> list[Any]:
    # By their text: a filter of a file that others wrote may hold anything.
    by_text = {str(value): value for value in values}
    return [by_text[text] for text in sorted(by_text)]


def filter_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say in which filters two searches differ.

    >>> filter_differences({"person_titles": ["CEO"]}, {"person_titles": ["CTO"]})
    ["person_titles was ['CEO'], and is ['CTO']"]
    """
    old, new = as_said(before), as_said(after)
    return [
        f"{name} was {_shown(old, name)}, and is {_shown(new, name)}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _shown(filters: Mapping[str, Any], name: str) -> str:
    return "not set" if filters.get(name) is None else quoted(filters[name])


def _require_same_search(
    folder: Path, day: str, filters: Mapping[str, Any], split_by: str | None
) -> None:
    """Refuse a folder with snapshots of another search, finished or not."""
    if not folder.is_dir():
        return
    for name, search in _searches(folder, day):
        changed = filter_differences(search, {"split_by": split_by, **filters})
        if changed:
            raise InvalidInputError(
                f"{folder} has snapshots of another search: in {name}, {'; '.join(changed)}. "
                "Keep each search in a folder of its own."
            )


def _searches(folder: Path, day: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the newest snapshot, and the day's unfinished one, were asked for."""
    for one in reversed(list(list_snapshots(folder))):
        try:
            attrs = read_attrs(one.path)
        except InvalidInputError:
            continue
        if "filters" in attrs:
            yield one.path.name, {"split_by": attrs.get("split_by"), **attrs["filters"]}
            break
    kept = kept_filters(folder / f"{KEY}={day}")
    if kept is not None:
        yield f".{KEY}={day}.partial", {"split_by": None, **kept}


def _day(date: object) -> str:
    """Return a day as YYYY-MM-DD."""
    if date is None:
        return datetime.datetime.now().astimezone().date().isoformat()
    if isinstance(date, datetime.date) and not pd.isna(date):
        # A Timestamp and a datetime are dates too, with a time that does not count here.
        return date.isoformat()[:10]
    if isinstance(date, str) and _is_date(date):
        return date
    raise InvalidInputError(
        f'date={quoted(date)} is not a day. Give one as text, such as "2026-11-30", or a date.'
    )


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
