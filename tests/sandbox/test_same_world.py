"""The sandbox's world does not change between versions, because tests and reports quote it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pytest

from outreach_frames.sandbox import serve
from tests.sandbox.http import Api

pytestmark = pytest.mark.long

# The first digits of each part's hash; the changelog must mention every change of them.
PARTS = {
    "people": "c437f1213ffa",
    "contacts": "a419ea1d76fa",
    "mailboxes": "1c9bff664ca3",
    "sequences": "bc75776199b3",
    "lead lists": "a35dc57d2bd6",
    "known leads": "c56f62c24892",
    "filters": "98c4842e5ca1",
    "people a month later": "b42239003a1b",
}


def test_a_seed_has_the_world_of_earlier_versions() -> None:
    """People, contacts, mailboxes, sequences and lists of a seed never change."""
    # Enough people for the maximum number of contacts.
    with serve(people=520, seed=3) as sandbox, Api(sandbox) as api:

        def texts(path: str, *queries: dict[str, object]) -> Iterable[str]:
            return (api.get(path, query).text for query in queries or [{}])

        def people() -> Iterable[str]:
            return (api.search(page=page, page_size=100).text for page in range(1, 7))

        ids = sandbox.contact_ids
        groups = [ids[start : start + 20] for start in range(0, len(ids), 20)]
        contents = {
            "people": people(),
            "contacts": texts("/contacts", *({"ids[]": group} for group in groups)),
            "mailboxes": texts("/mailboxes"),
            "sequences": texts("/sequences", {"page[size]": 100}),
            "lead lists": (api.get(f"/lead-lists/{one}").text for one in sandbox.lead_list_ids),
            "known leads": [
                repr([sandbox.exclusion_list, sandbox.recently_contacted, sandbox.draft_leads]),
                repr(sandbox.active_leads),
            ],
            "filters": [repr([sandbox.investors, sandbox.network_users, sandbox.school_ids])],
        }
        found = {part: digits(content, sandbox.url) for part, content in contents.items()}
        sandbox.advance(days=30)
        found["people a month later"] = digits(people(), sandbox.url)
    assert found == PARTS


def digits(content: Iterable[str], url: str) -> str:
    """Return the first digits of a hash."""
    text = "\n".join(content).replace(url, "")
    return hashlib.sha256(text.encode()).hexdigest()[:12]
