"""The same person is found across the whole frame, and the first row of each is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach_frames.leads import statuses
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.planning import syntax
from outreach_frames.leads.planning.cells import TEXT
from outreach_frames.leads.planning.identity import email_key, email_keys, url_key, url_keys

Row = tuple[str | None, str | None]

SAME_EMAIL = ["Anna@x.example", "anna@X.EXAMPLE", " anna@x.example\xa0", "ANNA@x.example\u200b"]
SAME_URL = [
    "https://profnet.example/in/anna",
    "http://profnet.example/in/anna",
    "profnet.example/in/anna",
    "HTTPS://WWW.Profnet.Example/in/Anna/",
    "https://profnet.example:443/in/anna//",
    "https://profnet.example/in/anna?from=mail",
    "https://profnet.example/in/anna/#top",
    "https://profnet.example/in/%61nna",
    " profnet.example/in/anna\u200b",
]
OTHER_URL = [
    "https://profnet.example/in/anna-2",
    "https://other.example/in/anna",
    "https://profnet.example:8080/in/anna",
    "https://profnet.example/company/anna",
]


def frame_of(rows: list[Row]) -> pd.DataFrame:
    """Make a frame of identifiers."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="str")


def kept_rows(rows: list[Row]) -> list[int]:
    """Return the positions that are sent."""
    return make_plan(frame_of(rows), "seq_1").positions.tolist()


def details(frame: pd.DataFrame) -> dict[int, str]:
    """Return what is said of each duplicate."""
    unsent = make_plan(frame, "seq_1").outcome_of_unsent()
    assert set(unsent["status"]) <= {statuses.DUPLICATE_IN_FRAME}
    return dict(zip(unsent["position"].tolist(), unsent["detail"], strict=True))


@pytest.mark.parametrize("text", SAME_EMAIL)
def test_addresses_are_compared_without_case_and_blanks(text: str) -> None:
    """Another spelling of an address is the same person."""
    assert email_key(text) == email_key(SAME_EMAIL[0])
    assert kept_rows([(SAME_EMAIL[0], None), (text, None)]) == [0]


@pytest.mark.parametrize("text", SAME_URL)
def test_urls_are_compared_by_the_profile_that_they_lead_to(text: str) -> None:
    """Another spelling of a profile's URL is the same person."""
    assert url_key(text) == url_key(SAME_URL[0])
    assert kept_rows([(None, SAME_URL[0]), (None, text)]) == [0]


def test_a_query_tells_people_apart_where_nothing_else_does() -> None:
    """Behind a profile's own path a query is left out; behind a shared one it is who it is."""
    assert url_key("profnet.example/in/anna?from=x") == url_key("profnet.example/in/anna")
    assert url_key("profnet.example/view?id=1") != url_key("profnet.example/view?id=2")
    frame = pd.DataFrame({"profnet_url": [f"profnet.example/view?id={n}" for n in (1, 2, 1)]})
    assert make_plan(frame, "seq_1").positions.tolist() == [0, 1]


@pytest.mark.parametrize("text", OTHER_URL)
def test_other_profiles_stay_apart(text: str) -> None:
    """Another host, port or path is another person."""
    assert kept_rows([(None, SAME_URL[0]), (None, text)]) == [0, 1]


def test_composed_letters_are_the_same_letters() -> None:
    """An accent that is written apart from its letter makes no other person."""
    assert kept_rows([("zoë@x.example", None), ("zoe\u0308@x.example", None)]) == [0]


def test_identifiers_are_sent_as_written() -> None:
    """What is compared in lower case leaves in the analyst's own."""
    plan = make_plan(frame_of([("Anna@X.example", SAME_URL[3])]), "seq_1")
    assert plan.identifiers(0) == ("Anna@X.example", SAME_URL[3])


def test_each_duplicate_points_at_the_row_that_is_kept() -> None:
    """Duplicates say what they share with the first row, directly or by way of others."""
    rows: list[Row] = [
        ("a@x.example", None),
        ("b@x.example", "p.example/in/b"),
        ("A@x.example", "p.example/in/a"),
        (None, "https://p.example/in/A/"),
        (None, "p.example/in/b"),
    ]
    assert details(frame_of(rows)) == {
        2: "same email as row 0",
        3: "same person (by way of other rows) as row 0",
        4: "same profnet_url as row 1",
    }


