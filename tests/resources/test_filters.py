"""Filters: their table, types and signatures, unknown ones, and the one that matches nobody."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import typing
import uuid
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accessor import OutreachAccessor
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.resources.search_service import service_of
from tests.scripted import Received, Reply, as_sandbox, json, scripted
from tools import people_filters


def test_the_table_has_every_filter() -> None:
    """The table has one row per filter with its documented facts."""
    table = of.filters()
    assert table["name"].tolist() == [one.name for one in spec.FILTERS]
    assert table["type"].tolist() == [one.type for one in spec.FILTERS]
    known = [list(one.suggestions) or None for one in spec.FILTERS]
    assert [None if cell is pd.NA else cell for cell in table["values"]] == known
    excludes = [one.excludes or "" for one in spec.FILTERS]
    assert table["excludes"].fillna("").tolist() == excludes
    assert table["meaning"].fillna("").tolist() == [one.note for one in spec.FILTERS]
    assert table.columns.tolist()[-3:] == ["excludes", "meaning", "example"]


def test_every_example_can_be_searched(client: Client) -> None:
    """The service accepts each filter's example, which is a known value if there are any."""
    table = of.filters().set_index("name")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Nobody matches. Call", OutreachWarning)
        for name, example in table["example"].items():
            assert of.count_people({name: example}, client=client) >= 0
    known = table.dropna(subset="values")
    assert all(map(set.issuperset, map(set, known["values"]), map(set, known["example"])))


def test_each_filter_and_value_is_left_out_and_alone_in_turn(client: Client) -> None:
    """Each row counts the search without one filter or value, and with it alone."""
    search: dict[str, Any] = {
        "person_seniorities": ["vp", "directr"],
        "person_name": "a",
        "person_title_exact_match": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        table = of.explain_search(search)
        named, vp, odd = {"person_name": "a"}, ["vp"], ["directr"]
        both, exact = {"person_seniorities": [*vp, *odd]}, {"person_title_exact_match": False}
        expected: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {
            ("person_seniorities", None): (named, both),
            ("person_seniorities", "vp"): (
                named | {"person_seniorities": odd},
                {"person_seniorities": vp},
            ),
            ("person_seniorities", "directr"): (
                named | {"person_seniorities": vp},
                {"person_seniorities": odd},
            ),
            ("person_name", "a"): (both, named),
            ("person_title_exact_match", "False"): (named | both, exact),
        }
        counts = {
            row: tuple(of.count_people(one) for one in pair) for row, pair in expected.items()
        }
        total = of.count_people(search)
    by_row = {
        (row.filter, None if row.value != row.value else row.value): row[-2:]
        for row in table.itertuples(index=False)
    }
    assert by_row == counts
    assert table.attrs["total"] == total
    assert table.dtypes.astype(str).tolist() == ["str", "str", "Int64", "Int64"]


@pytest.mark.parametrize(
    ("search", "requests"),
    [({}, 1), ({"person_name": "a"}, 2), ({"person_name": "a", "person_titles": ["b", "c"]}, 7)],
)
def test_each_search_of_an_explanation_is_one_request(
    search: dict[str, Any], requests: int
) -> None:
    """An explanation sends at most two requests per row and one for all, each only once."""
    with scripted(nobody) as service, of.connect(service.url, "token", cache=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutreachWarning)
            table = of.explain_search(search)
    assert len(table) * 2 + 1 >= requests
    assert table.attrs["total"] == 0
    assert len(service.requests) == requests


def nobody(_: Received) -> Reply:
    """Reply that nobody matches the search."""
    return json({"results": [], "_pagination": {"total": 0, "total_pages": 0}})


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"person_seniorities": ["VPs"]}, "person_seniorities='VPs'. Did you mean"),
        ({"person_departments": ["marketting"]}, "Did you mean .*marketing"),
        ({"company_sizes": ["11-50 employees"]}, "Did you mean .11-50."),
        ({"person_seniorities": ["Director of Sales"]}, "Did you mean .director."),
        ({"company_sizes": ["a few"]}, "company_sizes='a few'"),
        ({"profnet_networks": ["all_network"]}, "Did you mean .*all_networks"),
        (
            {"person_seniorities": ["vp, director"]},
            "Pass 'vp' 'director', each as a separate",
        ),
        *(
            ({name: ["Germny"]}, r"^Nobody matches\. Call of.explain_search")
            for name in ("person_locations", "person_titles", "profnet_networks")
        ),
    ],
)
def test_an_empty_search_names_unknown_values(search: dict[str, Any], said: str) -> None:
    """A warning about an empty search names unknown values, suggestions and the next function."""
    with scripted(as_sandbox(nobody)) as service, of.connect(service.url, "token", cache=None):
        with pytest.warns(OutreachWarning, match=said) as caught:
            of.search_people(search)
        assert "of.explain_search" in str(caught[0].message)
        with pytest.warns(OutreachWarning, match=said):
            of.count_people(search)
    assert len(service.requests) == 2


