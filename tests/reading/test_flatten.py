"""Responses become flat frames with the right names, values and dtypes."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.flatten import (
    records_frame,
    undocumented_frame,
)
from outreach_frames.reading.pages import PeopleReader
from outreach_frames.reading.untyped_reader import flatten_records
from tests import forked
from tests.examples import share_of_examples
from tests.reading.pages import body, people_frame, read_people_page
from tests.reading.people_strategies import odd_people, people

COLUMNS = spec.columns(spec.PERSON)
START = "current_position_start_date"
DTYPES = {
    "string": "str",
    "integer": "Int64",
    "number": "Float64",
    "boolean": "boolean",
    "date": "datetime64[us]",
    "date-time": "datetime64[us, UTC]",
}


def frame_of(*persons: Any) -> pd.DataFrame:
    """Read one page into a frame."""
    return people_frame([read_people_page(body(*persons))])


def expected_dtype(field: spec.Field) -> str:
    """Return a column's dtype by the package's documented rules."""
    if field.type == "array":
        return "list"
    return DTYPES[field.format if field.format in DTYPES else field.type]


def plain(value: Any) -> Any:
    """Replace missing values by None, also in lists of objects, whose absent keys equal null."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items() if member is not None}
    if isinstance(value, pd.Timestamp):
        return str(value.date())
    return None if value is None or pd.isna(value) else value


def test_default_dtypes_are_the_nullable_ones_of_pandas():
    """Each type of the interface has a nullable pandas dtype, and lists are Arrow."""
    dtypes = {name: str(dtype).split("<")[0] for name, dtype in people_frame([]).dtypes.items()}
    assert dtypes == {name: expected_dtype(field) for name, field in COLUMNS.items()}


@share_of_examples(0.5)
@given(st.lists(people(), max_size=3))
def test_names_and_values_are_those_of_json_normalize(persons):
    """Both readers return the names and values of pandas' json_normalize."""
    before = copy.deepcopy(persons)
    usual = pd.json_normalize(persons, sep="_")
    for table in (
        read_people_page(body(*persons)).people,
        flatten_records(persons, spec.PERSON)[0],
    ):
        frame = people_frame([table])
        assert len(frame) == len(persons)
        # Unlike json_normalize, the readers add no column for a null object.
        for name in usual.columns.intersection(frame.columns):
            assert [plain(v) for v in frame[name]] == [plain(v) for v in usual[name]]
        others = usual.columns.difference(frame.columns)
        assert usual[others].isna().all(axis=None)
    assert persons == before


@share_of_examples(0.5)
@given(
    st.lists(st.lists(odd_people(), max_size=2), max_size=3),
    st.sampled_from(["numpy_nullable", "pyarrow"]),
)
def test_any_pages_make_one_frame(pages, backend):
    """Pages with any content make one frame with all rows and the interface's columns first."""
    together = PeopleReader().read([body(*persons) for persons in pages])
    frame = people_frame(together, backend)
    assert len(frame) == sum(map(len, pages))
    assert list(frame.columns[: len(COLUMNS)]) == list(COLUMNS)
    empty = people_frame([], backend).dtypes
    scalars = [name for name, field in COLUMNS.items() if field.type != "array"]
    assert frame.dtypes[scalars].equals(empty[scalars])
    assert frame.columns.is_unique


def test_list_cells_are_python_lists():
    """A list cell is a list of dicts, can be exploded, and is missing if the list is missing."""
    frame = frame_of({"experiences": [{"title": "CTO"}, {"title": "CEO"}]}, {}, {"experiences": []})
    cell = frame.loc[0, "experiences"]
    assert isinstance(cell, list)
    assert [item["title"] for item in cell] == ["CTO", "CEO"]
    assert frame["experiences"].isna().tolist() == [False, True, False]
    assert frame.explode("experiences").index.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (["2020-01-01", "2021-01-01T00:00:00Z"], ["2020-01-01", "2021-01-01T00:00:00Z"]),
        ([1, 2.5, None], ["1", "2.5", None]),
        ([True], ["true"]),
        ([{"b": "x", "a": 1.0, "c": None}], ['{"a":1,"b":"x"}']),
        ([{"a": 1}, "x"], ['{"a":1}', "x"]),
        (None, pd.NA),
    ],
)
@pytest.mark.parametrize("name", ["locations", "technologies"])
def test_undocumented_elements_become_text(name, sent, kept):
    """Elements of undocumented lists become text, and non-text elements become JSON."""
    frame = frame_of({"company": {name: sent}})
    cell = frame.loc[0, f"company_{name}"]
    assert cell is kept if kept is pd.NA else cell == kept
    assert frame.dtypes.equals(people_frame([]).dtypes)


