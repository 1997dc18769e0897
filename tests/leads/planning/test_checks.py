"""All arguments and rows are checked before the first request, and all problems are reported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning
from outreach_frames.identity.domains import LONGEST_HOST
from outreach_frames.identity.keys import SIMPLE_EMAIL, email_key
from outreach_frames.leads.plan import make_plan, validate
from outreach_frames.leads.planning import syntax
from outreach_frames.sandbox import Sandbox
from outreach_frames.tables.value_text import TEXT

EMAIL, URL = "anna@x.example", "https://profnet.example/in/anna"
FRAME = pd.DataFrame(
    {"email": [EMAIL], "profnet_url": [URL], "First Name": ["Anna"], "flag": [True], "n": [1]}
)
SEQUENCE = "seq_1"
OVERRIDE = spec.OVERRIDE_NAMES[0]
LONGEST_NAME = "a" * spec.MAX_DATA_NAME_LENGTH

WRONG_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"sequence_id": None}, "sequence_id"),
    ({"sequence_id": " "}, "sequence_id"),
    ({"sequence_id": ".."}, "sequence_id"),
    ({"client": "https://x.example"}, "client"),
    ({"email": "E-Mail"}, "email: the table has no column 'E-Mail'"),
    ({"email": "emial"}, "Did you mean 'email'"),
    ({"email": ["email"]}, "the name of a column"),
    ({"email": None, "profnet_url": None}, 'was found or passed. Pass a column: email="?'),
    ({"email": "email", "profnet_url": "email"}, "the same column"),
    ({"data": "n"}, re.escape("data=['n']")),
    ({"data": 5}, "a list of columns"),
    ({"data": ["nn"]}, "Did you mean 'n'"),
    ({"data": ["FirstName"]}, "no column 'FirstName'. Did you mean 'First Name'"),
    ({"data": {"n": None}}, "no column None"),
    (
        {"data": {"First Name": "first_name"}},
        r"data=\{'First Name': 'first_name'\}: the table",
    ),
    (
        {"data": {"n": "posts"}},
        r"data=\{'n': 'posts'\}: the table has no column 'posts'",
    ),
    ({"data": {"First Name": "First Name"}}, re.escape("data={'first_name': 'First Name'}")),
    ({"data": ["First Name"]}, re.escape("data={'first_name': 'First Name'}")),
    ({"data": {"email": "n"}}, "is an identifier"),
    ({"data": ["profnet_url"]}, "is an identifier"),
    ({"data": {5: "n"}}, "5 is not a valid name"),
    ({"data": {"": "n"}}, "is not a valid name"),
    ({"data": {"Ω": "n"}}, "Choose a name"),
    *(
        ({"data": {name: "n"}}, r"(?s)is not a valid name.*data=\{")
        for name in ["Last Name", "1a", "_a", "a-b", "A", "ä", "a\n", LONGEST_NAME + "a"]
    ),
    ({"require": "n"}, re.escape("require takes a list of data fields, for example require=['n']")),
    ({"require": ["n", "email"]}, r"not fields of data: 'n', 'email'\. The fields: none"),
    ({"require": ["a", "N"], "data": {"a": "n"}}, r"data: 'N'\. The fields: 'a'"),
    ({"overrides": [OVERRIDE]}, rf"overrides={{'{OVERRIDE}': True}}"),
    ({"overrides": True}, "{override: True}, not True"),
    ({"overrides": "flag"}, "{override: True}, not 'flag'"),
    ({"overrides": {"ignore_exclusion": True}}, "Did you mean 'ignore_exclusion_list'"),
    *(
        ({"overrides": {OVERRIDE: value}}, f"{OVERRIDE} takes True or False .*filter the rows and")
        for value in (1, None, "flag", FRAME["flag"], [True])
    ),
    ({"mailbox": "emial"}, "Did you mean 'email'"),
    ({"mailbox": EMAIL}, f"no column '{EMAIL}'"),
    ({"mailboxes": EMAIL}, "a list of e-mail addresses"),
    ({"mailboxes": []}, "empty"),
    ({"mailboxes": [5]}, "not 5"),
    ({"mailboxes": ["anna"]}, "'anna' is not an e-mail"),
    ({"mailboxes": [EMAIL] * 2}, "duplicate"),
    ({"chunk_size": 0}, "between 1 and 250"),
    ({"chunk_size": spec.MAX_LEADS_PER_REQUEST + 1}, "the service's limit"),
    ({"chunk_size": 2.5}, "whole number"),
    ({"chunk_size": True}, "whole number"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_ARGUMENTS, ids=str)
def test_invalid_arguments_are_an_error(arguments: dict[str, Any], message: str) -> None:
    """The error names each wrong argument and a valid value."""
    given_arguments: dict[str, Any] = {"sequence_id": SEQUENCE, **arguments}
    with pytest.raises(ValueError, match=message):
        make_plan(FRAME, **given_arguments)


def test_unusual_column_names() -> None:
    """Names may be integers; several levels, or a duplicate name that is used, are an error."""
    frame = pd.DataFrame({("a", "email"): [EMAIL]})
    with pytest.raises(InvalidInputError, match="several levels"):
        make_plan(frame, SEQUENCE)
    frame = pd.concat([FRAME, FRAME[["n"]]], axis=1)
    assert len(make_plan(frame, SEQUENCE).positions) == 1
    with pytest.raises(InvalidInputError, match="column 'n' more than once"):
        make_plan(frame, SEQUENCE, data=["n"])
    plan = make_plan(pd.DataFrame({0: [EMAIL], 1: [7]}), SEQUENCE, email=0, data={"number": 1})
    assert list(plan.payloads()) == [{"leads": [{"email": EMAIL, "data": {"number": "7"}}]}]


def test_the_size_of_data_is_limited() -> None:
    """The lengths of names and values, in characters, and the number of fields are limited."""
    for name in ("a", "a1_", LONGEST_NAME):
        assert make_plan(FRAME, SEQUENCE, data={name: "n"}).leads([0])[0]["data"] == {name: "1"}
    fields = {f"field_{number}": "n" for number in range(spec.MAX_DATA_FIELDS)}
    assert len(make_plan(FRAME, SEQUENCE, data=fields).leads([0])[0]["data"]) == len(fields)
    with pytest.raises(InvalidInputError, match=f"at most {spec.MAX_DATA_FIELDS}"):
        make_plan(FRAME, SEQUENCE, data={**fields, "one_more": "n"})
    longest = "é" * spec.MAX_DATA_VALUE_LENGTH
    frame = pd.DataFrame({"email": [EMAIL, "ben@x.example"], "text": [longest, f"{longest}é"]})
    plan = make_plan(frame, SEQUENCE, data=["text"])
    assert plan.leads(plan.positions) == [{"email": EMAIL, "data": {"text": longest}}]
    (problem,) = plan.problems.to_dict("records")
    assert (problem["row"], problem["field"], problem["code"]) == (1, "text", "data_value_too_long")
    assert "1,025" in problem["message"]


PLACEHOLDERS = ["unknown", "N/A", "#N/A", "NULL", "nan", "--", " - ", "?", "No Email", "xxx", "TBD"]
PLACEHOLDERS += ["email_not_unlocked@domain.com", "NoEmail@domain.com "]
PLACEHOLDER_URLS = [
    "https://profnet.example/in/",
    "profnet.example/in",
    "https://profnet.example/in/me/details/skills",
    "HTTP://WWW.Profnet.example/IN/None#top",
    "profnet.example/in/%75nknown",
]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("email", text) for text in PLACEHOLDERS),
        *(("profnet_url", text) for text in [*PLACEHOLDERS, *PLACEHOLDER_URLS]),
    ],
)
def test_a_placeholder_is_missing_and_reported(field: str, text: str) -> None:
    """A placeholder is never sent; its row is sent if it has the other identifier."""
    other = {"email": EMAIL, "profnet_url": URL}
    del other[field]
    (name, value) = next(iter(other.items()))
    plan = make_plan(pd.DataFrame({name: [value, None], field: [text, f" {text}\n"]}), SEQUENCE)
    assert list(plan.payloads()) == [{"leads": [other]}]
    problems = plan.problems
    assert list(problems["code"]) == ["placeholder", "placeholder", "missing_identifier"]
    assert list(problems["row"]) == [0, 1, 1]
    assert list(problems["column"].dropna()) == [field, field]
    assert problems["message"][0].endswith("is a placeholder and was treated as missing.")
    unsent = plan.unsent[["position", "status", "error_code"]].to_numpy().tolist()
    assert unsent == [[1, "invalid", "missing_identifier"]]


AS_WRITTEN: dict[str, list[str]] = {
    "email": [
        *("o'hara+news@mail.x.example", "zoë@x.example", "a@bücher.example", "A@X.EXAMPLE"),
        "a.b-c@x-y.example",
    ],
    "profnet_url": [
        *("profnet.example/in/anna", "http://www.profnet.example/in/anna/"),
        "HTTPS://Profnet.Example/in/Anna?from=mail#top",
        "https://profnet.example:8443/in/zo%C3%AB",
        "https://bücher.example/in/zoë",
        # Names that only resemble a placeholder.
        *(
            f"https://profnet.example/in/{name}"
            for name in ("na", "n-a", "nan-b", "meg", "nonesuch", "null2", "unknown.x")
        ),
    ],
}


def test_unusual_identifiers_are_sent_as_written() -> None:
    """Valid addresses and URLs are sent as written, without blank and hidden characters."""
    for field, texts in AS_WRITTEN.items():
        plan = make_plan(pd.DataFrame({field: [f"\u200b {text}\xa0" for text in texts]}), SEQUENCE)
        written = [email or url for email, url in plan.identifiers(range(len(texts)))]
        assert written == texts
        assert plan.problems.empty


WEAK_URLS = [
    "https://profnet.example/company/acme",
    "profnet.example/view?id=7",
    "https://profnet.example:8443/in/anna",
    "https://profnet.example/company/in/anna",
]


@pytest.mark.parametrize("url", WEAK_URLS)
def test_a_weak_url_beside_an_email_is_not_sent(url: str) -> None:
    """Beside an email, a URL that identifies no person is reported and not sent."""
    frame = pd.DataFrame({"email": [EMAIL, None, "n/a"], "Profile": [url, url, f"{url}0"]})
    plan = make_plan(frame, SEQUENCE, profnet_url="Profile", data={"page": "Profile"})
    assert plan.leads(plan.positions) == [
        {"email": EMAIL, "data": {"page": url}},
        {"profnet_url": url, "data": {"page": url}},
        {"profnet_url": f"{url}0", "data": {"page": f"{url}0"}},
    ]
    (problem, placeholder) = plan.problems.to_dict("records")
    assert problem == {
        "row": 0,
        "index": 0,
        "column": "Profile",
        "field": "profnet_url",
        "code": "not_a_profile",
        "message": f"{url!r} is not a person's profile; sent by email alone.",
    }
    assert (placeholder["row"], placeholder["code"]) == (2, "placeholder")


MISSING_TEXTS = [
    *["nan", "NaN", "<NA>", "None", "NaT", "null", "NULL", "#N/A", "#n/a", "#REF!", "#NAME?"],
    *["#VALUE!", "#DIV/0!", "#NULL!", "#NUM!", "#ERROR!", "#SPILL!", "#CALC!", "#FIELD!"],
    *["#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#GETTING_DATA", "Loading...", "#NV"],
    *[" #N/A ", "\tNaN"],
]
PLACEHOLDER_TEXTS = [
    *["n/a", "N/A", "tbd", "TBA", "unknown", "Undefined", "missing", "Not available", "(blank)"],
    *["[blank]", "?", "-", "--", ".", "..", "x", "XXX", " x "],
]
VALUES = ["Nan", "NAN", "Null", "none", "NA", "Na", "na", "#1", "Xavier", "N/A Ltd", "Loading"]


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_text_for_missing_values_is_omitted(dtype: str) -> None:
    """Errors of spreadsheets and missing cells of programs are omitted; other words are sent."""
    cells = [*MISSING_TEXTS, *PLACEHOLDER_TEXTS, *VALUES]
    emails = [f"p{row}@x.example" for row in range(len(cells))]
    frame = pd.DataFrame({"email": emails, "name": pd.Series(cells, dtype=dtype)})
    plan = make_plan(frame, SEQUENCE, data=["name"])
    data = [lead.get("data", {}).get("name") for lead in plan.leads(plan.positions)]
    assert data == [*[None] * len(MISSING_TEXTS), *PLACEHOLDER_TEXTS, *VALUES]
    assert f"name: missing in {len(MISSING_TEXTS)} leads, a placeholder in" in repr(plan)
    problems = plan.problems
    start = len(MISSING_TEXTS)
    assert problems["row"].tolist() == list(range(start, start + len(PLACEHOLDER_TEXTS)))
    assert set(problems["code"]) == {"placeholder_text"}
    assert problems["message"].tolist() == [
        f"{text!r} is a placeholder, which is not left out. Correct or empty the cell."
        for text in PLACEHOLDER_TEXTS
    ]
    required = make_plan(frame, SEQUENCE, data=["name"], require=["name"])
    assert [lead["data"]["name"] for lead in required.leads(required.positions)] == VALUES
    invalid = required.problems[required.problems["code"] == "missing_required_field"]
    assert invalid["row"].tolist() == list(range(start + len(PLACEHOLDER_TEXTS)))


def test_a_field_that_no_row_to_send_has_is_one_problem() -> None:
    """A data field that is missing in every row to send is a harmless problem of the first."""
    frame = pd.DataFrame(
        {
            "email": ["ada@", "bo@x.example", "cy@x.example", "bo@x.example"],
            "name": ["Ada", "#N/A", None, "Bo"],
            "title": [None, "CEO", None, None],
        }
    )
    plan = make_plan(frame, SEQUENCE, data=["name", "title"])
    problems = plan.problems[plan.problems["code"] == "field_missing_everywhere"]
    assert problems[["row", "column", "field"]].to_numpy().tolist() == [[1, "name", "name"]]
    assert plan.positions.tolist() == [1, 2]
    assert make_plan(frame[:1], SEQUENCE, data=["title"]).problems["code"].tolist() == [
        "invalid_email"
    ]


OPT_OUT_NAMES = [
    *["opt out", "Opted Out", "Email Opt Out", "Has Opted Out of Email", "UNSUBSCRIBED"],
    *["Unsubscribed from all email", "do_not_contact", "doNotEmail", "DNC", "Opt-Out"],
]
OPTED_OUT = [
    "1.0",
    "si\u0301",
    True,
    1,
    1.0,
    "true",
    "YES",
    " y ",
    "1",
    "x",
    "Ja",
    "oui",
    "si",
    "SÍ",
]
OPTED_IN = [False, 0, None, float("nan"), "", "no", "nein", "false", "0", "maybe"]


def rows_left(df: pd.DataFrame) -> list[int]:
    """Return the rows that the filter in a plan's repr keeps."""
    line = repr(make_plan(df, SEQUENCE)).partition("leave them out: ")[2].splitlines()[0]
    names = {"df": df}
    exec(f"kept = {line}", names)
    return names["kept"].index.tolist()


