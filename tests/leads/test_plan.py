"""Plans: the requests that they send, and the rows that they exclude."""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.planning.checks import HARMLESS
from outreach_frames.leads.sending.submit import submit
from tests import scripted
from tests.examples import share_of_examples
from tests.leads.sending.lead_service import added

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

SEQUENCE = "seq_1"
OVERRIDE = spec.OVERRIDES[0].name

TEXT_DTYPES = ["object", "str", "string[python]", "string[pyarrow]", "category"]


def people(rows: int) -> pd.DataFrame:
    """Make valid rows of people."""
    return pd.DataFrame(
        {
            "email": pd.Series([f"p{row}@x.example" for row in range(rows)], dtype="str"),
            "name": pd.Series([f"Name {row}" for row in range(rows)], dtype="str"),
        }
    )


@pytest.mark.parametrize(("rows", "requests"), [(0, 0), (1, 1), (250, 1), (251, 2), (10_001, 41)])
def test_no_request_exceeds_the_limit(rows: int, requests: int) -> None:
    """Each row is in one request, in order, and no request exceeds the limit."""
    plan = make_plan(people(rows), SEQUENCE)
    sent = [lead["email"] for body in plan.payloads() for lead in body[spec.LEADS_KEY]]
    assert sent == list(people(rows)["email"])
    assert len(plan.chunks()) == requests
    assert all(1 <= len(chunk) <= spec.MAX_LEADS_PER_REQUEST for chunk in plan.chunks())
    assert plan.unsent.empty
    chunks = make_plan(people(7), SEQUENCE, chunk_size=3).chunks()
    assert [chunk.tolist() for chunk in chunks] == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_lead_has_exactly_the_mapped_columns() -> None:
    """A lead has its identifiers, and the mapped data in order without missing values."""
    frame = pd.DataFrame(
        {
            "E-Mail": ["anna@x.example", "ben@x.example"],
            "Profile": ["p.example/in/anna", None],
            "First Name": ["Anna", None],
            "Joined": [2021, np.nan],
            "secret": ["s", "s"],
        }
    )
    plan = make_plan(
        frame,
        SEQUENCE,
        email="E-Mail",
        profnet_url="Profile",
        data={"joined": "Joined", "first_name": "First Name"},
    )
    anna, ben = plan.leads(plan.positions)
    assert anna == {
        "email": "anna@x.example",
        "profnet_url": "p.example/in/anna",
        "data": {"joined": "2021", "first_name": "Anna"},
    }
    assert list(anna["data"]) == ["joined", "first_name"]
    assert ben == {"email": "ben@x.example"}
    identifiers = [("anna@x.example", "p.example/in/anna"), ("ben@x.example", None)]
    assert plan.identifiers(plan.positions) == identifiers
    assert plan.identifiers([1, 0]) == identifiers[::-1]


def test_rows_that_are_not_sent_have_reasons() -> None:
    """Each row that is not sent has a status, all reasons, and the first problem's code."""
    frame = pd.DataFrame(
        {
            "email": ["p0@x.example", "p0@", "unknown", "P0@x.example"],
            "name": ["ok", "a" * 2000, None, "ok"],
        }
    )
    unsent = make_plan(frame, SEQUENCE, data=["name"]).unsent
    assert unsent["position"].tolist() == [1, 2, 3]
    assert unsent["status"].tolist() == [
        statuses.INVALID,
        statuses.INVALID,
        statuses.DUPLICATE_IN_FRAME,
    ]
    assert "not an e-mail address" in unsent["detail"][0]
    assert "2,000 characters" in unsent["detail"][0]
    assert "'unknown' is a placeholder" in unsent["detail"][1]
    assert unsent["error_code"].tolist()[:2] == ["invalid_email", "missing_identifier"]
    assert unsent["error_code"].isna().tolist() == [False, False, True]
    assert unsent["position"].dtype == np.int64
    assert (unsent[["status", "detail", "error_code"]].dtypes == "str").all()


def test_the_frame_is_not_changed_and_later_changes_are_not_sent() -> None:
    """A plan does not change its frame, and later changes of the frame do not change the plan."""
    frame = people(3)
    before = frame.copy()
    plan = make_plan(frame, SEQUENCE, data=["name"])
    pd.testing.assert_frame_equal(frame, before)
    payloads = list(plan.payloads())
    frame.loc[0, "email"] = "other@x.example"
    frame["name"] = "other"
    frame.index.name = "other"
    assert list(plan.payloads()) == payloads
    pd.testing.assert_frame_equal(plan.frame, before)


