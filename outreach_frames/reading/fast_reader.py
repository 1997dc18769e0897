"""Read the documented fields of pages of people with Arrow's JSON reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.reading.lenient_reader import (
    MAX_UNDOCUMENTED_COLUMNS,
    RAW_SUFFIX,
    named_columns,
    parse_dates,
)
from outreach_frames.tables.json_values import LARGEST_EXACT, LossyParseError, parse_json
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
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))
_OPENING_BIT: Final = 2  # the bit is set in { and [ but not in } and ]


Path = tuple[str, ...]  # the names that lead to a person's field


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


def page_head(rows: int, pagination: Any, errors: Any) -> PageHead:
    """Build the head of a page; raise ValueError if the pagination is not an object."""
    if not isinstance(pagination, dict):
        raise LossyParseError
    present = ((key, value) for key, value in pagination.items() if value is not None)
    return PageHead(rows, dict(islice(present, MAX_UNDOCUMENTED_COLUMNS)), list_of_errors(errors))


def list_of_errors(errors: Any) -> list[Any]:
    """Return `_errors` as a list, even if the service sent null or a single error."""
    if errors is None:
        return []
    return errors if isinstance(errors, list) else [errors]


def read_documented(bodies: Sequence[bytes]) -> PeoplePage:
    """Read bodies as one page; raise ValueError or ArrowTypeError for undocumented content."""
    bodies = [to_one_line(body) for body in bodies]
    document = _read_documents(bodies, _STRICT)
    people = _flatten_people(document, bodies)
    check_exact(people)
    heads = [
        page_head(rows, pagination, parse_json(body.decode())[spec.ERRORS_KEY] if errors else None)
        for body, rows, pagination, errors in zip(
            bodies,
            pc.list_value_length(document.column(spec.RESULTS_KEY)).to_pylist(),
            document.column(spec.PAGINATION_KEY).to_pylist(),
            pc.list_value_length(document.column(spec.ERRORS_KEY)).to_pylist(),
            strict=True,
        )
    ]
    return PeoplePage(convert_dates(people), heads)


def read_except(bodies: Sequence[bytes], left_out: Set[Path]) -> pa.Table:
    """Read the documented columns of one-line bodies, with dates as text, except some fields."""
    if any(_depth(body) > MAX_DEPTH for body in bodies):
        raise LossyParseError
    options = _lenient_options(frozenset(left_out))
    return _flatten_people(_read_documents(bodies, options), bodies)


@lru_cache
def _lenient_options(left_out: frozenset[Path]) -> arrow_json.ParseOptions:
    """Return options that skip some documented fields and all undocumented fields."""
    people = pa.list_(_struct_except(spec.PERSON, left_out))
    schema = pa.schema([pa.field(spec.RESULTS_KEY, people)])
    return arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")


def _struct_except(
    fields: Sequence[spec.Field], left_out: Set[Path], path: Path = ()
) -> pa.StructType:
    members = []
    for field in fields:
        place = (*path, field.name)
        if field.type == "object" and field.members:
            kind = _struct_except(field.members, left_out, place)
        else:
            kind = wire_type(field)
        if place not in left_out:
            members.append(pa.field(field.name, kind))
    return pa.struct(members)


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


def _read_documents(bodies: Sequence[bytes], options: arrow_json.ParseOptions) -> pa.Table:
    """Read one-line bodies into a table with one row per body."""
    # Workers read pages in parallel, so further threads would only slow the workers down.
    block = max(max(map(len, bodies)) + 1, _BLOCK_BYTES if len(bodies) > 1 else 0)
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=block),
        parse_options=options,
    )


def _flatten_people(document: pa.Table, bodies: Sequence[bytes]) -> pa.Table:
    """Flatten the people of the parsed bodies to the interface's column names."""
    results = document.column(spec.RESULTS_KEY)
    if document.num_rows != len(bodies) or results.null_count:
        raise LossyParseError
    persons = pa.chunked_array([chunk.flatten() for chunk in results.chunks])
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


def convert_dates(people: pa.Table) -> pa.Table:
    """Parse the date columns; unreadable dates go to `_raw` columns at the end."""
    columns = dict(zip(people.column_names, people.columns, strict=True))
    raws: list[tuple[str, pa.Array]] = []
    for name, text in zip(people.column_names, people.columns, strict=True):
        if PEOPLE_COLUMNS[name].format == "date":
            columns[name], raw = parse_dates(text, PEOPLE_COLUMNS[name])
            if raw is not None:
                raws.append((name + RAW_SUFFIX, raw))
    return pa.table(named_columns(columns, raws))
