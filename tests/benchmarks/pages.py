"""Pages of a people search in the sandbox, for benchmarks."""

from __future__ import annotations

from contextlib import closing

from outreach_frames import spec
from outreach_frames.sandbox.records import open_world
from outreach_frames.sandbox.search import PeopleIndex


def people_pages(pages: int, *, page_size: int = spec.MAX_SEARCH_PAGE_SIZE) -> list[bytes]:
    """Make the response bodies of a search for everybody."""
    with closing(open_world(pages * page_size, 0)) as store:
        index = PeopleIndex(store.connection)
        return [_body(index, number, pages, page_size) for number in range(1, pages + 1)]


def _body(index: PeopleIndex, number: int, pages: int, page_size: int) -> bytes:
    total, people = index.search({}, page=number, page_size=page_size)
    return (
        b'{"object":"person_search_result","results":[%b],"_pagination":'
        b'{"page":%d,"page_size":%d,"total_pages":%d,"total":%d}}'
        % (b",".join(people), number, page_size, pages, total)
    )
