"""Export any number of people to a file, and resume an interrupted export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.atomic_files import expanded, resolve_links, unwritable
from outreach_frames.common.progress import progress_bar
from outreach_frames.errors import InvalidInputError, OutreachError, shorten_traceback
from outreach_frames.export.checkpoint import Checkpoint
from outreach_frames.export.formats import FORMATS, format_of, with_label
from outreach_frames.resources.people import without_added
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.search import Search
from outreach_frames.resources.search_arguments import (
    check_columns,
    check_filters,
    check_limit,
    check_page_size,
    shows_filters,
)


@shows_filters()
def export_people(
    path: str | Path,
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    resume: bool = True,
    page_size: int | None = None,
    split_by: str | None = None,
    attrs: bool = True,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Unpack[PeopleFilters],
) -> Path:
    """Search people, and write them to a file without holding them all in memory.

    A folder ``.<name>.partial`` next to the file stores the progress until the export is complete.
    After a failure, Ctrl-C, or the end of the process, a repetition resumes. The file is created,
    or replaces an earlier file, only when the export is complete.

    Parameters
    ----------
    path : str or Path
        ``.csv``: the format of ``df.outreach.to_csv``. ``.parquet``: the format of
        ``df.outreach.to_parquet``. A path without a suffix: a folder of Parquet files of 10,000
        people each, which Dask, Polars, DuckDB and Spark read in parallel. `read_prospects` reads
        all these formats. Next to a CSV file, a small metadata file stores the search and a
        checksum.
    filters : mapping or path, optional
        Search filters by name, or the path of a search that `save_filters` saved.
    columns : list of str, optional
        As for `search_people`.
    limit : int or None
        Maximum number of people to write; by default all.
    resume : bool
        Resume an interrupted export with the same arguments; resume=False starts over.
    page_size : int, optional
        People per request, 1 to 100; chosen automatically by default.
    split_by : str, optional
        A filter whose values are searched one by one. A column with the filter's name has the
        value, as for `search_people`.
    attrs : bool
        Write the search's `.attrs`, such as its time and filters, to the file's metadata, from
        which `read_prospects` restores them. Pass False for a file that you share: filters may hold
        your colleagues' emails (`profnet_networks`).
    refresh : bool
        Send requests even if the cache has fresh responses. The responses to an export are not
        cached.
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
        The file or folder, with the columns and dtypes of `search_people`. Each person occurs once,
        in the service's order.

    Raises
    ------
    InvalidInputError
        A filter or column does not exist, or has a wrong value; the path has an unknown suffix or
        cannot be written; another process exports to it; or its partial folder belongs to a
        different export.
    ServiceError
        The service or the connection failed; a note on the error gives the number of stored people.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     path = of.export_people(
    ...         Path(tempfile.mkdtemp()) / "directors.csv", person_seniorities=["director"]
    ...     )
    >>> of.read_prospects(path).shape[1]
    262
    """
    kind = format_of(path)
    chosen = check_columns(columns, [split_by])
    search = Search(
        resolve(client),
        check_filters(filters, fields, export_people),
        limit=check_limit(limit),
        page_size=check_page_size(page_size),
        refresh=refresh,
        store=False,
        columns=without_added(chosen, [split_by]),
        split_by=split_by,
    )
    target = _resolved(expanded(path))
    with Checkpoint(target, _identity(search, kind, chosen), resume=resume) as parts:
        if parts.state is not None:
            with parts.explained():
                search.resume(parts.state)
        try:
            _read(search, parts, progress)
            # Free the reader's memory before writing.
            pa.default_memory_pool().release_unused()
            split = None if split_by is None else (split_by, search.values)
            with parts.explained():
                FORMATS[kind](parts, target, search.attrs if attrs else {}, split)
        except (OutreachError, KeyboardInterrupt) as error:
            _note_progress(error, parts)
            shorten_traceback(error)
            raise
        parts.remove()
    search.report(search.rows)
    return expanded(path)


def _resolved(path: Path) -> Path:
    """Resolve the links in a path, so that all paths to one target share its checkpoint."""
    try:
        target = resolve_links(path)
    except OSError as error:
        raise unwritable(path, error) from error
    if not target.parent.is_dir():
        raise InvalidInputError(
            f"{path} cannot be written: the folder {target.parent} does not exist. Check the path, "
            "or create the folder."
        )
    return target


def _identity(search: Search, kind: str, columns: Sequence[str] | None) -> dict[str, object]:
    """Return the settings that must be equal to resume an export; the token may differ."""
    return {
        "format": kind,
        "service": search.client.base_url,
        "account": search.client._session.account,
        "network_name": search.client._session.network_name,
        "filters": search.filters,
        "limit": search.limit,
        "page_size": search.people_per_page(search.limit),
        "split_by": search.split_by,
        "columns": columns,
    }


def _read(search: Search, parts: Checkpoint, progress: bool | None) -> None:
    """Read the search from its checkpoint to the end, and store each part."""
    search.errors = list(parts.errors)
    search.record_ids = parts.record_ids
    with progress_bar(
        search.expected, description="people", unit="people", progress=progress, done=search.rows
    ) as bar:
        for people in search.tables():
            labelled = people
            if search.split_by is not None:
                labelled = with_label(people, search.split_by, search.value)
            if parts.columns is not None:
                labelled = labelled.select(parts.columns)
            parts.append(labelled, search.state, search.errors[len(parts.errors) :])
            bar.total = search.expected
            bar.update(people.num_rows)


def _note_progress(error: BaseException, parts: Checkpoint) -> None:
    if parts.count:
        error.add_note(
            f"{parts.count:,} people are kept in {parts.folder}. Repeat the call to resume."
        )
    else:
        parts.remove()
