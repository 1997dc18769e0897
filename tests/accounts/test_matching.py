"""Matching and exclusion of rows that other tables have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.errors import InvalidInputError, OutreachWarning

KINDS = ["email", "profnet_url", "domain", "company_name"]
URL = "https://profnet.example/in"
WEAK_URL = "https://profnet.example/view?id=1"
CELLS: dict[str, list[str | None]] = {
    "email": ["a@x.example", "A@X.example ", "b@x.example", "n/a", None],
    "profnet_url": [f"{URL}/a", "www.profnet.example/in/A/?utm_source=x", f"{URL}/b", WEAK_URL, ""],
    "domain": ["x.example", "https://www.X.example/y", "y.example", "localhost", None],
    "company_name": ["Acme", "ACME, Inc.", "Bo GmbH", "n/a", " ", None],
}
NO = (None, None)
QUIET = "ignore::outreach_frames.errors.OutreachWarning"
TABLES = st.lists(st.tuples(*(st.sampled_from(CELLS[kind]) for kind in KINDS)), max_size=7)
SOME_KINDS = st.sets(st.sampled_from(KINDS), min_size=1)


def frame_of(rows: list[Any], labels: str) -> pd.DataFrame:
    """Make a table with repeated labels."""
    index = [labels[number % 2] for number in range(len(rows))]
    return pd.DataFrame(rows, columns=KINDS, index=index).astype("str")


def keys_of(frame: pd.DataFrame, kinds: set[str]) -> list[dict[str, str]]:
    """Return each row's keys; a weak URL is a key only if the row has no other."""
    columns = {
        kind: getattr(of.keys, kind)(frame[kind]).tolist() for kind in KINDS if kind in kinds
    }
    rows = [
        {kind: column[row] for kind, column in columns.items() if not pd.isna(column[row])}
        for row in range(len(frame))
    ]
    for row in rows:
        if "email" in row and "/in/" not in row.get("profnet_url", ""):
            row.pop("profnet_url", None)
    return rows


def share(one: dict[str, str], other: dict[str, str], kind: str) -> bool:
    """Return whether two rows have the same key of one kind."""
    return kind in one and one[kind] == other.get(kind)


@pytest.mark.filterwarnings(QUIET)
@given(ours=TABLES, theirs=TABLES, kinds=SOME_KINDS)
def test_a_match_equals_a_nested_loop(ours: list[Any], theirs: list[Any], kinds: set[str]) -> None:
    """A row matches the other table's first row that has the strongest of the common keys."""
    left, right = frame_of(ours, "ab"), frame_of(theirs, "xy")
    there = keys_of(right, kinds)
    expected = []
    for row in keys_of(left, kinds):
        by_kind = {
            kind: [place for place, other in enumerate(there) if share(row, other, kind)]
            for kind in KINDS
        }
        found = [
            (rows[0], right.index[rows[0]], kind, len(rows))
            for kind, rows in by_kind.items()
            if rows
        ]
        expected.append(found[0] if found else (None, None, None, 0))
    named: dict[str, Any] = {kind: kind for kind in kinds}
    matches = left.outreach.match(right, **named)
    assert matches.index.equals(left.index)
    assert [
        tuple(None if pd.isna(cell) else cell for cell in row)
        for row in matches.itertuples(index=False)
    ] == expected


