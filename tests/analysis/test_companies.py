"""Companies, headcounts and child tables: each company has one row, and the counts add up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.reading.flatten import records_frame
from outreach_frames.sandbox import Sandbox
from tests.reading.pages import frame_of
from tests.reading.people_strategies import odd_people, people

PERSON_TABLES = {
    "experiences": spec.EXPERIENCE,
    "educations": spec.EDUCATION,
    "languages": spec.LANGUAGE,
}
CONTACT_TABLES = {"phone_numbers": spec.PHONE_NUMBER, "recent_activity": spec.ACTIVITY}


KNOWN = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", "z", None, "", " "]),
        st.sampled_from(["A", "B"]),
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, "Lund", "Oslo"]),
        st.sampled_from([None, [], ["k"]]),
    ),
    max_size=8,
)


def first_known(rows: list[tuple[Any, ...]], company: str, place: int) -> Any:
    """Return the first non-missing value of a company."""
    values = (row[place] for row in rows if row[0] == company)
    return next((value for value in values if value is not None), None)


@given(KNOWN, st.booleans())
def test_a_company_has_the_first_known_value_of_its_rows(
    rows: list[tuple[Any, ...]], as_objects: bool
) -> None:
    """Each column and median of a company is that of the first row with a value."""
    ids, titles, counts, places, words = zip(*rows, strict=True) if rows else [()] * 5
    frame = pd.DataFrame(
        {
            "company_id": pd.array(ids, dtype="str"),
            "title": pd.array(titles, dtype="str"),
            "company_department_headcount_legal": pd.array(counts, dtype="Int64"),
            "company_location": pd.array(places, dtype="str"),
            "company_keywords": pd.array(words, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
        }
    )
    table = (frame.astype(object) if as_objects else frame).outreach.companies()
    names = dict.fromkeys(name for name in ids if name and name.strip())
    assert table["id"].tolist() == [*names]
    for place, column in ((2, "department_headcount_legal"), (3, "location"), (4, "keywords")):
        cells = zip(table[column].isna(), table[column], strict=True)
        found = [None if lost else [*cell] if place == 4 else cell for lost, cell in cells]
        assert found == [first_known(rows, name, place) for name in names]
    segments = frame.outreach.segments("title").set_index("title")["median_legal"]
    for title, value in segments.items():
        own = [row for row in rows if row[1] == title]
        of_companies = [
            first_known(rows, name, 2)
            for name in dict.fromkeys(row[0] for row in own)
            if name in names
        ]
        known = [count for count in of_companies if count is not None]
        assert (None if pd.isna(value) else value) == (median(known) if known else None)


HEADCOUNTS = [f"company_department_headcount_{name}" for name in ("finance", "legal")]
PAGES = ["profnet.example/company/a", "https://www.profnet.example/company/A/", "x.example/b"]
MIXED = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "3", None, " "]),
        st.sampled_from([*PAGES, None]),
        st.sampled_from(["Acme, Inc", "ACME inc.", "Bolt", None]),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 2]),
        st.sampled_from(["p", "q", None]),
        st.sampled_from(["x.example/in/ada", "X.example/in/Ada/", "x.example/view?id=1", None]),
    ),
    max_size=7,
)


def linked(rows: list[Any], same: Callable[[Any, Any], bool]) -> list[list[Any]]:
    """Group rows: two rows are in one group if they are the same, directly or through others."""
    groups: list[list[Any]] = []
    for row in rows:
        own = [group for group in groups if any(same(row, other) for other in group)]
        groups = [group for group in groups if group not in own]
        groups.append(sorted([row, *(one for group in own for one in group)], key=lambda r: r[-1]))
    return sorted(groups, key=lambda group: group[0][-1])


@given(MIXED)
@example([("1", PAGES[0], "A", 1, None, "p", None), (None, PAGES[1], "B", 0, 2, "p", None)])
@example([("1", None, "A", 1, None, "p", None), ("1", None, "A", None, 2, "q", None)])
def test_companies_and_people_equal_a_brute_force(cells: list[tuple[Any, ...]]) -> None:
    """A company is an id or a profile URL, with one row's headcounts and distinct people."""
    rows = [(*row, number) for number, row in enumerate(cells)]

    def is_one_company(row: Any, other: Any) -> bool:
        ids, pages = ({one[0] for one in (row, other)}, {page(one[1]) for one in (row, other)})
        if len(ids - {None, " "}) == len(ids) == 1 or len(pages - {None}) == len(pages) == 1:
            return True
        alone = all(not (one[0] or "").strip() and not one[1] and one[2] for one in (row, other))
        return alone and row[2][0] == other[2][0]

    def is_one_person(row: Any, other: Any) -> bool:
        urls = {(one[6] or "").lower().rstrip("/") for one in (row, other)}
        is_weak = any("view" in url for url in urls) and (row[5] or other[5])
        return (row[5] is not None and row[5] == other[5]) or (
            len(urls) == 1 and urls != {""} and not is_weak
        )

    def page(url: str | None) -> str | None:
        return url and url.rstrip("/").split("/")[-1].lower()

    known = [row for row in rows if (row[0] or "").strip() or row[1] or row[2]]
    groups = linked(known, is_one_company)
    persons = linked(rows, is_one_person)
    columns = [
        "company_id",
        "company_profnet_url",
        "company_name",
        *HEADCOUNTS,
        "id",
        "profnet_url",
    ]
    frame = pd.DataFrame(cells, columns=columns).astype(dict.fromkeys(HEADCOUNTS, "Int64"))
    table = frame.outreach.companies()
    counts = [sum(any(row in own for row in group) for own in persons) for group in groups]
    assert table["people_in_frame"].tolist() == counts
    expected = [
        max(group, key=lambda row: (row[3:5].count(None) * -1, -row[-1])) for group in groups
    ]
    found = table[[name.removeprefix("company_") for name in HEADCOUNTS]].astype(object)
    assert found.where(found.notna(), None).to_numpy().tolist() == [[*row[3:5]] for row in expected]
    segments = frame.assign(all="x").outreach.segments("all")
    assert segments["companies"].tolist() == [len(groups)] * bool(rows)
    assert segments["people"].tolist() == [len(persons)] * bool(rows)


