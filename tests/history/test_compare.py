"""Comparison of two tables of people: new people, missing people, and changes."""

from __future__ import annotations

import datetime
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.examples import share_of_examples
from tests.history.people import DEPARTMENTS, Record, changes, frame_of, headcounts, matched, moves

pytestmark = pytest.mark.long

QUIET = "ignore::outreach_frames.errors.OutreachWarning"
URL = "https://profnet.example/in/"
IDS = st.sampled_from([None, "a", "b", "c", "d"])
WEAK_URL = "https://profnet.example/view?id=1"
URLS = st.sampled_from([None, f"{URL}ada", f"{URL}Ada/", f"{URL}bo", f"{URL}cy", WEAK_URL])
COUNTS = st.one_of(st.none(), st.integers(0, 3))
LANGUAGES = st.lists(
    st.fixed_dictionaries(
        {"language": st.sampled_from(["English", "Dutch"])},
        optional={"proficiency": st.sampled_from([None, "native"])},
    ),
    max_size=2,
)
COMPANIES = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["x", "y"]),
        "name": st.sampled_from(["X", "Y"]),
        "department_headcount": st.fixed_dictionaries(dict.fromkeys(DEPARTMENTS, COUNTS)),
    }
)
POOR_COMPANIES = st.fixed_dictionaries(
    {
        "id": st.sampled_from([None, "x", "y"]),
        "profnet_url": st.sampled_from([None, "https://profnet.example/company/x"]),
        "name": st.sampled_from([None, "X", "Y"]),
    }
)


def people_with(companies: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Record]]:
    """Draw a few people, including duplicates and people with neither id nor URL."""
    person = st.fixed_dictionaries(
        {
            "id": IDS,
            "profnet_url": URLS,
            "name": st.sampled_from([None, "Ada", "Bo"]),
            "title": st.sampled_from([None, "", "CEO", "CTO"]),
            "current_position_start_date": st.sampled_from([None, "2020-01-01", "2021-05-01"]),
            "languages": st.one_of(st.none(), LANGUAGES),
            "company": companies,
        }
    )
    return st.lists(person, max_size=6)


BACKENDS = st.sampled_from(["numpy_nullable", "pyarrow"])


@pytest.mark.filterwarnings(QUIET)
@share_of_examples(0.5)
@given(people_with(COMPANIES), people_with(COMPANIES), BACKENDS, BACKENDS)
def test_a_comparison_equals_a_brute_force_join(
    before: list[Record], after: list[Record], one: Any, other: Any
) -> None:
    """Appeared, disappeared and changed people, and all headcounts, equal those of a plain loop."""
    old, new = frame_of(before, one), frame_of(after, other)
    comparison = of.compare_people(old, new)
    expected = matched(before, after)
    for table, frame, rows in (
        (comparison.disappeared, old, expected.disappeared),
        (comparison.appeared, new, expected.appeared),
    ):
        pd.testing.assert_frame_equal(table, frame.iloc[rows].reset_index(drop=True))
    changed = comparison.changed
    assert list(zip(changed["person_id"], changed["field"], strict=True)) == sorted_by_person(
        changes(before, after), changed
    )
    counts = {
        (row.company_id, row.department): (row.before, row.after)
        for row in comparison.headcount.itertuples()
        if row.department in DEPARTMENTS
    }
    wanted = headcounts(before, after)
    assert set(counts) == set(wanted)
    for key, pair in wanted.items():
        assert [None if pd.isna(count) else count for count in counts[key]] == pair


def sorted_by_person(pairs: list[tuple[str, str]], changed: pd.DataFrame) -> list[tuple[str, str]]:
    """Sort the fields of each person in the order of the table's columns."""
    fields = {field: place for place, field in enumerate(dict.fromkeys(frame_of([]).columns))}
    people = list(dict.fromkeys(person for person, _ in pairs))
    return sorted(pairs, key=lambda pair: (people.index(pair[0]), fields[pair[1]]))