@pytest.mark.filterwarnings(QUIET)
@given(
    ours=TABLES,
    others=st.lists(st.tuples(TABLES, SOME_KINDS), min_size=1, max_size=3),
)
@example(
    ours=[("a@x.example", f"{URL}/a", *NO), ("b@x.example", f"{URL}/a", *NO), (None, None, *NO)],
    others=[([("a@x.example", None, *NO)], {"email", "profnet_url"})],
)
@example(
    ours=[
        ("a@x.example", f"{URL}/a", "x.example", None),
        ("b@x.example", f"{URL}/a", "y.example", None),
    ],
    others=[([("a@x.example", f"{URL}/b", "x.example", None)], {"email"})],
)
@example(
    ours=[("a@x.example", WEAK_URL, *NO), ("b@x.example", WEAK_URL, *NO)],
    others=[([("a@x.example", WEAK_URL, *NO)], {"email", "profnet_url"})],
)
def test_excluded_rows_equal_a_nested_loop(
    ours: list[Any], others: list[tuple[list[Any], set[str]]]
) -> None:
    """If one row of a person matches in any table, all rows of that person are excluded."""
    frame = frame_of(ours, "ab")
    kinds = set().union(*(some for _, some in others))
    tables = [frame_of(rows, "xy")[[*some]] for rows, some in others]
    out = {
        place
        for (rows, some) in others
        for place, row in enumerate(keys_of(frame, some))
        for other in keys_of(frame_of(rows, "xy"), some)
        if any(share(row, other, kind) for kind in KINDS)
    }
    rows = keys_of(frame, kinds)
    for _ in rows:
        out |= {
            place
            for place, row in enumerate(rows)
            for one in out
            if share(row, rows[one], "email") or share(row, rows[one], "profnet_url")
        }
    named: dict[str, Any] = {kind: kind for kind in kinds}
    pd.testing.assert_frame_equal(
        frame.outreach.without(*tables, **named),
        frame.iloc[[place for place in range(len(frame)) if place not in out]],
    )


@pytest.mark.filterwarnings(QUIET)
def test_keys_count_only_in_their_own_comparison() -> None:
    """A table without addresses matches by a weak URL, even if other tables have addresses."""
    frame = pd.DataFrame({"email": ["a@x.example"], "profnet_url": [WEAK_URL]})
    kept = frame.outreach.without(
        pd.DataFrame({"email": ["b@x.example"]}), pd.DataFrame({"profnet_url": [WEAK_URL]})
    )
    assert kept.empty


def test_the_columns_have_the_documented_dtypes() -> None:
    """The dtypes are the same with no rows and with many rows."""
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
    """A pair names the columns of each table; of a list, all that exist are compared."""
    frame = pd.DataFrame(
        {"Mail": ["a@x.example", "b@x.example"], "site": ["q.example", "z.example"]}
    )
    one = pd.DataFrame({"E-Mail": ["A@x.example"]})
    two = pd.DataFrame({"address": ["b@x.example"]})
    pair = ("Mail", ["E-Mail", "address"])
    assert frame.outreach.match(one, email=pair)["match_row"].tolist() == [0, pd.NA]
    assert frame.outreach.without(one, two, email=pair).empty
    assert len(frame.outreach.without(one, email=("Mail", "E-Mail"))) == 1


def test_all_columns_of_a_list_are_compared() -> None:
    """In match, the first listed column that matches decides, and a row counts once."""
    names = ["Email", "Email 2"]
    crm = pd.DataFrame(
        {
            "Email 2": ["a@x.example", "b@x.example", "A@x.example", None],
            "Email": ["z@x.example", "c@x.example", "a@x.example", "b@x.example"],
        }
    )
    ours = pd.DataFrame(
        {
            "Email": ["a@x.example", None, "q@x.example", "r@x.example", "c@x.example"],
            "Email 2": ["z@x.example", "b@x.example", "Z@x.example", "r@x.example", None],
        }
    )
    matches = ours.outreach.match(crm, email=names)
    assert matches["match_row"].tolist() == [2, 3, 0, pd.NA, 1]
    assert matches["match_count"].tolist() == [2, 2, 1, 0, 1]
    with pytest.warns(OutreachWarning, match="This table, column 'Email 2': 4 cells"):
        assert ours.outreach.match(crm, email=("Email", names[::-1]))["match_row"][0] == 0
    assert ours.outreach.without(crm, email=names).index.tolist() == [3]
    assert ours.outreach.without(crm[["Email 2"]].dropna(), email=names).index.tolist() == [3, 4]
    linked = pd.DataFrame({"Email": ["q@x.example"], "Email 2": ["a@x.example"]})
    assert ours.outreach.without(linked, email=names).index.tolist() == [1, 3, 4]
    with pytest.raises(
        InvalidInputError, match=r"none of the columns 'E', 'F'.*'Email 2', 'Email'"
    ):
        ours.outreach.match(crm, email=("Email", ["E", "F"]))
    weak = pd.DataFrame({"Email 2": [None, "a@x.example"], "Email": None, "url": WEAK_URL})
    matches = weak.outreach.match(weak, email=names, profnet_url="url")
    assert matches["match_by"].tolist() == ["profnet_url", "email"]
    assert weak.outreach.without(weak.iloc[:1], email=names, profnet_url="url").index.tolist() == [
        1
    ]


