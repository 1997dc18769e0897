"""Limits: 500 companies per search, and three names per detail."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.accounts.world import Firm, World
from tests.resources.search_service import connected, result
from tests.scripted import scripted


def test_a_search_asks_for_at_most_500_companies() -> None:
    """The companies of a long table are split into searches that the service accepts."""
    accounts = pd.DataFrame({"site": [f"firm{number}.example" for number in range(1001)]})
    nobody = result([], total=0, page=1, page_size=100, total_pages=0)
    with scripted(lambda _: nobody) as service, connected(service):
        accounts.outreach.find_people(domain="site")
    asked = sorted(len(request.json["company_domains"]) for request in service.requests)
    assert asked == [1, 500, 500]


@pytest.mark.parametrize(("firms", "ending"), [(3, "Acme 3"), (4, "Acme 3, ...")])
def test_a_detail_names_three_companies(firms: int, ending: str) -> None:
    """If a name finds several companies, the detail has their number and the first three names."""
    numbers = range(1, firms + 1)
    world = World([Firm(one, f"a{one}.example", f"Acme {one}", ["vp"]) for one in numbers])
    everybody = result([person for _, person in world.people])
    with scripted(lambda _: everybody) as service, connected(service):
        found = pd.DataFrame({"name": ["Acme"]}).outreach.find_people(name="name")
    detail = found.accounts["account_detail"].item()
    assert detail == f"{firms} companies: Acme 1, Acme 2, {ending}"