@pytest.mark.parametrize(
    ("sent", "dtype"),
    [
        ("2020-01-01", "str"),
        ("2020-01-01T10:00:00Z", "str"),
        (5, "Int64"),
        (5.5, "Float64"),
        (True, "boolean"),
        ([1, 2], "list<item: int64>[pyarrow]"),
        ([{"a": "2020-01-01"}], "list<item: struct<a: string>>[pyarrow]"),
    ],
)
def test_unknown_fields_are_kept_at_the_end(sent, dtype):
    """An undocumented field is a column at the end with its value unchanged."""
    frame = frame_of({"zz": sent, "company": {"new": sent}}, {})
    assert list(frame.columns[len(COLUMNS) :]) == ["company_new", "zz"]
    for name in ("zz", "company_new"):
        assert plain(frame.loc[0, name]) == sent
        assert str(frame[name].dtype) == dtype
        assert pd.isna(frame.loc[1, name])


@pytest.mark.parametrize(
    ("person", "cells"),
    [
        (
            {"zz": {"a": {"b": 1}, "c": "x"}, "location_details": {"zip": "0150"}},
            {"location_details_zip": "0150", "zz_a_b": 1, "zz_c": "x"},
        ),
        (
            {"company_name": "top", "company": {"name": "nested"}},
            {"company_name": "nested", "company_name_2": "top"},
        ),
        ({"zz_a": 1, "zz": {"a": 2}}, {"zz_a": 1, "zz_a_2": 2}),
        ({"zz": [{}]}, {"zz": "[{}]"}),
        ({"name": "a\x00b\r\n\tc\u2028"}, {"name": "a\x00b\r\n\tc\u2028"}),
        (
            {"company": {"followers": 12.0, "sic_codes": [1.0], "total_funding": 5}},
            {"company_followers": 12, "company_sic_codes": [1], "company_total_funding": 5.0},
        ),
        ({"company": "Example"}, {"company_raw": "Example"}),
        ({"company": ["a"]}, {"company_raw": '["a"]'}),
        ({"company": 5}, {"company_raw": "5"}),
    ],
    ids=str,
)
def test_values_have_these_columns(person, cells):
    """Objects become columns with distinct names, and only unreadable values get a raw column."""
    frame = frame_of(person)
    assert frame.iloc[0].dropna().to_dict() == cells
    assert set(frame.columns[len(COLUMNS) :]) == set(cells).difference(COLUMNS)


@pytest.mark.parametrize(
    "member", [{"zz": {"a": 1}}, {"zz": "x"}, {"start_date": "2020-01-01"}], ids=str
)
def test_members_of_listed_objects_stay_in_the_cells(member):
    """Undocumented members and dates of an experience stay in the cell, with their JSON type."""
    frame = frame_of({"experiences": [{"title": "CTO"} | member]}, {"experiences": [{"zz": None}]})
    assert plain(frame.loc[0, "experiences"]) == [{"title": "CTO"} | member]
    empty = frame_of({"experiences": [{"zz": {}}]})
    assert empty.loc[0, "experiences"][0]["zz"] == "{}"


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (1, 2.5, [1.0, 2.5]),
        (1, "x", ["1", "x"]),
        (True, 1, ["true", "1"]),
        ([1], ["x"], ["[1]", '["x"]']),
        (2**53 + 1, 0.5, [str(2**53 + 1), "0.5"]),
        ([{"a": 1}], [{"b": 2}], [[{"a": 1, "b": None}], [{"a": None, "b": 2}]]),
        (None, "x", [None, "x"]),
    ],
)
def test_different_types_keep_every_value(first, second, kept):
    """An undocumented field with different types on pages or rows keeps every value."""
    apart = people_frame(
        [read_people_page(body({"zz": first})), read_people_page(body({"zz": second}))]
    )
    together = frame_of({"zz": first}, {"zz": second})
    for frame in (apart, together):
        assert [v if isinstance(v, list) else plain(v) for v in frame["zz"]] == kept