def test_a_company_is_compared_by_name_on_request() -> None:
    """Case, punctuation and legal form do not matter; a name excludes only on request."""
    ours = pd.DataFrame({"email": [None] * 5, "Company": ["ACME, Inc.", "Bo", "n/a", None, ["Bo"]]})
    crm = pd.DataFrame({"email": ["a@x.example"] * 3, "Account": ["Acme", "Dy", "Cy GmbH"]})
    matches = ours.outreach.match(crm, company_name=("Company", "Account"))
    assert matches["match_by"].tolist() == ["company_name", *[np.nan] * 4]
    with pytest.warns(OutreachWarning, match="without company name to compare are kept: 2"):
        kept = ours.outreach.without(crm, company_name=("Company", "Account"))
    assert kept.index.tolist() == [1, 2, 3, 4]
    with pytest.warns(OutreachWarning):
        assert len(ours.outreach.without(crm)) == 5


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("email", one) for one in ("Work Email", "E-mail 1 - Value", "Mail", "Email Address ")),
        *(("email", one) for one in ("Email", "e mail", "E_MAIL", "\ufeffemail", "E\u2011Mail")),
        *(
            ("profnet_url", one)
            for one in ("Profile", "Profnet-URL", "Profile URL", "Person Profnet Url")
        ),
    ],
)
def test_columns_with_usual_names_are_found(kind: str, name: str) -> None:
    """The only column with a usual name is compared; the exact name wins; two are an error."""
    row, shown = CELLS[kind][0], re.escape(repr(name))
    frame, other = pd.DataFrame({kind: [row]}), pd.DataFrame({name: [row], "Website": ["x"]})
    assert frame.outreach.without(other).empty
    assert other.outreach.match(frame)["match_by"].tolist() == [kind]
    with pytest.warns(OutreachWarning, match=f"were not compared: Table 1, column {shown}: 1 cell"):
        assert len(frame.outreach.without(other.assign(**{kind: CELLS[kind][2]}))) == 1
    second = "Email 2" if kind == "email" else "profile_link"
    both = f"Table 1 has no column '{kind}', but {shown} and '{second}'.*columns are {shown}, 'We"
    with pytest.raises(InvalidInputError, match=both):
        frame.outreach.without(other.assign(**{second: row}))


def test_a_free_mail_provider_matches_nobody_by_domain() -> None:
    """A customer at a free mail provider excludes no other user; its website still matches."""
    cells = ["a@gmail.com", "b@GMAIL.com", "c@web.de", "https://web.de", "d@x.example"]
    ours = pd.DataFrame({"email": cells})
    crm = pd.DataFrame({"email": ["B@gmail.com", "z@web.de", "web.de", "y@x.example"]})
    with pytest.warns(OutreachWarning) as caught:
        matches = ours.outreach.match(crm, domain="email")
    assert matches["match_row"].tolist() == [pd.NA, pd.NA, pd.NA, 2, 3]
    assert [
        " email addresses of free mail providers, such as gmail.com in row 0" in str(one.message)
        for one in caught
    ] == [True, True]
    assert not any("@" in str(one.message) for one in caught)
    with pytest.warns(OutreachWarning) as caught:
        assert ours.outreach.without(crm, domain="email").index.tolist() == [0, 1, 2]
    assert "Rows without domain to compare are kept: 3" in str(caught[-1].message)
    with pytest.warns(OutreachWarning):
        both = ours.outreach.without(crm, email="email", domain="email")
    assert both.index.tolist() == [0, 2]