@pytest.mark.parametrize("name", OPT_OUT_NAMES)
def test_people_who_opted_out_are_a_problem(name: str) -> None:
    """Each row with a true opt-out has a problem, and the plan shows the filter without them."""
    cells = pd.Series([*OPTED_IN, *OPTED_OUT], dtype=object)
    df = pd.DataFrame({"email": [f"p{row}@x.example" for row in range(len(cells))], name: cells})
    expected = list(range(len(OPTED_IN), len(cells)))
    problems = validate(df)
    assert problems["row"].tolist() == expected
    assert set(problems["code"]) == {"opted_out"}
    plan = make_plan(df, SEQUENCE)
    assert len(plan.positions) == len(df)
    assert f" {len(OPTED_OUT)} rows; to leave them out: " in repr(plan)
    assert rows_left(df) == list(range(len(OPTED_IN)))


def test_an_opt_out_is_in_the_report(client: Client, sandbox: Sandbox) -> None:
    """The report names the opt-out of a row that was sent, and two columns make one filter."""
    df = pd.DataFrame(
        {
            "email": ["ada@x.example", "bo@x.example", "cy@x.example"],
            "DNC": ["", "yes", ""],
            "Unsubscribed": [False, False, True],
            "Opt Out Date": ["", "", "2026-01-01"],
        }
    )
    report = df.outreach.add_to_sequence(sandbox.sequence_ids["accepts_any"])
    assert report.rows["detail"].tolist() == [
        "",
        "'DNC' says that the person has opted out.",
        "'Unsubscribed' says that the person has opted out.",
    ]
    client.close()
    assert rows_left(df) == [0]
    assert "Opted out" not in repr(make_plan(df[:1], SEQUENCE))