def test_a_plan_cannot_be_changed() -> None:
    """Changing a plan's attributes or results never changes the leads that are sent."""
    plan = make_plan(people(2), SEQUENCE, mailboxes=["a@x.example"])
    payloads = list(plan.payloads())
    (body,) = plan.payloads()
    body["leads"][0]["email"] = "other@x.example"
    body["settings"]["mailboxes"].append("b@x.example")
    for handed_out in (plan.frame, plan.problems, plan.unsent):
        handed_out[:] = None
    with pytest.raises(AttributeError):
        plan.sequence_id = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        plan.settings["mailboxes"] = ()  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        plan.positions[0] = 5
    assert list(plan.payloads()) == payloads
    pd.testing.assert_frame_equal(plan.frame, people(2))


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Draw frames with typical, odd and random cells."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    emails = (
        st.none()
        | text
        | st.sampled_from(
            ["a@x.example", "A@X.example ", "b@x.example", "n/a", "bad@", "zoë@x.example"]
        )
    )
    urls = (
        st.none()
        | text
        | st.sampled_from(
            ["p.example/in/a", "https://www.p.example/in/A/", "p.example/in/b?x", "-", "p.example"]
        )
    )
    notes = st.none() | text | st.just("é" * (spec.MAX_DATA_VALUE_LENGTH + 1))
    years = st.none() | st.integers(1900, 2100)
    rows = draw(st.lists(st.tuples(emails, urls, notes, years), max_size=8))
    columns = zip(*rows, strict=True) if rows else [[], [], [], []]
    names = ["email", "profnet_url", "note", "year"]
    return pd.DataFrame(
        {
            name: pd.Series(list(cells), dtype=object)
            for name, cells in zip(names, columns, strict=True)
        }
    )


def plan_of(frame: pd.DataFrame, sequence_id: str = SEQUENCE) -> SubmissionPlan:
    """Plan a frame with all columns."""
    return make_plan(frame, sequence_id, data=["note", "year"])


@given(frames())
def test_every_row_is_sent_or_excluded(frame: pd.DataFrame) -> None:
    """Each row of any frame is either sent, invalid or a duplicate."""
    plan = plan_of(frame)
    unsent = plan.unsent
    assert sorted([*plan.positions.tolist(), *unsent["position"]]) == list(range(len(frame)))
    assert set(unsent["status"]) <= {statuses.INVALID, statuses.DUPLICATE_IN_FRAME}
    invalid = unsent.loc[unsent["status"] == statuses.INVALID, "position"]
    assert set(invalid) <= set(plan.problems["row"])
    assert (unsent["detail"] != "").all()
    sent = plan.problems[plan.problems["row"].isin(plan.positions)]
    assert set(sent["code"]) <= HARMLESS


@share_of_examples(0.3)
@given(frames())
def test_dtypes_do_not_change_requests(frame: pd.DataFrame) -> None:
    """The dtype of a column changes neither the requests nor the problems."""
    expected = plan_of(frame)
    years = ["object", "float64", "Int64", "int64[pyarrow]", "category"]
    for text, year in zip(TEXT_DTYPES, years, strict=True):
        dtypes = {"email": text, "profnet_url": text, "note": text, "year": year}
        plan = plan_of(frame.astype(dtypes))
        assert json.dumps(list(plan.payloads())) == json.dumps(list(expected.payloads()))
        pd.testing.assert_frame_equal(plan.problems, expected.problems)


@given(frames())
def test_requests_have_the_frame_s_values(
    client: Client, sandbox: Sandbox, frame: pd.DataFrame
) -> None:
    """Each value that is sent is the text of its cell, and the sandbox accepts each request."""
    sequence_id = sandbox.sequence_ids["accepts_any"]
    plan = plan_of(frame, sequence_id)
    for position, lead in zip(plan.positions, plan.leads(plan.positions), strict=True):
        row = frame.iloc[position]
        data = lead.get("data", {})
        year = row["year"]
        assert data.get("year") == (None if year is None else str(year))
        assert data.get("note") in {None, row["note"]}
        for name in spec.LEAD_IDENTIFIERS:
            assert lead.get(name) is None or lead[name] in row[name]
    for body in plan.payloads():
        response = client._session.write(spec.ADD_LEADS, path={"id": sequence_id}, body=body)
        assert response["total"] == len(body[spec.LEADS_KEY])