@pytest.mark.filterwarnings(QUIET)
@share_of_examples(0.4)
@given(people_with(POOR_COMPANIES), people_with(POOR_COMPANIES))
def test_employers_are_compared_by_the_first_common_key(
    before: list[Record], after: list[Record]
) -> None:
    """Employers are compared by id, else URL, else name; a missing employer is unknown."""
    comparison = of.compare_people(frame_of(before), frame_of(after))
    assert comparison.employer_changes["person_id"].tolist() == moves(before, after)


@pytest.mark.parametrize(
    "after",
    [
        {"id": " x "},
        {"profnet_url": "http://www.profnet.example/company/X/"},
        {"name": "á gmbh "},
        {"name": "A\u0301 GMBH"},
    ],
)
@pytest.mark.filterwarnings(QUIET)
def test_an_employer_with_another_spelling_is_the_same(after: Record) -> None:
    """Another case, other blanks or another URL scheme is not a change of employer."""
    url = "https://profnet.example/company/x"
    company = {"id": "x", "profnet_url": url, "name": "Á GmbH"}
    counts = [{"department_headcount": {"finance": count}} for count in (1, 3)]
    one = frame_of([{"id": "1", "company": company | counts[0]}])
    other = frame_of([{"id": "1", "company": after | counts[1]}])
    for pair, change in (((one, other), 2), ((other, one), -2)):
        comparison = of.compare_people(*pair)
        assert comparison.employer_changes.empty
        assert comparison.headcount["change"].dropna().tolist() == [change]


PAGE = {"profnet_url": "https://profnet.example/company/x", "name": "X"}


def test_a_company_with_a_new_id_and_name_is_the_same() -> None:
    """A new id and name with the same URL is no new employer, and has one headcount row."""
    before = frame_of([{"id": "1", "company": count_of(PAGE | {"id": "old"}, finance=1)}])
    people = [
        {"id": "1", "company": count_of(PAGE | {"id": "new", "name": "Y"}, finance=4)},
        {"id": "2", "company": count_of(PAGE | {"id": "newer"}, finance=9, legal=1)},
        {"id": "3", "company": count_of({"id": "other", "name": "X"}, finance=2)},
    ]
    with pytest.warns(OutreachWarning) as warned:
        comparison = of.compare_people(before, frame_of(people))
    notes = [
        "Companies with a new id in 'after', matched by profile URL: 'new'.",
        "Companies in 'after' with the profile URL of a row with another id, counted once: "
        "'newer'.",
    ]
    assert comparison.employer_changes.empty
    assert set(notes) <= set(comparison.notes)
    (warning,) = warned
    assert "Companies with a new id in 'after', matched by profile URL;" in str(warning.message)
    table = comparison.headcount.dropna(subset="after")
    shown = ["company_id", "department", "before", "after"]
    assert table[shown].astype(object).where(table[shown].notna(), None).to_numpy().tolist() == [
        ["new", "finance", 1, 9],
        ["new", "legal", 0, 1],
        ["other", "finance", None, 2],
    ]


@pytest.mark.filterwarnings(QUIET)
def test_a_row_with_only_the_url_belongs_to_the_company() -> None:
    """Rows with an id and rows with only the same URL are one employer in both tables."""
    with_id, bare = {"id": "x", **PAGE}, {"profnet_url": f"{PAGE['profnet_url']}/".upper()}
    before = frame_of([{"id": "1", "company": {"id": "x"}}, {"id": "2", "company": with_id}])
    after = frame_of([{"id": "1", "company": count_of(bare, legal=1)}])
    comparison = of.compare_people(before, after)
    assert comparison.employer_changes.empty
    assert not [note for note in comparison.notes if "employer" in note]
    assert comparison.headcount["company_id"].unique().tolist() == ["x"]


def count_of(company: Record, **counts: int | None) -> Record:
    """Return a company with headcounts."""
    return company | {"department_headcount": counts}


