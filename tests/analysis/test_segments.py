"""Segments: counts, shares and medians equal those of loops over the rows."""

from __future__ import annotations

from statistics import median
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError

EMPLOYEES = "company_estimated_number_of_employees"
FINANCE = "company_department_headcount_finance"
COMPANIES = {"c1": (100, 7), "c2": (250, None), "c3": (None, 3), "c4": (8, 0)}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3", "p4", "p5", "p6", None]),
        st.sampled_from([*COMPANIES, None]),
        st.sampled_from(["vp", "Director", "", None]),
        st.sampled_from([1, 2, None]),
    ),
    max_size=12,
)


def frame_of(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Make people with an id, a company, a title and a level."""
    known = [COMPANIES.get(company, (None, None)) for _, company, _, _ in rows]
    return pd.DataFrame(
        {
            "id": pd.array([row[0] for row in rows], dtype="str"),
            "company_id": pd.array([row[1] for row in rows], dtype="str"),
            EMPLOYEES: pd.array([employees for employees, _ in known], dtype="Int64"),
            FINANCE: pd.array([finance for _, finance in known], dtype="Int64"),
            "title": pd.array([row[2] for row in rows], dtype="str"),
            "level": pd.array([row[3] for row in rows], dtype="Int64"),
        },
        index=[f"row {number % 3}" for number in range(len(rows))],
    )


def brute_force(rows: list[tuple[Any, ...]]) -> dict[Any, Any]:
    """Count people and companies by title and level, row by row."""
    everybody = {row[0] or ("nobody", number) for number, row in enumerate(rows)}
    segments: dict[Any, tuple[set[Any], set[Any]]] = {}
    for number, (person, company, title, level) in enumerate(rows):
        people, companies = segments.setdefault((title, level), (set(), set()))
        people.add(person or ("nobody", number))
        if company:
            companies.add(company)
    found = {}
    for key, (people, companies) in segments.items():
        medians = [
            median(numbers) if (numbers := [n for n in column if n is not None]) else None
            for column in zip(*(COMPANIES[company] for company in companies), strict=True)
        ] or [None, None]
        found[key] = (len(people), len(companies), len(people) / len(everybody), *medians)
    return found


@given(ROWS, st.sampled_from(["numpy_nullable", "pyarrow"]))
def test_segments_equal_a_brute_force(rows: list[tuple[Any, ...]], backend: Any) -> None:
    """Each segment has the people, companies, share and medians of loops over the rows."""
    frame = frame_of(rows)
    if backend == "pyarrow":
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    table = frame.outreach.segments(["title", "level"])
    shown = ["title", "level", "people", "companies", "share", "median_employees", "median_finance"]
    found = {
        (row[0], row[1]): tuple(row[2:])
        for row in table[shown].astype(object).where(table[shown].notna(), None).to_numpy().tolist()
    }
    expected = brute_force(rows)
    assert found == expected
    assert len(table) == len(expected)
    assert table["people"].is_monotonic_decreasing
    assert table["median_legal"].isna().all()


def test_segments_of_one_size_keep_their_order() -> None:
    """Segments with the same number of people are in the order of the frame."""
    frame = frame_of([("p1", "c1", "vp", 1), ("p2", "c1", "Director", 1), ("p3", "c1", "vp", 2)])
    assert frame.outreach.segments("title")["title"].tolist() == ["vp", "Director"]
    assert frame[:2].outreach.segments("title")["title"].tolist() == ["vp", "Director"]


@pytest.mark.parametrize(
    "sizes",
    [
        ["1-10", "201-500", "1001-5000", "10001+", None],
        ["1-10 employees", "501-1,000 employees", "1,001-4,999", "10,000 and more", "unknown"],
    ],
)
def test_company_sizes_of_equal_segments_are_in_order(sizes: list[str | None]) -> None:
    """Segments with equally many people are in the order of their size, unknown sizes last."""
    frame = pd.DataFrame({"company_size": pd.array(sizes, dtype="str"), "company_id": "1"})
    table = frame.sort_values("company_size").outreach.segments("company_size")
    assert table["company_size"].dropna().tolist() == [size for size in sizes if size]
    more = pd.concat([frame, frame[3:4]])
    assert more.outreach.segments("company_size")["company_size"].iloc[0] == sizes[3]


def test_the_order_of_a_split_search_is_kept(client: Client) -> None:
    """A category stays a category, and only its occurring values make segments."""
    found = of.search_people(
        person_seniorities=["c_suite", "vp"], split_by="person_seniorities", limit=40
    )
    table = found.outreach.segments("person_seniorities")
    assert table["person_seniorities"].dtype == found["person_seniorities"].dtype
    assert set(table["person_seniorities"]) == set(found["person_seniorities"])


def test_exploded_lists_make_segments(people: pd.DataFrame) -> None:
    """After explode, each person counts once per entry, and shares are of all people."""
    table = people.explode("company_keywords").outreach.segments("company_keywords")
    has = people["company_keywords"].list.len() > 0
    first = table.iloc[0]
    word = first["company_keywords"]
    count = sum(word in words for words in people.loc[has, "company_keywords"])
    assert first["people"] == count
    assert first["share"] == pytest.approx(count / len(people))


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("company_keywords", r"explode\('company_keywords'\)"),
        ("titel", "Did you mean 'title'"),
        ([], "a column name or a list"),
        (["title", "title"], "distinct column names"),
        (7, "a column name or a list"),
        ("share", "Rename"),
        ("odd", "cannot be compared"),
    ],
)
def test_invalid_columns_are_an_error(people: pd.DataFrame, by: Any, says: str) -> None:
    """Columns of lists, unknown columns and existing names are errors with advice."""
    frame = people.assign(share=1, odd=[{"a": 1}] * len(people))
    with pytest.raises(InvalidInputError, match=says):
        frame.outreach.segments(by)


def test_headcounts_of_text_are_an_error(people: pd.DataFrame) -> None:
    """Headcounts that cannot be converted to numbers are an error that names the column."""
    with pytest.raises(InvalidInputError, match=FINANCE):
        people.assign(**{FINANCE: "many"}).outreach.segments("title")


def test_duplicate_ids_are_an_error(people: pd.DataFrame) -> None:
    """A duplicate id column is an error; ids of any type are compared as text."""
    with pytest.raises(InvalidInputError, match="'id' more than once"):
        pd.concat([people, people[["id"]]], axis=1).outreach.segments("title")
    odd = people.head(2).assign(id=[[1], [1]])
    assert odd.assign(title="x").outreach.segments("title")["people"].tolist() == [1]
