"""Reading a response takes time and memory in proportion to its size, and loses no data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.reading.pages import PeopleReader
from outreach_frames.reading.untyped_reader import (
    FURTHER_FIELDS,
    MAX_UNDOCUMENTED_COLUMNS,
)
from outreach_frames.tables.json_values import parse_json
from tests import forked
from tests.reading.pages import people_frame, read_people_page, read_untyped
from tests.reading.test_flatten import COLUMNS, body
from tests.scripted import json as json_reply
from tests.scripted import respond, scripted

pytestmark = pytest.mark.long

MOST = MAX_UNDOCUMENTED_COLUMNS
WIDE = {f"f{number}": number for number in range(MOST + 500)}
REST = {f"f{number}": number for number in range(MOST, MOST + 500)}


def further(frame: pd.DataFrame, row: int = 0) -> dict[str, Any]:
    """Return a row's undocumented fields beyond the maximum number of columns."""
    fields: dict[str, Any] = json.loads(frame.loc[row, FURTHER_FIELDS])
    return fields


@pytest.mark.parametrize("place", ["person", "unknown object", "company"])
def test_fields_beyond_a_thousand_columns_are_json(place: str) -> None:
    """The first 1,000 undocumented fields are columns, and the others are JSON in one column."""
    key, prefix = {"person": ("", ""), "unknown object": ("zz", "zz_")}.get(
        place, ("company", "company_")
    )
    sent = {key: WIDE} if key else WIDE
    frame = people_frame([read_people_page(body({"id": "1"} | sent, {"id": "2"}))])
    assert len(frame.columns) == len(COLUMNS) + MOST + 1
    assert frame.loc[0, f"{prefix}f{MOST - 1}"] == MOST - 1
    assert further(frame) == {f"{prefix}{name}": value for name, value in REST.items()}
    assert frame[FURTHER_FIELDS].isna().tolist() == [False, True]


def test_columns_of_many_pages_are_bounded_too() -> None:
    """Pages with different fields make one frame with at most 1,000 undocumented columns."""
    pages = [
        read_people_page(body({f"p{page}f{n}": n for n in range(MOST * 2)}, {}))
        for page in range(3)
    ]
    frame = people_frame(pages)
    assert len(frame.columns) == len(COLUMNS) + MOST + 1
    assert further(frame, 0) == {f"p0f{n}": n for n in range(MOST, MOST * 2)}
    for page in (1, 2):
        assert further(frame, 2 * page) == {f"p{page}f{n}": n for n in range(MOST * 2)}
    assert frame[FURTHER_FIELDS].isna().tolist() == [False, True] * 3


def test_a_field_of_the_service_under_that_name_is_kept() -> None:
    """A field of the service named `further_fields` is kept as a separate column."""
    pages = [
        read_people_page(body({FURTHER_FIELDS: "mine"})),
        read_people_page(body({f"x{n}": n for n in range(MOST)})),
        read_people_page(body({"z": 1})),
    ]
    frame = people_frame(pages)
    assert further(frame, 2) == {"z": 1}
    assert "mine" in frame.loc[0, FURTHER_FIELDS]


def test_exports_are_bounded_as_frames_are(tmp_path: Path) -> None:
    """An export of wide pages has the same columns and values as the search's frame."""

    def reply(request: Any) -> Any:
        page = request.json["page"]
        people = [{"id": str(page)} | {f"p{page}f{n}": n for n in range(600)}]
        pagination = {"page": page, "page_size": 1, "total": 2, "total_pages": 2}
        return json_reply({"results": people, "_pagination": pagination})

    with scripted(reply) as service, Client(service.url, "token", cache=None) as client:
        frame = of.search_people(limit=None, page_size=1, client=client)
        read = of.read_prospects(of.export_people(tmp_path / "x.csv", page_size=1, client=client))
    assert read.dtypes.equals(frame.dtypes)
    assert read.equals(frame)
    assert len(frame.columns) == len(COLUMNS) + MOST + 1


@pytest.mark.parametrize("place", ["person", "company"])
def test_an_object_with_a_long_name_is_not_flattened(place: str) -> None:
    """An object with a name of over 100 characters is not flattened in the JSON column."""
    long = "n" * 101
    sent = {long: {"a": 1, "b": {"c": None, "d": 2.5}}, "n" * 90: {"a": 1}}
    person = sent if place == "person" else {place: sent}
    prefix = "" if place == "person" else f"{place}_"
    frame = people_frame([read_people_page(body(person))])
    assert further(frame) == {prefix + long: {"a": 1, "b": {"d": 2.5}}}
    assert frame.loc[0, f"{prefix}{'n' * 90}_a"] == 1
    assert read_people_page(body(person)).people.equals(read_untyped([person]))


@pytest.mark.parametrize("elements", [1, 3])
def test_wide_objects_in_known_lists_keep_all_members(elements: int) -> None:
    """In listed objects, undocumented members beyond 1,000 become one JSON member."""
    frame = people_frame(
        [read_people_page(body({"experiences": [{"title": "CTO"} | WIDE] * elements}))]
    )
    cell = frame.loc[0, "experiences"]
    assert len(cell) == elements
    assert cell[0]["title"] == "CTO"
    assert json.loads(cell[-1][FURTHER_FIELDS]) == WIDE


