"""`columns` describes every table as its function returns it; `brief` shows the main ones."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.analysis.interface_columns import TABLES
from outreach_frames.errors import InvalidInputError, OutreachWarning

DEPENDS: dict[str, list[str]] = {
    "segments": ["title"],
    "account_people": [],
    "accounts": ["company_website"],
}
INDEX = "dtype of the index"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """Request every table once."""
    folder = tmp_path_factory.mktemp("snapshots")
    leads = pd.DataFrame({"email": ["ada@brightforge.example", "n/a"]})
    with of.sandbox.serve(people=40) as sandbox, warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        of.connect(sandbox.url, sandbox.api_key, cache=None)
        people = of.search_people(limit=30)
        mailboxes = of.mailboxes()
        contacts = of.contacts(sandbox.contact_ids[:3])
        report = leads.outreach.add_to_sequence(sandbox.sequence_ids["accepts_any"])
        found = people[["company_website"]].outreach.find_people(domain="company_website")
        for day in ("2026-01-01", "2026-02-01"):
            of.snapshot_people(folder, person_seniorities=["vp"], date=day)
        comparison = of.compare_people(folder)
        children = {
            name: getattr((contacts if name in contacts else people).outreach, name)()
            for name in TABLES
            if name in people or name in contacts or f"company_{name}" in people
        }
        return children | {
            "people": people,
            "companies": people.outreach.companies(),
            "headcount": people.outreach.headcount(),
            "job_function_headcount": people.outreach.headcount("job_function"),
            "contacts": contacts,
            "mailboxes": mailboxes,
            "set_daily_email_limit": of.set_daily_email_limit(mailboxes["id"].head(2), 40),
            "sequences": of.sequences(),
            "tenure": people.outreach.tenure(),
            "segments": people.outreach.segments("title"),
            "sending_capacity": of.sending_capacity(mailboxes, 10),
            "match": people.outreach.match(people, profnet_url="profnet_url"),
            "validate": leads.outreach.validate(),
            "report_rows": report.rows,
            "report_summary": report.summary(),
            "report_activity": report.recent_activity(since=None),
            "account_people": found.people[list(found.people)[-3:]],
            "accounts": found.accounts,
            "accounts_summary": found.summary(),
            "filters": of.filters(),
            "explain_search": of.explain_search(person_seniorities=["vp"]),
            "snapshots": of.snapshots(folder),
            "changed": comparison.changed,
            "employer_changes": comparison.employer_changes,
            "headcount_change": comparison.headcount,
            "comparison_summary": comparison.summary(),
            "forget": of.forget(email="a@b.example", folder=folder, dry_run=True),
            "columns": of.columns(),
        }


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"lead_list"}))
def test_columns_are_those_of_the_frames(tables: dict[str, pd.DataFrame], table: str) -> None:
    """Names, order and dtypes equal those of the returned frame, and each column has a meaning."""
    told = of.columns(table)
    frame = tables[table].drop(columns=DEPENDS.get(table, []))
    assert told["name"].tolist() == frame.columns.tolist()
    for name, dtype in zip(told["name"], told["dtype"], strict=True):
        assert dtype in {str(frame[name].dtype), INDEX}, name
    assert told.dtypes.eq("str").all()
    assert told.notna().all(axis=None)
    assert told.ne("").all(axis=None)


def test_labels_are_unique_within_a_table() -> None:
    """Each column has its own label, so that renaming by label loses no column."""
    for table in TABLES:
        assert not of.columns(table)["label"].duplicated().any(), table


def test_an_unknown_table_is_an_error() -> None:
    """An unknown table is an error that names the valid tables."""
    with pytest.raises(InvalidInputError, match="Did you mean 'contacts'"):
        of.columns("contact")


CONSTANTS = {"people": ["object", "company_object"], "companies": ["object"]}


@pytest.mark.parametrize("table", ["people", "companies", "contacts", "mailboxes", "sequences"])
def test_frames_begin_with_readable_columns(tables: dict[str, pd.DataFrame], table: str) -> None:
    """`brief`'s columns, id and constants come first, and then the interface's order."""
    names = list(tables[table])
    shown = [name for name in spec.FIRST_COLUMNS[table] if name in names]
    if table in ("people", "companies", "contacts"):
        brief = list(tables[table].outreach.brief())
        assert sorted([*shown, "id"]) == sorted({*brief} - {"people_in_frame"})
    first = [*shown, "id", *CONSTANTS.get(table, [])]
    assert names[: len(first)] == first
    _, fields = spec.FRAMES[table]
    documented = ["_".join(path) for path, _ in spec.leaves(fields)]
    others = [name for name in documented if name not in first]
    assert names[len(first) :] == [*others, *(["people_in_frame"] if table == "companies" else [])]


def test_brief_keeps_custom_columns(people: pd.DataFrame) -> None:
    """Custom columns come first, a dozen at most; two columns are enough to recognise a table."""
    assert list(people.assign(account_row=1).outreach.brief())[:2] == ["account_row", "name"]
    many = people.assign(**{f"own_{number}": 1 for number in range(40)})
    assert len(many.outreach.brief().columns) == 24
    frame = pd.DataFrame(columns=["title", "own", "name"])
    assert list(frame.outreach.brief()) == ["own", "name", "title"]
    assert list(frame[["title", "own"]].outreach.brief()) == ["title", "own"]
    assert list(pd.DataFrame([range(20)]).outreach.brief()) == list(range(12))
    assert pd.DataFrame().outreach.brief().empty
