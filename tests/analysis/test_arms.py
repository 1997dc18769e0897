"""Assignment of rows to test arms, and the counts of rows without a usable key."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.common.text import PLACEHOLDERS
from outreach_frames.errors import InvalidInputError, OutreachWarning

SHARES = {"B": 45, "A": 45, "holdout": 10}
KEYS = st.lists(st.text("abcdefgh-@.é", min_size=2, max_size=6), max_size=12)


def arms(keys: Any, shares: Mapping[str, Any] = SHARES, seed: int = 3) -> list[Any]:
    """Return the arm column."""
    frame = pd.DataFrame({"key": keys}).outreach.assign_arms(shares, by="key", seed=seed)
    return frame["arm"].astype(object).where(frame["arm"].notna(), None).tolist()


def expected(key: str, shares: Mapping[str, Any] = SHARES, seed: int = 3) -> str:
    """Return a key's arm by a plain loop over the ranges of hashes."""
    weights = {arm: Fraction(str(share)) for arm, share in shares.items()}
    digest = blake2b(f"{seed}\n{key}".encode(), digest_size=8).digest()
    place = Fraction(int.from_bytes(digest, "big"), 2**64) * sum(weights.values())
    for arm in sorted(shares):
        place -= weights[arm]
        if place < 0:
            return arm
    raise AssertionError(key)


@given(
    keys=KEYS,
    shares=st.dictionaries(
        st.sampled_from("ABCDE"),
        st.one_of(st.integers(1, 2**70), st.floats(0.001, 1e6)),
        min_size=1,
    ),
    seed=st.integers(),
)
def test_an_arm_depends_on_seed_key_and_shares_alone(
    keys: list[str], shares: dict[str, Any], seed: int
) -> None:
    """Each row's arm is that of a plain loop over its own key, whatever the other rows are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        found = arms(pd.Series(keys, dtype="str"), shares, seed)
        reordered = dict(reversed(shares.items()))
        assert arms(pd.Series(keys[::-1], dtype="str"), reordered, seed) == found[::-1]
    assert found == [None if key in PLACEHOLDERS else expected(key, shares, seed) for key in keys]


def test_arms_stay_the_same_in_later_versions() -> None:
    """Later versions assign the same arms: a change would split the groups of running campaigns."""
    keys = ["acme.example", "brightforge.example", 7, 7.5, True, "é"]
    assert arms(keys, seed=2027) == ["A", "A", "B", "B", "A", "B"]


def test_arms_do_not_depend_on_the_dtype() -> None:
    """Numbers, decimals, categories and text with the same ids have the same arms."""
    ids = pd.Series(range(40))
    text = ids.astype("str")
    decimals = ids.map(lambda one: Decimal(f"{one}.00"))
    columns = [
        *(ids.astype(kind) for kind in ("int8", "Int64", "float", "Float32", "object", "category")),
        *(ids.astype(kind) for kind in ("int64[pyarrow]", "double[pyarrow]", "Sparse[int]")),
        *(text.astype(kind) for kind in ("object", "string[python]", "string[pyarrow]")),
        *(text.astype(pd.ArrowDtype(kind)) for kind in (pa.large_string(), pa.string())),
        ids.astype("float").astype("category"),
        ids.astype("float").astype("str"),
        decimals,
        decimals.astype(pd.ArrowDtype(pa.decimal128(9, 2))),
        pd.Series(pd.array(text, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))),
        text.map(lambda one: f" {one}\xa0"),
    ]
    wanted = [expected(one) for one in text]
    for column in columns:
        assert arms(column) == wanted, column.dtype
    fractions = {arm: share / 100 for arm, share in SHARES.items()}
    for shares in (fractions, {arm: Decimal(f"{one}") for arm, one in fractions.items()}):
        assert arms(ids, shares) == wanted
    assert arms(["e\u0301", "é", "7.50", "007"]) == [*map(expected, ["é", "é", "7.5", "007"])]


def test_shares_are_kept_and_seeds_are_independent() -> None:
    """At fixed seeds, shares and pairs of arms differ from the expected counts only by chance."""
    keys = pd.Series([f"company{number}.example" for number in range(9_000)])
    frame = pd.DataFrame({"key": keys, "id": keys.index})
    weights = np.array([*SHARES.values()]) / 100
    found = {
        (by, seed): frame.outreach.assign_arms(SHARES, by=by, seed=seed)["arm"].cat.codes
        for by in frame
        for seed in (0, 1, 2027)
    }
    for codes in found.values():
        wanted = len(keys) * weights
        # The 99.9th percentiles of chi-square with 2 and with 4 degrees of freedom.
        assert ((np.bincount(codes, minlength=3) - wanted) ** 2 / wanted).sum() < 13.82
    pairs = [("key", "key", 0, 1), ("key", "key", 1, 2027), ("id", "id", 0, 2027)]
    for by, other, seed, second in pairs:
        table = np.histogram2d(found[by, seed], found[other, second], bins=3)[0]
        wanted = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(keys)
        assert ((table - wanted) ** 2 / wanted).sum() < 18.47


def test_the_column_is_an_ordered_category() -> None:
    """The categories are in the order of the shares, and the input does not change."""
    leads = pd.DataFrame({"key": ["a1", "b1"], "n": [1, 2]}, index=["x", "x"])
    leads.attrs["source"] = "crm"
    before = leads.copy()
    frame = leads.outreach.assign_arms(SHARES, by="key", seed=1, name="group")
    assert frame["group"].dtype == pd.CategoricalDtype([*SHARES], ordered=True)
    assert frame.attrs == leads.attrs
    pd.testing.assert_frame_equal(frame[["key", "n"]], before)
    pd.testing.assert_frame_equal(leads, before)
    empty = leads.head(0).outreach.assign_arms(SHARES, by="key", seed=1)
    assert empty["arm"].dtype == frame["group"].dtype


def test_a_series_is_a_key_if_it_has_the_frames_index() -> None:
    """A series with the frame's index is a key; a series with another index is an error."""
    leads = pd.DataFrame({"site": ["https://www.acme.co.uk/x", "acme.co.uk"]}, index=[5, 3])
    domains = of.keys.domain(leads["site"])
    frame = leads.outreach.assign_arms(SHARES, by=domains, seed=3)
    assert frame["arm"].tolist() == [expected("acme.co.uk")] * 2
    for other in (domains.reset_index(drop=True), domains[::-1], domains.head(1)):
        with pytest.raises(InvalidInputError, match="reindex"):
            leads.outreach.assign_arms(SHARES, by=other, seed=3)


