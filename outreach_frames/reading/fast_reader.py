"""Read pages of people with Arrow's JSON reader.

Arrow reads the whole page if every field is documented. Otherwise, Arrow reads the documented
fields, and the lenient reader reads the undocumented fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.errors import InvalidResponseError
from outreach_frames.reading.lenient_reader import (
    MAX_UNDOCUMENTED_COLUMNS,
    RAW_SUFFIX,
    named_columns,
    parse_dates,
    records_table,
)
from outreach_frames.tables.json_values import LARGEST_EXACT, LossyParseError, is_exact, parse_json
from outreach_frames.tables.schema import wire_schema, wire_type

BOM: Final = b"\xef\xbb\xbf"
PEOPLE_COLUMNS: Final = spec.columns(spec.PERSON)
_PEOPLE_DEPTH: Final = max(len(path) for path, _ in spec.leaves(spec.PERSON))
_RESULT: Final = tuple(
    field for field in spec.PEOPLE_SEARCH_RESULT if field.name != spec.ERRORS_KEY
)
# These options raise an error at the first undocumented field.
_STRICT: Final = arrow_json.ParseOptions(
    explicit_schema=wire_schema(_RESULT).append(pa.field(spec.ERRORS_KEY, pa.list_(pa.null()))),
    unexpected_field_behavior="error",
)
_BLOCK_BYTES: Final = 8 << 20
# Arrow's reader recurses into undocumented fields; about 15,000 levels crash the process.
MAX_DEPTH: Final = 100
# 100 people have about 40,000 values. As a Python object, a value takes up to 200 bytes.
_MAX_VALUES: Final = 1_000_000
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))
_OPENING_BIT: Final = 2  # the bit is set in { and [ but not in } and ]


def _documented_type(field: spec.Field) -> pa.DataType:
    """Return a field's Arrow type, without member arrays of undocumented element type."""
    if field.members:
        documented = [m for m in field.members if m.type != "array" or m.items is not None]
        struct = pa.struct(
            [pa.field(member.name, _documented_type(member)) for member in documented]
        )
        return pa.list_(struct) if field.type == "array" else struct
    return wire_type(field)


# These options skip undocumented fields, which the lenient reader reads.
_LENIENT: Final = arrow_json.ParseOptions(
    explicit_schema=pa.schema([pa.field(field.name, _documented_type(field)) for field in _RESULT]),
    unexpected_field_behavior="ignore",
)


class PageHead(NamedTuple):
    """The fields of one page, except its people."""

    rows: int  # number of people
    pagination: dict[str, Any]  # `_pagination` without nulls
    errors: list[Any]  # `_errors` as sent
    body: bytes = b""  # the response, kept if some of its columns were not read


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """One page of people search, or several pages read together."""

    people: pa.Table  # one row per person: documented columns, then undocumented ones
    heads: list[PageHead]  # one per page

    @property
    def pagination(self) -> dict[str, Any]:
        """Return the last page's `_pagination`."""
        return self.heads[-1].pagination

    @property
    def errors(self) -> list[Any]:
        """Return the `_errors` of all pages."""
        return [error for head in self.heads for error in head.errors]

    def without_bodies(self) -> PeoplePage:
        """Return the page without the response bodies, to save memory."""
        return PeoplePage(self.people, [head._replace(body=b"") for head in self.heads])

    def split(self) -> Iterator[PeoplePage]:
        """Yield the pages one by one, without copying."""
        begin = 0
        for head in self.heads:
            yield PeoplePage(self.people.slice(begin, head.rows), [head])
            begin += head.rows


def check_size(body: bytes) -> None:
    """Raise an error if a response has too many values for a page of people."""
    if len(body) > _MAX_VALUES:
        values = sum(map(body.count, (b",", b"{", b"[")))
        if values > _MAX_VALUES:
            raise InvalidResponseError(
                f"The response to {spec.SEARCH_PEOPLE.label} has about {values:,} values in "
                f"{len(body):,} bytes; a page of people has at most {_MAX_VALUES:,}."
            )


def may_exceed(body: bytes, people: int) -> bool:
    """Return whether an unparsed response may have more than `people` results."""
    content = np.frombuffer(body, np.uint8)
    objects, members, values = (np.count_nonzero(content == ord(one)) for one in "{:,")
    return bool(objects > people or values - members > people)


