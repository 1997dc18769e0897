"""Chosen columns have the same values as all columns, from the service, the cache and files."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServiceError
from outreach_frames.reading.flatten import concat_people, select_columns
from outreach_frames.reading.pages import PeopleReader, as_one_page
from outreach_frames.sandbox import Sandbox
from outreach_frames.tables.schema import to_frame
from tests.examples import share_of_examples
from tests.reading.people_strategies import odd_people, people
from tests.scripted import Received, Reply, json, respond, scripted

DOCUMENTED = list(spec.columns(spec.PERSON))
CHOICE = st.lists(st.sampled_from(DOCUMENTED), unique=True, min_size=1, max_size=5)
LISTS = ["experiences", "educations", "languages", "company_technologies", "company_sic_codes"]


def response(found: Sequence[Any], pages: int = 1, total: int | None = None) -> bytes:
    """Return a response of people search."""
    total = len(found) if total is None else total
    paging = {"page": 1, "page_size": 100, "total_pages": pages, "total": total}
    return dumps({"results": found, "_pagination": paging}).encode()


@share_of_examples(0.2)
@given(
    st.lists(st.lists(people() | odd_people(), max_size=3), min_size=1, max_size=3),
    CHOICE | st.just(DOCUMENTED) | st.just(LISTS),
    st.sampled_from(["numpy_nullable", "pyarrow"]),
)
@example([[{"id": "1", "title": 5}, None, {"company": "x"}]], ["title"], "pyarrow")
@example([[{"company": {"sic_codes": [2**70]}}]], ["company_sic_codes"], "pyarrow")
@example([[{"experiences": [{"title": "x", "new": 1}]}]], ["experiences"], "numpy_nullable")
@example([[{"company": {"founded_year": 2**70}}]], ["company_founded_year"], "numpy_nullable")
@example([[{"location_details": {"lat": 2**53 + 1}}]], ["location_details_lat"], "pyarrow")
@example([[{"current_position_start_date": "May"}]], ["current_position_start_date"], "pyarrow")
def test_chosen_columns_equal_those_of_all_columns(
    pages: list[list[Any]], columns: list[str], backend: Any
) -> None:
    """Chosen columns have the values and types of a full read, also page by page."""
    bodies = [response(found) for found in pages]
    whole = as_one_page(PeopleReader().read(bodies))
    needed = [*dict.fromkeys([*columns, "id"])]
    some = as_one_page(PeopleReader().read(bodies, needed))
    alone = [PeopleReader().read([body], needed)[0] for body in bodies]
    expected = to_frame(select_columns(whole.people, columns), backend)
    for found in ([some], alone):
        table = concat_people([page.people for page in found])
        frame = to_frame(select_columns(table, columns), backend)
        pd.testing.assert_frame_equal(frame, expected)
    assert some.heads == whole.heads


def odd(number: int) -> dict[str, Any]:
    """Return a person with undocumented fields and a value of the wrong type."""
    return {
        "id": f"p{number}",
        "name": f"Person {number}",
        "shoe_size": number,
        "company": {"id": "c", "name": "Acme", "founded_year": "long ago", "mood": {"day": "good"}},
    }


def plain(number: int) -> dict[str, Any]:
    """Return a person with documented fields only."""
    return {"id": f"p{number}", "name": f"Person {number}", "company": {"name": "Acme"}}


def reply(received: Received) -> Reply:
    """Return three pages of two people; the last two people are odd, and one is repeated."""
    number, size = received.json["page"], received.json["page_size"]
    found = [plain(0), plain(1), plain(1), plain(2), odd(3), odd(4)]
    if received.json.get("person_seniorities") == ["vp"]:
        found = found[2:]
    shown = found[(number - 1) * size : number * size]
    return respond(response(shown, -(-len(found) // size), len(found)))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_a_search_returns_chosen_columns_of_the_whole_frame(backend: Any, tmp_path: Path) -> None:
    """Chosen columns equal those of the whole frame, with cache, split, limit and odd pages."""
    split = {"person_seniorities": ["vp", "director"], "split_by": "person_seniorities"}
    with scripted(reply) as service:
        for number, further in enumerate([{}] if backend == "pyarrow" else [{"limit": 3}, split]):
            options: Any = {"limit": None, "page_size": 2, "dtype_backend": backend} | further
            with Client(service.url, "token", cache=None) as client:
                whole = of.search_people(client=client, **options)
            with Client(service.url, "token", cache=tmp_path / f"{number}.sqlite") as client:
                for columns in (
                    ["name", "id"],
                    ["company_name"],
                    ["company_mood_day", "id", "shoe_size"],
                    ["company_founded_year_raw", "company_founded_year"],
                    list(whole.columns),
                ):
                    if not set(columns) <= set(whole.columns):
                        continue
                    expected = whole[columns]
                    if "split_by" in further and "person_seniorities" not in columns:
                        expected = whole[[*columns, "person_seniorities"]]
                    for _ in range(2):
                        found = of.search_people(client=client, columns=columns, **options)
                        pd.testing.assert_frame_equal(found, expected)
                        names, every = found.attrs["undocumented"], whole.attrs["undocumented"]
                        assert {*columns} & {*every} <= {*names} <= {*every}


@pytest.mark.filterwarnings("ignore:100 of")
def test_another_choice_is_served_from_the_cache(sandbox: Sandbox, tmp_path: Path) -> None:
    """The cache stores whole pages, whichever columns the first search chose."""
    with Client(sandbox.url, sandbox.api_key, cache=tmp_path / "c.sqlite") as client:
        first = of.search_people(columns=["id"], limit=100, client=client, page_size=50)
        whole = of.search_people(limit=100, client=client, page_size=50)
        for columns in (["id"], ["experiences", "name"]):
            found = of.search_people(columns=columns, limit=100, client=client, page_size=50)
            pd.testing.assert_frame_equal(found, whole[columns])
    assert first.attrs["fetched_at"] == whole.attrs["fetched_at"] == found.attrs["fetched_at"]


def test_a_choice_is_checked_before_any_request() -> None:
    """An invalid choice of columns is an error that names it, before any request."""
    bad: list[tuple[Any, str]] = [
        ("id", "not str"),
        ({"id"}, "not set"),
        ([], "empty list"),
        (["id", "name", "id"], "'id' more than once"),
        (["compny_name"], "'company_name'"),
        (["never_seen_field"], "not a column of people"),
        (["name", "email"], "returns no email addresses"),
        ([3], "not a column"),
        (7, "not int"),
        (["company_sizes"], "not a column"),
        (["company_department_headcount_finance"], "headcount='none' excludes"),
    ]
    accounts = pd.DataFrame({"domain": ["acme.example"]})
    with scripted([]) as service, Client(service.url, "token", cache=None) as client:
        for columns, words in bad:
            with pytest.raises(InvalidInputError, match=words):
                of.search_people(columns=columns, headcount="none", client=client)
            with pytest.raises(InvalidInputError, match=words):
                accounts.outreach.find_people(
                    domain="domain", columns=columns, headcount="none", client=client
                )
            if "headcount" not in words:
                with pytest.raises(InvalidInputError, match=words):
                    of.export_people("x.csv", columns=columns, client=client)
                with pytest.raises(InvalidInputError, match=words):
                    of.snapshot_people("x", columns=columns, client=client)
        assert not service.requests


def test_a_field_named_in_a_file_can_be_chosen(tmp_path: Path) -> None:
    """A column named in a file can be chosen, and is missing if nobody has the field."""
    saved = pd.DataFrame({"id": ["1"], "of_a_file": ["x"], "score": [1]})
    saved.attrs["undocumented"] = ["of_a_file"]
    path = saved.outreach.to_parquet(tmp_path / "old.parquet")
    body = response([plain(1)])
    with scripted(lambda _: respond(body)) as service:
        with Client(service.url, "token", cache=None) as client:
            with pytest.raises(InvalidInputError, match="of_a_file"):
                of.search_people(columns=["of_a_file"], client=client)
            of.read_prospects(path)
            found = of.search_people(columns=["of_a_file", "id"], client=client)
            with pytest.raises(InvalidInputError, match="score"):
                of.search_people(columns=["score"], client=client)
    assert found["of_a_file"].isna().all()
    assert (list(found), found.attrs["undocumented"]) == (["of_a_file", "id"], [])


def test_an_undocumented_field_may_be_named_like_a_filter(caplog: pytest.LogCaptureFixture) -> None:
    """An undocumented column is listed, logged once and chosen, even if named like a filter."""
    caplog.set_level("INFO", "outreach_frames")
    body = response([{"id": "1", "company": {"domains": ["acme.example"]}}])
    split: Any = {"person_seniorities": ["vp"], "split_by": "person_seniorities"}
    with scripted(lambda _: respond(body)) as service:
        with Client(service.url, "token", cache=None) as client:
            for options in ({}, split):
                whole = of.search_people(client=client, **options)
                some = of.search_people(columns=["company_domains"], client=client, **options)
                pd.testing.assert_frame_equal(some, whole[list(some)])
                assert whole.attrs["undocumented"] == ["company_domains"]
                assert some.attrs["undocumented"] == ["company_domains"]
    assert sum("company_domains" in record.getMessage() for record in caplog.records) <= 1


def test_dropped_values_of_another_type_are_warned_of() -> None:
    """If values of another type are dropped, a warning names the raw column that has them."""
    body = response([odd(1)])
    with scripted(lambda _: respond(body)) as service:
        with Client(service.url, "token", cache=None) as client:
            with pytest.warns(OutreachWarning, match="company_founded_year_raw"):
                of.search_people(columns=["company_founded_year"], client=client)


@pytest.mark.parametrize("failing", range(2, 9))
def test_any_page_of_a_batch_may_fail(failing: int) -> None:
    """The error has the people before it, also if the first page of a batch fails."""

    def reply(received: Received) -> Reply:
        page = received.json["page"]
        return json({}, 400) if page == failing else respond(response([plain(page)], 9, 9))

    with scripted(reply) as service, Client(service.url, "token", cache=None, workers=1) as client:
        with pytest.raises(ServiceError) as raised:
            of.search_people(columns=["id"], page_size=1, limit=None, client=client)
    assert raised.value.partial is not None
    assert raised.value.partial.to_dict("list") == {"id": [f"p{n}" for n in range(1, failing)]}


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people"])
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_exports_have_the_chosen_columns(name: str, tmp_path: Path) -> None:
    """An export with chosen columns is read back like the search's frame, in every format."""
    split = {"person_seniorities": ["vp", "director"], "split_by": "person_seniorities"}
    with scripted(reply) as service, Client(service.url, "token", cache=None) as client:
        of.search_people(limit=None, page_size=2, client=client)
        for columns in (
            ["shoe_size", "person_seniorities", "name", "current_position_start_date"],
            ["company_name", "experiences", "company_technologies"],
        ):
            options: Any = {"columns": columns, "page_size": 2, "client": client, **split}
            expected = of.search_people(limit=None, **options)
            path = of.export_people(tmp_path / name, **options)
            pd.testing.assert_frame_equal(of.read_prospects(path), expected)