INVALID: dict[str, dict[Any, str]] = {
    "email": {
        "mailto:anna@x.example": "Pass clean=True to send 'anna@x.example'",
        "anna@x.example; ben@x.example": "one per row",
        "anna@x.example ben@x.example": "one per row",
        **dict.fromkeys(("anna", "anna@", "@x.example", 5), "@"),
        "anna@x": "period",
        "anna@x.test": "special-use",
        **dict.fromkeys(("anna@@x.example", "an na@x.example", "anna@x..example"), ""),
        "a" * 300: "",
    },
    "profnet_url": dict.fromkeys(
        [
            *("profnet.example", "https://profnet.example/", "https://profnet/in/anna"),
            *("/in/anna", "//profnet.example/in/anna", "ftp://profnet.example/in/anna"),
            *("javascript:alert(1)", "https://anna@profnet.example/in/anna", "anna@x.example"),
            *("https://[profnet.example/in/anna", "https://profnet.example/in/an na", "Anna Berg"),
            "https://profnet.example/in/anna\nhttps://profnet.example/in/ben",
            "https://profnet.example/in/" + "a" * spec.MAX_DATA_VALUE_LENGTH,
        ],
        "",
    ),
}


@pytest.mark.parametrize("field", INVALID)
def test_an_invalid_identifier_makes_the_row_invalid(field: str) -> None:
    """An invalid identifier makes the row invalid despite the other; the message has advice."""
    texts = INVALID[field]
    other = {"email": URL, "profnet_url": EMAIL}[field]
    frame = pd.DataFrame({"email": list(texts), "profnet_url": list(texts)}, dtype="object")
    frame[{"email": "profnet_url", "profnet_url": "email"}[field]] = other
    plan = make_plan(frame, SEQUENCE)
    assert not len(plan.positions)
    assert plan.problems["row"].tolist() == list(range(len(texts)))
    assert set(plan.problems["column"]) == {field}
    assert set(plan.problems["code"]) == {f"invalid_{field}"}
    for message, advice in zip(plan.problems["message"], texts.values(), strict=True):
        assert advice in message
        assert len(message) < 200


