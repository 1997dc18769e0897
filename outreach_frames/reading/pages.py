"""Read pages of people from responses of people search, and pack them for the cache; no I/O.

Arrow's JSON reader parses pages with the types that the fields have, as documented or as learned
from earlier pages. If it fails or could change a value, the slower `lenient_reader` parses the
page, with the same columns, types and values, and the types of the page's fields are learned.

A packed page is a schema and a compressed Arrow record batch: a fifth of the size of its JSON, and
read much faster. The batch is compressed as a whole, because its 262 columns are small. Nearly all
pages have the same schema, which is parsed only once. If only some columns of a page were read, the
packed page has these columns and then the compressed, unparsed response.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Any, Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.fast_reader import (
    BOM,
    PageHead,
    PeoplePage,
    page_head,
    read_fast,
)
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.learned_types import DOCUMENTED, PEOPLE_COLUMNS, Types, lay_out, learn
from outreach_frames.reading.lenient_reader import SCALAR_TYPES, Path, flatten_records, infer_column
from outreach_frames.tables.json_values import parse_json
from outreach_frames.tables.schema import empty_table

_EXCERPT_LENGTH: Final = 120
_CACHED_LAYOUTS: Final = 8

# JSON never starts with a null byte.
_MARK: Final = b"\0people-"
# Increment the number if the format or the flattening of pages changes.
FORMAT: Final = _MARK + b"2"
_RESPONSE: Final = _MARK + b"response-2"
# Sizes in bytes: the packed columns, and the uncompressed response.
_RESPONSE_SIZES: Final = struct.Struct(">II")
_RESPONSE_CODEC: Final = "zstd"
# Sizes in bytes: schema; pagination with errors; uncompressed batch.
_SIZES: Final = struct.Struct(">III")
_HEADER_SIZE: Final = len(FORMAT) + _SIZES.size
_MAX_BATCH_BYTES: Final = 1 << 30
_CODEC: Final = "lz4"
_CACHED_SCHEMAS: Final = 32
_DAMAGED: Final = (
    *(pa.ArrowException, OSError, LookupError, RecursionError, TypeError, ValueError),
    *(struct.error, zlib.error),
)


# In lists with elements of undocumented type (`locations`, `technologies`), text stays text, and
# other elements become JSON with sorted names and without nulls. If a value does not fit its
# column's type, the cell is missing, and the column `<column>_raw` has the value as text. An
# undocumented field becomes a column at the end. The text column `further_fields` has one JSON
# object per row: fields beyond 1,000 columns, and objects with a name of over 100 characters.
def read_people_page(body: bytes) -> PeoplePage:
    """Read one response of people search; raise InvalidResponseError for other content.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> page.people.num_rows, page.pagination
    (1, {'total': 1})
    """
    (page,) = PeopleReader().read([body])
    return page


class PeopleReader:
    """Reads responses of people search, and learns the types of their fields, for all threads."""

    def __init__(self) -> None:
        self._learn(DOCUMENTED)

    def _learn(self, response: pa.StructType) -> None:
        # One assignment, which needs no lock.
        self._layout = lru_cache(_CACHED_LAYOUTS)(partial(lay_out, response))

    def read(
        self, bodies: Sequence[bytes], columns: Sequence[str] | None = None
    ) -> list[PeoplePage]:
        """Read responses in order, as one page if possible.

        `columns` are the documented columns that the caller needs; the pages may have more.

        >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
        >>> [page.people.num_rows for page in PeopleReader().read([body, body])]
        [2]
        """
        # In lists of objects, undocumented members are read, too, which needs the whole page.
        is_plain = columns is not None and not any(PEOPLE_COLUMNS[one].members for one in columns)
        layout = self._layout(tuple(columns) if columns is not None and is_plain else None)
        # Do not read again in an `except` block, which would keep the failed read in memory.
        with suppress(ValueError, pa.ArrowTypeError):
            page = read_fast(bodies, layout)
            heads = page.heads
            if is_plain:  # the cache stores the other columns, too
                heads = [one._replace(body=body) for one, body in zip(heads, bodies, strict=True)]
            return [PeoplePage(concat_people([page.people]), heads)]
        if len(bodies) != 1:
            return [page for body in bodies for page in self.read([body], columns)]
        page, *types = _read_leniently(bodies[0])
        self._learn(learn(layout.response, *types))
        return [page]


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Join consecutive pages into one.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {}}')
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    if len(pages) == 1:
        return pages[0]
    people = concat_people([page.people for page in pages])
    return PeoplePage(people, [head for page in pages for head in page.heads])


def _read_leniently(body: bytes) -> tuple[PeoplePage, Types, Types]:
    """Read one body with Python's JSON parser; return the types of people's and other fields."""
    try:
        result = parse_json(body.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise _invalid(body, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except ValueError as error:
        raise _invalid(body, f"is not valid JSON or is truncated ({error})") from error
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    if not isinstance(result, dict):
        raise _invalid(body, "is not a JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _invalid(body, f"lacks the list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _invalid(body, f"lacks the object `{spec.PAGINATION_KEY}`")
    head = page_head(len(people), pagination, result.get(spec.ERRORS_KEY))
    table, types = flatten_records(people, spec.PERSON)
    return PeoplePage(concat_people([table]), [head]), types, _other_types(result)


def _other_types(response: Mapping[str, Any]) -> Types:
    """Return the types of a response's fields other than people."""
    documented = {field.name for field in spec.PEOPLE_SEARCH_RESULT}
    types: dict[Path, pa.DataType] = {
        (name,): pa.struct([]) if response[name] == {} else infer_column([response[name]]).type
        for name in response.keys() - documented
    }
    for name, value in response[spec.PAGINATION_KEY].items():
        if type(value) in SCALAR_TYPES:
            types[spec.PAGINATION_KEY, name] = SCALAR_TYPES[type(value)]
    return types


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )


