"""Keys of identifiers: all spellings of one have the same key, and different people never do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.common.text import hidden_in, strip_blanks
from outreach_frames.identity.cells import Cells, Reading
from outreach_frames.identity.keys import (
    SIMPLE_EMAIL,
    are_placeholder_urls,
    certain_keys,
    company_name_keys,
    email_cells,
    email_key,
    email_keys,
    emails_in,
    is_certain,
    profnet_url_cells,
    profnet_url_key,
    profnet_url_keys,
    profnet_urls_in,
)
from outreach_frames.leads.planning.syntax import (
    SIMPLE_URL,
    email_problem,
    is_simple_url,
    url_problem,
)
from outreach_frames.sandbox.world import COUNTRIES

SAME_EMAILS = {
    "a domain that is an address": ["bo@[192.0.2.1]", "BO@[192.0.2.1]", " bo@[192.0.2.1]"],
    "case, blanks, invisible characters": [
        "anna@x.example", "Anna@X.EXAMPLE", " anna@x.example\xa0", "ANNA@x.example\u200b",
        "\ufeffanna@x.example",
    ],
    "dots and letters of other scripts": [
        "bo@x.example", "bo@x\u3002example", "bo@x\uff0eexample", "bo@x\uff61example",
        "bo@\uff58.example", "BO@\uff38.\uff25xample",
    ],
    "an international domain and its ASCII form": [
        "bo@bücher.example", "bo@BÜCHER.example", "bo@bu\u0308cher.example",
        "bo@xn--bcher-kva.example", "Bo@XN--BCHER-KVA.example",
    ],
    "composed letters": ["zoë@x.example", "zoe\u0308@x.example", "ZOË@x.example"],
    "quotes that change nothing": ["anna@x.example", '"anna"@x.example'],
}  # fmt: skip
DIFFERENT_EMAILS = [
    "strasse@x.example", "straße@x.example", "strasse@xn--x-nga.example", "anna@x.example",
    "anna+1@x.example", "an.na@x.example", "anna@y.example", "anna@x.y.example", "ana@x.example",
    "bo@straße.example", "bo@strasse.example", "\uff41nna@x.example",
]  # fmt: skip
NO_EMAILS = ["", " ", "n/a", "anna", "@", "anna@", "@x.example", "a b@x.example", "a@x.example, b@"]

HIDDEN = "\xad\u200b\ufe0f\u034f\u180b\u3164\u115f\uffa0\u17b4\u2800\U000e0100"

SAME_PROFILE = [
    "https://profnet.example/in/anna", "http://profnet.example/in/anna", "profnet.example/in/anna",
    "HTTPS://WWW.Profnet.Example/in/Anna/", "profnet.example/IN/anna",
    "https://profnet.example:443/in/anna//", "http://profnet.example:80/in/anna",
    "https://profnet.example./in/anna", "https://m.profnet.example/in/anna",
    "https://de.profnet.example/in/anna", "https://www.de.profnet.example/in/anna",
    "https://de.m.profnet.example/in/anna", "https://profnet.example/in/anna/en",
    "https://profnet.example/in/anna/de-DE/", "https://profnet.example/in/anna/pt_BR",
    "https://profnet.example//in//anna", "https://profnet.example/in/anna?from=mail",
    "https://profnet.example/in/anna/?utm_source=a&utm_medium=b",
    "https://profnet.example/in/anna?trk=public&originalSubdomain=de",
    "https://profnet.example/in/anna?GCLID=1&fbclid=", "https://profnet.example/in/anna/#top",
    "https://profnet.example/in/anna?", "https://profnet.example/in/%61nna",
    "https://profnet.example/%69n/anna", "https://profnet.example/%49%4E/anna",
    "https://profnet.example/in/anna/details/experience",
    "https://profnet.example/in/anna/recent-activity/all/?x=1&id=2",
    "https://profnet.example/in/anna/overlay/contact-info/#top",
    "https://profnet.example/in/anna?miniProfile=urn%3Ax", " profnet.example/in/anna\u200b",
]  # fmt: skip
# Each leads to another page than all others, or may do so.
DIFFERENT_PROFILES = [
    "https://profnet.example/in/anna", "https://profnet.example/in/anna-2",
    "https://profnet.example/in/anna.b", "https://other.example/in/anna",
    "https://in.example/in/anna", "https://profnet.de.example/in/anna",
    "https://profnet.example/in/en", "https://profnet.example/in/na", "https://my.co.uk/in/anna",
    "https://us.co.uk/in/anna", "https://de.github.io/in/anna", "https://fr.github.io/in/anna",
    "https://straße.example/in/anna", "https://strasse.example/in/anna",
]  # fmt: skip
DIFFERENT_PAGES = [
    "https://profnet.example:8080/in/anna", "https://profnet.example/company/anna",
    "https://profnet.example/Company/anna", "https://profnet.example/en/in/anna",
    "https://profnet.example/in/anna%2Fen", "https://profnet.example/in/%2561nna",
    "https://profnet.example/in/--", "https://profnet.example/in/..",
    "https://profnet.example/profile/view?id=1", "https://profnet.example/profile/view?id=2",
    "https://profnet.example/sales/people?leadId=1",
    "https://profnet.example/sales/people?leadId=2", "https://profnet.example/sales/people/1,NAME",
    "https://profnet.example/sales/people/2,NAME", "https://profnet.example/app#/in/a",
    "https://profnet.example/app#/in/b", "https://profnet.example/app?a=1&b=2",
    "https://profnet.example/app?a=1%26b=2", "https://profnet.example/app/a%2Fb",
    "https://profnet.example/app/a/b", "https://profnet.example/app//a/b",
    "https://profnet.example/?anna",
]  # fmt: skip
DIFFERENT_URLS = DIFFERENT_PROFILES + DIFFERENT_PAGES
SAME_URLS = {
    "a profile": SAME_PROFILE,
    "a profile under a suffix of two labels": [
        "https://profnet.co.uk/in/anna", "https://uk.profnet.co.uk/in/anna",
    ],
    "a name in another script": [
        "https://profnet.example/in/jürgen", "https://profnet.example/in/ju\u0308rgen",
        "https://profnet.example/in/JÜRGEN", "https://profnet.example/in/j%C3%BCrgen",
        "https://profnet.example/in/j%c3%bcrgen/", "https://profnet.example/in/ju%CC%88rgen",
    ],
    "an international host": [
        "https://bücher.example/in/anna", "https://BÜCHER.example/in/anna",
        "https://xn--bcher-kva.example/in/anna", "https://www.xn--bcher-kva.example/in/anna",
    ],
    "another page, as a whole": [
        "https://profnet.example/view?id=7", "http://profnet.example/view?id=7",
        "profnet.example/view?id=7", "HTTPS://PROFNET.example:443/view?id=7",
        "https://profnet.example:80/%76iew?id=%37", "https://profnet.example/view/?id=7",
    ],
    "an encoded name with hidden characters": [
        "https://profnet.example/in/anna",
        "https://profnet.example/in/an%EF%B8%8Fna",
        "https://profnet.example/in/anna%E3%85%A4%E2%80%8B%E2%80%8E",
        # A letter mark, a joiner, a tag, an unassigned code point and blanks.
        "https://profnet.example/in/a%D8%9Cn%E2%80%8Dn%F3%A0%80%81a%E2%81%A5%C2%A0%20",
    ],
    "percent-encoding": [
        "https://profnet.example/p/é/%2f?q=ü", "https://profnet.example/p/%C3%A9/%2F?q=%c3%bc",
    ],
}  # fmt: skip
NO_URLS = [
    "", " ", "n/a", "anna", "unknown", "https://", "https://profnet.example", "profnet.example/",
    "localhost/in/anna", "mailto:anna@x.example", "ftp://profnet.example/in/anna",
    "anna@profnet.example/in/anna", "https://a..example/in/anna", "https://x.example:a/in/anna",
    "https://x.example/in/anna https://x.example/in/bo", "https://x.example/in/an\tna", "https://[",
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        *((email_key, texts) for texts in SAME_EMAILS.values()),
        *((profnet_url_key, texts) for texts in SAME_URLS.values()),
    ],
    ids=[*SAME_EMAILS, *SAME_URLS],
)
def test_one_identifier_has_one_key(key: Callable[[str], str], texts: list[str]) -> None:
    """All spellings of an address or a URL have the same key."""
    assert {key(text) for text in texts} == {key(texts[0])}
    assert key(texts[0])


def test_identifiers_of_possibly_different_people_differ() -> None:
    """Different mailboxes, and URLs with different paths, queries or fragments, differ."""
    for key, texts in ((email_key, DIFFERENT_EMAILS), (profnet_url_key, DIFFERENT_URLS)):
        for one, other in combinations(texts, 2):
            assert key(one) != key(other), (one, other)


@pytest.mark.parametrize(
    ("key", "text"),
    [*((email_key, text) for text in NO_EMAILS), *((profnet_url_key, text) for text in NO_URLS)],
)
def test_other_texts_have_no_key(key: Callable[[str], str], text: str) -> None:
    """Placeholders and other texts that are not identifiers have no key, also in a column."""
    assert key(text) == ""
    keys = email_keys if key is email_key else profnet_url_keys
    assert keys(pa.array([text])).to_pylist() == [None]


def test_only_profiles_are_certain() -> None:
    """`/in/<name>` is a certain identifier, and any other page is not."""
    assert {profnet_url_key(text) for text in SAME_PROFILE} == {"profnet.example/in/anna"}
    certain = [text for text in DIFFERENT_URLS if is_certain(profnet_url_key(text))]
    assert certain == DIFFERENT_PROFILES
    assert not is_certain("")
    keys = profnet_url_keys(pa.array(["x.example/in/a", "x.example/view?id=1", None, "n/a"]))
    assert certain_keys(keys).to_pylist() == ["x.example/in/a", None, None, None]


ADDRESSES = [
    text for texts in (*SAME_EMAILS.values(), DIFFERENT_EMAILS, NO_EMAILS) for text in texts
]
URLS = [text for texts in (*SAME_URLS.values(), DIFFERENT_URLS, NO_URLS) for text in texts]
NO_PROFILE = [
    f"{host}{path}{rest}"
    for host, path, rest in product(
        ("https://profnet.example", "http://www.profnet.example", "DE.Profnet.example"),
        (
            "/in",
            "/In/",
            "/in//",
            "/in/%20",
            "/%69N/",
            "/i%6e/nan",
            *(
                f"/in/{name}"
                for name in ("nan", "NaN", "None", "NULL", "undefined", "%75nknown", "m%65", "me")
            ),
            *(f"/in/{name}" for name in ("<NA>", "<na>", "%3CNA%3E", "%3cn%61%3e", "m\u3164e")),
            *(f"/in/{name}" for name in (*HIDDEN, quote(HIDDEN), f"{HIDDEN}%20", "%E2%80%8D")),
        ),
        (
            "",
            "/",
            "?x=anna",
            "/?trk=x",
            "#top",
            "/de",
            "/details/skills",
            "/recent-activity/all/?a",
        ),
    )
    if not (unquote(path).strip("/").lower() == "in" and rest.startswith(("/d", "/r")))
]


def test_a_placeholder_has_no_key() -> None:
    """A profile URL with a placeholder or without a name has no key, in any spelling."""
    texts = pa.array(NO_PROFILE)
    assert {profnet_url_key(text) for text in NO_PROFILE} == {""}
    assert set(profnet_url_keys(texts).to_pylist()) == {None}
    assert set(are_placeholder_urls(texts).to_pylist()) == {True}


def test_a_company_has_one_name_with_every_legal_form() -> None:
    """Case, punctuation and the legal forms of many countries do not change a company's key."""
    forms = {form for country in COUNTRIES for form in country["legal_forms"] if form}
    names = [f"Blue-Works{mark}{form}" for form in forms for mark in (" ", ", ")]
    assert set(company_name_keys(pa.array([*names, "BLUE WORKS"])).to_pylist()) == {"blue works"}
    others = ["Co", "AG Works", "Works", "Incorporated Works", None]
    keys = ["co", "ag works", "works", "incorporated works", None]
    assert company_name_keys(pa.array(others)).to_pylist() == keys