@pytest.mark.parametrize(("level", "rows"), [("department", 14), ("job_function", 194)])
def test_headcounts_are_tidy_and_add_up(people: pd.DataFrame, level: Any, rows: int) -> None:
    """Each company and department (or job function) has one row; the shares add up to 1."""
    people = people.head(40)
    tidy = people.outreach.headcount(level)
    companies = people.outreach.companies()
    pd.testing.assert_frame_equal(companies.outreach.headcount(level), tidy)
    assert people.head(0).outreach.headcount(level).dtypes.equals(tidy.dtypes)
    names = ["department", "job_function"][: 1 if level == "department" else 2]
    assert list(tidy.columns) == ["company", *names, "people", "share", "company_id"]
    assert tidy.dtypes.astype(str).tolist() == [
        *["str"] * (1 + len(names)),
        "Int64",
        "Float64",
        "str",
    ]
    assert len(tidy) == rows * people["company_id"].nunique()
    assert tidy.groupby("company")["share"].sum().round(9).eq(1).all()
    first = companies.head(3).to_dict("records")
    for place, row in enumerate(tidy.head(rows * 3).to_dict("records")):
        column = "_".join([f"{level}_headcount", *(row[name] for name in names)])
        company = first[place // rows]
        assert row["people"] == company[column]
        assert row["company"].startswith(company["name"])
        assert row["company_id"] == company["id"]


def test_companies_with_the_same_name_are_distinguished() -> None:
    """Companies with the same name get their website, else their id, else a free number."""
    companies = [
        {"id": "x", "name": "Twin", "website": "https://x.example"},
        {"id": "y", "name": "Twin", "website": "https://y.example"},
        {"id": "z", "name": "Lone"},
        *({"profnet_url": f"x.example/{name}", "name": "Acme"} for name in ("a", "b")),
        {"profnet_url": "x.example/c", "name": "Acme (2)"},
    ]
    frame = frame_of([{"id": str(n), "company": one} for n, one in enumerate(companies)])
    labels = frame.outreach.headcount()["company"].unique().tolist()
    twins = ["Twin (https://x.example)", "Twin (https://y.example)"]
    assert labels == [*twins, "Lone", "Acme", "Acme (3)", "Acme (2)"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 1, 20, 21, 5000]),
            st.lists(st.sampled_from([None, 0, 3, 10]), min_size=2, max_size=2),
        ),
        max_size=5,
    )
)
@example([(5000, [10, None]), (20, [10, None]), (21, [10, None]), (None, [10, 0]), (20, [10, 0])])
def test_a_share_needs_the_headcounts_of_half_the_employees(rows: list[Any]) -> None:
    """Shares of known headcounts exist if these cover half of the employees; zero is known."""
    columns = ["finance", "legal"]
    counts = pd.DataFrame([counts for _, counts in rows], columns=columns, dtype="Int64")
    frame = pd.DataFrame({"name": [str(number) for number in range(len(rows))]}).assign(
        estimated_number_of_employees=pd.array([one for one, _ in rows], "Int64"),
        **{f"department_headcount_{name}": pd.NA for name in spec.DEPARTMENTS},
    )
    frame = frame.assign(**counts.add_prefix("department_headcount_"))
    tidy = frame.outreach.headcount()
    shares = tidy[tidy["department"].isin(columns)]["share"].tolist()
    people = tidy[tidy["department"].isin(columns)]["people"]
    assert [None if pd.isna(count) else count for count in people] == [
        count for _, own in rows for count in own
    ]
    expected = []
    for employees, own in rows:
        total = sum(filter(None, own))
        is_covered = total > 0 and employees is not None and 2 * total >= employees
        expected += [count / total if is_covered and count is not None else None for count in own]
    assert [None if pd.isna(share) else share for share in shares] == expected
    bare = frame.drop(columns="estimated_number_of_employees")
    assert bare.outreach.headcount()["share"].isna().all()