def test_snapshots_compare_their_common_columns(sandbox: Sandbox, tmp_path: Path) -> None:
    """A column that one snapshot lacks is named in a note and never reported as changed."""
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        options: Any = {"person_seniorities": ["vp"], "client": client}
        finance = "company_department_headcount_finance"
        of.snapshot_people(
            tmp_path, columns=["id", "title", "company_id", finance], date="2026-01-01", **options
        )
        of.snapshot_people(tmp_path, columns=["title", "name", "id"], date="2026-01-02", **options)
        of.snapshot_people(tmp_path, date="2026-01-03", **options)
        found = of.compare_people(
            tmp_path / "snapshot=2026-01-01", tmp_path / "snapshot=2026-01-02"
        )
        last = of.compare_people(tmp_path / "snapshot=2026-01-01", tmp_path / "snapshot=2026-01-03")
        with pytest.warns(OutreachWarning, match="'id' nor"):
            of.snapshot_people(tmp_path / "other", columns=["name"], **options)
    for one in (found, last):
        assert one.changed.empty
        assert one.employer_changes.empty
        assert len(one.appeared) + len(one.disappeared) == 0
    assert set(last.headcount["department"]) <= {"finance"}
    assert found.headcount.empty
    assert "company_id" in "".join(found.notes)
    with pytest.raises(InvalidInputError, match="no common column"):
        of.compare_people(
            pd.DataFrame({"id": ["1"]}), pd.DataFrame({"profnet_url": ["https://x.example/in/a"]})
        )