@given(st.from_regex(SIMPLE_EMAIL, fullmatch=True))
def test_the_fast_pattern_accepts_only_valid_addresses(text: str) -> None:
    """The fast pattern accepts no address that the library rejects."""
    if syntax.is_simple_email(pa.array([text], TEXT))[0].as_py():
        assert syntax.email_problem(text) is None


@given(st.from_regex(syntax.SIMPLE_URL, fullmatch=True))
def test_the_fast_pattern_accepts_only_valid_urls(text: str) -> None:
    """The fast pattern accepts no URL that the full check rejects."""
    is_simple = syntax.is_simple_url(pa.array([text], TEXT))[0].as_py()
    assert is_simple == (len(text) <= LONGEST_HOST)
    assert not is_simple or syntax.url_problem(text) is None


def test_all_problems_are_reported_in_row_order() -> None:
    """All problems of all rows are reported, with row number, label, code and field."""
    frame = pd.DataFrame(
        {
            "email": ["anna@", None, EMAIL],
            "profnet_url": ["anna", "n/a", None],
            "text": [b"x", "ok", "a" * 2000],
        },
        index=["a", "b", "b"],
    )
    problems = validate(frame, data=["text"])
    assert list(zip(problems["row"], problems["index"], problems["code"], strict=True)) == [
        (0, "a", "invalid_email"),
        (0, "a", "invalid_profnet_url"),
        (0, "a", "not_a_plain_value"),
        (1, "b", "placeholder"),
        (1, "b", "missing_identifier"),
        (2, "b", "data_value_too_long"),
    ]
    assert [str(dtype) for dtype in problems.dtypes] == ["Int64", "str", *["str"] * 4]
    assert list(problems["field"].dropna().unique()) == ["email", "profnet_url", "text"]