def test_placeholders_in_cells_are_not_broken() -> None:
    """A cell with a placeholder has no key and is not broken; other URLs in it still count."""
    for text in [*NO_PROFILE, *(f"\ufe0f{text} " for text in NO_PROFILE)]:
        assert profnet_urls_in(text) == ([], False)
        assert profnet_urls_in(f"{text} x.example/in/bo") == (["x.example/in/bo"], False)


@pytest.mark.parametrize("hidden", list(HIDDEN))
@pytest.mark.parametrize(
    ("text", "key", "read", "problem"),
    [
        ("anna@x.example", email_key, emails_in, email_problem),
        ("x.example/in/anna", profnet_url_key, profnet_urls_in, url_problem),
        ("https://x.example/view?id=7", profnet_url_key, profnet_urls_in, url_problem),
    ],
)
def test_hidden_characters_make_no_second_person(
    hidden: str,
    text: str,
    key: Callable[[str], str],
    read: Callable[[str], Reading],
    problem: Callable[[str], str | None],
) -> None:
    """Hidden characters around an identifier are stripped; inside it they are an error."""
    assert key(f" {hidden}{text}\xa0{hidden}") == key(text)
    assert problem(text) is None
    for place in range(1, len(text)):
        changed = f"{text[:place]}{hidden}{text[place:]}"
        assert key(changed) == ""
        assert "hidden character" in (problem(changed) or "")
        assert read(changed) == read(text)


