"""Responses of people search -> pages of people, with no I/O.

Pages go through Arrow's JSON reader with the interface's types. Where that reader fails, or could
not be faithful, a page goes through `lenient_reader` instead: the same columns, types and values,
more slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import (
    BOM,
    PeoplePage,
    check_size,
    page_head,
    read_fast,
)
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.lenient_reader import records_table
from outreach_frames.tables.json_values import parse_json

_GROUP_BYTES: Final = 16 << 20
_EXCERPT_LENGTH: Final = 120


def read_people_page(body: bytes) -> PeoplePage:
    """Read one response of people search.

    Arrays whose elements the interface does not show (`locations`, `technologies`) are lists of
    text: an element that is not text is kept as JSON, names sorted and null members left out.
    A value that does not fit its column's type is missing there and kept as text in a column
    `<column>_raw`; a field that the interface does not know is kept as a column at the end. Beyond
    1,000 such columns, a text column `further_fields` has the rest, each row's as a JSON object.
    That column also has objects with names of over 100 characters, and, of very many rows, fields
    that hardly any row has.

    Parameters
    ----------
    body : bytes
        JSON in UTF-8.

    Returns
    -------
    PeoplePage
        The people, `_pagination` and `_errors`.

    Raises
    ------
    InvalidResponseError
        When the body is not a people search result: not valid JSON, cut off, of another shape, or
        with more than a million values.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> page.people.num_rows, page.pagination
    (1, {'total': 1})
    """
    (page,) = read_people_pages([body])
    return page


def read_people_pages(bodies: Sequence[bytes], *, use_threads: bool = True) -> list[PeoplePage]:
    """Read several responses of people search, as one where that is possible, which is faster.

    Parameters
    ----------
    bodies : sequence of bytes
        JSON in UTF-8, as for `read_people_page`; at least one.
    use_threads : bool, default True
        Read with several threads; where several read at the same time anyway, it only costs.

    Returns
    -------
    list of PeoplePage
        In order: several that hold nothing undocumented as one, any other by itself.

    Raises
    ------
    InvalidResponseError
        When a body is not a people search result.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
    >>> [page.people.num_rows for page in read_people_pages([body, body])]
    [2]
    """
    pages: list[PeoplePage] = []
    for group in _groups(bodies):
        for body in group:
            check_size(body)
        # Suppressed, an exception does not keep what was read before it in memory.
        with suppress(ValueError, pa.ArrowTypeError):
            if len(group) > 1:
                pages += read_fast(group, use_threads=use_threads)
                continue
        pages += map(_read_alone, group)
    return [as_one_page([page]) for page in pages]


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Put pages that follow each other into one.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {}}')
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    people = concat_people([page.people for page in pages])
    return PeoplePage(people, [head for page in pages for head in page.heads])


def _groups(bodies: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Split bodies into groups that are read at once."""
    group: list[bytes] = []
    size = 0
    for body in bodies:
        if group and size + len(body) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(body)
        size += len(body)
    if group:
        yield group


def _read_alone(body: bytes) -> PeoplePage:
    """Read a body by itself, whatever fields it has."""
    with suppress(ValueError, pa.ArrowTypeError):
        (page,) = read_fast([body])
        return page
    return _read_leniently(body)


def _read_leniently(body: bytes) -> PeoplePage:
    """Read a body by way of Python objects."""
    try:
        result = parse_json(body.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise _invalid(body, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except ValueError as error:
        raise _invalid(body, f"is not valid JSON, or is cut off ({error})") from error
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    if not isinstance(result, dict):
        raise _invalid(body, "is not a JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _invalid(body, f"has no list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _invalid(body, f"has no object `{spec.PAGINATION_KEY}`")
    return PeoplePage(records_table(people, spec.PERSON), [page_head(result)])


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )
