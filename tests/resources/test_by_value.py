"""Counts and searches of people per value of a filter."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServiceError
from tests.examples import share_of_examples
from tests.resources.search_service import connected
from tests.scripted import Received, Reply, as_sandbox, json, scripted

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
def test_pivoted_counts_have_one_filter_by_another() -> None:
    """The pivoted counts keep the values' order, with sizes sorted by number."""
    by, given = ["person_seniorities", "company_sizes"], ["vp", "head"]
    counts = of.count_people(by=by, person_seniorities=given, company_sizes=SIZES)
    assert list(counts) == [*by, "people"]
    table = counts.pivot(index=by[0], columns=by[1], values="people")
    one = {"person_seniorities": ["head"], "company_sizes": ["51-200"]}
    assert table.loc["head", "51-200"] == of.count_people(one)
    assert (table.index.tolist(), table.columns.tolist()) == (given, SIZES)
    assert table.dtypes.eq("Int64").all()


@pytest.mark.usefixtures("client")
def test_flags_and_texts_are_counted_too() -> None:
    """A flag has rows for True and False, and a text of the search has one row."""
    counts = of.count_people(
        by=["person_title_exact_match", "person_name"], person_titles=["manager"], person_name="mar"
    )
    assert counts["person_title_exact_match"].tolist() == [True, False]
    assert counts["person_name"].tolist() == ["mar", "mar"]
    assert counts["people"].iloc[1] == counts.attrs["total"]


FLAGS: dict[str, Any] = {"company_sizes": SIZES, "company_focuses": ["b2b", "b2c"]}
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("company_size", {}, "Did you mean 'company_sizes'"),
    ("seniority", {}, "Did you mean 'person_seniorities'"),
    (["gender"], {}, r"is not a filter that includes people\. Call of"),
    ("company_exclude_names", {}, "not a filter that includes.*Did you mean 'company_names'"),
    ("company_names", {}, r"Pass company_names= too"),
    ("person_name", {}, "Pass person_name= too"),
    ("profnet_networks", {}, r"Pass profnet_networks= too"),
    (["company_sizes", "company_sizes"], {}, "twice"),
    ([], {}, "by is empty"),
    ([["company_sizes"]], {}, "is not a filter"),
    (5, {}, "not int"),
    ("company_sizes", {}, "service.s values of company_sizes are not known.*= too"),
    ("company_sizes", {"company_sizes": SIZES, "max_requests": 8}, "9 requests.*max_requests=8"),
    (["company_sizes", "company_focuses"], {**FLAGS, "max_requests": 16}, "takes 17 requests"),
    ("company_sizes", {"max_requests": 0}, "Pass 1 or more"),
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
            counts = of.count_people(by="company_sizes", max_requests=9, company_sizes=SIZES)
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
    with scripted(as_sandbox(reply)) as service, of.connect(service.url, "t", cache=None):
        with pytest.warns(OutreachWarning) as caught:
            of.count_people(search, by="company_sizes", max_requests=3)
    told = str(caught[-1].message)
    assert len(service.requests) == 3
    assert "may match nobody: person_seniorities='directr'. Did you mean" in told
    assert "0-200" not in told


@pytest.mark.usefixtures("client")
def test_the_sandbox_counts_its_own_values() -> None:
    """A sandbox that has answered counts its values of a filter that the search does not set."""
    of.count_people()
    assert of.count_people(by="company_sizes")["company_sizes"].tolist() == SIZES


def test_an_error_keeps_the_counts_before_it() -> None:
    """The error has the rows that were counted before it."""
    reply = counting(dict.fromkeys(SIZES, 1), 8, failing="201-500")
    with scripted(reply) as service, of.connect(service.url, "t", cache=None):
        with pytest.raises(ServiceError) as caught:
            of.count_people(by="company_sizes", company_sizes=SIZES)
        with pytest.raises(ServiceError) as explained:
            of.explain_search(company_sizes=["201-500"], person_name="a")
    partial = caught.value.partial
    assert isinstance(partial, pd.DataFrame)
    assert partial["company_sizes"].tolist() == SIZES[:3]
    assert partial["people"].tolist() == [1, 1, 1]
    assert explained.value.partial is not None


TITLES = ["Head", "Manager", "Director", "of", "a"]


def one_by_one(values: list[str], limit: int | None) -> pd.DataFrame:
    """Search each value separately and keep each person once, as users would by hand."""
    frames = [
        of.search_people(person_titles=[value], limit=None).assign(person_titles=value)
        for value in values
    ]
    return pd.concat(frames).drop_duplicates("id").head(limit)


