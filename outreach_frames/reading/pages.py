"""Read pages of people from responses of people search; no I/O.

Arrow's JSON reader parses pages with the interface's types. If Arrow's reader fails or could change
a value, the slower `lenient_reader` parses the page, with the same columns, types and values, and
later pages with the same undocumented fields are read by the `learned_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import (
    BOM,
    Path,
    PeoplePage,
    check_size,
    page_head,
    read_documented,
)
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.lenient_reader import records_table
from outreach_frames.tables.json_values import parse_json

_GROUP_BYTES: Final = 16 << 20
_EXCERPT_LENGTH: Final = 120
_MAX_LEARNED: Final = 100

# What this process has learned from unusual pages, for all threads. It changes the speed only.
_learned: frozenset[Path] = frozenset()  # paths of fields that Arrow cannot read
_expects_learned = False  # whether the last page had any of these fields


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
    """Read responses in order; join consecutive pages if possible.

    `columns` limits the documented columns that are read, except of unusual pages.

    >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
    >>> [page.people.num_rows for page in read_people_pages([body, body])]
    [2]
    """
    pages: list[PeoplePage] = []
    for group in _groups(bodies):
        for body in group:
            check_size(body)
        pages += _read_group(group, columns, use_threads=use_threads)
    return pages


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Join consecutive pages into one.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {}}')
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    if len(pages) == 1:
        return pages[0]
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


def _read_group(
    bodies: Sequence[bytes], columns: Sequence[str] | None, *, use_threads: bool
) -> list[PeoplePage]:
    """Read bodies as one page in the fastest way, else one by one."""
    global _expects_learned
    for learned in dict.fromkeys([_learned] if _expects_learned else [frozenset(), _learned]):
        # Do not read again in an `except` block, which would keep the failed read in memory.
        with suppress(ValueError, pa.ArrowTypeError):
            pages, _expects_learned = _read_fast(bodies, learned, columns, use_threads=use_threads)
            return pages
    if len(bodies) == 1:
        return [_read_leniently(bodies[0])]
    return [page for body in bodies for page in _read_group([body], columns, use_threads=False)]


def _read_fast(
    bodies: Sequence[bytes],
    learned: frozenset[Path],
    columns: Sequence[str] | None,
    *,
    use_threads: bool,
) -> tuple[list[PeoplePage], bool]:
    """Read bodies, and return whether any has a learned field."""
    if columns is None and not learned:
        page = read_documented(bodies, use_threads=use_threads)
        return [PeoplePage(concat_people([page.people]), page.heads)], False
    from outreach_frames.reading import learned_reader  # noqa: PLC0415 - imports msgspec

    return learned_reader.read_learned(bodies, learned, columns, use_threads=use_threads)


def _learn(response: Mapping[str, Any]) -> None:
    """Learn the fields of a parsed response that Arrow cannot read, for all threads."""
    from outreach_frames.reading import learned_reader  # noqa: PLC0415 - imports msgspec

    global _learned  # noqa: PLW0603 - replaced as a whole, which needs no lock
    found = frozenset(learned_reader.unread_paths(response))
    if len(_learned | found) <= _MAX_LEARNED:
        _learned |= found
    elif len(found) <= _MAX_LEARNED:
        _learned = found


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
    _learn(result)
    head = page_head(len(people), pagination, result.get(spec.ERRORS_KEY))
    return PeoplePage(concat_people([records_table(people, spec.PERSON)]), [head])


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )
