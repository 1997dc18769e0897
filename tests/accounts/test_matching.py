"""Rows that are in another table, and rows that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.errors import InvalidInputError, OutreachWarning

KINDS = ["email", "profnet_url", "domain"]
URL = "https://profnet.example/in"
CELLS = {
    "email": ["a@x.example", "A@X.example ", "b@x.example", "n/a", None],
    "profnet_url": [f"{URL}/a", "www.profnet.example/in/A/?utm_source=x", f"{URL}/b", "", None],
    "domain": ["x.example", "https://www.X.example/y", "y.example", "localhost", None],
}
NO_KEY = "ignore:.*(to compare by|matches by it):outreach_frames.errors.OutreachWarning"
TABLES = st.lists(st.tuples(*(st.sampled_from(CELLS[kind]) for kind in KINDS)), max_size=7)


def frame_of(rows: list[Any], labels: str) -> pd.DataFrame:
    """Make a table with labels that repeat."""
    index = [labels[number % 2] for number in range(len(rows))]
    return pd.DataFrame(rows, columns=KINDS, index=index).astype("str")


@pytest.mark.filterwarnings(NO_KEY)
@given(ours=TABLES, theirs=TABLES, kinds=st.sets(st.sampled_from(KINDS), min_size=1))
def test_it_equals_a_nested_loop(ours: list[Any], theirs: list[Any], kinds: set[str]) -> None:
    """Each row matches the first row of the same key, by the strongest key that matches any."""
    left, right = frame_of(ours, "ab"), frame_of(theirs, "xy")
    named: dict[str, Any] = {kind: kind for kind in kinds}
    keys = {
        kind: (getattr(of.keys, kind)(left[kind]).tolist(), getattr(of.keys, kind)(right[kind]))
        for kind in KINDS
    }
    expected = []
    for row in range(len(left)):
        found: tuple[Any, ...] = (None, None, None, 0)
        for kind in KINDS:
            mine, there = keys[kind]
            if kind in kinds and found[0] is None and not pd.isna(mine[row]):
                rows = [place for place, key in enumerate(there) if key == mine[row]]
                if rows:
                    found = (rows[0], right.index[rows[0]], kind, len(rows))
        expected.append(found)
    matches = left.outreach.match(right, **named)
    assert matches.index.equals(left.index)
    assert [
        tuple(None if pd.isna(cell) else cell for cell in row)
        for row in matches.itertuples(index=False)
    ] == expected
    kept = left.outreach.without(right, **named)
    pd.testing.assert_frame_equal(
        kept, left.loc[np.array([row[0] is None for row in expected], bool)]
    )


def test_the_columns_are_those_promised() -> None:
    """The dtypes are the same for no rows and for many."""
    crm = pd.DataFrame({"email": ["a@x.example"]}, index=[17])
    frame = pd.DataFrame({"email": ["b@x.example", "A@x.example"]})
    for rows in (frame, frame.iloc[:0]):
        matches = rows.outreach.match(crm)
        assert {name: str(dtype) for name, dtype in matches.dtypes.items()} == {
            "match_row": "Int64",
            "match_index": "Int64",
            "match_by": "category",
            "match_count": "Int64",
        }
        assert matches["match_by"].cat.categories.tolist() == KINDS
        assert matches["match_by"].cat.ordered
    assert frame.outreach.match(crm)["match_index"].tolist() == [pd.NA, 17]


def test_a_key_may_have_another_name_in_the_other_table() -> None:
    """A pair names both columns; of several candidates the first that is there counts."""
    frame = pd.DataFrame(
        {"Mail": ["a@x.example", "b@x.example"], "site": ["q.example", "z.example"]}
    )
    one = pd.DataFrame({"E-Mail": ["A@x.example"]})
    two = pd.DataFrame({"address": ["b@x.example"]})
    pair = ("Mail", ["E-Mail", "address"])
    assert frame.outreach.match(one, email=pair)["match_row"].tolist() == [0, pd.NA]
    assert frame.outreach.without(one, two, email=pair).empty
    assert len(frame.outreach.without(one, email=("Mail", "E-Mail"))) == 1


def test_a_domain_is_compared_only_when_asked_for() -> None:
    """With no key named, colleagues of somebody in the other table stay."""
    frame = pd.DataFrame({"email": ["a@x.example"], "domain": ["x.example"]})
    other = pd.DataFrame({"email": ["b@x.example"], "domain": ["x.example"]})
    assert len(frame.outreach.without(other)) == 1
    assert frame.outreach.without(other, domain="domain").empty


def test_rows_without_a_key_stay_and_are_counted() -> None:
    """Nothing can be said about a row with no key, so it stays, with a warning."""
    frame = pd.DataFrame({"email": ["a@x.example", None, "n/a"]})
    with pytest.warns(OutreachWarning, match="2 rows have no e-mail address to compare by"):
        kept = frame.outreach.without(pd.DataFrame({"email": ["a@x.example", None]}))
    assert kept.index.tolist() == [1, 2]


@pytest.mark.parametrize("value", [b"a@x.example", "5f4dcc3b5aa765d61d8327deb882cf99"], ids=repr)
def test_a_column_that_nothing_can_match_is_told(value: Any) -> None:
    """A list of bytes or hashes leaves nobody out, which must not look as if nobody were on it."""
    frame = pd.DataFrame({"email": ["a@x.example"]})
    with pytest.warns(OutreachWarning, match="'email' of table 1 can be read as an e-mail address"):
        assert len(frame.outreach.without(pd.DataFrame({"email": [value, None]}))) == 1


def test_found_people_lack_addresses_and_that_is_said() -> None:
    """Who is in the other table by address alone cannot be recognised among found people."""
    people = pd.DataFrame({"profnet_url": [f"{URL}/a", f"{URL}/b"]})
    crm = pd.DataFrame({"profnet_url": [f"{URL}/a"], "email": ["b@x.example"]})
    with pytest.warns(OutreachWarning, match="lacks an e-mail column"):
        assert len(people.outreach.without(crm)) == 1
    with pytest.raises(InvalidInputError, match="People of a search have no e-mail address"):
        people.outreach.without(crm[["email"]])


def test_a_table_that_lacks_a_key_is_named() -> None:
    """Where one of the tables cannot be compared by a key, a warning says which."""
    frame = pd.DataFrame({"email": ["a@x.example"], "site": ["x.example"]})
    tables = [pd.DataFrame({"email": ["c@x.example"]}), pd.DataFrame({"site": ["y.example"]})]
    with pytest.warns(OutreachWarning) as caught:
        kept = frame.outreach.without(*tables, email="email", domain="site")
    assert [str(one.message).split(":")[0] for one in caught] == [
        "Table 1 has no column for domain",
        "Table 2 has no column for e-mail address",
    ]
    assert len(kept) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "do not both have"),
        ({"email": "mial"}, "no column 'mial'"),
        ({"email": ("mail", "address")}, "none of the columns 'address'"),
        ({"email": ("mail", "a", "b")}, "not a pair"),
        ({"email": ("mail", "Mail"), "domain": ("mail", "site")}, "domain: no other table"),
    ],
)
def test_a_missing_column_is_an_error(options: Any, words: str) -> None:
    """A key that is in neither table is never left out silently."""
    frame, other = pd.DataFrame({"mail": ["a@x.example"]}), pd.DataFrame({"Mail": ["a@x.example"]})
    with pytest.raises(InvalidInputError, match=words):
        frame.outreach.match(other, **options)
    with pytest.raises(InvalidInputError, match=words):
        frame.outreach.without(other, **options)


def test_something_has_to_be_left_out() -> None:
    """Leaving out the rows of no table is a mistake."""
    with pytest.raises(InvalidInputError, match="at least one table"):
        pd.DataFrame({"email": ["a@x.example"]}).outreach.without()