def count_people(body: bytes) -> int:
    """Count the people of a response without parsing them; return 0 if this fails.

    >>> count_people(b'{"results":[{},{"results":[1,2,3]},null]}')
    3
    """
    import msgspec  # noqa: PLC0415 - slow to import, seldom needed

    try:
        members = msgspec.json.decode(body.removeprefix(BOM), type=dict[str, msgspec.Raw])
        return len(msgspec.json.decode(members[spec.RESULTS_KEY], type=list[msgspec.Raw]))
    except (msgspec.MsgspecError, KeyError, RecursionError):
        pass
    try:
        # parse_json accepts some values that msgspec rejects, such as NaN.
        people = parse_json(body.removeprefix(BOM).decode())[spec.RESULTS_KEY]
        return len(people) if isinstance(people, list) else 0
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0  # the reader will raise an error that has the reason


def read_fast(bodies: Sequence[bytes], *, use_threads: bool = False) -> list[PeoplePage]:
    """Read all bodies as one page if every field is documented, else as one page per body."""
    # Raises ValueError or ArrowTypeError if only the lenient reader can read the bodies.
    bodies = [to_one_line(body) for body in bodies]
    try:
        return [_read_documented(bodies, use_threads=use_threads)]
    except pa.ArrowInvalid:
        return _read_mixed(bodies, use_threads=use_threads)


def page_head(document: dict[str, Any]) -> PageHead:
    """Return the head of a parsed response."""
    return PageHead(
        len(document[spec.RESULTS_KEY]),
        present_members(document[spec.PAGINATION_KEY]),
        list_of_errors(document.get(spec.ERRORS_KEY)),
    )


def parse_head(rows: int, pagination: bytes, errors: bytes) -> PageHead:
    """Parse the head of a response; raise ValueError unless the pagination is an object."""
    parsed = parse_json(pagination.decode())
    if not isinstance(parsed, dict):
        raise LossyParseError
    return PageHead(rows, present_members(parsed), list_of_errors(parse_json(errors.decode())))


def list_of_errors(errors: Any) -> list[Any]:
    """Return `_errors` as a list, even if the service sent null or a single error."""
    if errors is None:
        return []
    return errors if isinstance(errors, list) else [errors]


def present_members(pagination: dict[str, Any]) -> dict[str, Any]:
    """Return the first 1,000 members of `_pagination` that are not null."""
    present = ((key, value) for key, value in pagination.items() if value is not None)
    return dict(islice(present, MAX_UNDOCUMENTED_COLUMNS))


def _read_documented(bodies: Sequence[bytes], *, use_threads: bool) -> PeoplePage:
    """Read one-line bodies whose fields are all documented."""
    document = _read_documents(bodies, _STRICT, use_threads=use_threads)
    people = _convert_dates(_flatten_people(_extract_people(document, bodies)))
    heads = [
        PageHead(
            rows,
            present_members(pagination),
            list_of_errors(parse_json(body.decode())[spec.ERRORS_KEY]) if errors else [],
        )
        for body, rows, pagination, errors in zip(
            bodies,
            pc.list_value_length(document.column(spec.RESULTS_KEY)).to_pylist(),
            document.column(spec.PAGINATION_KEY).to_pylist(),
            pc.list_value_length(document.column(spec.ERRORS_KEY)).to_pylist(),
            strict=True,
        )
    ]
    return PeoplePage(people, heads)


def _read_mixed(bodies: Sequence[bytes], *, use_threads: bool) -> list[PeoplePage]:
    """Read one-line bodies: documented fields with Arrow, undocumented fields with Python."""
    if any(_depth(body) > MAX_DEPTH for body in bodies):
        raise LossyParseError
    document = _read_documents(bodies, _LENIENT, use_threads=use_threads)
    people = _flatten_people(_extract_people(document, bodies))
    check_exact(people)
    pages: list[PeoplePage] = []
    begin = 0
    # Read bodies one by one, so that the column order does not depend on the grouping of pages.
    for body in bodies:
        response = orjson.loads(body)
        head = page_head(response)
        if not is_exact([head.pagination, head.errors]):
            raise LossyParseError
        part = people.slice(begin, head.rows)
        begin += head.rows
        parsed = dict(zip(part.column_names, part.columns, strict=True))
        table = records_table(response[spec.RESULTS_KEY], spec.PERSON, parsed=parsed)
        pages.append(PeoplePage(table, [head]))
    return pages