def pack_page(page: PeoplePage) -> bytes:
    """Pack a single page of people.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> unpack_page(pack_page(page)) == page
    True
    """
    (head,) = page.heads
    if head.body:
        some = pack_page(page.without_bodies())
        body = pa.compress(head.body, codec=_RESPONSE_CODEC)
        return b"".join([_RESPONSE, _RESPONSE_SIZES.pack(len(some), len(head.body)), some, body])
    metadata = json.dumps([head.pagination, head.errors]).encode()
    is_documented = page.people.schema.equals(_documented_schema())
    schema = _packed_documented_schema() if is_documented else _pack_schema(page.people.schema)
    batch = _to_batch(page.people).serialize()
    packed = pa.compress(batch, codec=_CODEC)
    return b"".join(
        [FORMAT, _SIZES.pack(len(schema), len(metadata), batch.size), schema, metadata, packed]
    )


def is_packed(content: bytes) -> bool:
    """Return whether the content is a page that any version of the package packed.

    >>> is_packed(b"{}")
    False
    """
    return content.startswith(_MARK)


def unpack_page(content: bytes, columns: Sequence[str] | None = None) -> PeoplePage | None:
    """Unpack a page; return None for any other content.

    With `columns`, return only these documented columns and all undocumented columns.

    >>> unpack_page(b"{}") is None
    True
    """
    if content.startswith(_RESPONSE):
        return _unpack_response(content[len(_RESPONSE) :], columns)
    if not content.startswith(FORMAT) or len(content) < _HEADER_SIZE:
        return None
    schema_size, metadata_size, size = _SIZES.unpack_from(content, len(FORMAT))
    if size > _MAX_BATCH_BYTES:
        return None
    metadata_begin = _HEADER_SIZE + schema_size
    batch_begin = metadata_begin + metadata_size
    try:
        schema = _unpack_schema(content[_HEADER_SIZE:metadata_begin])
        pagination, errors = json.loads(content[metadata_begin:batch_begin])
        packed = memoryview(content)[batch_begin:]
        stream = pa.decompress(packed, decompressed_size=size, codec=_CODEC)
        batch = pa.ipc.read_record_batch(stream, schema)
        undocumented = [name for name in schema.names if name not in PEOPLE_COLUMNS]
        batch = batch.select([*(columns or PEOPLE_COLUMNS), *undocumented])
        batch.validate(full=True)
    except _DAMAGED:
        return None
    if not (isinstance(pagination, dict) and isinstance(errors, list)):
        return None
    head = PageHead(batch.num_rows, pagination, errors)
    return PeoplePage(pa.Table.from_batches([batch]), [head])


def _unpack_response(content: bytes, columns: Sequence[str] | None) -> PeoplePage | None:
    try:
        some, size = _RESPONSE_SIZES.unpack_from(content)
        begin = _RESPONSE_SIZES.size + some
        page = unpack_page(content[_RESPONSE_SIZES.size : begin], columns)
        if page is not None:
            return page
        packed = memoryview(content)[begin:]
        body = pa.decompress(packed, size, codec=_RESPONSE_CODEC, asbytes=True)
    except _DAMAGED:
        return None
    with suppress(InvalidResponseError):
        return PeopleReader().read([body], columns)[0]
    return None


def _to_batch(people: pa.Table) -> pa.RecordBatch:
    batches = people.to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=people.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _pack_schema(schema: pa.Schema) -> bytes:
    return zlib.compress(schema.serialize(), zlib.Z_BEST_SPEED)


@lru_cache(_CACHED_SCHEMAS)
def _unpack_schema(packed: bytes) -> pa.Schema:
    """Parse a schema and check its documented columns; list elements may have further members."""
    schema = pa.ipc.read_schema(pa.py_buffer(zlib.decompress(packed)))
    expected = {field.name: field.type for field in _documented_schema()}
    found = [(field.type, expected[field.name]) for field in schema if field.name in expected]
    if not all(a == b or (pa.types.is_list(a) and pa.types.is_list(b)) for a, b in found):
        raise ValueError("the columns do not have the types of people's columns")
    return schema


@cache
def _documented_schema() -> pa.Schema:
    return empty_table(spec.PERSON).schema


@cache
def _packed_documented_schema() -> bytes:
    return _pack_schema(_documented_schema())
