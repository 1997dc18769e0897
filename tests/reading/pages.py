"""Responses of people search for tests."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.lenient_reader import records_table


def body(*persons: Any, **more: Any) -> bytes:
    """Return the body of a search result."""
    return json.dumps({"results": persons, "_pagination": {"page": 1}, **more}).encode()


def read_leniently(persons: list[Any]) -> pa.Table:
    """Read parsed people with the lenient reader only, with the columns in a page's order."""
    return concat_people([records_table(persons, spec.PERSON)])
