"""Read pages of people from responses of people search; no I/O.

Arrow's JSON reader parses pages with the types that the fields have, as documented or as learned
from earlier pages. If it fails or could change a value, the slower `lenient_reader` parses the
page, with the same columns, types and values, and the types of the page's fields are learned.

In lists with elements of undocumented type (`locations`, `technologies`), text stays text, and
other elements become JSON with sorted names and without nulls. If a value does not fit its column's
type, the cell is missing, and the column `<column>_raw` has the value as text. An undocumented
field becomes a column at the end. The text column `further_fields` has one JSON object per row:
fields beyond 1,000 columns, and objects with a name of over 100 characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common.text import beginning
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import (
    BOM,
    PeoplePage,
    page_head,
    read_fast,
)
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.learned_types import DOCUMENTED, PEOPLE_COLUMNS, Types, lay_out, learn
from outreach_frames.reading.lenient_reader import SCALAR_TYPES, Path, flatten_records, infer_column
from outreach_frames.tables.json_values import parse_body

_CACHED_LAYOUTS: Final = 8


class PeopleReader:
    """Reads responses of people search, and learns the types of their fields, for all threads."""

    def __init__(self) -> None:
        self._learn(DOCUMENTED)

    def _learn(self, response: pa.StructType) -> None:
        # One assignment, which needs no lock.
        self._layout = lru_cache(_CACHED_LAYOUTS)(partial(lay_out, response))

    def read(
        self, bodies: Sequence[bytes], columns: Sequence[str] | None = None
    ) -> list[PeoplePage]:
        """Read responses in order, as one page if possible; raise InvalidResponseError if invalid.

        `columns` are the documented columns that the caller needs; the pages may have more.

        >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
        >>> [page.people.num_rows for page in PeopleReader().read([body, body])]
        [2]
        """
        # In lists of objects, undocumented members are read, too, which needs the whole page.
        is_plain = columns is not None and not any(PEOPLE_COLUMNS[one].members for one in columns)
        layout = self._layout(tuple(columns) if columns is not None and is_plain else None)
        # Do not read again in an `except` block, which would keep the failed read in memory.
        with suppress(ValueError, pa.ArrowTypeError):
            page = read_fast(bodies, layout)
            return [PeoplePage(concat_people([page.people]), page.heads)]
        if len(bodies) != 1:
            return [page for body in bodies for page in self.read([body], columns)]
        page, *types = _read_leniently(bodies[0])
        learned = learn(layout.response, *types)
        if learned != layout.response:
            self._learn(learned)
        return [page]


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Join consecutive pages into one.

    >>> (page,) = PeopleReader().read([b'{"results": [{"id": "1"}], "_pagination": {}}'])
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    if len(pages) == 1:
        return pages[0]
    people = concat_people([page.people for page in pages])
    return PeoplePage(people, [head for page in pages for head in page.heads])


def _read_leniently(body: bytes) -> tuple[PeoplePage, Types, Types]:
    """Read one body with Python's JSON parser; return the types of people's and other fields."""
    try:
        result = parse_body(body.removeprefix(BOM))
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
    head = page_head(len(people), pagination, result.get(spec.ERRORS_KEY))
    table, types = flatten_records(people, spec.PERSON)
    return PeoplePage(concat_people([table]), [head]), types, _other_types(result)


def _other_types(response: Mapping[str, Any]) -> Types:
    """Return the types of a response's fields other than people."""
    documented = {field.name for field in spec.PEOPLE_SEARCH_RESULT}
    types: dict[Path, pa.DataType] = {
        (name,): pa.struct([]) if response[name] == {} else infer_column([response[name]]).type
        for name in response.keys() - documented
    }
    for name, value in response[spec.PAGINATION_KEY].items():
        if type(value) in SCALAR_TYPES:
            types[spec.PAGINATION_KEY, name] = SCALAR_TYPES[type(value)]
    return types


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}; {beginning(body)}."
    )
