"""Pages are read alike, whatever undocumented fields earlier pages had."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.pages import as_one_page, read_people_pages
from tests.examples import share_of_examples
from tests.reading.pages import read_slowly
from tests.reading.people_strategies import responses_at_every_level

CHOSEN = ["id", "company_name", "company_founded_year", "experiences"]
THREADS = 3


def check(bodies: Sequence[bytes]) -> None:
    """Check that threads that learn from each other read pages as the lenient reader does."""
    expected = [read_slowly(one) for one in bodies]

    def read(start: int) -> None:
        order = [(start + number) % len(bodies) for number in range(len(bodies))]
        sent = [bodies[number] for number in order]
        if None in expected:
            with pytest.raises(InvalidResponseError):
                read_people_pages(sent)
            return
        wanted = [expected[number] for number in order]
        people = concat_people([page[0] for page in wanted if page])
        found = as_one_page(read_people_pages(sent))
        assert found.people.schema.equals(people.schema)
        assert found.people.equals(people)
        heads = [[head.rows, head.pagination, head.errors] for head in found.heads]
        assert heads == [[len(page[0]), *page[1:]] for page in wanted if page]
        some = as_one_page(read_people_pages(sent, CHOSEN)).people
        assert some.select(CHOSEN).equals(people.select(CHOSEN))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, range(THREADS)))


@share_of_examples(1)
@example([b'{"took":3,"results":[{"zz":1}],"_pagination":{}}'] * 3)
@given(st.lists(responses_at_every_level(), min_size=1, max_size=4))
def test_pages_do_not_depend_on_what_was_learned(bodies: list[bytes]) -> None:
    """Threads that learn names from random pages read them as the lenient reader does."""
    check(bodies)