def test_the_label_is_told_where_it_is_not_the_position() -> None:
    """With an index of its own, a frame's rows are named by label too; labels may repeat."""
    rows: list[Row] = [("b@x.example", None), ("a@x.example", None), ("a@x.example", None)]
    assert details(frame_of(rows).set_axis(["x", "y", "y"])) == {
        2: "same email as row 1 (index 'y')"
    }
    levels = pd.MultiIndex.from_tuples([(1, "x"), (1, "y"), (1, "y")])
    assert details(frame_of(rows).set_axis(levels)) == {2: "same email as row 1 (index (1, 'y'))"}


def test_a_later_row_can_join_earlier_ones() -> None:
    """Two rows that a third one links are one person, whose first row is kept."""
    rows: list[Row] = [
        ("a@x.example", None),
        (None, "p.example/in/a"),
        ("a@x.example", "p.example/in/a"),
    ]
    assert details(frame_of(rows)) == {
        1: "same person (by way of other rows) as row 0",
        2: "same email as row 0",
    }


def test_an_invalid_row_stands_in_nobodys_way() -> None:
    """A row that is not sent for another reason is no reason not to send a later one."""
    frame = frame_of([("a@x.example", "wrong"), ("a@x.example", None)])
    assert make_plan(frame, "seq_1").positions.tolist() == [1]


def test_missing_identifiers_are_nobodys() -> None:
    """Rows that both lack an identifier do not share it."""
    assert kept_rows([("a@x.example", None), ("b@x.example", "n/a"), ("c@x.example", " ")]) == [
        0,
        1,
        2,
    ]


def slowly_kept(rows: list[Row]) -> Iterator[int]:
    """Find the first row of each person by walking from row to row."""
    unseen = set(range(len(rows)))
    while unseen:
        first = min(unseen)
        yield first
        reached = {first}
        while reached:
            row = reached.pop()
            unseen.discard(row)
            reached |= {other for other in unseen if is_same(rows[row], rows[other])}


def is_same(one: Row, other: Row) -> bool:
    """Tell whether two rows share an identifier."""
    return any(mine and mine == theirs for mine, theirs in zip(one, other, strict=True))


ADDRESSES = st.sampled_from([f"{name}@x.example" for name in "abcdef"])
PROFILES = st.sampled_from([f"p.example/in/{name}" for name in "abcdef"])
ROWS = st.lists(
    st.tuples(st.none() | ADDRESSES, st.none() | PROFILES).filter(any), min_size=1, max_size=12
)


@settings(max_examples=50, deadline=None)
@given(ROWS)
def test_duplicates_are_transitive(rows: list[Row]) -> None:
    """The rows that are sent are the first ones of all groups, as a slow walk finds them."""
    assert kept_rows(rows) == list(slowly_kept(rows))
    named = {int(detail.rpartition(" ")[2]) for detail in details(frame_of(rows)).values()}
    assert named <= set(slowly_kept(rows))


LIKE_ADDRESSES = st.from_regex(syntax.SIMPLE_EMAIL, fullmatch=True) | st.text("aA@.é\u0308 -")
LIKE_URLS = st.from_regex(syntax.SIMPLE_URL, fullmatch=True) | st.text("aAwW./:%61?#@[é 8")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.none() | LIKE_ADDRESSES, max_size=4), st.lists(st.none() | LIKE_URLS, max_size=4)
)
def test_a_column_is_compared_as_its_texts_are(
    addresses: list[str | None], urls: list[str | None]
) -> None:
    """The keys of a column are those of its texts, one by one, whatever these are."""
    for texts, column_keys, key in ((addresses, email_keys, email_key), (urls, url_keys, url_key)):
        expected = [None if text is None else key(text) for text in texts]
        assert column_keys(pa.array(texts, TEXT)).to_pylist() == expected
