"""Split responses into one unchanged JSON object per person, as lines of bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Raw

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import (
    PageHead,
    PeoplePage,
    check_size,
    parse_head,
    to_one_line,
)
from outreach_frames.reading.lenient_reader import VALUE_COLUMN
from outreach_frames.reading.pages import read_people_page
from outreach_frames.tables.json_columns import text_buffers

ID: Final = "id"
LINE: Final = "line"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
# Only the end of each value matters, so numbers of any length stay text.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class _Page(msgspec.Struct):
    """A response whose parts are validated as JSON but stay bytes."""

    results: list[Raw] = msgspec.field(name=spec.RESULTS_KEY)
    pagination: Raw = msgspec.field(name=spec.PAGINATION_KEY)
    errors: Raw = msgspec.field(name=spec.ERRORS_KEY, default=Raw(b"null"))


class _Person(msgspec.Struct):
    id: Any = None


_PAGES: Final = msgspec.json.Decoder(_Page)
_PERSONS: Final = msgspec.json.Decoder(_Person)


def read_people_lines(bodies: Sequence[bytes]) -> list[PeoplePage]:
    r"""Read people with the columns `id` and `line`; join the responses to one page if possible.

    >>> (page,) = read_people_lines([b'{"results":[{"id":"1","new":0.10}],"_pagination":{}}'])
    >>> page.people.to_pylist()
    [{'id': '1', 'line': b'{"id":"1","new":0.10}\n'}]
    """
    for body in bodies:
        check_size(body)
    try:
        return [_read_fast(bodies)]
    except (ValueError, RecursionError):
        return [_read_exactly(body) for body in bodies]


def _read_fast(bodies: Sequence[bytes]) -> PeoplePage:
    """Split bodies with msgspec, which validates JSON without building the values."""
    ids: list[Any] = []
    lines: list[Raw] = []
    heads: list[PageHead] = []
    for body in map(to_one_line, bodies):
        page = _PAGES.decode(body)
        heads.append(parse_head(len(page.results), bytes(page.pagination), bytes(page.errors)))
        ids += [_PERSONS.decode(person).id for person in page.results]
        lines += page.results
    return PeoplePage(_table(ids, lines), heads)


def _table(ids: Iterable[Any], lines: Sequence[bytes | Raw]) -> pa.Table:
    """Build a table of ids and lines; an id that is not text becomes missing."""
    ends = np.cumsum([0, *(memoryview(line).nbytes + 1 for line in lines)], dtype=np.int64)
    # Arrow reuses its memory; Python would allocate new memory for bytes each time.
    content = pa.allocate_buffer(int(ends[-1]))
    target = memoryview(content).cast("B")
    for line, begin, end in zip(lines, ends.tolist(), ends[1:].tolist(), strict=False):
        target[begin : end - 1] = line
        target[end - 1 : end] = b"\n"
    texts = [identity if isinstance(identity, str) else None for identity in ids]
    buffers = [None, pa.py_buffer(ends), content]
    return pa.table(
        {
            ID: pa.array(texts, pa.string()),
            LINE: pa.Array.from_buffers(pa.large_binary(), len(lines), buffers),
        }
    )


def join_lines(lines: pa.ChunkedArray) -> bytes:
    r"""Join the bytes of lines.

    >>> join_lines(_table(["1"], [b'{"id":"1"}']).column(LINE))
    b'{"id":"1"}\n'
    """
    found = map(text_buffers, lines.chunks)
    return b"".join([content[bounds[0] : bounds[-1]].data for bounds, content in found])


def _read_exactly(body: bytes) -> PeoplePage:
    """Split a body into people with Python's JSON parser, which finds the end of each value."""
    page = read_people_page(body)
    lines = [_as_object(line) for line in _lines(to_one_line(body).decode())]
    if len(lines) != page.people.num_rows:
        raise InvalidResponseError(
            f"The response to {spec.SEARCH_PEOPLE.label} contains `{spec.RESULTS_KEY}` twice."
        )
    ids = page.people.column(ID)
    return PeoplePage(_table(ids.to_pylist(), lines), page.heads)


def _lines(text: str) -> Iterator[bytes]:
    """Yield the JSON of each element of the top-level results."""
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
    """Wrap a JSON value in an object from which a frame gets the same row; keep objects."""
    if line.startswith(b"{"):
        return line
    return b"{}" if line == b"null" else b'{"%b":%b}' % (VALUE_COLUMN.encode(), line)


def _after_comma(text: str, position: int) -> int:
    position = _after_space(text, position)
    return _after_space(text, position + 1) if text[position] == "," else position


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()
