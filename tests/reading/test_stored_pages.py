"""Pages of people as the cache keeps them: they come back as they were, or not at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.reading.pages import as_one_page, read_people_page, read_people_pages
from outreach_frames.reading.stored_pages import FORMAT, pack_page, unpack_page
from tests.reading.pages import body
from tests.reading.people_strategies import odd_people, people

ERRORS: list[Any] = [[], [{"code": 7}], "text", {"a": [1.5, None]}, [10**30]]
PACKED = pack_page(read_people_page(body({"id": "1", "zz": [{"a": 1}]}, _errors=["x"])))


@given(st.lists(st.lists(people() | odd_people(), max_size=3), min_size=1, max_size=3))
def test_pages_come_back_as_they_were(pages: list[list[Any]]) -> None:
    """Whatever stands on pages, read as one or alone, is the same after it was kept."""
    bodies = [
        body(*persons, _errors=ERRORS[number % len(ERRORS)]) for number, persons in enumerate(pages)
    ]
    together = as_one_page(read_people_pages(bodies))
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
def test_anything_else_is_no_page(content: bytes) -> None:
    """What is cut off, of another version, or something else altogether is not believed."""
    assert unpack_page(content) is None


@pytest.mark.parametrize(
    ("notes", "columns"),
    [
        ("[" * 100_000, {}),
        ("[[], []]", {}),
        ("[{}, {}]", {}),
        ("[{}, []]", {"id": pa.array([7])}),
        ("[{}, []]", {"languages": pa.array(["x"])}),
    ],
    ids=["nested", "pagination", "errors", "number", "list"],
)
def test_a_page_of_another_make_is_no_page(notes: str, columns: dict[str, pa.Array]) -> None:
    """What is whole, but has other types than a page has, is not believed either."""
    page = read_people_page(body({"id": "1"}))
    people = page.people
    for name, values in columns.items():
        people = people.set_column(people.column_names.index(name), name, values)
    sink = pa.BufferOutputStream()
    schema = people.schema.with_metadata({b"outreach_frames": notes.encode()})
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(people.cast(schema))
    stream = sink.getvalue()
    packed = pa.compress(stream, codec="lz4", asbytes=True)
    assert unpack_page(FORMAT + stream.size.to_bytes(8, "big") + packed) is None


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_no_changed_byte_does_harm(place: int, change: int) -> None:
    """A page with a wrong byte is another page or none, and never an error."""
    damaged = bytearray(PACKED)
    damaged[place] ^= change
    page = unpack_page(bytes(damaged))
    if page is not None:
        page.people.to_pylist()