@pytest.mark.parametrize(
    ("column", "person", "raw"),
    [
        ("name", {"name": 5}, "5"),
        ("name", {"name": True}, "true"),
        ("name", {"name": {"first": "Ada"}}, '{"first":"Ada"}'),
        ("company_followers", {"company": {"followers": "12"}}, "12"),
        ("company_followers", {"company": {"followers": 12.5}}, "12.5"),
        ("company_followers", {"company": {"followers": True}}, "true"),
        ("company_followers", {"company": {"followers": 2**63}}, str(2**63)),
        ("company_total_funding", {"company": {"total_funding": 2**53 + 1}}, str(2**53 + 1)),
        ("company_total_funding", {"company": {"total_funding": "1M"}}, "1M"),
        ("company_is_b2b", {"company": {"is_b2b": "yes"}}, "yes"),
        ("company_is_b2b", {"company": {"is_b2b": 1}}, "1"),
        *((START, {START: sent}, sent) for sent in ("2020-02-30", "0000-01-01", "May 2020", "")),
        (START, {START: 2020}, "2020"),
        ("company_sic_codes", {"company": {"sic_codes": [1, "x"]}}, '[1,"x"]'),
        ("company_keywords", {"company": {"keywords": "x"}}, "x"),
        ("experiences", {"experiences": [{"title": 5}]}, '[{"title":5}]'),
        ("experiences", {"experiences": ["Prüfer", {}]}, '["Prüfer",{}]'),
        ("company_technologies", {"company": {"technologies": "x"}}, "x"),
    ],
)
def test_values_of_another_type_are_kept_as_text(column, person, raw):
    """A value of the wrong type is missing in its column and kept as text in `<column>_raw`."""
    frame = frame_of({"id": "1", **person}, {"id": "2"})
    assert frame["id"].tolist() == ["1", "2"]
    assert pd.isna(frame.loc[0, column])
    assert frame.columns[-1] == f"{column}_raw"
    assert frame[f"{column}_raw"].dtype == "str"
    assert frame.loc[0, f"{column}_raw"] == raw
    assert pd.isna(frame.loc[1, f"{column}_raw"])
    assert frame.dtypes[: len(COLUMNS)].equals(people_frame([]).dtypes)


def test_unreadable_dates_and_other_types_share_a_column():
    """A date that cannot be read and a value of another type are both kept as text."""
    frame = frame_of({START: 2020}, {START: "May"}, {START: "2020-01-01"})
    assert frame[f"{START}_raw"].fillna("").tolist() == ["2020", "May", ""]
    assert frame[START].isna().tolist() == [True, True, False]


def test_a_date_time_at_midnight_is_a_date():
    """A date-time at midnight in a date field is that date; another time is kept as text."""
    texts = ["2026-05-06T00:00:00Z", "2026-05-06T00:00:00.000+00:00", "2026-05-06T10:00:00Z"]
    frame = frame_of(*({START: text} for text in texts))
    assert frame[START].tolist()[:2] == [pd.Timestamp("2026-05-06")] * 2
    assert frame[f"{START}_raw"].fillna("").tolist() == ["", "", texts[2]]


def test_results_that_are_not_objects_keep_their_rows():
    """A result that is not an object is a row with a column `value`; null is an empty row."""
    frame = frame_of({"id": "1"}, None, "x")
    assert frame["id"].isna().tolist() == [False, True, True]
    assert frame.loc[2, "value"] == "x"


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 30]
)
@pytest.mark.parametrize("column", ["total_funding", "followers", "zz"])
def test_unrepresentable_numbers_are_text(column, number):
    """NaN, infinity and huge numbers are kept as text."""
    sent = b'{"results":[{"company":{"%b":%b}}],"_pagination":{}}' % (
        column.encode(),
        number.encode(),
    )
    frame = people_frame([read_people_page(sent)])
    kept = frame.iloc[0, len(COLUMNS)]
    if column == "total_funding" and number == "-" + "9" * 30:
        number = str(-int("9" * 30))
    assert kept == number


