"""Responses of people search for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.reading.fast_reader import BOM, PeoplePage
from outreach_frames.reading.flatten import DtypeBackend, concat_people
from outreach_frames.reading.pages import PeopleReader
from outreach_frames.reading.untyped_reader import flatten_records
from outreach_frames.tables.json_values import parse_json
from outreach_frames.tables.schema import empty_table, to_frame


def body(*persons: Any, **more: Any) -> bytes:
    """Return the body of a search result."""
    return json.dumps({"results": persons, "_pagination": {"page": 1}, **more}).encode()


def read_people_page(sent: bytes) -> PeoplePage:
    """Read one response with a new reader."""
    (page,) = PeopleReader().read([sent])
    return page


def people_frame(
    pages: Sequence[PeoplePage | pa.Table], dtype_backend: DtypeBackend = "numpy_nullable"
) -> pd.DataFrame:
    """Join pages or tables of people into one frame."""
    tables = [page.people if isinstance(page, PeoplePage) else page for page in pages]
    return to_frame(concat_people(tables or [empty_table(spec.PERSON)]), dtype_backend)


def frame_of(people: list[Any], dtype_backend: DtypeBackend = "numpy_nullable") -> pd.DataFrame:
    """Read people as a search does."""
    return people_frame([read_people_page(body(*people))], dtype_backend)


def read_untyped(persons: list[Any]) -> pa.Table:
    """Read parsed people with the untyped reader only, with the columns in a page's order."""
    return concat_people([flatten_records(persons, spec.PERSON)[0]])


def read_twice(sent: bytes) -> pa.Table:
    """Read a page with a reader that has learned the types of its fields."""
    reader = PeopleReader()
    for _ in range(2):
        (page,) = reader.read([sent])
    return page.people


def read_slowly(sent: bytes) -> tuple[pa.Table, dict[str, Any], list[Any]] | None:
    """Read a page with plain Python objects, based only on the interface document."""
    try:
        result = parse_json(sent.removeprefix(BOM).decode())
        people, pagination = result[spec.RESULTS_KEY], result[spec.PAGINATION_KEY]
        errors = result.get(spec.ERRORS_KEY)
        if not isinstance(people, list):
            return None
        present = {name: value for name, value in pagination.items() if value is not None}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    listed = errors if isinstance(errors, list) else [] if errors is None else [errors]
    return read_untyped(people), present, listed