@pytest.mark.filterwarnings("ignore:5 of")
def test_people_at_companies_have_the_chosen_columns(sandbox: Sandbox) -> None:
    """With chosen columns `find_people` finds the same people and returns only these columns."""
    with Client(sandbox.url, sandbox.api_key, cache=None) as client:
        companies = of.search_people(limit=5, client=client).outreach.companies()
        options: Any = {
            "domain": "website",
            "client": client,
            "person_seniorities": ["vp", "director"],
            "split_by": "person_seniorities",
        }
        whole = companies.outreach.find_people(**options)
        some = companies.outreach.find_people(columns=["title", "name"], **options)
        named = companies.outreach.find_people(columns=["account_rank", "title"], **options)
        matched = companies.outreach.find_people(columns=["matched_seniority"], **options)
    added = ["account_row", "account_rank", "person_seniorities"]
    pd.testing.assert_frame_equal(some.people, whole.people[["title", "name", *added]])
    assert list(matched.people) == ["matched_seniority", *added]
    assert list(named.people) == ["account_rank", "title", "account_row", "person_seniorities"]
    pd.testing.assert_frame_equal(some.accounts, whole.accounts)
    assert list(some._sheets()["people"]) == list(some.people)
    assert some.people.attrs["undocumented"] == []


@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
@pytest.mark.usefixtures("environment")
def test_commands_take_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--columns` takes names separated by spaces or commas, repeatedly, and outputs only these."""
    search = ["search", "--limit", "2", "--columns"]
    assert main([*search, "company_name,id", "name"]) == 0
    assert capsys.readouterr().out.split()[:3] == ["company_name", "id", "name"]
    assert main([*search, "id", "--columns", "name", "--out", str(tmp_path / "s.csv")]) == 0
    assert main([*search, "nmae"]) == 2
    assert "'name'" in capsys.readouterr().err
    export = ["export", str(tmp_path / "e.csv"), "--limit", "2"]
    assert main([*export, "--columns", "id,name"]) == 0
    snapshot = ["snapshot", str(tmp_path / "s"), "--person-seniorities", "vp"]
    assert main([*snapshot, "--date", "2026-01-01", "--columns", "id,name"]) == 0
    for path in ("s.csv", "e.csv", "s/snapshot=2026-01-01"):
        assert list(of.read_prospects(tmp_path / path)) == ["id", "name"]
