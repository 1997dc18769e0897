"""People as the service wrote them: one JSON object per line, cut out of the responses' bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.tables.fast_reader import (
    MAX_DEPTH,
    PageHead,
    PeoplePage,
    check_size,
    depth,
    list_of_errors,
    one_line,
)
from outreach_frames.tables.flatten import as_one_page, read_people_page
from outreach_frames.tables.json_values import LossyParseError, is_exact
from outreach_frames.tables.tolerant_reader import LONE_VALUE

ID: Final = "id"
LINE: Final = "line"
_SCHEMA: Final = pa.schema([(ID, pa.string()), (LINE, pa.large_binary())])
_RESULTS_BEGIN: Final = f'"{spec.RESULTS_KEY}":['.encode()
_RESULTS_END: Final = f'],"{spec.PAGINATION_KEY}":'.encode()
_FIRST_NAME: Final = re.compile(rb'\{"[^"\\]*":')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
# Where a value ends is all that is wanted of it, so numbers of any length will do.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def read_people_lines(bodies: Sequence[bytes]) -> PeoplePage:
    """Read several responses of people search as one, with each person as the bytes that came.

    Parameters
    ----------
    bodies : sequence of bytes
        JSON in UTF-8; at least one.

    Returns
    -------
    PeoplePage
        Its `people` have two columns: `id` (text, missing where it is not text) and `line` (bytes
        without a line break).

    Raises
    ------
    InvalidResponseError
        When a body is not a people search result.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> page = read_people_lines([b'{"results":[{"id":"1","new":0.10}],"_pagination":{}}'])
    >>> page.people.to_pylist()
    [{'id': '1', 'line': b'{"id":"1","new":0.10}'}]
    """
    for body in bodies:
        check_size(body)
    try:
        return _read_fast(bodies)
    except ValueError:
        return as_one_page([_read_exactly(body) for body in bodies])


def _read_fast(bodies: Sequence[bytes]) -> PeoplePage:
    """Cut where people seem to end; that every piece is JSON then proves that they do."""
    lines: list[bytes] = []
    heads: list[PageHead] = []
    for body in bodies:
        people, envelope = _split(one_line(body))
        lines += people
        pagination = envelope[spec.PAGINATION_KEY]
        present = {key: value for key, value in pagination.items() if value is not None}
        errors = list_of_errors(envelope.get(spec.ERRORS_KEY))
        heads.append(PageHead(len(people), present, errors))
    table = pa.table([_ids(lines), pa.array(lines, pa.large_binary())], schema=_SCHEMA)
    return PeoplePage(table, heads)


def _split(body: bytes) -> tuple[list[bytes], dict[str, Any]]:
    """Cut a body into its people and what is around them."""
    head, begin, rest = body.partition(_RESULTS_BEGIN)
    people, end, tail = rest.rpartition(_RESULTS_END)
    if not begin or not end or depth(body) > MAX_DEPTH:
        raise LossyParseError
    # The mark shows that the people were cut from where results are, and from nowhere else.
    envelope = orjson.loads(b'%b%b"here"%b%b' % (head, begin, end, tail))
    pagination = envelope.get(spec.PAGINATION_KEY)
    if envelope.get(spec.RESULTS_KEY) != ["here"] or type(pagination) is not dict:
        raise LossyParseError
    if not is_exact(envelope):
        raise LossyParseError
    if not people:
        return [], envelope
    first_name = _FIRST_NAME.match(people)
    if not first_name:
        raise LossyParseError
    between = b"," + first_name[0]
    first, *others = people.split(between)
    return [first, *(between[1:] + other for other in others)], envelope


def _ids(lines: list[bytes]) -> pa.ChunkedArray:
    """Read the ids of people, which must be one JSON object on each line."""
    if not lines:
        return pa.chunked_array([], pa.string())
    content = b"\n".join(lines)
    table = arrow_json.read_json(
        pa.BufferReader(content),
        read_options=arrow_json.ReadOptions(block_size=len(content) + 1, use_threads=False),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=pa.schema([(ID, pa.string())]), unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != len(lines) or not all(line.endswith(b"}") for line in lines):
        raise LossyParseError
    return table.column(ID)


def _read_exactly(body: bytes) -> PeoplePage:
    """Cut a body where a JSON parser says that each person ends."""
    page = read_people_page(body)
    lines = [_as_object(line) for line in _lines(one_line(body).decode())]
    if len(lines) != page.people.num_rows:
        raise InvalidResponseError(
            f"The response to {spec.SEARCH_PEOPLE.label} has `{spec.RESULTS_KEY}` twice."
        )
    ids = page.people.column(ID)
    people = pa.table([ids, pa.array(lines, pa.large_binary())], schema=_SCHEMA)
    return PeoplePage(people, page.heads)


def _lines(text: str) -> Iterator[bytes]:
    """Yield the elements of the top level's results."""
    position = _after_space(text, 1)
    while text[position] == '"':
        name, position = _DECODER.raw_decode(text, position)
        position = _after_space(text, _after_space(text, position) + 1)
        if name == spec.RESULTS_KEY:
            position = _after_space(text, position + 1)
            while text[position] != "]":
                _, end = _DECODER.raw_decode(text, position)
                yield text[position:end].encode()
                position = _after_comma(text, end)
            position += 1
        else:
            _, position = _DECODER.raw_decode(text, position)
        position = _after_comma(text, position)


def _as_object(line: bytes) -> bytes:
    """Write anything but an object as the object that gives the same row in a frame."""
    if line.startswith(b"{"):
        return line
    return b"{}" if line == b"null" else b'{"%b":%b}' % (LONE_VALUE.encode(), line)


def _after_comma(text: str, position: int) -> int:
    position = _after_space(text, position)
    return _after_space(text, position + 1) if text[position] == "," else position


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()
