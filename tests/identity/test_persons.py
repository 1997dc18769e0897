"""The same person is found across the whole frame, and the first row of each is kept."""

from __future__ import annotations

from itertools import permutations, product

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.identity.persons import first_rows, person_numbers
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import make_plan

Row = tuple[str | None, str | None]

EMAILS = ["Anna@x.example", " anna@X.EXAMPLE\xa0", "anna@x\u3002example"]
PROFILES = ["https://p.example/in/anna", "HTTP://www.P.example/in/Anna/en?utm_source=x#top"]
# Whose page this is, only the whole URL can tell, if it does.
SHARED = "https://p.example/profile/view?id=1"


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


def test_another_spelling_is_the_same_person() -> None:
    """However an address or a profile's URL is written, the first row is kept."""
    assert kept_rows([(email, None) for email in EMAILS]) == [0]
    assert kept_rows([(None, url) for url in PROFILES]) == [0]


def test_a_query_or_a_fragment_can_tell_people_apart() -> None:
    """Rows whose URLs differ in anything that may say who it is are all sent."""
    urls = [
        *(f"https://p.example/profile/view?id={number}" for number in range(300)),
        *(f"https://p.example/sales/people?leadId={number}" for number in range(300)),
        *(f"https://p.example/app#/in/{number}" for number in range(300)),
    ]
    assert kept_rows([(None, url) for url in urls]) == list(range(900))


def test_identifiers_are_sent_as_written() -> None:
    """What is compared in lower case leaves in the analyst's own."""
    plan = make_plan(frame_of([(EMAILS[0], PROFILES[1])]), "seq_1")
    assert plan.identifiers([0]) == [(EMAILS[0], PROFILES[1])]


def test_each_duplicate_points_at_the_row_that_is_kept() -> None:
    """Duplicates say what they share with the first row, directly or through others."""
    rows: list[Row] = [
        ("a@x.example", None),
        ("b@x.example", "p.example/in/b"),
        ("A@x.example", "p.example/in/a"),
        (None, "https://p.example/in/A/"),
        (None, "p.example/in/b"),
    ]
    assert details(frame_of(rows)) == {
        2: "same email as row 0",
        3: "same person, linked by other rows, as row 0",
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
        1: "same person, linked by other rows, as row 0",
        2: "same email as row 0",
    }


def test_an_invalid_row_stands_in_nobodys_way() -> None:
    """A row that is not sent for another reason does not hold back a later one."""
    frame = frame_of([("a@x.example", "wrong"), ("a@x.example", None)])
    assert make_plan(frame, "seq_1").positions.tolist() == [1]


def test_missing_identifiers_are_nobodys() -> None:
    """Rows that both lack an identifier do not share it."""
    assert kept_rows([("a@x.example", None), ("b@x.example", "n/a"), ("c@x.example", " ")]) == [
        0,
        1,
        2,
    ]


def test_a_weak_url_never_joins_a_row_to_another_person() -> None:
    """Rows with addresses stay apart, and a row with the URL alone is none of them."""
    shared: list[Row] = [("a@x.example", SHARED), ("b@x.example", SHARED), (None, SHARED)]
    for rows in permutations(shared):
        assert kept_rows(list(rows)) == [0, 1, 2]
    assert kept_rows([*shared, (None, SHARED), ("a@x.example", None)]) == [0, 1, 2]
    assert kept_rows([("a@x.example", SHARED), (None, SHARED)]) == [0, 1]


def test_a_weak_url_identifies_rows_that_have_nothing_else() -> None:
    """Two rows with the same URL and no address are one person."""
    assert details(frame_of([(None, SHARED), (None, SHARED)])) == {1: "same profnet_url as row 0"}


def test_a_profile_joins_different_addresses() -> None:
    """A person may have two addresses; `/in/<name>` tells that it is one person."""
    rows: list[Row] = [("a@x.example", PROFILES[0]), ("b@x.example", PROFILES[1])]
    assert details(frame_of(rows)) == {1: "same profnet_url as row 0"}