TEMPLATES = {
    "Hi {{first_name}},": True,
    "{{ First Name | default: there }}": True,
    "%FIRST_NAME%": True,
    "[first name]": True,
    " <<First Name>> ": True,
    "${first_name}": True,
    "*|FNAME|*": True,
    "First Name": True,
    "first-name": True,
    "[Senior] Engineer": False,
    "[Senior] [Engineer]": False,
    "100% of {all}": False,
    "%": False,
    "[2]": False,
    "First Name of the Ship": False,
}


@pytest.mark.parametrize("dtype", ["object", "category", "string[pyarrow]"])
def test_unfilled_templates(dtype: str) -> None:
    """A template is a problem that stops nothing, and a row without a required field is invalid."""
    texts = pd.Series([*TEMPLATES, None, "nan"], dtype=dtype)
    emails = [f"p{row}@x.example" for row in range(len(texts))]
    frame = pd.DataFrame({"email": emails, "First Name": texts, "n": 1})
    options: dict[str, Any] = {"data": {"first_name": "First Name", "n": "n"}}
    plan = make_plan(frame, SEQUENCE, **options)
    templates = plan.problems[plan.problems["code"] == "template_text"]
    assert templates["row"].tolist() == np.flatnonzero([*TEMPLATES.values()]).tolist()
    assert set(templates["field"]) == {"first_name"}
    assert len(plan.positions) == len(texts)
    gaps = f"missing in 2 leads, an unfilled template in {len(templates)} leads"
    assert f"Data fields  first_name: {gaps}\n" in repr(plan)
    assert plan.leads([0])[0]["data"]["first_name"] == "Hi {{first_name}},"
    plan = make_plan(frame, SEQUENCE, require=["first_name", "n"], **options)
    filled = [row for row, is_template in enumerate(TEMPLATES.values()) if not is_template]
    assert plan.positions.tolist() == filled
    assert set(plan.unsent["error_code"]) == {"missing_required_field"}
    problems = validate(frame, require=["first_name"], **options)
    assert (problems["code"] == "missing_required_field").sum() == len(texts) - len(filled)


