"""Counts of people per value of a filter, or per combination of several filters."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServiceError
from tests.scripted import Received, Reply, json, scripted

SIZES = list(spec.SUGGESTED_COMPANY_SIZES)


@pytest.mark.usefixtures("client")
def test_each_row_counts_the_search_with_one_value() -> None:
    """Passed values keep their order without duplicates, and each row equals count_people."""
    given = ["vp", "c_suite", "vp"]
    counts = of.count_people(by="person_seniorities", person_seniorities=given)
    assert counts["person_seniorities"].cat.categories.tolist() == ["vp", "c_suite"]
    assert counts["person_seniorities"].cat.ordered
    assert counts["people"].dtype == "Int64"
    assert counts["people"].tolist() == [
        of.count_people(person_seniorities=[value]) for value in ("vp", "c_suite")
    ]
    assert counts.attrs == {
        "filters": {"person_seniorities": given},
        "total": of.count_people(person_seniorities=given),
    }


@pytest.mark.usefixtures("client")
def test_several_filters_count_each_combination() -> None:
    """Without values the known ones are counted, and a pivot table sorts sizes by number."""
    counts = of.count_people(
        by=["person_seniorities", "company_sizes"], person_seniorities=["vp", "head"]
    )
    assert list(counts) == ["person_seniorities", "company_sizes", "people"]
    table = counts.pivot(index="person_seniorities", columns="company_sizes", values="people")
    assert table.columns.tolist() == SIZES
    assert table.index.tolist() == ["vp", "head"]
    assert table.loc["head", "51-200"] == of.count_people(
        person_seniorities=["head"], company_sizes=["51-200"]
    )


@pytest.mark.usefixtures("client")
def test_a_wide_table_has_one_filter_by_another() -> None:
    """wide=True has the counts of the long table, and columns can be added to it."""
    by, given = ["person_seniorities", "company_sizes"], ["vp", "head"]
    counts = of.count_people(by=by, person_seniorities=given)
    table = of.count_people(by=by, wide=True, person_seniorities=given)
    assert table.stack().tolist() == counts["people"].tolist()
    assert (table.index.tolist(), table.columns.tolist()) == (given, SIZES)
    assert [table.index.name, table.columns.name] == by
    assert table.dtypes.eq("Int64").all()
    assert table.attrs == counts.attrs
    assert table.assign(all=table.sum(axis=1))["all"].tolist() == table.sum(axis=1).tolist()
    with pytest.warns(OutreachWarning, match="The counts add up to"):
        flags = of.count_people(by=["person_title_exact_match", "company_focuses"], wide=True)
    assert flags.index.tolist() == [True, False]


@pytest.mark.usefixtures("client")
def test_flags_and_texts_are_counted_too() -> None:
    """A flag has rows for True and False, and a text of the search has one row."""
    counts = of.count_people(
        by=["person_title_exact_match", "person_name"], person_titles=["manager"], person_name="mar"
    )
    assert counts["person_title_exact_match"].tolist() == [True, False]
    assert counts["person_name"].tolist() == ["mar", "mar"]
    assert counts["people"].iloc[1] == counts.attrs["total"]


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("company_size", {}, "Did you mean 'company_sizes'"),
    ("seniority", {}, "Did you mean 'person_seniorities'"),
    (["gender"], {}, r"is not a filter that includes people\. Call of"),
    ("company_exclude_names", {}, "not a filter that includes.*Did you mean 'company_names'"),
    ("company_names", {}, r"Pass company_names=\[...\] too"),
    ("person_name", {}, "Pass person_name='...' too"),
    ("profnet_networks", {}, r"Pass profnet_networks=\[...\] too"),
    (["company_sizes", "company_sizes"], {}, "twice"),
    ([], {}, "by is empty"),
    ([["company_sizes"]], {}, "is not a filter"),
    (5, {}, "not int"),
    ("company_sizes", {"max_requests": 8}, "takes 9 requests.*max_requests=8"),
    (["company_sizes", "person_seniorities"], {"max_requests": 80}, "takes 81 requests"),
    ("company_sizes", {"max_requests": 0}, "Pass 1 or more"),
    (None, {"wide": True}, "two filters, but by has 0"),
    ("company_sizes", {"wide": True}, "two filters, but by has 1"),
    (["company_sizes", "person_seniorities", "company_types"], {"wide": True}, "by has 3"),
]


def test_invalid_counts_send_no_request() -> None:
    """Columns, excluding filters, unknown values and too many requests are errors at once."""
    with scripted(lambda _: json({})) as service, of.connect(service.url, "t", cache=None):
        for by, others, words in REFUSED:
            with pytest.raises(InvalidInputError, match=words):
                of.count_people(by=by, **others)
    assert not service.requests


def counting(counts: dict[str, int], total: int, failing: str = "") -> Any:
    """Return a reply that counts people by the search's single company size."""

    def reply(request: Received) -> Reply:
        sizes = request.json.get("company_sizes", [])
        if sizes == [failing]:
            return json({"error": "no"}, status=400)
        found = counts.get(sizes[0], 0) if len(sizes) == 1 else total
        errors = [{"at": sizes}] if len(sizes) == 1 else []
        return json({"results": [], "_pagination": {"total": found}, "_errors": errors}, status=200)

    return reply


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (4, "some people match several of these values"),
        (9, "others match none of these values"),
        (5, ""),
    ],
)
def test_counts_that_do_not_add_up_are_warned_of(total: int, words: str) -> None:
    """Overlapping values, uncovered people and the service's errors cause warnings."""
    reply = counting({"1-10": 3, "11-50": 2}, total)
    with scripted(reply) as service, of.connect(service.url, "t", cache=None):
        with pytest.warns(OutreachWarning) as caught:
            counts = of.count_people(by="company_sizes", max_requests=9)
        told = [str(one.message) for one in caught]
    assert len(service.requests) == 9
    assert counts.attrs["total"] == total
    assert "8 errors" in told[0]
    assert "attrs" not in told[0]
    assert len(told) == 1 + bool(words)
    assert words in told[-1]


