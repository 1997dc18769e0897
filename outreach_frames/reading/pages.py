"""Read pages of people from responses of people search; no I/O.

Arrow's JSON reader parses pages with the interface's types. If Arrow's reader fails or could change
a value, the slower `lenient_reader` parses the page, with the same columns, types and values.
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


# In lists with elements of undocumented type (`locations`, `technologies`), text stays text, and
# other elements become JSON with sorted names and without nulls. If a value does not fit its
# column's type, the cell is missing, and the column `<column>_raw` has the value as text. An
# undocumented field becomes a column at the end. The text column `further_fields` has one JSON
# object per row: fields beyond 1,000 columns, objects with a name of over 100 characters and, in
# large tables, very sparse fields.
def read_people_page(body: bytes) -> PeoplePage:
    """Read one response of people search; raise InvalidResponseError for other content.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> page.people.num_rows, page.pagination
    (1, {'total': 1})
    """
    (page,) = read_people_pages([body])
    return page


def read_people_pages(
    bodies: Sequence[bytes], *, use_threads: bool = True, columns: Sequence[str] | None = None
) -> list[PeoplePage]:
    """Read responses in order; join consecutive pages without undocumented fields.

    `columns` limits the documented columns that are read. Pages with undocumented fields are read
    whole.

    >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
    >>> [page.people.num_rows for page in read_people_pages([body, body])]
    [2]
    """
    pages: list[PeoplePage] = []
    for group in _groups(bodies):
        for body in group:
            check_size(body)
        if columns is not None:
            with suppress(ValueError):
                pages += _read_some_columns(group, columns)
                continue
        # Do not read again in an `except` block, which would keep the failed read in memory.
        with suppress(ValueError, pa.ArrowTypeError):
            if len(group) > 1:
                pages += read_fast(group, use_threads=use_threads)
                continue
        pages += map(_read_alone, group)
    return [as_one_page([page]) for page in pages]


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Join consecutive pages into one.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {}}')
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    people = concat_people([page.people for page in pages])
    return PeoplePage(people, [head for page in pages for head in page.heads])


def _groups(bodies: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Split bodies into groups of at most 16 MB to read together."""
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


def _read_some_columns(bodies: Sequence[bytes], columns: Sequence[str]) -> list[PeoplePage]:
    """Read some columns of pages without undocumented fields."""
    from outreach_frames.reading.some_columns import read_columns  # noqa: PLC0415 - imports msgspec

    return [read_columns(bodies, columns, must_be_documented=True)]


def _read_alone(body: bytes) -> PeoplePage:
    """Read one body, which may have undocumented fields."""
    with suppress(ValueError, pa.ArrowTypeError):
        (page,) = read_fast([body])
        return page
    return _read_leniently(body)


def _read_leniently(body: bytes) -> PeoplePage:
    """Read one body with Python's JSON parser."""
    try:
        result = parse_json(body.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise _invalid(body, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except ValueError as error:
        raise _invalid(body, f"is not valid JSON or is truncated ({error})") from error
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    if not isinstance(result, dict):
        raise _invalid(body, "is not a JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _invalid(body, f"lacks the list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _invalid(body, f"lacks the object `{spec.PAGINATION_KEY}`")
    return PeoplePage(records_table(people, spec.PERSON), [page_head(result)])


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )
