"""Pages of people in the cache are read back unchanged or rejected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.reading.fast_reader import PeoplePage
from outreach_frames.reading.pages import (
    FORMAT,
    PeopleReader,
    as_one_page,
    pack_page,
    read_people_page,
    unpack_page,
)
from tests.reading.pages import body
from tests.reading.people_strategies import odd_people, people

ERRORS: list[Any] = [[], [{"code": 7}], "text", {"a": [1.5, None]}, [10**30]]
PACKED = pack_page(read_people_page(body({"id": "1", "zz": [{"a": 1}]}, _errors=["x"])))


@given(st.lists(st.lists(people() | odd_people(), max_size=3), min_size=1, max_size=3))
def test_stored_pages_are_read_back_unchanged(pages: list[list[Any]]) -> None:
    """Stored pages are read back unchanged, together or one by one."""
    bodies = [
        body(*persons, _errors=ERRORS[number % len(ERRORS)]) for number, persons in enumerate(pages)
    ]
    together = as_one_page(PeopleReader().read(bodies))
    split = list(together.split())
    kept = [unpack_page(pack_page(page)) for page in split]
    assert kept == split
    assert as_one_page(split) == together
    assert [page.heads for page in split] == [read_people_page(one).heads for one in bodies]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        FORMAT,
        PACKED[:-1],
        PACKED[: len(PACKED) // 2],
        PACKED.replace(FORMAT, b"\0people-1"),
        PACKED[: len(FORMAT)] + b"\xff" * 8 + PACKED[len(FORMAT) + 8 :],
        FORMAT + b"\0" * 200,
        b'{"results": []}',
    ],
    ids=lambda content: f"{len(content)} bytes",
)
def test_other_data_is_rejected(content: bytes) -> None:
    """A truncated page, one of another version, and other data are rejected."""
    assert unpack_page(content) is None


@pytest.mark.parametrize(
    ("name", "values"), [("id", pa.array([7])), ("languages", pa.array(["x"]))]
)
def test_a_page_with_other_types_is_rejected(name: str, values: pa.Array) -> None:
    """A complete page with unexpected types is rejected."""
    page = read_people_page(body({"id": "1"}))
    people = page.people.set_column(page.people.column_names.index(name), name, values)
    assert unpack_page(pack_page(PeoplePage(people, page.heads))) is None


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_a_changed_byte_is_never_an_error(place: int, change: int) -> None:
    """A page with a changed byte is another page or rejected, never an error."""
    damaged = bytearray(PACKED)
    damaged[place] ^= change
    page = unpack_page(bytes(damaged))
    if page is not None:
        page.people.to_pylist()