def test_many_shapes_in_an_unknown_list_are_json() -> None:
    """A list of objects with thousands of different names becomes JSON text."""
    sent = [{f"k{number}": number} for number in range(5_000)]
    frame = people_frame([read_people_page(body({"zz": sent}))])
    assert json.loads(frame.loc[0, "zz"]) == sent


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", "-9223372036854775809"),
        ("-1e999", "-1e999"),
        ("99999999999999999999999999", "99999999999999999999999999"),
    ],
)
def test_integers_beyond_64_bits_are_text(text: str, parsed: object) -> None:
    """Both readers keep 64-bit integers as integers, and larger ones as their original text."""
    assert parse_json(text) == parsed
    assert type(parse_json(text)) is type(parsed) or isinstance(parse_json(text), str)
    sent = f'{{"results":[{{"zz":{text}}}],"_pagination":{{}},"_errors":[{text}]}}'.encode()
    page = read_people_page(sent)
    assert page.people["zz"].to_pylist() == [parsed]
    assert page.errors == [parsed]
    company = f'{{"founded_year":{text},"locations":[{{"zz":{text}}}]}}'
    sent = f'{{"results":[{{"company":{company}}}],"_pagination":{{}},"_errors":[{text}]}}'.encode()
    columns = ["company_founded_year", "company_locations"]
    (chosen,) = PeopleReader().read([sent], columns)
    whole = read_people_page(sent)
    assert chosen.people.select(columns).equals(whole.people.select(columns))
    assert chosen.heads == whole.heads


# Measured after the reader has warmed up, without the memory of the parent process.
MEASURE = """if True:
    import json, re, sys, warnings
    from pathlib import Path
    import outreach_frames as of
    from outreach_frames.client.client import Client

    warnings.simplefilter("ignore")

    def peak():
        return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

    with Client(sys.argv[1], "token", cache=None, workers=2) as client:
        of.search_people(limit=1, client=client)
        Path("/proc/self/clear_refs").write_text("5")
        before, columns, message = peak(), None, ""
        try:
            columns = of.search_people(limit=None, client=client).shape[1]
        except of.errors.InvalidResponseError as error:
            message = str(error)
        print(json.dumps([(peak() - before) * 1024, columns, message]))
"""
FIRST = b'{"results":[{"id":"0"}],"_pagination":{"total":1,"total_pages":1}}'


def results(persons: str, pagination: str = "") -> bytes:
    """Return a response with people as JSON, marked as the only page."""
    pagination = f'{{"total":1,"total_pages":1{pagination}}}'
    return f'{{"results":[{persons}],"_pagination":{pagination}}}'.encode()


def fields(count: int, value: str = "1", name: str = "a") -> str:
    """Return JSON with this many members of an object."""
    return ",".join(f'"{name}{number}":{value}' for number in range(count))


def measured(pages: list[bytes]) -> tuple[int, int | None, str]:
    """Read a small page, then a search; return the used bytes, the columns and the error."""
    requests = iter([FIRST])

    def reply(request: Any) -> Any:
        first = next(requests, None)
        return respond(first or pages[min(request.json["page"], len(pages)) - 1])

    with scripted(reply) as service:
        done = forked.run(MEASURE, service.url)
    memory, columns, message = json.loads(done.stdout)
    return memory, columns, message


def allowed(bodies: list[bytes]) -> int:
    """Return the bytes of memory that reading the responses may use."""
    return 30 * sum(map(len, bodies)) + 100_000_000


NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="measures memory as Linux tells it"
)


# Built when a test runs, because building all of them would slow down collection.
RESPONSES: dict[str, Callable[[], bytes]] = {
    "pagination": lambda: results('{"id":"1"}', "," + fields(300_000)),
    "members": lambda: results(f"{{{fields(100_000)}}}"),
    "distinct members": lambda: results(
        ",".join(f"{{{fields(1_000, name=f'p{n}_')}}}" for n in range(100))
    ),
    "list": lambda: results(
        '{"experiences":['
        + ",".join(f"{{{fields(1, name=f'm{n}_')}}}" for n in range(150_000))
        + "]}"
    ),
    "deep": lambda: results('{"zz":' + '{"a":' * 99 + "1" + "}" * 100),
    "text": lambda: results(f'{{"about":"{"x" * 20_000_000}","id":1}}'),
}


@NEEDS_PROC
@pytest.mark.parametrize("kind", RESPONSES)
def test_a_response_costs_memory_in_proportion(kind: str) -> None:
    """A response needs at most 30 times its bytes plus 100 MB, and its columns are limited."""
    response = RESPONSES[kind]()
    memory, columns, message = measured([response])
    assert not message
    assert columns is not None
    assert columns <= len(COLUMNS) + MOST + 1
    assert memory < allowed([response])


def test_pagination_keeps_a_thousand_members() -> None:
    """The first 1,000 members of `_pagination` are kept."""
    sent = b'{"results":[],"_pagination":{"total":0,%b}}' % fields(5_000).encode()
    page = read_people_page(sent)
    assert len(page.pagination) == MOST
    assert page.pagination["total"] == 0


@pytest.mark.parametrize("name", ["results", "_pagination", "_errors"])
@pytest.mark.parametrize("value", [{"results": [{"id": 1}] * 99}, [{"id": "x"}] * 9, "text"])
def test_a_field_named_as_the_response_has_them_is_read(name: str, value: Any) -> None:
    """A person's undocumented field may have the name of a response's field."""
    person = {"id": "1", name: value, "company": {"name": "Brightforge", name: value}}
    page = {"results": [person], "_pagination": {"total": 1, "total_pages": 1}}
    with scripted([json_reply(page)]) as service, Client(service.url, "t", cache=None) as client:
        frame = of.search_people(page_size=1, client=client)
    assert frame.loc[0, ["id", "company_name"]].tolist() == ["1", "Brightforge"]
    flat = pd.json_normalize([person], sep="_")
    for column in set(flat) - {"id", "company_name"}:
        assert list(frame.loc[0, column]) == list(flat.loc[0, column])
