"""The table of filters, and what tells which of them finds nobody."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from tests.scripted import Received, Reply, json, scripted


def test_the_table_has_every_filter() -> None:
    """There is a row per filter, with what is known of it and nothing else."""
    table = of.filters()
    assert table["name"].tolist() == [one.name for one in spec.FILTERS]
    assert table["type"].tolist() == [one.type for one in spec.FILTERS]
    known = [list(one.values or one.suggestions) or None for one in spec.FILTERS]
    assert [None if cell is pd.NA else cell for cell in table["values"]] == known
    excludes = [one.excludes or "" for one in spec.FILTERS]
    assert table["excludes"].fillna("").tolist() == excludes


def test_each_filter_and_value_is_left_out_in_turn(client: Client) -> None:
    """Each row counts the search without that filter or value, as count_people does."""
    search: dict[str, Any] = {
        "person_seniorities": ["vp", "directr"],
        "person_name": "a",
        "person_title_exact_match": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        table = of.explain_search(search)
        expected = [
            of.count_people(person_name="a"),
            of.count_people(person_seniorities=["directr"], person_name="a"),
            of.count_people(person_seniorities=["vp"], person_name="a"),
            of.count_people(person_seniorities=["vp"]),
            of.count_people(person_seniorities=["vp"], person_name="a"),
        ]
    by_row = {
        (row.filter, None if row.value != row.value else row.value): row.people_without
        for row in table.itertuples()
    }
    assert by_row == {
        ("person_seniorities", None): expected[0],
        ("person_seniorities", "vp"): expected[1],
        ("person_seniorities", "directr"): expected[2],
        ("person_name", "a"): expected[3],
        ("person_title_exact_match", "False"): expected[4],
    }
    assert table.attrs["total"] == expected[4]
    assert str(table["people_without"].dtype) == "Int64"


def test_a_search_with_no_filter_has_nothing_to_explain(client: Client) -> None:
    """Without filters the table is empty, with its columns, and the total is there."""
    table = of.explain_search()
    assert table.shape == (0, 3)
    assert table.attrs["total"] == of.count_people()


def nobody(_: Received) -> Reply:
    """Reply that nobody matches."""
    return json({"results": [], "_pagination": {"total": 0, "total_pages": 0}})


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"person_seniorities": ["VPs"]}, "person_seniorities='VPs'. Did you mean"),
        ({"person_departments": ["marketting"]}, "Did you mean .*marketing"),
        ({"company_sizes": ["a few"]}, "company_sizes='a few'"),
        ({"profnet_networks": ["all_network"]}, "Did you mean .*all_networks"),
    ],
)
def test_a_value_that_no_list_knows_is_named_where_nobody_matches(
    search: dict[str, Any], said: str
) -> None:
    """An empty search says which values are unknown, what was meant, and what tells more."""
    with scripted(nobody) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match=said) as caught:
            of.search_people(search)
        assert "of.explain_search" in str(caught[0].message)
        with pytest.warns(OutreachWarning, match=said):
            of.count_people(search)
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    "search",
    [
        {"person_seniorities": ["VP"]},
        {"person_titles": ["Xyzzy"]},
        {"profnet_networks": ["ada@acme.example"]},
        {},
    ],
)
def test_known_values_and_open_filters_are_no_suspects(search: dict[str, Any]) -> None:
    """Nobody for known values, or for filters that no list is known for, causes no warning."""
    with scripted(nobody) as service, of.connect(service.url, "token", cache=None):
        assert len(of.search_people(search)) == 0