def test_half_a_surrogate_pair_is_kept_as_its_escape():
    """Half a surrogate pair is kept as the escape that the service sent."""
    sent = rb'{"results":[{"name":"a\ud800b","z\udc00":"\ud83d\ude00"}],"_pagination":{}}'
    frame = people_frame([read_people_page(sent)])
    assert frame.loc[0, "name"] == r"a\ud800b"
    assert frame.loc[0, r"z\udc00"] == "\U0001f600"


@pytest.mark.parametrize("wrap", [b"\xef\xbb\xbf%b", b"\n %b\r\n", b"%b"])
def test_white_space_and_a_byte_order_mark_do_not_matter(wrap):
    """A byte order mark and whitespace around or inside the JSON are ignored."""
    text = json.dumps({"results": [{"id": "1"}], "_pagination": {"total": 1}}, indent=1)
    page = read_people_page(wrap % text.replace("\n", "\r\n").encode())
    assert page.people["id"].to_pylist() == ["1"]
    assert page.pagination == {"total": 1}


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"null",
        b"[]",
        b"<html></html>",
        b'{"results":[{"id":"1"}',
        b'{"_pagination":{}}',
        b'{"results":null,"_pagination":{}}',
        b'{"results":[]}',
        b'{"results":[],"_pagination":null}',
        b'{"results":[],"_pagination":{}} null',
        b'{"results":[],"_pagination":{}}{"results":[],"_pagination":{}}',
        b'{"results":[{"name":"a\nb"}],"_pagination":{}}',
        b'{"results":[{"zz":"\xed\xa0\x80"}],"_pagination":{}}',
        b"\xff\xfe{\x00}\x00",
        b'{"results":[{"zz":' + b"[" * 100_000 + b"]" * 100_000 + b'}],"_pagination":{}}',
    ],
)
def test_other_responses_are_rejected(sent):
    """A truncated response, or one that is not a people search result, is a clear error."""
    with pytest.raises(InvalidResponseError, match="POST /people/search") as caught:
        read_people_page(sent)
    assert len(str(caught.value)) < 500
    with pytest.raises(InvalidResponseError):
        PeopleReader().read([body(), sent, body()])


@pytest.mark.long
@pytest.mark.parametrize("levels", [200, 20_000])
def test_deep_nesting_does_not_end_the_process(levels):
    """All readers read or reject JSON of any depth; Arrow alone would crash."""
    code = (
        "import sys\n"
        "from outreach_frames.errors import InvalidResponseError\n"
        "from tests.reading.pages import people_frame, read_people_page\n"
        "for sent in sys.stdin.buffer.read().splitlines():\n"
        "    try:\n"
        "        print(len(people_frame([read_people_page(sent)])))\n"
        "    except InvalidResponseError as error:\n"
        "        print('too deeply' in str(error))\n"
    )
    sent = ""
    for opening, closing in ("[]", ('{"a":', "}")):
        # Brackets inside text must not hide brackets outside it.
        deep = f'"about":"{closing * levels}","zz":{opening * levels}1{closing * levels}'
        sent += f'{{"results":[{{{deep}}}],"_pagination":{{}}}}\n'
    done = forked.run(code, stdin=sent)
    expected = "1" if levels == 200 else "True"
    assert (done.returncode, done.stdout.split()) == (0, [expected] * 2)


def test_pagination_and_errors_are_unchanged():
    """`_pagination` and `_errors` are returned unchanged."""
    errors = [{"code": "x", "at": "2020-01-01", "big": 2**70}, "text"]
    page = read_people_page(
        body({"id": "1"}, _errors=errors, _pagination={"page": 3, "zz": "2020-01-01"})
    )
    assert page.errors == [{**errors[0], "big": str(2**70)}, "text"]
    assert page.pagination == {"page": 3, "zz": "2020-01-01"}