def test_an_employer_missing_on_one_side_is_a_warning() -> None:
    """A person without an employer on one side has not changed it, and a warning names them."""
    with_company = frame_of([{"id": "1", "company": PAGE}, {"id": "2"}, {"id": "3"}])
    without = frame_of([{"id": "1"}, {"id": "2", "company": PAGE}, {"id": "3"}])
    for pair in ((with_company, without), (without, with_company)):
        with pytest.warns(OutreachWarning, match="employer is missing"):
            comparison = of.compare_people(*pair)
        assert any(note.endswith("cannot be compared: '1', '2'.") for note in comparison.notes)
        assert comparison.employer_changes.empty


ADA = {"id": "1", "profnet_url": f"{URL}ada"}


@pytest.mark.parametrize(
    ("one", "two", "named"),
    [
        ([ADA], [ADA, ADA | {"id": "2"}], "'2'"),
        ([ADA], [{"id": "1"}, ADA | {"id": None}], "'profnet.example/in/ada'"),
    ],
)
def test_a_second_row_with_the_same_profile_is_one_person(
    one: list[Record], two: list[Record], named: str
) -> None:
    """Another id or row with a matched person's URL neither appears nor disappears."""
    for pair, side in (((one, two), "after"), ((two, one), "before")):
        message = f"People in '{side}' with the profile URL"
        with pytest.warns(OutreachWarning, match=message):
            comparison = of.compare_people(*map(frame_of, pair))
        assert [named in note for note in comparison.notes if note.startswith(message)] == [True]
        assert comparison.appeared.empty
        assert comparison.disappeared.empty


def test_links_to_pictures_do_not_count_as_changed() -> None:
    """Links to pictures, which expire, are not compared."""
    before = pd.DataFrame({"id": ["1"], "image_url": ["a"], "title": ["CTO"]})
    after = pd.DataFrame({"id": ["1"], "image_url": ["b"], "title": ["CEO"]})
    assert of.compare_people(before, after).changed["field"].tolist() == ["title"]


@pytest.mark.filterwarnings(QUIET)
def test_the_tables_have_the_same_columns_without_people(client: Client) -> None:
    """Columns and dtypes, which `columns` describes, are the same with and without people."""
    people = of.search_people(limit=40)
    many = of.compare_people(people.iloc[:30], people.iloc[10:])
    none = of.compare_people(people.iloc[:0], people.iloc[:0])
    for name in ("appeared", "disappeared", "changed", "employer_changes", "headcount"):
        pd.testing.assert_series_equal(getattr(none, name).dtypes, getattr(many, name).dtypes)
    assert many.appeared.dtypes.equals(people.dtypes)
    assert none.summary().dtypes.equals(many.summary().dtypes)


def test_a_change_shows_both_values_as_text() -> None:
    """Dates are ISO 8601, numbers plain, lists JSON, and a missing value is missing."""
    before = frame_of([{"id": "1", "name": "Ada"}]).assign(location_details_lat=52.5)
    after = before.assign(
        title="CEO",
        location_details_lat=52.0,
        current_position_start_date=pd.Series([datetime.datetime(2026, 11, 1)]),
        languages=frame_of([{"languages": [{"language": "Dutch"}]}])["languages"],
    )
    changed = of.compare_people(before, after).changed
    assert changed.set_index("field")["after"].to_dict() == {
        "title": "CEO",
        "current_position_start_date": "2026-11-01",
        "location_details_lat": "52",
        "languages": '[{"language":"Dutch"}]',
    }
    assert changed["before"].dropna().tolist() == ["52.5"]
    assert set(changed["person_id"]) == {"1"}
    assert set(changed["name"]) == {"Ada"}


