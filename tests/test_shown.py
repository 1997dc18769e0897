"""Messages and views show a useful part of unlimited data, and count the remaining part."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import OutreachError, OutreachWarning
from tests.accounts.world import world_of
from tests.resources.search_service import connected
from tests.scripted import json, scripted

pytestmark = pytest.mark.long


def said(call: Callable[[], object]) -> str:
    """Return a call's warnings or its error message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutreachWarning)
        try:
            call()
        except OutreachError as error:
            return str(error)
    return "\n".join(str(one.message) for one in caught)


def numbered(count: int, name: str = "c") -> list[str]:
    """Return this many names."""
    return [f"{name}{number:02}" for number in range(count)]


def test_a_plan_shows_the_first_lines_of_a_lead() -> None:
    """A plan shows at most 20 lines of the first lead, each of at most 100 characters."""
    for fields, ending in ((15, "\n}\n"), (16, "\n…\n")):
        # Five of the lines contain the address and brackets, and no data fields.
        frame = pd.DataFrame({name: ["x" * 150] for name in numbered(fields)})
        plan = frame.assign(email="ada@x.example").outreach.plan("seq_1", data=list(frame))
        shown = repr(plan).partition("First lead:\n")[2].partition("Nothing has")[0]
        lead = textwrap.dedent(shown)
        assert len(lead.splitlines()) == 20 + (fields > 15)
        assert lead.endswith(ending)
    assert max(map(len, lead.splitlines())) == 100


def test_positions_are_the_first_five(client: Any) -> None:
    """The error for entries that are not text shows the first five positions."""
    for wrong, ending in ((5, "0, 1, 2, 3, 4)"), (6, "0, 1, 2, 3, 4, …)")):
        assert ending in said(partial(of.search_people, person_titles=[1] * wrong))


def test_a_reported_error_is_cut() -> None:
    """An error reported by the service is shown with up to 200 characters."""
    page = {"sequences": [], "_links": {}, "_errors": ["e" * 500]}
    with scripted([json(page)]) as service, connected(service):
        text = said(of.sequences)
    assert re.search("'e{198}…", text)
    assert not re.search("e{199}", text)


def test_a_cell_of_several_domains_shows_three() -> None:
    """Three of a cell's domains are named if it cannot be searched."""
    world = world_of({"one.example": 1})
    cells = ["a.example, b.example, c.example, d.example", "one.example"]
    with scripted(world.reply) as service, connected(service):
        found = pd.DataFrame({"site": cells}).outreach.find_people(domain="site")
    detail = found.accounts["account_detail"][0]
    assert detail.endswith("holds several domains: a.example, b.example, c.example")


def test_a_missing_key_lists_twenty_columns() -> None:
    """The error for a missing key lists twenty of the table's columns."""
    tables = [pd.DataFrame(columns=numbered(21, name)) for name in ("a", "b")]
    text = said(lambda: tables[0].outreach.without(tables[1]))
    assert "'b19'" in text
    assert "b20" not in text