def test_pages_of_a_network_match_nobody() -> None:
    """Two companies' pages at one host are not one company; builders' customers have own hosts."""
    own = ["facebook.com/ada", "https://m.Facebook.com/bo", "facebook.com", "ada.wordpress.com/x"]
    own += ["cy.wordpress.com", "https://sites.google.com/view/d", "google.com", "a@facebook.com"]
    own += ["www.profnet.example/company/ada"]
    ours, theirs = (pd.DataFrame({"Site": column}) for column in (own, own[1:7] + own[8:]))
    with pytest.warns(OutreachWarning, match="pages? of networks, link lists or site") as caught:
        matches = ours.outreach.match(theirs, domain="Site")
    assert matches["match_row"].tolist() == [*[pd.NA] * 2, 1, 2, 3, pd.NA, 5, 1, pd.NA]
    assert "'Site' has 4 pages of networks" in str(caught[0].message)
    assert "such as facebook.com in row 0" in str(caught[0].message)
    assert of.keys.domain(["www.wordpress.com", "de.ada.weebly.com"]).tolist() == [
        *["wordpress.com", "ada.weebly.com"]
    ]


@pytest.mark.parametrize("cell", ["a@gmail.com; b@y.example", ["a@gmail.com", "b@y.example"]])
def test_several_domains_of_a_cell_match_without_free_mail(cell: object) -> None:
    """If a cell has several addresses, those at free mail providers do not match by domain."""
    ours = pd.DataFrame({"email": ["c@gmail.com", "d@y.example", "e@z.example"]})
    crm = pd.DataFrame({"email": [cell]})
    with pytest.warns(OutreachWarning) as caught:
        assert ours.outreach.without(crm, domain="email").index.tolist() == [0, 2]
    assert ["1 email address of free mail" in str(one.message) for one in caught[:2]] == [True] * 2


@pytest.mark.parametrize("value", [b"a@x.example", "5f4dcc3b5aa765d61d8327deb882cf99"], ids=repr)
def test_an_unmatchable_column_is_a_warning(value: Any) -> None:
    """A warning says that a column of bytes or hashes excludes nobody."""
    frame = pd.DataFrame({"email": ["a@x.example"]})
    with pytest.warns(OutreachWarning, match="Table 1, column 'email': 1 cell"):
        assert len(frame.outreach.without(pd.DataFrame({"email": [value, None]}))) == 1


def test_a_table_that_lacks_a_key_is_named() -> None:
    """A warning names the table that lacks a key."""
    frame = pd.DataFrame({"email": ["a@x.example"], "site": ["x.example"]})
    tables = [pd.DataFrame({"email": ["c@x.example"]}), pd.DataFrame({"site": ["y.example"]})]
    with pytest.warns(OutreachWarning) as caught:
        kept = frame.outreach.without(*tables, email="email", domain="site")
    assert [str(one.message).split(":")[0] for one in caught] == [
        "Table 1 was not compared by domain",
        "Table 2 was not compared by email address",
    ]
    assert len(kept) == 1


PEOPLE = pd.DataFrame({"email": ["a@x.example"], "profnet_url": [f"{URL}/a"]})
CRM = pd.DataFrame({"Their E-Mail": ["a@x.example"], "Owner": ["Cem"]})
PROFILES = pd.DataFrame({"Their Profile": [f"{URL}/a"], **{f"Field {n}": [1] for n in range(20)}})
EMAIL_PAIR = r'email=\("email", "Their E-Mail"\)'
URL_PAIR = r'profnet_url=\("profnet_url", "Their Profile"\)'


@pytest.mark.parametrize(
    ("frame", "other", "options", "words"),
    [
        (
            PEOPLE,
            CRM,
            {},
            f"no column with a usual.*the other has 'Their.*', 'Owner'.*{EMAIL_PAIR}",
        ),
        (PEOPLE, CRM, {"email": "Email"}, EMAIL_PAIR),
        (PEOPLE, CRM, {"email": ("address", "Their E-Mail")}, "This table has 'email', 'profnet"),
        (PEOPLE, CRM, {"email": ("email", "a", "b")}, "not a pair"),
        (
            PEOPLE,
            CRM,
            {"email": ("email", "Their E-Mail"), "profnet_url": "profnet_url"},
            "profnet_url: no other table has any of the columns 'profnet_url'",
        ),
        (PEOPLE[["profnet_url"]], CRM, {}, r'profnet_url=\("profnet_url", "Profile"\)'),
        *(
            (PEOPLE[["profnet_url"]], PROFILES, options, f"'Field 8' and 11 more.*Pass {URL_PAIR}")
            for options in ({}, {"profnet_url": "Their Profile"}, {"profnet_url": "profnet_url"})
        ),
        (PEOPLE[["profnet_url"]], PEOPLE[["email"]], {}, "Search results have no email address"),
    ],
)
def test_a_missing_column_is_an_error(
    frame: pd.DataFrame, other: pd.DataFrame, options: Any, words: str
) -> None:
    """A key that a table lacks is an error with both tables' columns and the columns to pass."""
    for compare in (frame.outreach.match, frame.outreach.without):
        with pytest.raises(InvalidInputError, match=words):
            compare(other, **options)