def test_rows_without_a_key_are_counted_and_get_no_arm() -> None:
    """Missing, blank, unreadable and placeholder keys are counted, with first row and reason."""
    keys = ["a1", None, " ", "N/A", [1], np.nan, "b1"]
    with pytest.warns(OutreachWarning) as caught:
        assert arms(keys) == [expected("a1"), *[None] * 5, expected("b1")]
    [message] = [str(one.message) for one in caught]
    assert message.startswith("5 rows have no key or only a placeholder, such as n/a, in the ")
    assert all(part in message for part in ("column 'key' and got no", "is row 1.", "Row 4: "))


def test_keys_that_differ_only_in_case_are_counted() -> None:
    """Keys are case-sensitive, and a warning counts the keys that differ only in case."""
    series = pd.Series(["Acme", "acme", "acme", "Bo"], name="k")
    with pytest.warns(OutreachWarning, match="^1 key in by, 'k' differs from another key only"):
        series.to_frame().outreach.assign_arms(SHARES, by=series, seed=1)


PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["a@x.example", "A@X.example ", "b@x.example", "z@x.example", "n/a", None]),
        st.sampled_from(
            ["x.example/in/a", "https://x.example/in/B/", "x.example/in/b?q=1", "x.example/7", None]
        ),
    ),
    max_size=8,
)


def assigned(rows: list[Any], **options: Any) -> list[Any]:
    """Return the arms of rows of address and profile URL."""
    frame = pd.DataFrame(rows, columns=["E-Mail", "profnet_url"], dtype="str")
    arms = frame.outreach.assign_arms(SHARES, **{"by": "person", **options})["arm"]
    return arms.astype(object).where(arms.notna(), None).tolist()


@given(rows=PEOPLE, seed=st.integers(0, 50), random=st.randoms())
def test_a_person_has_the_arm_of_the_smallest_key(
    rows: list[tuple[str | None, str | None]], seed: int, random: Any
) -> None:
    """Rows that share an address or /in/ URL get one arm, that of their smallest key."""
    random.shuffle(rows)
    people = [
        {
            *([email.strip().lower()] if email and "@" in email else []),
            *(["x.example/in/" + url.rstrip("/?q=1")[-1].lower()] if url and "/in/" in url else []),
        }
        for email, url in rows
    ]
    for _ in rows:
        people = [one.union(*(other for other in people if one & other)) for one in people]
    wanted = [expected(min(keys), seed=seed) if keys else None for keys in people]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert assigned(rows, seed=seed) == wanted
    assert [str(one.message).split()[0] for one in caught] == [
        str(wanted.count(None)) for _ in range(None in wanted)
    ]


@given(rows=PEOPLE, parts=st.lists(st.sampled_from(["both", "email", "url"]), min_size=8))
@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_people_keep_their_former_arm(rows: list[Any], parts: list[str]) -> None:
    """With the former tables, an arm stays if an identifier, the seed or the order changes."""
    former = pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="str")
    former = former.outreach.assign_arms(SHARES, by="person", seed=1)
    arms = former["arm"].astype(object).where(former["arm"].notna(), None).tolist()
    later = [
        (email if part != "url" else None, url if part != "email" else None)
        for (email, url), part in zip(rows, parts, strict=False)
    ]
    for previous in (former, [former[:4], former[::-1].astype({"arm": "str"})]):
        found = assigned(later[::-1], seed=2, previous=previous)[::-1]
        for (email, url), arm, before in zip(later, found, arms, strict=True):
            is_known = (email and "@" in email) or (url and "/in/" in url)
            assert arm == (before if is_known else None)