def test_the_frame_of_problems() -> None:
    """The frame of problems always has the same columns; labels of several levels are tuples."""
    names = ["row", "index", "column", "field", "code", "message"]
    for frame in (FRAME, FRAME.iloc[:0], FRAME.set_index(["n", "flag"])):
        problems = validate(frame)
        assert list(problems) == names
        assert problems.empty
    frame = FRAME.assign(email="anna@").set_index(["n", "flag"])
    assert list(validate(frame)["index"]) == [(1, True)]


FIRST = {OVERRIDE: True}


def test_overrides_are_sent_with_each_lead() -> None:
    """Overrides are sent with each lead if they are true."""
    given_and_sent: list[tuple[Any, dict[str, bool]]] = [
        *((nothing, {}) for nothing in (None, {})),
        (FIRST, FIRST),
        (dict.fromkeys(spec.OVERRIDE_NAMES, True), dict.fromkeys(spec.OVERRIDE_NAMES, True)),
        ({OVERRIDE: np.True_, spec.OVERRIDE_NAMES[1]: False}, FIRST),
    ]
    frame = pd.DataFrame({"email": ["a@x.example", "b@x.example"]})
    for overrides, sent in given_and_sent:
        plan = make_plan(frame, SEQUENCE, overrides=overrides)
        assert plan.overrides == dict.fromkeys(sent, 2)
        assert [lead.get("overrides", {}) for lead in plan.leads([0, 1])] == [sent] * 2