def test_known_values_are_not_suspected() -> None:
    """Known values, ids and domains that match nobody cause no warning and no further request."""
    searches: list[dict[str, Any]] = [
        {"person_seniorities": ["vp"], "person_title_exact_match": True},
        {"company_domains": ["acme.example"], "company_ids": [str(uuid.UUID(int=7))]},
        {},
    ]
    with scripted(as_sandbox(nobody)) as service, of.connect(service.url, "token", cache=None):
        assert [len(of.search_people(search)) for search in searches] == [0, 0, 0]
    assert len(service.requests) == 3


LABELS = {"person_seniorities": ["C-Suite"], "company_sizes": ["501-1000 employees"]}


def test_the_values_of_a_service_are_not_doubted() -> None:
    """Nothing is said of a service's own labels, except that nobody matches."""
    for name, label in LABELS.items():
        with scripted(service_of(3)) as service, of.connect(service.url, "token", cache=None):
            assert len(of.search_people({name: label})) == of.count_people({name: label}) == 3
        with scripted(nobody) as service, of.connect(service.url, "token", cache=None):
            with pytest.warns(OutreachWarning, match=r"^Nobody matches\. Call of.explain") as told:
                of.search_people({name: label})
            assert len(told) == 1


LISTS = [one for one in spec.FILTERS if len(one.suggestions) > 1]


@pytest.mark.parametrize("known", LISTS, ids=lambda known: known.name)
def test_a_misspelt_value_among_others_is_named_once(known: spec.Filter, tmp_path: Path) -> None:
    """Each function names a misspelt value in a warning, once per client, without a request.

    One filter is tested with all functions, and every filter with two functions.
    """
    right = known.suggestions[-1]
    values = pd.Series([right, *{f"{right}z", right.upper().replace("_", " ")} - {right}])
    calls: list[Callable[..., object]] = [
        of.search_people,
        of.count_people,
        of.explain_search,
        lambda search: of.export_people(tmp_path / "a.csv", search),
        lambda search: of.snapshot_people(tmp_path / "snapshots", search),
        lambda search: pd.DataFrame({"x": ["a.example"]}).outreach.find_people(search, domain="x"),
    ]
    for call in calls if known is LISTS[0] else calls[:2]:
        with (
            scripted(as_sandbox(service_of(3))) as service,
            of.connect(service.url, "token", cache=None),
        ):
            with pytest.warns(OutreachWarning, match="may match nobody: ") as caught:
                result = call({known.name: values})
            message = str(caught[0].message)
            for wrong in values[1:]:
                assert f"{known.name}={wrong!r}. Did you mean {right!r}" in message
            if isinstance(result, AccountPeople):
                assert len(service.requests) == result.requests
            elif call not in (of.count_people, of.explain_search):
                assert all(request.json["page_size"] > 1 for request in service.requests)
            before = len(service.requests)
            of.count_people({known.name: tuple(values)})
            assert len(service.requests) == before + 1


