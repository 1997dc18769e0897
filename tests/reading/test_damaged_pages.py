"""Real pages with changed bytes: all readers return the same people or reject the page."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import sandbox, spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidResponseError
from tests.examples import share_of_examples
from tests.reading.pages import people_frame, read_people_page, read_slowly, read_twice

# JSON strings, numbers, names and punctuation.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\w]+|[][{}:,]')
_ODD: Final = [b"\x00", b"\n", b"\xff", b"\\", b'"', b"\\ud800", b"1e999", b"-0", b"null", b"{}"]


@pytest.fixture(scope="module")
def page() -> bytes:
    """Return a page of two people in the service's format."""
    with sandbox.serve(people=20) as running, Client(running.url, running.api_key) as client:
        body = {"page_size": 2, "page": 2}
        return client._session.read_dated(spec.SEARCH_PEOPLE, body, bytes).value


def damaged(page: bytes, data: st.DataObject) -> bytes:
    """Change a page in a few places, by tokens or bytes."""
    for _ in range(data.draw(st.integers(1, 3))):
        spans = [match.span() for match in _TOKEN.finditer(page)] or [(0, len(page))]
        some_span = st.one_of(
            st.sampled_from(spans),
            st.tuples(st.integers(0, len(page)), st.integers(1, 300)).map(
                lambda place: (place[0], min(sum(place), len(page)))  # noqa: B023
            ),
        )
        begin, end = data.draw(some_span)
        other_begin, other_end = data.draw(some_span)
        other = page[other_begin:other_end]
        new = data.draw(
            st.sampled_from([b"", page[begin:end] * 2, other, b",".join([other, page[begin:end]])])
            | st.sampled_from(_ODD)
            | st.integers(0, 255).map(lambda byte: bytes([byte]))
        )
        page = page[:begin] + new + page[end:]
    return page


def check(sent: bytes) -> None:
    """Check that all readers agree with the slow reader."""
    expected = read_slowly(sent)
    if expected is None:
        with pytest.raises(InvalidResponseError):
            read_people_page(sent)
    else:
        table, *envelope = expected
        page = read_people_page(sent)
        assert page.people.equals(table)
        assert [page.pagination, page.errors] == envelope
        people_frame([page])
        assert read_twice(sent).equals(table)


@share_of_examples(1)
@given(data=st.data())
def test_readers_agree_on_damaged_pages(page: bytes, data: st.DataObject) -> None:
    """All readers return the same people from a damaged page, or reject it."""
    check(damaged(page, data))
