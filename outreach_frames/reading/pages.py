"""Read pages of people from responses of people search; no I/O.

Arrow's JSON reader parses pages with the types that the fields have, as documented or as learned
from earlier pages; if few columns are chosen, msgspec parses these. If this fails or could change
a value, the slower `untyped_reader` parses the page, with the same columns, types and values, and
the types of the page's fields are learned.

In lists with elements of undocumented type (`locations`, `technologies`), text stays text, and
other elements become JSON with sorted names and without nulls. If a value does not fit its column's
type, the cell is missing, and the column `<column>_raw` has the value as text. An undocumented
field becomes a column at the end. The text column `further_fields` has one JSON object per row:
fields beyond 1,000 columns, and objects with a name of over 100 characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common.text import beginning
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import BOM, PeoplePage, page_head, read_columns, read_fast
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.learned_types import DOCUMENTED, PEOPLE_COLUMNS, Types, lay_out, learn
from outreach_frames.reading.untyped_reader import SCALAR_TYPES, Path, flatten_records, infer_column
from outreach_frames.tables.json_values import parse_body

# With more columns, the Arrow reader of whole pages is about as fast.
_MAX_CHOSEN_COLUMNS: Final = 100


class PeopleReader:
    """Reads responses of people search, and learns the types of their fields, for all threads."""

    def __init__(self) -> None:
        self._layout = lay_out(DOCUMENTED)

    def read(
        self, bodies: Sequence[bytes], columns: Sequence[str] | None = None
    ) -> list[PeoplePage]:
        """Read responses in order, as one page if possible; raise InvalidResponseError if invalid.

        `columns` are the documented columns that the caller needs; the pages may have more.

        >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
        >>> [page.people.num_rows for page in PeopleReader().read([body, body])]
        [2]
        """
        if not bodies:
            return []
        layout, chosen = self._layout, tuple(columns or ())
        # In lists of objects, undocumented members are read, too, with types that are learned.
        has_objects = any(PEOPLE_COLUMNS[name].members for name in chosen)
        # Do not read again in an `except` block, which would keep the failed read in memory.
        with suppress(ValueError, RecursionError, pa.ArrowTypeError):
            if chosen and len(chosen) <= _MAX_CHOSEN_COLUMNS and not has_objects:
                page = read_columns(bodies, chosen)
            else:
                page = read_fast(bodies, layout)
            return [PeoplePage(concat_people([page.people]), page.heads)]
        if len(bodies) != 1:
            return [page for body in bodies for page in self.read([body], columns)]
        page, *types = _read_untyped(bodies[0])
        learned = learn(layout.response, *types)
        if learned != layout.response:
            self._layout = lay_out(learned)  # one assignment, which needs no lock
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


def _read_untyped(body: bytes) -> tuple[PeoplePage, Types, Types]:
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
        raise _undocumented(body, "is not a JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _undocumented(body, f"lacks the list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _undocumented(body, f"lacks the object `{spec.PAGINATION_KEY}`")
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


def _undocumented(body: bytes, problem: str) -> InvalidResponseError:
    """Build the error for a readable body without people."""
    error = _invalid(body, problem)
    error.is_readable = True
    return error
