"""Cursor pagination: the cursor is an item's id; a page has the items after or before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outreach_frames import spec
from outreach_frames.sandbox.faults import Call
from outreach_frames.sandbox.rules import DEFAULT_PAGE_SIZE, bad_request, link

Item = Mapping[str, Any]
SIZE, AFTER, BEFORE = spec.PAGE_SIZE.name, spec.PAGE_AFTER.name, spec.PAGE_BEFORE.name


def paginate(items: Sequence[Item], call: Call) -> tuple[list[Item], dict[str, dict[str, str]]]:
    """Return the requested page of a list and its links.

    A cursor may name an item that the filters exclude; its position in the whole list counts. If
    the endpoint has no `page[before]`, the `prev` link uses `page[after]`.
    """
    path, query = call.path, dict(call.query)
    size = int(query.get(SIZE, DEFAULT_PAGE_SIZE))
    filters = {name: value for name, value in query.items() if name not in (AFTER, BEFORE)}
    if AFTER in query and BEFORE in query:
        raise bad_request(f"{AFTER} and {BEFORE} cannot be combined")
    places = {item["id"]: place for place, item in enumerate(items)}
    for name in (AFTER, BEFORE):
        if name in query and query[name] not in places:
            raise bad_request(f"{name} must be the id of an item in this list")
    kept = [
        item
        for item in items
        if all(_matches(item, name, value) for name, value in filters.items() if name != SIZE)
    ]
    start, stop = 0, size
    if BEFORE in query:
        stop = sum(places[item["id"]] < places[query[BEFORE]] for item in kept)
        start = max(0, stop - size)
    elif AFTER in query:
        start = sum(places[item["id"]] <= places[query[AFTER]] for item in kept)
        stop = start + size
    page = kept[start:stop]
    links = {"self": link(path, query)}
    if stop < len(kept):
        links["next"] = link(path, filters | ({AFTER: page[-1]["id"]} if page else {}))
    if start > 0 and page:
        if spec.PAGE_BEFORE in call.endpoint.query:
            links["prev"] = link(path, filters | {BEFORE: page[0]["id"]})
        elif start > size:
            links["prev"] = link(path, filters | {AFTER: kept[start - size - 1]["id"]})
        else:
            links["prev"] = link(path, filters)
    return page, links


def _matches(item: Item, name: str, value: str) -> bool:
    """Check a filter: names contain the value, emails ignore case, other fields are equal."""
    if name == "name":
        return value.casefold() in item[name].casefold()
    if name.endswith("_email"):
        return value.lower() in {"", item[name].lower()}
    return bool(item[name] == value)