@pytest.mark.parametrize("label", ["m.", "de.", "a.", "www.", "m.de."])
def test_a_host_with_too_many_labels_has_no_key(label: str) -> None:
    """A host above the maximum length is invalid and has no key."""
    url = f"https://{label * 160}profnet.example/in/ada"
    assert profnet_url_key(url) == ""
    assert "host is invalid" in (url_problem(url) or "")
    assert not is_simple_url(pa.array([url]))[0].as_py()


BLANKS = st.sampled_from(["", "", " ", "\xa0", "\n", "\u200b", "\ufe0f"])
LIKE_ADDRESSES = (
    st.sampled_from(ADDRESSES)
    | st.builds(
        "{}{}@{}{}".format,
        BLANKS,
        st.sampled_from(["anna", "-anna", "An.Na", "a..b", "zoë", "a" * 70, "noemail"]),
        st.sampled_from(
            ["Bücher.example", "bu\u0308cher.example", "x\u3164.de", "\uff58.de", "ü", "ü..de"]
        ),
        BLANKS,
    )
    | st.from_regex(SIMPLE_EMAIL, fullmatch=True)
    | st.text("aA@.é\u0308 -ßxn", max_size=70)
)
LIKE_URLS = (
    st.sampled_from(URLS)
    | st.from_regex(SIMPLE_URL, fullmatch=True)
    | st.builds(
        "{}{}/{}/{}{}".format,
        st.sampled_from([" ", "", "https://", "HTTP://", "https://www.", "www.", "de.", "M."]),
        st.sampled_from(["profnet.example", "x.example", "www.example", "ab.co.uk", "bü.de", "x"]),
        st.sampled_from(["in", "IN", "/in", "view"]),
        st.sampled_from(
            [
                "anna",
                "Anna",
                "me",
                "na",
                "NULL",
                "a-1",
                "..",
                "",
                "en",
                "%61",
                "a.",
                "j%C3%BC",
                "m%65",
            ]
        ),
        st.sampled_from(
            [
                "",
                "/",
                "//",
                "/en",
                "?a=1",
                "?trk=1",
                "#x",
                "/en/",
                "?u=x.de/in/b",
                "?q=1 b",
                "?.",
                " ",
            ]
        ),
    )
    | st.text("aAwW./:%61?#@[é 8in\u3164<", max_size=20)
)


