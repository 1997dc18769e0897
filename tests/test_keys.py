"""`of.keys`: normalised keys of people and companies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import InvalidInputError

KEYS = [of.keys.email, of.keys.domain, of.keys.profnet_url, of.keys.company_name]
CELLS = ["Ada@Acme.co.uk", None, "n/a", "https://www.profnet.example/in/Ada/", 5, "\ud800"]
EXPECTED = {
    "email": ["ada@acme.co.uk", None, None, None, None, None],
    "domain": ["acme.co.uk", None, None, "profnet.example", None, None],
    "company_name": [*["ada acmecouk", None, None, "https wwwprofnetexample in ada", None, None]],
}


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: keys.__name__)
def test_a_series_keeps_its_index_and_name(keys: Callable[[Any], pd.Series[str]]) -> None:
    """The keys of a Series keep its index and name; those of a list have row numbers."""
    column = pd.Series(CELLS, index=[3, 3, 9, 0, 1, 2], name="who")
    found = keys(column)
    assert found.index.tolist() == [3, 3, 9, 0, 1, 2]
    assert found.name == "who"
    assert found.dtype == "str"
    plain = keys(CELLS)
    assert plain.index.equals(pd.RangeIndex(len(CELLS)))
    assert found.isna().tolist() == plain.isna().tolist()
    assert found.dropna().tolist() == plain.dropna().tolist()


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("dtype", [object, "category", "str"])
def test_cells_without_a_key_are_missing(kind: str, dtype: Any) -> None:
    """Missing cells, placeholders and values of other types have no key, in any dtype."""
    texts = [cell if isinstance(cell, str) and cell != "\ud800" else None for cell in CELLS]
    found = getattr(of.keys, kind)(pd.Series(texts, dtype=dtype))
    assert [None if pd.isna(key) else key for key in found] == EXPECTED[kind]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: keys.__name__)
def test_a_concatenated_column_has_the_same_keys(keys: Callable[[Any], pd.Series[str]]) -> None:
    """A column in several chunks has the same keys as its parts."""
    parts = [pd.Series(CELLS[:4], dtype="str"), pd.Series(["Ada@Bücher.example"], dtype="str")]
    pd.testing.assert_series_equal(keys(pd.concat(parts)), pd.concat(map(keys, parts)))


@pytest.mark.parametrize("values", ["ada@acme.example", 5, {"a": "b"}, pd.DataFrame({"a": ["b"]})])
def test_keys_need_a_column(values: Any) -> None:
    """A single text or a whole frame is an error, and is not read as a list."""
    with pytest.raises(InvalidInputError, match="list of text"):
        of.keys.email(values)


@pytest.mark.parametrize(
    ("keys", "one", "none"),
    [
        (
            of.keys.email,
            ["Ada <ADA@x.example>", "ada@x.example; Ada@x.example", ["ada@x.example", None]],
            [
                "ada@x.example; bo@x.example",
                ["ada@x.example", "bo@x.example"],
                "ada@x.example, bo@",
            ],
        ),
        (
            of.keys.profnet_url,
            [
                "<https://x.example/in/ada>",
                "x.example/in/ada, www.x.example/in/Ada",
                ["x.example/in/ada"],
            ],
            [
                "https://x.example/in/ada;https://x.example/in/bo",
                "https://https://x.example/in/ada",
            ],
        ),
    ],
)
def test_a_cell_has_one_key_or_none(keys: Any, one: list[Any], none: list[Any]) -> None:
    """One value in any notation has a key; several values, or a broken one, have none."""
    assert keys([*one, *none]).isna().tolist() == [False] * len(one) + [True] * len(none)
    assert keys(one).nunique() == 1


EMAIL, URL, SITE = "booth@x.example", "https://profnet.example/in/ada", "https://acme.com"
HARMLESS_FORMS = [
    *["{} ", "<{}>", "({});", '"{}",', "{}\n", "Ada Berg <{}>", '"Berg, Ada" <{}>', "Berg, A<{}>."],
    *["E-Mail: {}", "URL:{}", "home : {}", "WORK: Ada Berg <{}>", "{} <{}>", "Ada <{}>, Bo <{}>"],
    *["private: {}; work: {}", "{}; Berg, Ada <{}>"],
]
OTHER_TEXT = [
    *["jlucas. {}", "jlucas {}", "(jlucas) {}", "jlucas\n{}", "jlucas, {}", "{} berg", "{}\tberg"],
    *["{} (unsubscribed 2024)", "do not contact: {}", "emails: {}", "Ada: {}", "Ada ({})"],
    *["Ada <{}> Berg", "Ada <not {}>", "n/a {}", "{}, Berg", "{} Berg <{}>", "1 {}", "[Ada]({})"],
]


def test_a_sign_before_an_address_belongs_to_it() -> None:
    """An address that begins with a sign is another address, whatever is around it."""
    for text in ("-ada@x.example", "=ada@x.example", "~ada@x.example"):
        assert of.keys.email([text, f"{text} ", f"Ada <{text}>"]).tolist() == [text] * 3


@pytest.mark.parametrize("form", HARMLESS_FORMS + OTHER_TEXT)
def test_a_broken_cell_is_nobody(form: str) -> None:
    """Only labels, punctuation and a name in front of `<...>` may stand beside an identifier."""
    expected = [False] if form in HARMLESS_FORMS else [True]
    for keys, text in ((of.keys.email, EMAIL), (of.keys.profnet_url, URL), (of.keys.domain, SITE)):
        assert keys([form.format(text, text)]).isna().tolist() == expected, text


def test_a_written_line_break_between_identifiers_separates_them() -> None:
    r"""A literal \n or \t between two emails or URLs separates them, and is a text elsewhere."""
    two = pd.DataFrame({"email": [r"ann@x.example\nbo@x.example", r"ann@x.example\tbo@x.example"]})
    for address, kept in (("bo@x.example", 0), ("nbo@x.example", 2), ("tbo@x.example", 2)):
        left = two.outreach.without(pd.DataFrame({"email": [address]}))
        assert len(left) == kept
    for mark in (";", ",", ", ", " (work)", " |", ">"):
        listed = pd.DataFrame({"email": [rf"ann@x.example{mark}\nbo@x.example"]})
        with warnings.catch_warnings(action="ignore"):
            assert listed.outreach.without(pd.DataFrame({"email": ["bo@x.example"]})).empty, mark
    for text in (r"CORP\nina@x.example", r"ann@x.example; CORP\nina@x.example"):
        login = pd.DataFrame({"email": [text]})
        with pytest.warns(of.errors.OutreachWarning):
            assert login.outreach.without(pd.DataFrame({"email": ["nina@x.example"]})).empty
    for mark in ("", ";", ", "):
        urls = pd.DataFrame({"profnet_url": [rf"x.example/in/ann{mark}\nx.example/in/bo"]})
        assert urls.outreach.without(pd.DataFrame({"profnet_url": ["x.example/in/bo"]})).empty


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_a_very_long_cell_has_no_key_and_is_counted(dtype: str) -> None:
    """A text of more than 10,000 characters has no key, and `without` names it."""
    long = f"{EMAIL}{';' * 20_000}"
    table = pd.DataFrame({"email": pd.Series([long, f"{EMAIL};;", None], dtype=dtype)})
    assert of.keys.email(table["email"]).isna().tolist() == [True, False, True]
    with pytest.warns(of.errors.OutreachWarning, match="Table 1, column 'email': 1 cell"):
        pd.DataFrame({"email": ["bo@x.example"]}).outreach.without(table)


def test_an_entry_of_a_list_is_a_cell() -> None:
    """Other entries of a list or dict do not matter, unless one is ambiguous or an identifier."""
    assert of.keys.email([["Ada", EMAIL], {"name": "Ada", "email": EMAIL}]).tolist() == [EMAIL] * 2
    for cell in (["Ada", f"Ada {EMAIL}"], ["jlucas. ada@x.example", EMAIL], ["ada@", EMAIL]):
        assert of.keys.email([cell]).isna().all()
    assert of.keys.domain([["Acme", SITE], ["Acme"]]).isna().tolist() == [False, True]


def test_a_company_name_has_no_legal_form() -> None:
    """Case, punctuation and legal form do not matter; a list of several names has no key."""
    names = ["Acme, Inc.", "ACME S.A.", "acme", ["Acme", "ACME Inc"], " Acme GmbH & Co. KG"]
    assert of.keys.company_name(names).tolist() == ["acme"] * 5
    assert of.keys.company_name([["Acme", "Bo"], 5, " ", "M\ufffdller AG"]).isna().tolist() == [
        *[True] * 3,
        False,
    ]


# The names of one company each, of which the first is its plain name.
ONE_COMPANY = [
    ["acme", "Acme®", "ACME™ Ltd", "“Acme”", "«Acme»", "|Acme|", "Acme Public Company Limited"],
    [
        "rimi",
        "SIA „Rimi“",
        'SIA "Rimi"',
        "Rimi SIA",
        "UAB «Rimi»",
        "Rimi, UAB",
        "OÜ 'Rimi'",
        "Rimi OÜ",
    ],
    ["ромашка", "ООО «Ромашка»", "ПАО Ромашка", "ЗАО «Ромашка»", "АО Ромашка", "Ромашка ООО"],
    ["サクラ", "株式会社サクラ", "サクラ株式会社", "㈱サクラ", "有限会社 サクラ", "サクラ（株）"],
    ["삼성", "(주)삼성", "삼성(주)", "주식회사 삼성", "㈜삼성"],
    ["dacia", "S.C. Dacia S.R.L.", "SC Dacia SA", 'S.C. "Dacia" S.R.L.', "Dacia SRL"],
    ["astra", "PT Astra Tbk", "PT Astra (Persero) Tbk", "Astra Tbk.", 'PT "Astra"'],
    ["nokia", "Oy Nokia Ab", "Nokia Oyj", "Nokia PJSC", "Nokia B.V.B.A.", "Nokia V.O.F."],
    ["άλφα", "Άλφα Α.Ε.", "Άλφα ΕΠΕ"],
    ["กขค", "บริษัท กขค จำกัด (มหาชน)"],
    ["at t", "AT&T", "AT&amp;T", "AT&T Inc."],
]
# Words that are forms elsewhere belong to these names.
NAMES_WITH_FORMS = [
    *["SAS Institute", "AG Insurance", "AS Roma", "Sia Partners", "UAB Medicine", "PT Solutions"],
    *["SC Johnson", "SC Johnson Son", "Company of Heroes", "Паола", "Co", "АО", "C++ Builders"],
]


@pytest.mark.parametrize("names", ONE_COMPANY, ids=[names[0] for names in ONE_COMPANY])
def test_legal_forms_and_symbols_do_not_matter(names: list[str]) -> None:
    """A company has one key with the legal forms of its country, symbols and quotation marks."""
    assert set(of.keys.company_name(names)) == {names[0]}


def test_a_word_of_a_name_is_no_legal_form() -> None:
    """A word in front of a name is kept, even if it is a legal form elsewhere."""
    names = [name.lower() for name in NAMES_WITH_FORMS]
    assert of.keys.company_name(NAMES_WITH_FORMS).tolist() == names
    assert of.keys.company_name(["S.C. Johnson & Son, Inc."]).tolist() == ["sc johnson son"]


def test_a_name_without_words_has_no_key() -> None:
    """A name of legal forms in other scripts, or of symbols, has no key."""
    assert of.keys.company_name(["®", "株式会社", "«»", "|", "(주)"]).isna().all()


@pytest.mark.parametrize("text", ["email_not_unlocked@domain.com", "NoEmail@Domain.com", "n/a"])
def test_a_vendors_placeholder_is_nobody(text: str) -> None:
    """The address that a vendor writes in place of an email has no key; similar ones do."""
    cells = [text, f" {text}", f"<{text}>", f"x{text}"]
    assert of.keys.email(cells).isna().tolist() == [True] * 3 + ["@" not in text]
