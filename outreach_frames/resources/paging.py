"""Read the pages of a listing into one frame."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import resolve
from outreach_frames.client.error_bodies import describe_errors, read_errors, service_words
from outreach_frames.common import terms
from outreach_frames.common.arguments import check_optional_choice, check_text
from outreach_frames.common.progress import progress_bar
from outreach_frames.common.text import plural
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidResponseError, OutreachError, shorten_traceback
from outreach_frames.reading.fast_reader import list_of_errors
from outreach_frames.reading.flatten import DtypeBackend, check_dtype_backend, records_frame


def list_frame(
    client: Client | None,
    endpoint: spec.Endpoint,
    filters: Mapping[str, str | None],
    *,
    dtype_backend: DtypeBackend,
    refresh: bool,
    progress: bool | None,
) -> pd.DataFrame:
    """Read a listing into a frame, one row per item in the service's order."""
    check_dtype_backend(dtype_backend)
    known = {field.name: field for field in endpoint.query}
    checked = {
        name: check_optional_choice(name, value, known[name].values)
        if known[name].values
        else check_text(name, value)
        for name, value in filters.items()
    }
    given = {name: value for name, value in checked.items() if value is not None}
    query = {**given, spec.PAGE_SIZE.name: known[spec.PAGE_SIZE.name].maximum}

    def framed(records: list[Any]) -> pd.DataFrame:
        return records_frame(records, endpoint.listed.members, dtype_backend)

    pages = resolve(client)._session.read_pages(endpoint, query=query, refresh=refresh)
    listed = read_items(pages, endpoint, framed, progress, identity=record_id)
    frame = framed(listed.items)
    frame.attrs.update(filters=given, total=len(frame), fetched_at=now(), errors=listed.errors)
    return frame


class Listed(NamedTuple):
    """A complete listing: its first page, distinct items and errors."""

    first: Mapping[str, Any]
    items: list[Any]
    errors: list[Any]


def read_items(
    pages: Iterable[dict[str, Any]],
    endpoint: spec.Endpoint,
    framed: Callable[[list[Any]], pd.DataFrame],
    progress: bool | None,
    *,
    identity: Callable[[Any], str | None],
) -> Listed:
    """Read all pages of a listing, and drop items with a repeated `identity`."""
    key = endpoint.listed.name
    first: Mapping[str, Any] = {}
    items: list[Any] = []
    errors: list[Any] = []
    with (
        progress_bar(None, description=key, unit=key, progress=progress) as bar,
        keeping_partial(lambda: framed(items)),
    ):
        for page in pages:
            more = page_items(page, endpoint)
            first = first or page
            items.extend(more)
            errors.extend(list_of_errors(page.get(spec.ERRORS_KEY)))
            bar.update(len(more))
    # Items are repeated if the service's data changes between pages.
    first_of: dict[object, Any] = {}
    for item in items:
        first_of.setdefault(identity(item) or object(), item)
    once = list(first_of.values())
    report_repeats(len(items) - len(once), key)
    report_errors(errors)
    return Listed(first, once, errors)


def page_items(page: object, endpoint: spec.Endpoint) -> list[Any]:
    """Return the items of a page, or raise InvalidResponseError."""
    key = endpoint.listed.name
    items = page.get(key) if isinstance(page, dict) else None
    if not isinstance(items, list):
        raise InvalidResponseError(
            f"The response lacks the list {key!r}. "
            "Check the service's address, which was passed or set in OUTREACH_BASE_URL.",
            request=endpoint.label,
            reason=service_words(page),
        )
    return items


def record_id(record: Any) -> str | None:
    """Return a record's id, or None if the record has no id."""
    identity = record.get("id") if isinstance(record, dict) else None
    return identity if isinstance(identity, str) else None


def content_key(record: Any) -> str | None:
    """Return a record's content as a key, because the meaning of its id is undocumented."""
    return None if record_id(record) is None else json.dumps(record, sort_keys=True)


def report_repeats(count: int, noun: str) -> None:
    """Warn of repeated items."""
    if count:
        warn(
            f"The service returned {count} of the {noun} twice; the duplicates were dropped. The "
            f"service's data changed between pages, so other {noun} may be missing. Pass "
            f"{terms.argument('refresh', True)} to read again."
        )


@contextmanager
def keeping_partial(
    frame_so_far: Callable[[], pd.DataFrame], client: Client | None = None
) -> Iterator[None]:
    """On an error or Ctrl-C, attach the rows read so far to the exception as `.partial`.

    A client is that of a read whose responses it caches.
    """
    try:
        yield
    except (OutreachError, KeyboardInterrupt) as error:
        frame = frame_so_far()
        # KeyboardInterrupt does not declare the attribute.
        error.partial = frame  # type: ignore[union-attr]
        if len(frame):
            error.add_note(f"{plural(len(frame), 'row')} had been read. {how_to_continue(client)}")
        shorten_traceback(error)
        raise


def how_to_continue(client: Client | None) -> str:
    """Return where an interrupted read has its rows, and how to read on if they are cached."""
    where = terms.wording(
        "The exception's .partial has them; in a notebook, sys.last_value.partial.",
        in_shell="They were not saved.",
    )
    cache = None if client is None else client._session.cache
    is_cached = cache is not None and cache.is_open
    return f"{where} Repeat the call to continue from the cache." if is_cached else where


def now() -> str:
    """Return the current time as ISO 8601 text, to the second."""
    return moment(time.time())


def moment(unix: float) -> str:
    """Return a Unix time as ISO 8601 text, to the second.

    >>> moment(1.5)
    '1970-01-01T00:00:01+00:00'
    """
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="seconds")


def report_errors(errors: list[Any], filters: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Warn once of the errors that the service reported with its results."""
    if errors:
        warn(
            f"The service reported {plural(len(errors), 'error')} with its results: "
            f"{describe_errors(read_errors(errors), filters)}"
        )