@pytest.mark.parametrize("name", PERSON_TABLES)
def test_child_tables_have_one_row_per_entry(people: pd.DataFrame, name: str) -> None:
    """Each entry of a list is one row with the person's id, its position and typed dates."""
    table = getattr(people.outreach, name)()
    fields = PERSON_TABLES[name]
    assert list(table.columns) == ["person_id", "position", *(field.name for field in fields)]
    assert len(table) == sum(len(cell) for cell in people[name].dropna())
    for field in fields:
        if field.format == "date":
            assert str(table[field.name].dtype).startswith("datetime64")
    person = people.iloc[7]
    own = table[table["person_id"] == person["id"]]
    assert own["position"].tolist() == list(range(len(person[name])))
    text = next(field.name for field in fields if not field.constant and not field.format)
    assert own[text].tolist() == [entry[text] for entry in person[name]]
    pd.testing.assert_series_equal(getattr(people.head(0).outreach, name)().dtypes, table.dtypes)


def test_locations_have_each_company_once(people: pd.DataFrame) -> None:
    """Each entry of a company's list is one row, however many people the company has."""
    people = people.head(60)
    table = people.outreach.locations()
    companies = people.outreach.companies()
    assert list(table.columns) == ["company_id", "position", "location"]
    assert table["location"].dtype == "str"
    assert table["location"].tolist() == companies["locations"].explode().dropna().tolist()
    assert len(table) == sum(len(cell) for cell in companies["locations"].dropna())
    pd.testing.assert_frame_equal(companies.outreach.locations(), table)
    pd.testing.assert_series_equal(people.head(0).outreach.locations().dtypes, table.dtypes)


@pytest.mark.parametrize("name", CONTACT_TABLES)
def test_contact_child_tables_have_one_row_per_entry(
    client: Client, sandbox: Sandbox, name: str
) -> None:
    """Each phone number or activity of a contact is one row with the contact's id."""
    contacts = of.contacts(emails=of.contacts(sandbox.contact_ids[:8])["email"])
    table = getattr(contacts.outreach, name)()
    fields = CONTACT_TABLES[name]
    assert list(table.columns) == ["contact_id", "position", *(field.name for field in fields)]
    assert len(table) == sum(len(cell) for cell in contacts[name].dropna()) > 0
    assert set(table["contact_id"]) <= set(contacts["id"])
    empty = getattr(contacts.head(0).outreach, name)()
    pd.testing.assert_series_equal(empty.dtypes, table.dtypes)
    with pytest.raises(of.OutreachError, match=r"contacts\(\)"):
        getattr(contacts.drop(columns=name).outreach, name)()