def test_the_frame_is_not_fragmented():
    """Adding a column to people raises no fragmentation warning."""
    frame = frame_of({"id": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame["new"] = 1
    assert frame.loc[0, "new"] == 1


RESOURCES = {"sequence": spec.SEQUENCE, "mailbox": spec.MAILBOX, "contact": spec.CONTACT}


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("records", [[], [{}], [{"_links": {"self": {"href": "/x"}}}, {"id": "1"}]])
def test_small_resources_have_the_columns_of_the_interface(resource, records):
    """Sequences, mailboxes and contacts have their documented columns and dtypes, without links."""
    fields = RESOURCES[resource]
    frame = records_frame(records, fields)
    assert {name: str(dtype).split("<")[0] for name, dtype in frame.dtypes.items()} == {
        name: expected_dtype(field) for name, field in spec.columns(fields).items()
    }
    assert len(frame) == len(records)
    assert {type(d) for d in records_frame(records, fields, "pyarrow").dtypes} == {pd.ArrowDtype}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("2024-01-31T10:20:30Z", "2024-01-31T10:20:30Z"),
        ("2024-01-31T10:20:30.5Z", "2024-01-31T10:20:30.500Z"),
        ("2024-01-31T10:20:30.123456789+00:00", "2024-01-31T10:20:30.123456Z"),
        ("2024-01-31T10:20:30+02:00", "2024-01-31T08:20:30Z"),
        ("2024-01-31 10:20-0530", "2024-01-31T15:50:00Z"),
        ("2024-01-31T10:20:30", "2024-01-31T10:20:30Z"),
    ],
)
def test_date_times_are_read_with_offsets_and_fractions(sent, read):
    """Date-times become UTC, with or without an offset, and are precise to a microsecond."""
    frame = records_frame([{"created_at": sent}], spec.SEQUENCE)
    assert frame.loc[0, "created_at"] == pd.Timestamp(read)
    assert list(frame.columns) == list(spec.columns(spec.SEQUENCE))


@pytest.mark.parametrize(
    "sent", ["yesterday", "2024-01-31", "2024-13-01T00:00:00Z", "0001-01-01T00:00:00+09:00", 5]
)
def test_date_times_that_cannot_be_read_stay_text(sent):
    """An unreadable date-time is kept in `<column>_raw`."""
    frame = records_frame(
        [{"created_at": sent}, {"created_at": "2024-01-31T00:00:00Z"}], spec.SEQUENCE
    )
    assert frame["created_at"].isna().tolist() == [True, False]
    assert frame.loc[0, "created_at_raw"] == str(sent)


def test_undocumented_records_are_flattened():
    """Undocumented records are flattened to one row each, in their order."""
    records = [
        {"email": "a@example.com", "data": {"n": 1, "day": "2020-01-01"}},
        5,
        {"data": "x"},
        None,
        {},
    ]
    frame = undocumented_frame(records)
    assert list(frame.columns) == ["email", "data", "data_n", "data_day", "value"]
    assert frame["data_day"].tolist()[0] == "2020-01-01"
    assert frame.loc[1, "value"] == 5
    assert frame.loc[2, "data"] == "x"
    assert len(frame) == len(records)


@share_of_examples(0.5)
@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_any_json_becomes_a_row(records):
    """Any JSON record becomes one row with both backends."""
    for backend in ("numpy_nullable", "pyarrow"):
        assert len(undocumented_frame(records, backend)) == len(records)
        assert len(records_frame(records, spec.MAILBOX, backend)) == len(records)


@pytest.mark.parametrize("records", [[{"a": "\ud800"}], [{"\ud800": [{"a": "\ud800"}]}]])
def test_half_a_surrogate_pair_in_records_is_kept(records):
    """A record whose text has half a surrogate pair keeps its row, with the escape as text."""
    assert r"\ud800" in undocumented_frame(records).to_csv()


def test_records_nested_too_deeply_are_one_clear_error():
    """Too deeply nested records raise one of this package's errors."""
    record: Any = 1
    for _ in range(5_000):
        record = {"a": record}
    with pytest.raises(InvalidResponseError, match="too deeply"):
        undocumented_frame([record])


@pytest.mark.parametrize("dtype_backend", ["numpy_nullable", "pyarrow"])
def test_every_cell_of_a_frame_can_be_changed(dtype_backend: Any) -> None:
    """All columns of a frame are writable."""
    one = {
        "id": "1",
        "current_position_start_date": "2020-01-01",
        "company": {"founded_year": 1999, "is_b2b": True, "latest_funding_date": "2021-01-01"},
    }
    frame = people_frame([read_people_page(body(one, one))], dtype_backend)
    for column in one.keys() - {"company"} | {
        "company_founded_year",
        "company_latest_funding_date",
    }:
        frame.loc[0, column] = pd.NA
        assert pd.isna(frame[column]).tolist() == [True, False]