def test_text() -> None:
    """A plan's text shows the number of sent and excluded rows, the problems and the first lead."""
    frame = people(4)
    frame["email"] = ["p0@x.example", "P0@x.example", "unknown", "p3@"]
    settings = {"mailboxes": ["sender@x.example"]}
    overrides = {OVERRIDE: True}
    text = repr(make_plan(frame, SEQUENCE, data=["name"], overrides=overrides, **settings))
    for words in (
        "1 of 4 rows will be sent, in 1 request of at most 250 leads",
        "2 invalid rows, 1 duplicate",
        *("placeholder 1", "missing_identifier 1", "invalid_email 1"),
        *(OVERRIDE, "mailboxes: sender@x.example", '"email": "p0@x.example"'),
        "no service is connected",
    ):
        assert words in text
    for rows in (0, 1, 251):
        frame = people(rows).assign(name="a" * 1000)
        plan = make_plan(frame, SEQUENCE, data={f"field_{number}": "name" for number in range(50)})
        for view in (repr(plan), plan._repr_html_()):
            assert f"{rows} of {rows} row" in view
            assert (": the frame has no rows." in view) is (rows == 0)
            assert len(view) < 6000


@pytest.mark.parametrize("status", [*spec.SEQUENCE_STATUSES, "sleeping", None])
def test_a_sequence_that_takes_no_leads(status: str | None) -> None:
    """The plan and a dry run say that no row is sent; recorded rows and the real call do not."""
    frame = people(3)
    frame.loc[2, "email"] = "P1@x.example"
    later = listing({"id": "s1", "name": "Spring", "status": status})
    with (
        scripted.scripted([*listing(ONE), added, *later, added]) as service,
        Client(service.url, "token", cache=None) as client,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", OutreachWarning)
        submit(make_plan(frame[:1], "s1", client=client))
        plan = make_plan(frame, "s1", client=client)
        views, dry = (repr(plan), plan._repr_html_()), plan.submit(dry_run=True)
        sent = plan.submit(progress=False)
    accepts = spec.SEQUENCE_STATUSES.get(status or "", True)
    words = "\n".join(str(warning.message) for warning in caught)
    assert (f"is {status} and accepts no leads" in words) is not accepts
    for view in views:
        assert ("1 of 3 rows will be sent, in 1 request" in view) is accepts
        assert (f"0 of 3 rows will be sent: the sequence is {status}." in view) is not accepts
        assert f"Spring, {status}" in view or status is None
        assert "1 lead, recorded in this Python session: not sent again" in view
        assert "plan.submit(journal=path, dry_run=True)" in view
    ready = ["would_send", "duplicate_in_frame"] if accepts else ["not_sent"] * 2
    assert dry.rows["status"].tolist() == ["added", *ready]
    assert (f"because the sequence is {status}." in dry.rows["detail"][1]) is not accepts
    assert sent.rows["status"].tolist() == ["added", "added", "duplicate_in_frame"]


def test_no_token_is_in_a_plan() -> None:
    """A plan's text and HTML do not contain the token."""
    token = "a-secret-token"
    refused = scripted.json({"error": {"message": f"bad token {token}"}}, status=401)
    with (
        scripted.scripted([refused]) as service,
        of.connect(service.url, token, cache=None) as client,
    ):
        plan = make_plan(people(1), SEQUENCE, client=client)
    assert token not in repr(plan) + plan._repr_html_()


def test_a_new_sequence_is_found_despite_the_cache(tmp_path: Path) -> None:
    """A sequence that the cached list lacks is found, because the look-up reads no cache."""
    replies = [sequence_page(1, last=True), sequence_page(4, last=True)]
    with (
        scripted.scripted(replies) as service,
        Client(service.url, "token", cache=tmp_path / "cache") as client,
    ):
        assert list(of.sequences(client=client)["name"]) == ["Name 1.0", "Name 1.1"]
        assert make_plan(people(1), "s4_0", client=client).sequence.name == "Name 4.0"
    assert len(service.requests) == 2


def sequence_page(number: int, *, last: bool = False, size: int = 2) -> scripted.Reply:
    """Make a page of sequences, with a link to the next page unless it is the last."""
    items = [
        {"id": f"s{number}_{place}", "name": f"Name {number}.{place}", "status": "active"}
        for place in range(size)
    ]
    links = {} if last else {"next": {"href": f"/sequences?page[after]={number}"}}
    return scripted.json({"sequences": items, "_links": links})


def listing(*items: object, **more: object) -> list[scripted.Reply]:
    """Make the only page of the list of sequences."""
    return [scripted.json({"sequences": items, "_links": {}, **more})]


ONE = {"id": "s1"}
# Replies to the look-up, the maximum number of requests, and the result in the plan's text.
LOOK_UPS: dict[str, tuple[list[scripted.Reply], int, str]] = {
    "no sequences": (listing(), 1, "the account has no sequences"),
    # Lists from which a sequence may be missing.
    "no id": (listing(ONE, {"name": "Nameless"}), 1, "not among the first 1"),
    "not an object": (listing(ONE, None), 1, "not among the first 1"),
    "an id twice": (listing(ONE, ONE), 1, "not among the first 1"),
    "an id on two pages": (
        [sequence_page(1), sequence_page(1, last=True)],
        2,
        "not among the first 2",
    ),
    "errors": (listing(ONE, _errors=[{"message": "partial"}]), 1, "not among the first 1"),
    "on the fifth page": ([*map(sequence_page, range(5))], 5, "Name 4.1, active"),
    "beyond": ([*map(sequence_page, range(5, 14))], 5, "not among the first 10 of the"),
    "failing": ([scripted.json({}, 500)] * 9, 9, "the sequences could not be listed"),
    "failing later": (
        [sequence_page(1), *[scripted.json({}, 500)] * 9],
        9,
        "the sequences could not be listed",
    ),
    "refused": ([scripted.json({}, 401)], 1, "the sequences could not be listed"),
    "not a page": ([scripted.json([])] * 9, 5, "the sequences could not be listed"),
    "empty pages without end": (
        [sequence_page(number, size=0) for number in range(9)],
        5,
        "listed no sequences in time",
    ),
    "slow": ([scripted.drip(sequence_page(4), every=0.5)], 1, "in time"),
    "a long wait": ([scripted.json({}, 429, {"Retry-After": "60"})] * 9, 1, "in time"),
}


@pytest.mark.parametrize(("replies", "most", "words"), LOOK_UPS.values(), ids=LOOK_UPS)
def test_the_look_up_sends_few_requests(
    replies: list[scripted.Reply], most: int, words: str
) -> None:
    """The look-up sends few requests and ends early; the plan shows its result."""
    with (
        scripted.scripted(replies) as service,
        Client(service.url, "token", cache=None, backoff=0) as client,
    ):
        plan = make_plan(people(1), "s4_1", client=client)
    assert words in repr(plan)
    assert len(plan.positions) == 1
    assert 1 <= len(service.requests) <= most


@pytest.mark.parametrize(
    ("sequence_id", "size", "words"),
    [
        ("s4_0x", 2, r"'s4_0x'\. Did you mean 's4_0'.*of\.sequences\(\)"),
        ("Name 4.0", 2, r"name of a sequence, not its id\. Pass the id: 's4_0'"),
        (" name  4.0", 2, r"name of a sequence, not its id\. Pass the id: 's4_0'"),
        ("Name 4", 1, r"Did you mean 's4_0' \(Name 4\.0\)\?"),
        # Of a huge page, only some sequences are compared for a suggestion.
        ("s4_x", 1_000, "no sequence with the id 's4_x'"),
    ],
)
def test_an_unknown_sequence_is_refused(sequence_id: str, size: int, words: str) -> None:
    """An unknown id, or a name in its place, is an error that suggests an id."""
    with (
        scripted.scripted([sequence_page(4, last=True, size=size)]) as service,
        Client(service.url, "token", cache=None) as client,
        pytest.raises(InvalidInputError, match=words),
    ):
        make_plan(people(1), sequence_id, client=client)


@pytest.mark.parametrize("name", ["E-Mail", " email"])
def test_a_similar_column_is_suggested_not_used(name: str) -> None:
    """A column whose name only resembles a default name is suggested in an error, not used."""
    frame = pd.DataFrame({name: ["a@x.example"], "profnet_url": ["https://profnet.example/in/a"]})
    for call in (partial(make_plan, frame, SEQUENCE), frame.outreach.validate):
        with pytest.raises(InvalidInputError, match=re.escape(f"Pass email={name!r}")):
            call()
        call(email=None)
        call(email=name)
        with pytest.raises(InvalidInputError, match=re.escape(f"Did you mean {name!r}")):
            call(email="email")
