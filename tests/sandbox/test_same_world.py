"""The sandbox's world does not change between versions, because tests and reports quote it."""

from __future__ import annotations

import hashlib

import pytest

from outreach_frames.sandbox import serve
from tests.sandbox.http import Api

pytestmark = pytest.mark.long


def test_a_seed_has_the_world_of_earlier_versions() -> None:
    """The people, account and lists of a seed never change; the changelog mentions any change."""
    digest = hashlib.sha256()
    # Enough people for the maximum number of contacts.
    with serve(people=520, seed=3) as sandbox, Api(sandbox) as api:

        def add(*texts: object) -> None:
            digest.update("\n".join(map(str, texts)).replace(sandbox.url, "").encode())

        def add_people() -> None:
            add(*(api.search(page=page, page_size=100).text for page in range(1, 7)))

        add_people()
        ids = sandbox.contact_ids
        for start in range(0, len(ids), 20):
            add(api.get("/contacts", {"ids[]": ids[start : start + 20]}).text)
        add(api.get("/mailboxes").text, api.get("/sequences", {"page[size]": 100}).text)
        add(*(api.get(f"/lead-lists/{one}").text for one in sandbox.lead_list_ids))
        add(sandbox.exclusion_list, sandbox.recently_contacted)
        add(sandbox.draft_leads, sandbox.active_leads)
        add(sandbox.investors, sandbox.network_users, sandbox.school_ids)
        sandbox.advance(days=30)
        add_people()
    assert digest.hexdigest()[:12] == "59b2cdeb814f"