SECOND = [
    *["Secondary Email", "Other Email", "E-mail 2 Address", "Additional email addresses"],
    *["Courriel", "メール", "Notes"],
]


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("cell", ["a@x.example", "A <a@x.example>", ["a@x.example", "k@x.example"]])
def test_a_second_column_of_addresses_is_named(name: str, cell: Any) -> None:
    """A column that is not compared and holds addresses is named with the call that compares it."""
    frame = pd.DataFrame({"email": ["a@x.example", "b@x.example"]})
    crm = pd.DataFrame({"Email": ["c@x.example", "d@x.example", "e@x.example"]})
    crm[name] = pd.Series([cell, "n/a", None], dtype=object)
    call = f'email=["Email", "{name}"]'
    for compare in (frame.outreach.without, frame.outreach.match):
        with pytest.warns(OutreachWarning) as caught:
            compare(crm)
        (message,) = (str(one.message) for one in caught)
        assert f"column '{name}': 1 cell. To compare them, pass {call}." in message
    with pytest.warns(OutreachWarning, match=f"This table, column '{name}': 1 cell"):
        crm.outreach.without(frame)
    assert frame.outreach.without(crm, email=["Email", name]).index.tolist() == [1]


def test_a_second_column_of_profiles_is_named() -> None:
    """A column of certain profile URLs is named; where no counterpart exists, this is said."""
    frame = pd.DataFrame({"email": ["a@x.example"], "profnet_url": [f"{URL}/a"]})
    crm = pd.DataFrame({"email": ["b@x.example"], "Altes Profil": [f"{URL}/a"]})
    call = r'pass profnet_url=\("profnet_url", "Altes Profil"\)\.'
    with pytest.warns(OutreachWarning, match=f"of profile URLs were not compared: .*{call}"):
        assert len(frame.outreach.without(crm)) == 1
    pair = ("profnet_url", "Altes Profil")
    assert frame.outreach.without(crm, email="email", profnet_url=pair).empty
    with pytest.warns(OutreachWarning, match="'profnet_url': 1 cell. The other table has no such"):
        frame.outreach.match(crm[["email"]])
    weak = crm.assign(**{"Altes Profil": WEAK_URL})
    assert len(frame[["email"]].outreach.without(weak)) == 1
    # Only the kinds that were passed are looked for.
    assert len(frame.outreach.without(crm, email="email")) == 1


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("Manager", ["boss@x.example"] * 12),
        ("Notes", [*["see z@x.example today"] * 6, *["y@x.example"] * 5, "x"]),
        ("owner", [f"o{n}@x.example" for n in range(12)]),
        ("user_email", [f"o{n}@x.example" for n in range(12)]),
        ("Empty", ["n/a"] * 12),
    ],
)
def test_other_columns_are_not_named(name: str, cells: list[str]) -> None:
    """A colleague's address in every row, notes and the package's own columns are not named."""
    crm = pd.DataFrame({"email": [f"p{n}@x.example" for n in range(12)], name: cells})
    assert crm.outreach.without(crm).empty
    assert crm.outreach.match(crm)["match_count"].sum() == 12