def _extract_people(document: pa.Table, bodies: Sequence[bytes]) -> pa.ChunkedArray:
    """Return the people of the parsed bodies, one row per person."""
    if document.num_rows != len(bodies):
        raise LossyParseError
    results = document.column(spec.RESULTS_KEY)
    if results.null_count or document.column(spec.PAGINATION_KEY).null_count:
        raise LossyParseError
    return pa.chunked_array([chunk.flatten() for chunk in results.chunks])


def to_one_line(body: bytes) -> bytes:
    """Convert a body to one line; raise an error unless the body is UTF-8 and starts with {."""
    body = body.removeprefix(BOM).strip(b" \t\r\n")
    if not body.startswith(b"{"):
        raise LossyParseError  # Arrow's reader crashes the process on a bare null
    if not body.isascii():  # Arrow's reader does not check UTF-8
        pa.array([body], pa.binary()).cast(pa.string())
    if b"\n" in body or b"\r" in body:
        # Tabs and line breaks are both white space between values and invalid inside strings.
        body = body.translate(bytes.maketrans(b"\r\n", b"\t\t"))
    return body


def _depth(body: bytes) -> int:
    """Return an upper bound of a body's nesting depth; brackets in strings count, too."""
    brackets = body.translate(None, _NO_BRACKETS)
    level = lowest = deepest = 0
    for start in range(0, len(brackets), _BLOCK_BYTES):
        part = np.frombuffer(brackets, np.uint8, min(_BLOCK_BYTES, len(brackets) - start), start)
        levels = level + np.cumsum((part & _OPENING_BIT).astype(np.int32) - 1)
        # A closing bracket inside a string must not cancel an opening bracket outside.
        bottoms = np.minimum(np.minimum.accumulate(levels), lowest)
        deepest = max(deepest, int((levels - bottoms).max()))
        level, lowest = int(levels[-1]), int(bottoms[-1])
    return deepest


def _read_documents(
    bodies: Sequence[bytes], options: arrow_json.ParseOptions, *, use_threads: bool
) -> pa.Table:
    """Read one-line bodies into a table with one row per body."""
    block = max(max(map(len, bodies)) + 1, _BLOCK_BYTES if len(bodies) > 1 else 0)
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(
            use_threads=use_threads and len(bodies) > 1, block_size=block
        ),
        parse_options=options,
    )


def _flatten_people(persons: pa.ChunkedArray) -> pa.Table:
    """Flatten people to the interface's column names; with `_LENIENT`, some columns are absent."""
    people = pa.Table.from_struct_array(persons)
    for _ in range(_PEOPLE_DEPTH - 1):
        people = people.flatten()
    return people.rename_columns([name.replace(".", "_") for name in people.column_names])


def check_exact(people: pa.Table) -> None:
    """Raise LossyParseError if a number may have been rounded, such as an integer beyond 2^53."""
    columns = zip(people.column_names, people.columns, strict=True)
    # One check of all columns is faster: a page has hundreds of columns and few rows.
    chunks = [
        chunk
        for name, column in columns
        if PEOPLE_COLUMNS[name].type == "number"
        for chunk in column.chunks
    ]
    numbers = pa.chunked_array(chunks, pa.float64())
    if not pc.all(pc.less(pc.abs(numbers), float(LARGEST_EXACT)), min_count=0).as_py():
        raise LossyParseError


def _convert_dates(people: pa.Table) -> pa.Table:
    """Parse the date columns; unreadable dates go to `_raw` columns at the end."""
    check_exact(people)
    raws: list[tuple[str, pa.Array]] = []
    for position, (name, field) in enumerate(PEOPLE_COLUMNS.items()):
        if field.format == "date":
            dates, raw = parse_dates(people.column(position), field)
            people = people.set_column(position, name, dates)
            if raw is not None:
                raws.append((name + RAW_SUFFIX, raw))
    if not raws:
        return people
    columns = dict(zip(people.column_names, people.columns, strict=True))
    return pa.table(named_columns(columns, raws))