def test_values_of_different_types_are_compared_by_value() -> None:
    """Numbers of any type are compared exactly, and categories and mixed columns as text."""
    before = pd.DataFrame(
        {
            "id": [1, 2],
            "count": pd.array([2**53 + 1, 5], dtype="Int64"),
            "kind": pd.Categorical(["a", "b"]),
            "mixed": [[1], {"a": 1}],
        }
    )
    after = pd.DataFrame(
        {
            "id": ["1", "2"],
            "count": [float(2**53), 5.0],
            "kind": ["a", "b"],
            "mixed": [[1], {"a": 2}],
        }
    )
    changed = of.compare_people(before, after).changed
    assert changed[["person_id", "field"]].to_numpy().tolist() == [["1", "count"], ["2", "mixed"]]


@pytest.mark.filterwarnings(QUIET)
def test_a_round_trip_is_not_a_change(client: Client, tmp_path: Path) -> None:
    """Both dtype backends, CSV, Parquet parts and another order have no differences."""
    people = of.search_people(limit=12)
    forms: list[Any] = [of.search_people(limit=12, dtype_backend="pyarrow")]
    forms += [of.export_people(tmp_path / name, limit=12) for name in ("people.csv", "parts")]
    forms.append(people.sample(frac=1, random_state=1).set_index("name", drop=False))
    for before, after in pairwise([people, *forms]):
        comparison = of.compare_people(before, after)
        assert comparison.summary()["count"].tolist() == [12, 12, 12, 0, 0, 0, 0, 0]


def test_columns_that_pandas_wrote_as_other_types_are_noted(client: Client, tmp_path: Path) -> None:
    """Lists beside text, and times beside numbers, are no changes and are named in the notes."""
    people = of.search_people(limit=10)
    people.to_csv(tmp_path / "people.csv", index=False)
    lists = {"experiences", "educations", "languages"}
    later = pd.read_csv(tmp_path / "people.csv")
    started = pd.to_datetime(people["current_position_start_date"])
    numbers = people.assign(current_position_start_date=started.astype("int64"))
    for other, skipped in (
        (tmp_path / "people.csv", lists),
        (later, lists),
        (numbers, {"current_position_start_date"}),
    ):
        for pair in ((people, other), (other, people)):
            with warnings.catch_warnings(action="ignore"):
                result = of.compare_people(*pair)
            assert result.changed.empty
            (note,) = [text for text in result.notes if text.startswith("Columns of other types")]
            assert skipped <= set(note.split("'"))
    iso = people.assign(current_position_start_date="2024-01-01T00:00:00.000")
    with warnings.catch_warnings(action="ignore"):
        result = of.compare_people(people, iso)
    assert len(result.changed) == int((started != "2024-01-01").sum())


def test_the_last_two_snapshots_of_a_folder_are_compared(client: Client, tmp_path: Path) -> None:
    """The two newest days are compared, and a warning names an unfinished third one."""
    for date in ("2026-09-01", "2026-11-01", "2026-10-01"):
        of.snapshot_people(tmp_path, person_seniorities=["vp"], date=date)
        if date == "2026-09-01":
            with pytest.raises(InvalidInputError, match="holds 1 snapshot,"):
                of.compare_people(tmp_path)
    (tmp_path / "snapshot=2026-11-01" / "part-00000.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"snapshot=2026-11-01 has no \.parquet file"):
        of.compare_people(str(tmp_path))
    people = of.search_people(person_seniorities=["vp"])
    people.iloc[1:].outreach.to_parquet(tmp_path / "snapshot=2026-11-01" / "part-00000.parquet")
    (tmp_path / ".snapshot=2026-12-01.partial").mkdir()
    with pytest.warns(OutreachWarning) as warned:
        comparison = of.compare_people(tmp_path)
    assert len(comparison.disappeared) == 1
    assert "snapshot of 2026-12-01" in str(warned[0].message)
    with pytest.raises(InvalidInputError, match="is a folder of snapshots"):
        of.compare_people(people, tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"filters": {"person_name": "Ada"}}, "person_name was not set and is now 'Ada'"),
        ({"limit": 7}, "limit was not set and is now 7"),
        ({"total": 9}, "'after' is incomplete: it has 1 of 9 matching people"),
        ({"errors": [{"code": 1}]}, "reported errors for 'after': {'code': 1}"),
        ({"filters": None}, "no filters in .attrs, which many pandas operations drop: 'after'"),
    ],
)
def test_different_searches_are_noted(change: dict[str, Any], words: str) -> None:
    """If the searches differ or are unknown, the comparison and its summary say so once.

    Differences are a warning too, because a single table of the result does not show the notes.
    """
    known = {"filters": {}, "limit": None, "total": 1, "errors": []}
    before, after = frame_of([{"id": "1"}]), frame_of([{"id": "1"}])
    before.attrs, after.attrs = known, known | change
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comparison = of.compare_people(before, after)
    is_unknown = change == {"filters": None}
    assert len(caught) == (0 if is_unknown else 1)
    assert all("See the comparison's notes." in str(warning.message) for warning in caught)
    assert repr(comparison).count(words) == 1
    assert comparison._repr_html_().replace("&#x27;", "'").count(words) == 1
    notes = comparison.summary().set_index("item")["note"]
    assert [item for item, note in notes.items() if words in note] == ["after"]
    after.attrs = dict(known)
    assert of.compare_people(before, after).notes == []