def test_misspelt_values_of_other_filters_are_named() -> None:
    """An unknown value is named in a warning, unless the table has its count."""
    reply = counting({"2-10": 3, "5O-200": 0}, 3)
    search = {"company_sizes": ["2-10", "5O-200"], "person_seniorities": ["directr"]}
    with scripted(reply) as service, of.connect(service.url, "t", cache=None):
        with pytest.warns(OutreachWarning) as caught:
            of.count_people(search, by="company_sizes", max_requests=3)
    told = str(caught[-1].message)
    assert len(service.requests) == 3
    assert "may match nobody: person_seniorities='directr'. Did you mean" in told
    assert "0-200" not in told


def test_an_error_keeps_the_counts_before_it() -> None:
    """The error has the rows that were counted before it."""
    reply = counting(dict.fromkeys(SIZES, 1), 8, failing="201-500")
    with scripted(reply) as service, of.connect(service.url, "t", cache=None):
        with pytest.raises(ServiceError) as caught:
            of.count_people(by="company_sizes")
        with pytest.raises(ServiceError) as caught_wide:
            of.count_people(
                by=["person_name", "company_sizes"], wide=True, person_name="a", refresh=True
            )
        with pytest.raises(ServiceError) as explained:
            of.explain_search(company_sizes=["201-500"], person_name="a")
    partial = caught.value.partial
    assert isinstance(partial, pd.DataFrame)
    assert partial["company_sizes"].tolist() == SIZES[:3]
    assert partial["people"].tolist() == [1, 1, 1]
    assert isinstance(wide := caught_wide.value.partial, pd.DataFrame)
    assert wide.iloc[0].tolist() == [1, 1, 1, *[pd.NA] * (len(SIZES) - 3)]
    assert wide.columns.tolist() == SIZES
    assert explained.value.partial is not None