REPAIRED: dict[str, list[str]] = {
    "rui@x.example": [
        "Rui <rui@x.example>",
        "Rui<Rui@x.example>",
        "mailto:rui@x.example?subject=Hi",
        "rui@x.example;",
        "rui@x.example <RUI@x.example>",
        '"Berg, Rui" <rui@x.example>,',
        "(rui\u200b@x.example)",
        "E-Mail: rui@x.example;",
        "Work: Berg, Rui <rui@x.example>",
        "rui@x.example, rui@x.example",
    ],
    "https://x.example/in/rui": [
        "Profile: http://www.x.example/in/Rui/?trk=a.",
        "Rui Berg <www.x.example/in/rui>",
        "<https://x.example/in/rui>",
    ],
}
# Texts with no identifier, several, or one beside other text.
NOT_REPAIRED = {
    "email": [
        "a@x.example, b@x.example",
        "a@x.example <b@x.example>",
        "rui@x.example, bo@",
        "ru i@x.example",
        "ana,maria@x.example",
        "ana. maria@x.example",
        "rui@mail.co,uk",
        "rui@mail.co. uk",
        "rui@mail.co . uk",
        "ana[dot]maria@x.example",
        "ana (dot) maria@x.example",
        'ana "dot" maria@x.example',
        "ana-<br>maria@x.example",
        "rui@mail.co[.]uk",
        "rui@mail.co (dot) uk",
        "rui@x.exam(remove)ple",
        "Rui rui@x.example",
        "Rui (rui@x.example)",
        "rui@x.example (work)",
        "unsubscribed: rui@x.example",
        "Rui <rui@x.example> (left)",
        "Rui <see rui@x.example>",
        "rui@x",
        "Rui",
    ],
    "profnet_url": [
        "https://x.example/in/a https://x.example/in/b",
        "https://x.example/in/an na",
        "prof net.example/in/ann",
        "x.example/in/an - na",
        "x.example/in/an (dash) na",
        "Rui: https://x.example/in/rui",
        "[Rui](https://x.example/in/rui)",
        "Rui",
    ],
}


@pytest.mark.parametrize("dtype", ["str", "object", "category", pd.ArrowDtype(pa.string())])
def test_clean_sends_the_only_identifier_of_a_cell(dtype: Any) -> None:
    """With clean=True, the plan and its frame have the key of a cell's only identifier."""
    for expected, cells in REPAIRED.items():
        column = "email" if "@" in expected else "profnet_url"
        frame = pd.DataFrame({"note": "a", column: pd.Series(cells, dtype=dtype)})
        labelled = frame.set_axis(["x"] * len(frame))
        before = labelled.copy()
        with pytest.warns(OutreachWarning, match=f"repaired {len(cells)} cells of '{column}'"):
            plan = make_plan(labelled, SEQUENCE, clean=True, data=["note"])
        assert plan.frame[column].tolist() == [expected] * len(cells)
        assert list(plan.frame) == list(frame)
        assert plan.problems.empty
        assert [lead[column] for lead in plan.leads([0, 1])] == [expected] * 2
        assert f"{len(cells)} cells of '{column}'" in repr(plan)
        pd.testing.assert_frame_equal(labelled, before)
        problems = frame.outreach.validate()
        advice = f"Pass clean=True to send {expected!r}."
        assert problems["message"].str.endswith(advice).tolist() == [True] * len(cells)
        with pytest.warns(OutreachWarning, match="repaired"):
            assert frame.outreach.validate(clean=True).empty