def test_rows_that_cannot_be_compared_are_a_warning() -> None:
    """Duplicates and people without an identifier are one warning; the notes have the rows."""
    before = frame_of([{"id": "1", "title": "CEO"}, {"id": "1", "title": "CTO"}, {"name": "Bo"}])
    after = frame_of([{"id": "1", "title": "CEO"}])
    with pytest.warns(OutreachWarning) as warned:
        comparison = of.compare_people(before, after)
    problems = {
        "Positions in 'before' of rows that repeat an earlier person and were not compared": 1,
        "Positions in 'before' of rows without id and URL /in/<name>, which were not compared": 2,
    }
    assert comparison.notes[1:] == [f"{problem}: {row}." for problem, row in problems.items()]
    assert [str(warning.message) for warning in warned] == [
        f"{'; '.join(problems)}. See the comparison's notes."
    ]
    assert comparison.changed.empty
    assert comparison.disappeared.empty
    assert "repeat an earlier person" in comparison.summary()["note"].str.cat()


def test_a_profile_with_another_id_is_one_person() -> None:
    """The same profile URL matches people with different ids, and a note names the new ids."""
    before = [{"id": f"old{n}", "profnet_url": f"{URL}p{n}", "title": "CTO"} for n in range(7)]
    after = [{"id": f"new{n}", "profnet_url": f"{URL}P{n}/", "title": "CEO"} for n in range(7)]
    note = (
        "People with a new id in 'after', matched by profile URL: 'new0', 'new1', 'new2', 'new3', "
        "'new4' and 2 more."
    )
    with pytest.warns(OutreachWarning) as warned:
        comparison = of.compare_people(frame_of(before), frame_of(after))
    assert "matched by profile URL" in str(warned[0].message)
    assert "new0" not in str(warned[0].message)
    assert note in comparison.notes
    assert comparison.appeared.empty
    assert comparison.disappeared.empty
    titles = comparison.changed[comparison.changed["field"] == "title"]
    assert titles["person_id"].tolist() == [f"new{n}" for n in range(7)]


def test_duplicates_do_not_count_as_complete() -> None:
    """A duplicate person does not count in place of a missing one."""
    before = frame_of([{"id": "1"}, {"id": "1"}])
    before.attrs = {"total": 2}
    with pytest.warns(OutreachWarning) as warned:
        comparison = of.compare_people(before, before)
    assert "'before' is incomplete" in str(warned[0].message)
    assert comparison.notes[0] == "'before' is incomplete: it has 1 of 2 matching people."


def test_columns_of_one_side_are_noted_and_not_compared(client: Client) -> None:
    """If one side has no headcounts, changes are missing, and a note names the columns."""
    whole = of.search_people(person_seniorities=["vp"], limit=5)
    slim = of.search_people(person_seniorities=["vp"], limit=5, headcount="none")
    comparison = of.compare_people(slim, whole)
    assert comparison.headcount["change"].isna().all()
    assert comparison.headcount["after"].notna().all()
    assert "Columns only in 'after'" in comparison.notes[0]
    assert of.compare_people(slim, slim).headcount.empty


