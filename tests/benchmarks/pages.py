"""Pages of a people search in the sandbox, for benchmarks."""

from __future__ import annotations

import sqlite3

from outreach_frames import spec
from outreach_frames.sandbox.population import fill
from outreach_frames.sandbox.search import PeopleIndex


def people_pages(pages: int, *, page_size: int = spec.MAX_SEARCH_PAGE_SIZE) -> list[bytes]:
    """Make the response bodies of a search for everybody."""
    connection = sqlite3.connect(":memory:")
    try:
        fill(connection, people=pages * page_size, seed=0)
        index = PeopleIndex(connection)
        return [_body(index, number, pages, page_size) for number in range(1, pages + 1)]
    finally:
        connection.close()


def _body(index: PeopleIndex, number: int, pages: int, page_size: int) -> bytes:
    total, people = index.search({}, page=number, page_size=page_size)
    return (
        b'{"object":"person_search_result","results":[%b],"_pagination":'
        b'{"page":%d,"page_size":%d,"total_pages":%d,"total":%d}}'
        % (b",".join(people), number, page_size, pages, total)
    )