FUNCTIONS: list[Callable[..., object]] = [
    of.search_people,
    of.count_people,
    of.explain_search,
    partial(of.export_people, "people.csv"),
    partial(of.snapshot_people, "snapshots"),
    pd.DataFrame({"Website": ["a.example"]}).outreach.find_people,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_an_unknown_filter_suggests_similar_names(function: Callable[..., object]) -> None:
    """An unknown filter is an error that suggests similar filters or arguments."""
    with scripted([]) as service, of.connect(service.url, "token", cache=None):
        with pytest.raises(
            InvalidInputError, match=r"Did you mean 'person_titles'.*of\.filters"
        ) as e:
            function(person_title=["CEO"])
        assert not any(word in str(e.value) for word in ("spec", "takes"))
        with pytest.raises(
            InvalidInputError, match=r"mean 'person_titles' or 'person_title_exact_match'\? Call"
        ):
            function(title="CEO")
        with pytest.raises(InvalidInputError, match=r"takes client=\. Call"):
            function(clint=None, cleint=1)
        with pytest.raises(InvalidInputError, match=r"'xyzzy' .* takes .*client=\. Call of.filt"):
            function(xyzzy=True)
        assert not service.requests


def test_find_people_names_its_columns_for_a_filter_of_companies() -> None:
    """A column passed as a company filter is an error that names the argument for it."""
    accounts = pd.DataFrame({"Website": ["a.example"]})
    given: dict[str, Any] = {"company_domain": "Website"}
    with pytest.raises(InvalidInputError, match=r"Did you mean '.*s'.*find_people takes domain="):
        accounts.outreach.find_people(**given)


WITH_FILTERS = (
    of.search_people,
    of.count_people,
    of.explain_search,
    of.export_people,
    of.snapshot_people,
    of.save_filters,
)
CODE = """\
import pandas as pd
import outreach_frames as of

of.search_people(person_senioritys=["vp"])
of.count_people(person_senioritys=["vp"])
of.explain_search(person_senioritys=["vp"])
of.export_people("people.csv", person_senioritys=["vp"])
of.snapshot_people("people", person_senioritys=["vp"])
of.save_filters("search.json", person_senioritys=["vp"])
of.outreach(pd.DataFrame()).find_people(person_senioritys=["vp"])
of.outreach(pd.DataFrame()).find_people(company_names=["Acme"])
of.search_people(person_titles="CEO")
of.search_people(person_titles=[1])
of.search_people(person_name=["Ada"])
filters: of.PeopleFilters = {"person_titles": pd.Series(["CEO"]), "company_ids": {"a"}}
of.search_people("search.json", limit=5, person_seniorities=("vp",), person_name=None)
of.search_people(filters)
of.search_people(**filters)
"""
FAULTS = set(range(4, 15))  # expected error lines; the last four calls are valid


def filters_of(function: Callable[..., Any]) -> list[str]:
    """Return the filters in a function's signature."""
    return [name for name in inspect.signature(function).parameters if name in spec.FILTERS_BY_NAME]


def test_the_types_are_those_of_the_interface() -> None:
    """The module with the filter types is up to date with its generator."""
    kept = people_filters.MODULE.read_text(encoding="utf-8")
    assert kept == people_filters.module_text(), "run `python -m tools.people_filters`"
    assert typing.get_type_hints(of.PeopleFilters).keys() == spec.FILTERS_BY_NAME.keys()
    assert of.PeopleFilters.__required_keys__ == frozenset()


def test_the_signatures_have_the_filters() -> None:
    """A signature lists the filters after the other arguments, in the interface's order."""
    for function in WITH_FILTERS:
        *names, last = inspect.signature(function).parameters
        assert filters_of(function) == [one.name for one in spec.FILTERS] == names[-30:]
        assert last == "fields"
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
        assert typing.get_type_hints(function).keys() >= {"filters", "fields"}
    taken = inspect.signature(of.search_people).parameters["person_titles"]
    assert str(taken) == "person_titles: 'ListOfText | None' = None"
    assert taken.kind is inspect.Parameter.KEYWORD_ONLY


def test_find_people_has_no_company_filters() -> None:
    """find_people's signature has no company filters, because the table names the companies."""
    companies = {"company_ids", "company_names", "company_domains", "company_profnet_urls"}
    shown = filters_of(OutreachAccessor.find_people)
    assert shown == [one.name for one in spec.FILTERS if one.name not in companies]


@pytest.mark.slow
def test_type_checkers_find_misspelled_filters(tmp_path: Path) -> None:
    """Type checkers report a misspelled filter or a value of a wrong type on its line."""
    (tmp_path / "search.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "outreach_frames").symlink_to(Path(of.__file__).parent)
    options = ("--strict", "--no-error-summary", "--hide-error-context")
    command = (sys.executable, "-m", "mypy", *options, "search.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "error:" in line and "search.py" in line]
    assert {int(line.split("search.py:")[1].split(":")[0]) for line in errors} == FAULTS, done