@pytest.mark.parametrize("column", NOT_REPAIRED)
def test_clean_leaves_doubtful_cells(column: str) -> None:
    """A cell with no identifier, several or a doubtful one stays a problem and is not sent."""
    frame = pd.DataFrame({column: NOT_REPAIRED[column]})
    plan = make_plan(frame, SEQUENCE, clean=True)
    assert not len(plan.positions)
    assert plan.frame.equals(frame)
    assert not plan.problems["message"].str.contains("clean=True").any()


def test_a_usual_column_that_is_not_used_is_named() -> None:
    """The plan names a column that looks like an identifier and is not sent; it never chooses."""
    frame = pd.DataFrame({"email": ["a@x.example"], "Profile URL": ["x.example/in/a"]})
    plan = make_plan(frame, SEQUENCE)
    assert plan.leads([0]) == [{"email": "a@x.example"}]
    assert "'Profile URL'; to send it, pass profnet_url='Profile URL'" in repr(plan)
    assert "Not used" not in repr(make_plan(frame, SEQUENCE, profnet_url="Profile URL"))


def test_a_shared_address_is_named() -> None:
    """A problem counts the people who share an address; their rows are planned as before."""
    url = "https://profnet.example/in"
    cells = ["info@x.example", "b@x.example", "INFO@x.example", "info@x.example", "b@x.example"]
    urls = [f"{url}/a", f"{url}/b", f"{url}/c", f"{url}/d", "www.profnet.example/in/B/"]
    rows = [*zip(cells, urls, strict=True), ("info@x.example", f"{url}/c"), ("b@x.example", None)]
    rows += [("c@x.example", f"{url}/e"), ("c@x.example", f"{url}?id=1"), ("@", f"{url}/f")]
    plan = make_plan(pd.DataFrame(rows, columns=["email", "profnet_url"]), SEQUENCE)
    (shared,) = plan.problems[plan.problems["code"] == "shared_email"].to_dict("records")
    assert (shared["row"], shared["column"]) == (0, "email")
    assert shared["message"] == (
        "'info@x.example': 3 people share this address: only the first is sent."
    )
    assert plan.positions.tolist() == [0, 1, 7]
    assert "shared_email 1" in repr(plan)


@given(st.from_regex(SIMPLE_EMAIL, fullmatch=True), st.sampled_from(["Rui <{}>", "mailto:{}"]))
def test_a_repaired_address_has_the_same_key(text: str, form: str) -> None:
    """The repaired text is the key of the text and of itself."""
    repaired = syntax.repair_email(form.format(text))
    if repaired is not None:
        assert repaired == email_key(text) == email_key(repaired)
        assert of.keys.email([form.format(text)]).tolist() == [repaired]


def test_leads_without_an_email_are_counted() -> None:
    """A plan's text counts the leads without an email, which email steps refuse."""
    urls = ["https://x.example/in/a", "https://x.example/in/b", "https://x.example/in/b", None]
    frame = pd.DataFrame({"email": ["a@x.example", None, None, None], "profnet_url": urls})
    plan = make_plan(frame, SEQUENCE)
    for view in (repr(plan), plan._repr_html_()):
        assert "1 lead: a sequence with email steps refuses these" in view
    assert "2 leads: a sequence" in repr(make_plan(frame[["profnet_url"]], SEQUENCE))
    assert "Without an email" not in repr(make_plan(frame[["email"]], SEQUENCE))