def test_a_persons_columns_may_have_other_names() -> None:
    """Columns with usual names are found, and other ones are passed, also for former tables."""
    people = pd.DataFrame({"email": ["a@x.example", None], "profnet_url": [None, "x.example/in/b"]})
    by: dict[str, Any] = {"by": "person", "seed": 1}
    arms = people.outreach.assign_arms(SHARES, **by)["arm"].tolist()
    usual = people.set_axis(["Work Email", "Profile URL"], axis=1)
    assert usual.outreach.assign_arms(SHARES, **by)["arm"].tolist() == arms
    other = people.set_axis(["A", "P"], axis=1)
    names = {"email": "A", "profnet_url": "P"}
    assert other.outreach.assign_arms(SHARES, **by, **names)["arm"].tolist() == arms
    for former in (usual.assign(arm="holdout"), other[["A"]].assign(arm="holdout")):
        found = other.outreach.assign_arms(SHARES, **by, **names, previous=former)["arm"]
        assert found.tolist() == ["holdout", "holdout" if len(former.columns) == 3 else arms[1]]


def test_values_keep_their_former_arm() -> None:
    """A value of a column keeps the arm, also in another dtype; new values depend on the seed."""
    former = pd.DataFrame({"id": ["7", "8", None], "arm": ["holdout", "B", None]})
    leads = pd.DataFrame({"id": [7.0, 9.0, 8.0]})
    found = leads.outreach.assign_arms(SHARES, by="id", seed=3, previous=former)
    assert found["arm"].tolist() == ["holdout", expected("9"), "B"]


FORMER = pd.DataFrame({"email": ["a@x.example", "b@x.example"], "arm": ["A", "B"]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"previous": [FORMER, FORMER.assign(arm="A")]}, "'b@x.example' has two arms.*'B' and 'A'"),
        ({"previous": FORMER.assign(arm=["A", "C"])}, "arm 'C' in previous is not in shares"),
        ({"previous": FORMER[["email"]]}, "previous has no column .arm."),
        ({"previous": FORMER[["arm"]]}, "previous has no column with a usual name"),
        ({"previous": FORMER[["arm"]], "by": "E-Mail"}, "previous has no column .E-Mail."),
        ({"previous": FORMER, "by": pd.Series(["a"])}, "not a Series"),
        ({"previous": "former.csv"}, "takes a frame or a list of frames"),
        ({"previous": FORMER.assign(profnet_url=["x.example/in/a", None])}, "two arms in previous"),
    ],
)
def test_invalid_former_tables_are_an_error(changes: dict[str, Any], words: str) -> None:
    """Two arms of a person, an arm that is not offered, and a missing column are errors."""
    with pytest.raises(InvalidInputError, match=words):
        assigned([("b@x.example", "x.example/in/a")], seed=1, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": {}}, "Pass shares as arms"),
        ({"shares": ["A", "B"]}, "Pass shares as arms"),
        *(
            ({"shares": {"A": 1, "B": share}}, "share of the arm 'B'")
            for share in (0, -1, np.nan, np.inf, Decimal("NaN"), True, np.True_, "1", None)
        ),
        ({"shares": {1: 1}}, "Pass text"),
        ({"shares": {" ": 1}}, "Pass text"),
        ({"shares": {"A": 1, "A ": 1}}, "without blanks"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
        ({"name": "key"}, "'key' is not the name of a new column"),
        ({"name": ""}, "not the name of a new column"),
        ({"by": "kee"}, "Did you mean 'key'"),
        ({"by": ["key"]}, "not a list"),
        ({"by": None}, "as by, not a"),
        ({"by": "person"}, "column 'person'"),
        ({"by": "person", "frame": pd.DataFrame({"Site": ["x.example"]})}, "columns are 'Site'"),
        ({"by": "person", "email": "E", "frame": pd.DataFrame({"Mail": ["a"]})}, "are 'Mail'"),
        ({"email": "key"}, "by='person' too"),
    ],
)
def test_invalid_arguments_are_an_error(changes: dict[str, Any], words: str) -> None:
    """An ambiguous share, seed, name or key is an error that names it."""
    frame = changes.pop("frame", pd.DataFrame({"key": ["a1"], "person": ["b1"]}))
    arguments = {"shares": SHARES, "by": "key", "seed": 1, **changes}
    with pytest.raises(InvalidInputError, match=words):
        frame.outreach.assign_arms(**arguments)
