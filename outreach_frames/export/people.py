"""People straight into a file: any number of them, resuming where an earlier run stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.common.atomic_files import expanded, resolve_links, unwritable
from outreach_frames.common.progress import progress_bar
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.export.checkpoint import Checkpoint
from outreach_frames.export.formats import Format, format_of
from outreach_frames.reading.raw_people import read_people_lines
from outreach_frames.resources.search import Search
from outreach_frames.resources.search_arguments import check_filters, check_limit, check_page_size
from outreach_frames.resources.split_search import SplittableSearch


def export_people(
    path: str | Path,
    filters: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    resume: bool = True,
    page_size: int | None = None,
    split_by: str | None = None,
    attrs: bool = True,
    refresh: bool = False,
    progress: bool | None = None,
    client: Client | None = None,
    **fields: Any,
) -> Path:
    """Search people, and write them to a file without ever holding them all in memory.

    What was read is kept in a folder ``.<name>.partial`` beside the file until it is whole. After
    a failure, Ctrl-C, or the end of the process, the same call goes on there. The file appears
    under its name, or takes the place of an earlier one, only when it is complete.

    Parameters
    ----------
    path : str or Path
        ``.csv``: what ``df.outreach.to_csv`` writes. ``.ndjson``: one person per line, in the JSON
        that the service sent. ``.parquet``: what ``df.outreach.to_parquet`` writes. A folder, that
        is a path with no ending: Parquet files of 10,000 people each. `read_prospects` reads all.
    filters : mapping, optional
        Search filters by name, for example from `load_filters`.
    limit : int or None
        How many people to write at most; None writes all that match.
    resume : bool
        Resume where an earlier call with the same arguments stopped; False starts over.
    page_size : int, optional
        People per request, 1 to 100; by default as many as are of use.
    split_by : str, optional
        As for `search_people`: one search per value of that filter, and the value that found a
        person in a column of the filter's name.
    attrs : bool
        Write into the metadata of Parquet what `.attrs` of a search has: its filters, such as the
        addresses of the colleagues in `profnet_networks`, and when they were asked. False for a
        file that others get.
    refresh : bool
        Ask the service even where the cache has a fresh response, as an export to NDJSON always
        does. The export's own responses are not put into the cache.
    progress : bool, optional
        Show a progress bar; by default in a notebook or terminal, when it takes a while.
    client : Client, optional
        By default the one of the last `connect`.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``.

    Returns
    -------
    Path
        The file, or the folder. It has the columns and dtypes of `search_people`, and each person
        once, in the service's order.

    Raises
    ------
    InvalidInputError
        A filter does not exist or has a wrong value; the path has another ending or cannot be
        written; another process exports to it; or what was kept there is of another export.
    ServiceError
        The service, or the way to it, failed; a note says how many people are kept.

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
    whole = Search(
        resolve(client),
        check_filters(filters, fields),
        limit=check_limit(limit),
        page_size=check_page_size(page_size),
        # The cache has tables, and NDJSON is what the service sent.
        refresh=refresh or kind.read is read_people_lines,
        store=False,
        read_bodies=kind.read,
    )
    search = SplittableSearch(whole, split_by)
    target = _place(expanded(path))
    with Checkpoint(target, _identity(whole, kind, split_by), resume=resume) as parts:
        try:
            _read(search, kind, parts, progress)
            # Free what reading needed before writing begins.
            pa.default_memory_pool().release_unused()
            order = None if split_by is None else (split_by, search.values)
            with parts.explained():
                kind.finish(parts, target, search.attrs if attrs else {}, order)
        except (OutreachError, KeyboardInterrupt) as error:
            _say_what_is_kept(error, parts)
            raise
        parts.remove()
    search.report(search.rows, in_frame=False)
    return expanded(path)


def _place(path: Path) -> Path:
    """Return the target's resolved path, so that two names of it share one checkpoint."""
    try:
        place = resolve_links(path)
    except OSError as error:
        raise unwritable(path, error) from error
    if not place.parent.is_dir():
        raise InvalidInputError(
            f"{path} cannot be written: there is no folder {place.parent}. Check the path, or make "
            "the folder first."
        )
    return place


def _identity(search: Search, kind: Format, split_by: str | None) -> dict[str, object]:
    """Return what identifies an export when it is resumed; no token."""
    identity: dict[str, object] = {
        "format": kind.name,
        "service": search.client.base_url,
        "account": search.client.account,
        "network_name": search.client.network_name,
        "filters": search.filters,
        "limit": search.limit,
        "page_size": search.size,
    }
    return identity if split_by is None else {**identity, "split_by": split_by}


def _read(search: SplittableSearch, kind: Format, parts: Checkpoint, progress: bool | None) -> None:
    """Read the search to its end from its checkpoint on, and store every part."""
    if parts.state is not None:
        search.resume(parts.state)
    search.errors = list(parts.errors)
    search.sightings_of = parts.sightings
    with progress_bar(
        search.expected, description="people", unit="people", progress=progress, done=search.rows
    ) as bar:
        for people in search.tables():
            rows = people
            if search.split_by is not None:
                rows = kind.label(people, search.split_by, search.values[search.index])
            state = {**search.state, "begins": parts.begins}
            parts.append(kind.encode(rows), state, search.errors[len(parts.errors) :])
            bar.total = search.expected
            bar.update(people.num_rows)


def _say_what_is_kept(error: BaseException, parts: Checkpoint) -> None:
    if parts.count:
        error.add_note(
            f"{parts.count:,} people are kept in {parts.folder}; the same call goes on there."
        )
    else:
        parts.remove()