def test_a_shared_url_is_kept_apart_in_requests() -> None:
    """The service would skip all but one in a request: others go into further ones, a few."""
    rows: list[Row] = [(f"p{n}@x.example", SHARED if n % 2 else None) for n in range(8)]
    plan = make_plan(frame_of(rows), "seq_1", chunk_size=4)
    assert [chunk.tolist() for chunk in plan.chunks()] == [[0, 1, 2, 4], [3, 6], [5], [7]]
    assert [chunk.tolist() for chunk in plan.chunks([1, 2, 3])] == [[1, 2], [3]]
    many = frame_of([(f"p{n}@x.example", SHARED) for n in range(1000)])
    chunks = make_plan(many, "seq_1").chunks()
    assert len(chunks) <= 14
    assert max(map(len, chunks)) <= 250
    assert sorted(row for chunk in chunks for row in chunk.tolist()) == list(range(1000))


def slowly_kept(rows: list[Row], people: int | None = None) -> list[int]:
    """Find the first row of each row's person, by comparing all rows with all.

    With fewer people than rows, the rows are those of the same people again, by other columns.
    """
    people = people or len(rows)
    groups = [{row} for row in range(len(rows))]
    for one, other in product(range(len(rows)), repeat=2):
        if is_same(rows[one], rows[other]) or one % people == other % people:
            joined = groups[one] | groups[other]
            for row in joined:
                groups[row] = joined
    return [min(group) for group in groups]


def is_same(one: Row, other: Row) -> bool:
    """Compare two rows by address, by profile, and by a page where neither has anything else."""
    (email, url), (other_email, other_url) = one, other
    same_url = url == other_url and url is not None
    only_url = email is None and other_email is None
    return (email == other_email and email is not None) or (
        same_url and ("/in/" in str(url) or only_url)
    )


ADDRESSES = st.sampled_from([f"{name}@x.example" for name in "abcd"])
URLS = st.sampled_from([f"p.example/{page}{name}" for name in "ab" for page in ("in/", "view?id=")])
ROWS = st.lists(
    st.tuples(st.none() | ADDRESSES, st.none() | URLS).filter(any), min_size=1, max_size=12
)


@given(ROWS)
def test_duplicates_are_those_of_a_slow_comparison(rows: list[Row]) -> None:
    """Each duplicate names the row that comparing all rows with all finds, and no other is one."""
    expected = slowly_kept(rows)
    said = {row: int(detail.rpartition(" ")[2]) for row, detail in details(frame_of(rows)).items()}
    assert said == {row: kept for row, kept in enumerate(expected) if row != kept}


@given(st.lists(st.tuples(st.none() | ADDRESSES, st.none() | URLS)), st.integers(0, 9))
def test_the_first_row_of_a_person(rows: list[Row], before: int) -> None:
    """It is the first of all rows, those of another table come before; rows of nobody are alone."""
    known, now = (
        make_plan(frame_of(part), "seq_1").keys for part in (rows[:before], rows[before:])
    )
    assert first_rows(person_numbers([now], known)).tolist() == slowly_kept(rows)


@given(st.lists(st.tuples(st.none() | ADDRESSES, st.none() | ADDRESSES, st.none() | URLS)))
def test_persons_by_several_columns(
    people: list[tuple[str | None, str | None, str | None]],
) -> None:
    """Rows are one person where they are by the columns of now, of then, or one and the other."""
    now: list[Row] = [(email, url) for email, _, url in people]
    then: list[Row] = [(home, None) for _, home, _ in people]
    earlier = make_plan(frame_of(then), "seq_1").keys
    plan = make_plan(frame_of(now), "seq_1", earlier_keys=(earlier,))
    persons = slowly_kept([*now, *then], len(people))[: len(people)]
    valid = [row for row, cells in enumerate(now) if any(cells)]
    first: dict[int, int] = {}
    for row in valid:
        first.setdefault(persons[row], row)
    assert plan.positions.tolist() == sorted(first.values())
    assert plan.kept[valid].tolist() == [first[persons[row]] for row in valid]


def test_other_columns_are_told_as_a_link() -> None:
    """A duplicate by the columns of an earlier plan says that other rows or columns link it."""
    frame = frame_of([("a@x.example", None), ("b@x.example", None), ("c@x.example", None)])
    earlier = make_plan(frame.assign(email=["b@x.example", "x@x.example", None]), "seq_1").keys
    plan = make_plan(frame, "seq_1", earlier_keys=(earlier,))
    unsent = plan.outcome_of_unsent()
    assert unsent["position"].tolist() == [1]
    assert unsent["detail"].tolist() == ["same person, linked by other rows, as row 0"]