@pytest.mark.filterwarnings(QUIET)
def test_growth_is_relative_to_the_count_before() -> None:
    """From 4 to 5, growth is 0.25; from 0 it is missing; unmatched companies have no change."""

    def with_counts(company: str, finance: int, legal: int) -> Record:
        return {"id": company, "company": count_of({"id": company}, finance=finance, legal=legal)}

    comparison = of.compare_people(
        frame_of([with_counts("x", 4, 0), with_counts("gone", 1, 1)]),
        frame_of([with_counts("new", 1, 1), with_counts("x", 5, 2)]),
    )
    table = comparison.headcount.set_index(["company_id", "department"])
    assert table.loc[("x", "finance"), ["change", "growth"]].tolist() == [1, 0.25]
    assert table.loc[("x", "legal"), "change"] == 2
    assert pd.isna(table.loc[("x", "legal"), "growth"])
    assert table.loc[["gone", "new"], "change"].isna().all()
    assert table.index.get_level_values(0).unique().tolist() == ["x", "gone", "new"]


@pytest.mark.filterwarnings(QUIET)
def test_a_comparison_is_written_as_sheets_and_as_csv(client: Client, tmp_path: Path) -> None:
    """Each table and the summary is one sheet, or one file that reads back unchanged."""
    people = of.search_people(limit=30)
    after = people.iloc[5:].assign(title="=1+1")
    comparison = of.compare_people(people.iloc[:25], after)
    names = ["summary", "appeared", "disappeared", "changed", "employer_changes", "headcount"]
    book = pd.read_excel(
        comparison.to_excel(tmp_path / "changes.xlsx"), sheet_name=None, engine="openpyxl"
    )
    assert list(book) == names
    assert len(book["changed"]) == len(comparison.changed) == 20
    folder = comparison.to_csv(tmp_path / "changes")
    assert {file.name for file in folder.glob("*.csv")} == {f"{name}.csv" for name in names}
    pd.testing.assert_frame_equal(
        of.read_prospects(folder / "changed.csv"), comparison.changed, check_dtype=False
    )


NO_COUNTS: list[Any] = [1.5, "many", [1], pd.Timestamp("2020-01-01"), True]


def with_legal(count: Any) -> pd.DataFrame:
    """Make a person whose company has a count of lawyers."""
    legal = {"company_department_headcount_legal": [count]}
    return pd.DataFrame({"id": ["1"], "company_id": ["x"], **legal})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (pd.DataFrame({"name": ["Ada"]}), pd.DataFrame({"id": ["1"]}), "no common column 'id' or"),
        (pd.DataFrame({"id": ["1"]}), None, "needs two tables, before and after"),
        ([{"id": "1"}], [{"id": "1"}], "not list"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), pd.DataFrame({"id": ["1"]}), "more than"),
        ("nowhere.parquet", pd.DataFrame({"id": ["1"]}), r"nowhere\.parquet cannot be read"),
        ("nowhere", None, "not found"),
        *((with_legal(count), with_legal(1), "not whole numbers") for count in NO_COUNTS),
    ],
)
def test_invalid_input_is_an_error(before: Any, after: Any, words: str) -> None:
    """The error names the argument and says what to pass."""
    with pytest.raises(InvalidInputError, match=words):
        of.compare_people(before, after)


def test_the_order_of_members_is_not_a_change() -> None:
    """Records with members in another order, and whole floats, are equal."""
    # In a column with a text, records are compared as text.
    before = pd.DataFrame({"id": ["1", "2"], "note": [{"a": 1, "b": {"c": 2, "d": None}}, "x"]})
    after = pd.DataFrame({"id": ["1", "2"], "note": [{"b": {"c": 2.0}, "a": 1}, "x"]})
    assert of.compare_people(before, after).changed.empty