@given(
    values=st.lists(st.sampled_from(TITLES), min_size=1, unique=True),
    limit=st.none() | st.integers(1, 400),
)
@share_of_examples(0.1)
def test_a_split_search_is_one_search_per_value(
    client: Client, values: list[str], limit: int | None
) -> None:
    """A split search returns the separate searches' people in order, once, with their value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        found = of.search_people(person_titles=values, split_by="person_titles", limit=limit)
        expected = one_by_one(values, limit)
    assert found["id"].tolist() == expected["id"].tolist()
    assert found["person_titles"].tolist() == expected["person_titles"].tolist()
    assert found["person_titles"].cat.categories.tolist() == values
    assert found["person_titles"].cat.ordered


@pytest.mark.parametrize("dtype_backend", ["numpy_nullable", "pyarrow"])
def test_an_empty_frame_has_the_column(client: Client, dtype_backend: Any) -> None:
    """The column with the values is the last one, also in an empty frame."""
    options = {"split_by": "person_titles", "dtype_backend": dtype_backend}
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        nobody = of.search_people(person_titles=["Xyzzy", "Plugh"], **options)
    many = of.search_people(person_titles=["Xyzzy", "of"], limit=None, **options)
    assert len(nobody) == 0
    assert nobody.columns.tolist() == many.columns.tolist()
    assert nobody.columns[-1] == "person_titles"
    assert nobody["person_titles"].cat.categories.tolist() == ["Xyzzy", "Plugh"]


@pytest.mark.parametrize(
    ("split_by", "filters", "said"),
    [
        ("person_senioritys", {}, "Did you mean .*person_seniorities"),
        ("person_name", {"person_name": "Ada"}, "not a filter that takes a list of values"),
        ("person_exclude_locations", {"person_exclude_locations": ["Rome"]}, "not a filter"),
        ("person_titles", {}, r"Pass person_titles= too"),
        (3, {}, "not a filter"),
    ],
)
def test_an_invalid_split_is_an_error(
    client: Client, split_by: Any, filters: dict[str, Any], said: str
) -> None:
    """A search can be split only by a filter with a list of values in the search."""
    with pytest.raises(InvalidInputError, match=said):
        of.search_people(filters, split_by=split_by)


def cutting_service(most: int, found: dict[str, list[int]]) -> Any:
    """Return a service that counts everybody but returns a limited number per search."""

    def reply(request: Received) -> Reply:
        body = request.json
        numbers = sorted({n for title in body["person_titles"] for n in found[title]})
        begin = (body["page"] - 1) * body["page_size"]
        end = min(begin + body["page_size"], most)
        pages = -(-min(len(numbers), most) // body["page_size"])
        return json(
            {
                "results": [{"id": f"p{number}"} for number in numbers[begin:end]],
                "_pagination": {"total": len(numbers), "total_pages": pages},
            }
        )

    return reply


@pytest.mark.parametrize(("most", "missing"), [(4, 4), (5, 2), (6, 0)])
def test_people_missed_by_a_split_search_are_counted(most: int, missing: int) -> None:
    """The sum over the values is compared with the total, and a warning gives both."""
    found = {"CEO": list(range(6)), "CTO": list(range(6, 12))}
    with (
        scripted(cutting_service(most, found)) as service,
        connected(service, max_wait=0),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        people = of.search_people(
            person_titles=["CEO", "CTO"], split_by="person_titles", limit=None
        )
    said = [str(one.message) for one in caught]
    assert len(people) == 12 - missing
    assert [f"12 people but returned {12 - missing}" in one for one in said] == [True] * bool(
        missing
    )


def test_a_value_with_repeated_people_is_read_completely() -> None:
    """Pages full of people found for an earlier value do not end the search for a later value."""
    found = {"CEO": list(range(500)), "CTO": list(range(501))}
    with scripted(cutting_service(1000, found)) as service, connected(service, max_wait=0):
        people = of.search_people(
            person_titles=["CEO", "CTO"], split_by="person_titles", limit=None
        )
    assert people["person_titles"].value_counts(sort=False).tolist() == [500, 1]


def test_a_partial_frame_has_the_values() -> None:
    """An error's partial frame has the column with the values."""

    def reply(request: Received) -> Reply:
        if request.json["person_titles"] == ["CTO"]:
            return json({}, 403)
        return cutting_service(9, {"CEO": [1, 2], "CTO": [3]})(request)

    with (
        scripted(reply) as service,
        connected(service, max_wait=0),
        pytest.raises(ServiceError) as caught,
    ):
        of.search_people(person_titles=["CEO", "CTO"], split_by="person_titles")
    assert caught.value.partial["person_titles"].tolist() == ["CEO", "CEO"]  # type: ignore[attr-defined]