@given(st.lists(LIKE_ADDRESSES, max_size=4), st.lists(LIKE_URLS, max_size=4))
def test_the_keys_of_a_column_equal_those_of_its_texts(
    addresses: list[str], urls: list[str]
) -> None:
    """The keys of a column equal the keys of its texts, whatever these are."""
    kinds: list[tuple[list[str], Callable[[pa.Array], pa.Array], Callable[[str], str]]] = [
        (addresses, email_keys, email_key),
        (urls, profnet_url_keys, profnet_url_key),
    ]
    for texts, column_keys, key in kinds:
        expected = [*(key(text) or None for text in texts), None]
        assert column_keys(pa.array([*texts, None])).to_pylist() == expected


@given(st.lists(LIKE_ADDRESSES, max_size=4), st.lists(LIKE_URLS, max_size=4))
def test_the_cells_of_a_column_equal_those_of_its_texts(
    addresses: list[str], urls: list[str]
) -> None:
    """A column's cells are read as its texts, whatever these are."""
    kinds: list[tuple[list[str], Callable[[pa.Array], Cells], Callable[[str], Reading]]] = [
        (addresses, email_cells, emails_in),
        (urls, profnet_url_cells, profnet_urls_in),
    ]
    for texts, column_cells, read in kinds:
        cells, readings = column_cells(pa.array(texts, pa.large_string())), [*map(read, texts)]
        assert cells.keys.to_pylist() == [key for one in readings for key in one.keys or [None]]
        assert cells.counts.tolist() == [len(one.keys) or 1 for one in readings]
        ambiguous = [row for row, one in enumerate(readings) if one.is_ambiguous]
        assert cells.ambiguous.tolist() == ambiguous