def test_errors_of_spreadsheets_are_empty_cells() -> None:
    """A column with an address is named even if its other cells are errors or placeholders."""
    crm = pd.DataFrame({"email": [f"p{n}@x.example" for n in range(4)]})
    for cell in ("a@x.example", "a\uff20x.example", "mailto:a%40x.example"):
        crm["Second"] = [cell, "#N/A", "Loading...", "(blank)"]
        with pytest.warns(OutreachWarning, match="This table, column 'Second': 1 cell"):
            crm.outreach.without(crm[["email"]])


def test_a_table_without_usual_names_says_which_columns_hold_addresses() -> None:
    """Without a usual name, the error names the columns by their values and the call that works."""
    ours, theirs = (
        pd.DataFrame({"メール": ["a@x.example"]}),
        pd.DataFrame({"Correo": ["a@x.example"]}),
    )
    told = r"'メール': 1 cell; The other table, column 'Correo': 1 cell. "
    with pytest.raises(InvalidInputError, match=rf'{told}Pass email=\("メール", "Correo"\)'):
        ours.outreach.without(theirs)
    assert ours.outreach.without(theirs, email=("メール", "Correo")).empty
    usual = pd.DataFrame({"email": ["a@x.example"]})
    with pytest.raises(InvalidInputError, match=r'Pass email=\("email", "Correo"\)'):
        usual.outreach.match(theirs)
    two = theirs.assign(**{"Email (other)": "b@x.example"})
    with pytest.raises(InvalidInputError, match=r'\("email", \["Correo", "Email \(other\)"\]\)'):
        usual.outreach.match(two)
    # The call compares each of several tables.
    with pytest.raises(InvalidInputError, match=r'Pass email=\["email", "Correo"\]'):
        ours.rename(columns={"メール": "email"}).outreach.without(usual, theirs)
    assert usual.outreach.without(usual[:0], theirs, email=["email", "Correo"]).empty


@pytest.mark.parametrize("value", [{"email": 1}, {"email"}, ["email", ["Work"]], ("email", {})])
def test_a_value_that_is_no_name_is_an_error(value: Any) -> None:
    """A value that cannot be the name of a column is an error that says what is expected."""
    frame = pd.DataFrame({"email": ["a@x.example"]})
    for compare in (frame.outreach.match, frame.outreach.without):
        with pytest.raises(InvalidInputError, match=r"^email: takes the name of a column, a list"):
            compare(frame, email=value)


# Each text holds one address; the test replaces `{}` by the name.
NOTATIONS = [
    *["{}@x.example", "Ann B <{}@x.example>", '"B, Ann" <{}@x.example>', "<{}@x.example>"],
    *["mailto:{}@x.example", "MAILTO:{}@x.example?subject=a%20b&cc=z@x.example", "'{}@x.example'"],
    *[
        "{}@x.example,",
        "{}@x.example.",
        "({}@x.example)",
        "\u200b{}@x.example\xa0",
        "{}\u200b@x.example",
        "\u3164{}\ufe0f@x.\u2800example",
    ],
    *[
        "{}\uff20x.example",
        "https://q.example/c?to={}@x.example",
        "{}%40x.example",
        "Mail: {}@x.example",
    ],
    "mailto:{}%40x.example?cc=z%40x.example&body=1%2C2",
    *["[Ann](mailto:{}@x.example)", "Ann/{}@x.example", "Ann|{}@x.example", '["{}@x.example"]'],
]
SEPARATORS = ["; ", ";", ", ", ",", " | ", "|", "/", " / ", "\n", " ", "\xa0", "\uff1b", " and "]
NAMES = st.sampled_from(["a", "b", "c", "d.e", "o'f", "g+1"])
ADDRESSES = st.builds(
    lambda notation, name: (notation.format(name), name), st.sampled_from(NOTATIONS), NAMES
)


