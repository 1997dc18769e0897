"""Duplicates of a person are found in the whole frame, and each person's first row is kept."""

from __future__ import annotations

from itertools import product

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.leads import statuses
from outreach_frames.leads.plan import make_plan

Row = tuple[str | None, str | None]

EMAILS = ["Anna@x.example", " anna@X.EXAMPLE\xa0", "anna@x\u3002example"]
PROFILES = ["https://p.example/in/anna", "HTTP://www.P.example/in/Anna/en?utm_source=x#top"]


def frame_of(rows: list[Row]) -> pd.DataFrame:
    """Make a frame of identifiers."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="str")


def details(frame: pd.DataFrame) -> dict[int, str]:
    """Return the detail of each duplicate."""
    unsent = make_plan(frame, "seq_1").unsent
    assert set(unsent["status"]) <= {statuses.DUPLICATE_IN_FRAME}
    return dict(zip(unsent["position"].tolist(), unsent["detail"], strict=True))


def test_each_duplicate_names_the_kept_row() -> None:
    """Details name the identifier that a duplicate shares with the first row, or the link."""
    rows: list[Row] = [
        ("a@x.example", None),
        ("b@x.example", "p.example/in/b"),
        ("A@x.example", "p.example/in/a"),
        (None, "https://p.example/in/A/"),
        (None, "p.example/in/b"),
    ]
    assert details(frame_of(rows)) == {
        2: "same email as row 0",
        3: "same person, linked by other rows or records, as row 0",
        4: "same profnet_url as row 1",
    }


def test_details_show_labels_unless_they_are_positions() -> None:
    """With a custom index, details name rows by label too; labels may repeat."""
    rows: list[Row] = [("b@x.example", None), ("a@x.example", None), ("a@x.example", None)]
    assert details(frame_of(rows).set_axis(["x", "y", "y"])) == {
        2: "same email as row 1 (index 'y')"
    }
    levels = pd.MultiIndex.from_tuples([(1, "x"), (1, "y"), (1, "y")])
    assert details(frame_of(rows).set_axis(levels)) == {2: "same email as row 1 (index (1, 'y'))"}


def test_an_invalid_row_does_not_block_a_duplicate() -> None:
    """An invalid row is not sent, and a later row of the same person is sent instead."""
    frame = frame_of([("a@x.example", "wrong"), ("a@x.example", None)])
    assert make_plan(frame, "seq_1").positions.tolist() == [1]


def slowly_kept(rows: list[Row]) -> list[int]:
    """Return the first row of each row's person, by comparing every pair of rows."""
    groups = [{row} for row in range(len(rows))]
    for one, other in product(range(len(rows)), repeat=2):
        if is_same(rows[one], rows[other]):
            joined = groups[one] | groups[other]
            for row in joined:
                groups[row] = joined
    return [min(group) for group in groups]


def is_same(one: Row, other: Row) -> bool:
    """Compare two rows by address, by profile, and without addresses also by a weak URL."""
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
def test_duplicates_equal_a_brute_force(rows: list[Row]) -> None:
    """Each duplicate names the row that a comparison of every pair of rows finds."""
    expected = slowly_kept(rows)
    said = {row: int(detail.rpartition(" ")[2]) for row, detail in details(frame_of(rows)).items()}
    assert said == {row: kept for row, kept in enumerate(expected) if row != kept}