@given(LIKE_ADDRESSES)
def test_the_key_of_an_address_is_the_validators_form(text: str) -> None:
    """The key of a valid address is the validator's form in lower case, if nothing is hidden."""
    try:
        normalized = validate_email(text, check_deliverability=False).normalized
    except EmailNotValidError:
        return
    # The validator drops letters that nobody sees.
    if hidden_in(text):
        assert email_key(text) == ("" if hidden_in(strip_blanks(text)) else normalized.lower())
        assert "hidden character" in str(email_problem(text))
        return
    assert email_key(text) == normalized.lower()
    assert email_problem(text) is None


@given(LIKE_URLS)
def test_every_valid_url_has_a_key(text: str) -> None:
    """A URL that is neither a problem nor a placeholder has a key, which is its own key."""
    key = profnet_url_key(text)
    if url_problem(text) is None and not are_placeholder_urls(pa.array([text]))[0].as_py():
        assert key
    assert key == "" or profnet_url_key(key) == key


PAGES = st.builds(
    "{}{}{}".format,
    st.lists(st.text("ab-%E2/.=&1", max_size=9), max_size=3).map(lambda one: "/".join(["", *one])),
    st.text("?/=&;,|:x%20in", max_size=12).map(lambda one: f"?{one}" if one else ""),
    st.text("#/=&;,x:in", max_size=12).map(lambda one: f"#{one}" if one else ""),
)


@given(PAGES, st.sampled_from(["https://", "http://www.", "de.m.", "HTTPS://m."]))
def test_pages_of_a_profile_are_the_profile(page: str, start: str) -> None:
    """Segments, queries and fragments after the name change neither a key nor a placeholder."""
    for name in ("anna", "J%C3%BCrgen", "unknown", "%3CNA%3E", "me"):
        url = f"{start}profnet.example/in/{name}"
        texts = pa.array([url, f"{url}{page}"])
        for keys in (profnet_url_keys(texts), are_placeholder_urls(texts)):
            assert keys[0] == keys[1]