@pytest.mark.filterwarnings(QUIET)
@given(
    ours=st.lists(st.lists(ADDRESSES, min_size=1, max_size=3), min_size=1, max_size=5),
    theirs=st.lists(st.lists(ADDRESSES, max_size=3), max_size=4),
    separator=st.sampled_from(SEPARATORS),
    dtype=st.sampled_from([object, "str", "category", "list", "arrow"]),
)
def test_every_address_of_a_cell_is_compared(
    ours: list[Any], theirs: list[Any], separator: str, dtype: Any
) -> None:
    """Rows match by any address in a cell, in any notation."""

    def column(rows: list[Any]) -> pd.DataFrame:
        cells: Any = [[text for text, _ in row] for row in rows]
        if dtype == "arrow":
            cells = pd.array(cells, pd.ArrowDtype(pa.list_(pa.string())))
        elif dtype != "list":
            cells = pd.array([separator.join(cell) or None for cell in cells]).astype(dtype)
        return pd.DataFrame({"email": pd.Series(cells)})

    out = {name for row in theirs for _, name in row}
    people = [{name for _, name in row} for row in ours]
    for _ in people:
        for names in people:
            out |= names if names & out else set()
    kept = column(ours).outreach.without(column(theirs))
    assert kept.index.tolist() == [row for row, names in enumerate(people) if not names & out]


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("separator", ["; ", ", ", " ", "|", "\n", ";", " / ", ""])
def test_every_profile_of_a_cell_is_compared(separator: str) -> None:
    """A cell matches by each of its URLs, but by weak URLs only if none is certain."""
    cell = separator.join([f"{URL}/b", f"{WEAK_URL}", f"https://www.{URL[8:]}/C/."])
    other = pd.DataFrame({"profnet_url": [cell]})
    urls = [f"{URL}/a", f"<{URL}/b>", f"Profile: {URL}/c,", WEAK_URL]
    frame = pd.DataFrame({"profnet_url": urls})
    assert frame.outreach.without(other).index.tolist() == [0, 3]
    assert other.outreach.without(frame.iloc[[3]]).index.tolist() == [0]
    assert other.outreach.without(frame.iloc[[2]]).empty


def test_unreadable_cells_are_counted_once() -> None:
    """One warning names the table, the column and an example row; placeholders do not count."""
    frame = pd.DataFrame({"email": ["a@x.example"], "profnet_url": [f"{URL}/a"]})
    other = pd.DataFrame(
        {
            "Email": ["b@x.example", "n/a", None, "ask Anna", 7, "c@x.example, d@", "", ["ann@"]],
            "profnet_url": [
                "-",
                f"{URL}/b",
                f"{URL}/nan",
                "z@x.example",
                "",
                None,
                "-",
                "htps://q/in/a",
            ],
        },
        index=list("abcdefgh"),
    )
    for compare, table in (
        (frame.outreach.without, "Table 1"),
        (frame.outreach.match, "The other table"),
    ):
        with pytest.warns(OutreachWarning, match="column 'Email': 4 cells") as caught:
            compare(other)
        (message,) = (str(one.message) for one in caught)
        assert f"{table}, column 'Email': 4 cells" in message
        assert "row 3 holds 'ask Anna'" in message


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("do not contact: a@x.example", {"email": "Who"}),
        ("a@x.example (unsubscribed 2024)", {"email": "Who"}),
        (["Ann", "see a@x.example"], {"email": "Who"}),
        (f"{URL}/a berg", {"profnet_url": "Who"}),
        ("anna@y.example left", {"domain": "Who"}),
    ],
)
def test_an_ambiguous_cell_excludes_and_never_matches(text: Any, options: dict[str, str]) -> None:
    """Each whole key of an ambiguous cell excludes, in both tables, with one warning."""
    cells = ["A@x.example", f"{URL}/a", "https://y.example"]
    plain, other = (pd.DataFrame({"Who": pd.Series(column)}) for column in (cells, [text]))
    kind = next(iter(options))
    place = KINDS.index(kind)
    plain = plain.iloc[[place]]
    for one, two, table in ((plain, other, "Table 1"), (other, plain, "This table")):
        with pytest.warns(OutreachWarning) as caught:
            assert one.outreach.without(two, **options).empty
        assert [f"{table}, column 'Who': 1 cell" in str(each.message) for each in caught] == [True]
        with pytest.warns(OutreachWarning, match="exactly one key"):
            assert one.outreach.match(two, **options)["match_row"].isna().all()