def test_tables_of_companies_are_not_counted_as_people(people: pd.DataFrame) -> None:
    """Tables of companies are refused, with and without the prefix of people's columns."""
    companies = people.outreach.companies()
    with pytest.raises(of.OutreachError, match="lacks company columns"):
        companies.outreach.companies()
    with pytest.raises(
        of.OutreachError, match=r"are companies, not people\..* sum people_in_frame"
    ):
        companies.add_prefix("company_").outreach.companies()


def test_text_in_place_of_lists_names_meta() -> None:
    """Text in a list column, as in Dask's sample, is an error that names meta=."""
    sample = pd.DataFrame({"experiences": ["foo"], "current_position_start_date": pd.NaT})
    with pytest.raises(of.OutreachError, match="In Dask, pass meta="):
        sample.outreach.tenure()


def test_entries_that_are_objects_become_columns() -> None:
    """Locations that the service returns as objects become columns."""
    places = [{"city": "Lund", "main": True}, {"city": "Porto"}, "Oslo"]
    frame = frame_of([{"id": "1", "company": {"id": "x", "locations": places}}])
    table = frame.outreach.locations()
    assert table["city"].tolist()[:2] == ["Lund", "Porto"]
    assert table["main"].iloc[0]
    assert table["location"].iloc[2] == "Oslo"


@pytest.mark.parametrize("method", ["companies", "headcount", *PERSON_TABLES, "locations"])
def test_unusable_columns_are_an_error(people: pd.DataFrame, tmp_path: Path, method: str) -> None:
    """Missing and duplicate columns, and lists that pandas read as text, are clear errors."""
    frames = {
        "is missing": pd.DataFrame({"email": ["a@b.example"]}),
        "id' more than once": pd.concat([people, people[["id", "company_id"]]], axis="columns"),
    }
    if method not in ("companies", "headcount"):
        frames["read_prospects"] = pd.read_csv(people.head(3).outreach.to_csv(tmp_path / "x.csv"))
    for words, frame in frames.items():
        with pytest.raises(of.OutreachError, match=words):
            getattr(frame.outreach, method)()


def test_an_unknown_level_is_an_error(people: pd.DataFrame) -> None:
    """An unknown level is an error that names the valid one."""
    with pytest.raises(of.OutreachError, match="Did you mean 'department'"):
        people.outreach.headcount("departments")


ODD_EXPERIENCES = [
    {"title": "VP", "start_date": "2020-01-31", "current": True, "level": None},
    None,
    {"level": 2, "end_date": "soon", "end_date_raw": "a name that is taken"},
]


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(people() | odd_people(), min_size=1, max_size=3),
    st.sampled_from(["numpy_nullable", "pyarrow"]),
)
@example([{"id": "1", "experiences": ODD_EXPERIENCES}], "pyarrow")
@example([{"id": "1", "experiences": [{"title": "CEO", "company": {"id": "x"}}]}], "pyarrow")
@example([{"id": "1", "languages": [{"language": "Czech"}]}, {"id": "2"}], "numpy_nullable")
def test_entries_equal_their_objects(found: list[dict[str, Any]], backend: Any) -> None:
    """Fields, dtypes, unreadable dates and undocumented members equal those of the objects."""
    frame = frame_of(found, backend)
    for name, fields in [("experiences", spec.EXPERIENCE), ("languages", spec.LANGUAGE)]:
        entries = [entry for cell in frame[name].dropna() for entry in cell]
        table = getattr(frame.outreach, name)()
        expected = records_frame(entries, fields)
        pd.testing.assert_frame_equal(table.drop(columns=["person_id", "position"]), expected)


@pytest.mark.parametrize("cells", [[None, None], [float("nan")] * 2, []])
def test_lists_that_are_all_missing_have_no_entries(cells: list[Any]) -> None:
    """A column with only missing lists, of any dtype, makes an empty table with all columns."""
    frame = pd.DataFrame({"id": ["1", "2"][: len(cells)], "experiences": cells})
    assert list(frame.outreach.experiences())[2:] == [field.name for field in spec.EXPERIENCE]
    assert frame.outreach.experiences().empty