def test_match_compares_one_address_per_cell() -> None:
    """A cell with several addresses matches nothing, with a warning."""
    frame = pd.DataFrame({"email": ["Ann <a@x.example>", "b@x.example; c@x.example"]})
    other = pd.DataFrame({"email": ["mailto:A@x.example", "c@x.example", "b@x.example"]})
    with pytest.warns(OutreachWarning, match="This table, column 'email': 1 cell.*row 1 holds"):
        assert frame.outreach.match(other)["match_row"].tolist() == [0, pd.NA]


def test_a_table_without_an_email_column_is_named() -> None:
    """If only one table has emails, a warning names the compared keys."""
    frame = pd.DataFrame({"Email": ["a@x.example"], "profnet_url": [f"{URL}/a"]})
    other = pd.DataFrame({"profnet_url": [f"{URL}/b"], "Mail of them": ["a@x.example"]})
    for one, two, pair in (
        (frame, other, '"Email", "Mail of them"'),
        (other, frame, '"Mail of them", "Email"'),
    ):
        message = rf"was not compared by email address: .* Pass email=\({pair}\)"
        for compare in (one.outreach.without, one.outreach.match):
            with pytest.warns(OutreachWarning, match=message):
                compare(two)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_files_are_read_as_tables(ending: str, tmp_path: Path) -> None:
    """A file is compared like its frame; other files are errors that name the function."""
    people = pd.DataFrame({"email": ["a@x.example", "b@x.example"]})
    crm = pd.DataFrame({"E-Mail": ["B@x.example"], "Stage": ["Customer"]})
    file = tmp_path / f"crm.{ending}"
    getattr(crm.outreach, f"to_{'excel' if ending == 'xlsx' else ending}")(file)
    for path in (file, str(file)):
        assert people.outreach.without(path)["email"].tolist() == ["a@x.example"]
        assert people.outreach.match(path)["match_row"].tolist() == [pd.NA, 0]
    for name, words in {
        f"none.{ending}": r"cannot read .* as a table: .*read_prospects\(\)",
        f"broken.{ending}": r"cannot read .* as a table",
        "crm.docx": "takes .*paths? of .*table.* but .*crm.docx is neither",
    }.items():
        if not name.startswith("none"):
            (tmp_path / name).write_bytes(b"")
        for compare, function in (
            (people.outreach.without, "without"),
            (people.outreach.match, "match"),
        ):
            with pytest.raises(InvalidInputError, match=f"^{function}\\(\\) {words}"):
                compare(tmp_path / name)


def test_tables_may_be_in_lists_and_patterns(tmp_path: Path) -> None:
    """Lists and patterns mean each of their tables; a pattern without a file is an error."""
    people = pd.DataFrame({"email": [f"{name}@x.example" for name in "abcde"]})
    for name in "abc":
        crm = people[people["email"].str.startswith(name)]
        crm.to_csv(tmp_path / f"{name}.csv", index=False)
    crm = people.tail(1)
    for others in (
        [tmp_path / "*.csv", crm],
        [[f"{tmp_path}/[ab].csv", [crm]], tmp_path / "c.csv"],
        [(f"{tmp_path}/**/?.csv", crm)],
    ):
        assert people.outreach.without(*others)["email"].tolist() == ["d@x.example"]
    (tmp_path / "[d].csv").write_text("email\nd@x.example\n")
    assert len(people.outreach.without(tmp_path / "[d].csv")) == 4
    for others, words in (
        ([], "at least one table"),
        ([[]], "at least one table"),
        ([tmp_path / "*.parquet"], r"No file matches .*\*\.parquet"),
        ([["ada@x.example"]], "'ada@x.example' is a person.*Pass a frame"),
        ([crm.set_axis(["a@x.example"], axis=1)], "no header"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            people.outreach.without(*others)


@pytest.mark.parametrize("since", ["90", "abc", "31.12.2026", 5, "-3D", "2999-01-01", True])
def test_a_time_that_is_not_past_is_an_error(since: Any) -> None:
    """A span without a unit, a future day and other values are errors that show a right one."""
    people = pd.DataFrame({"email": ["a@x.example"]})
    with pytest.raises(InvalidInputError, match=r"since=.* is not a past day.*90D"):
        people.outreach.without(people, since=since)
    with pytest.raises(InvalidInputError, match="since= applies to journals"):
        people.outreach.without(people, since="90D")
