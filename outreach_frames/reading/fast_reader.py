"""Read pages of people exactly as the untyped reader reads them, but faster.

Arrow's JSON reader reads whole pages. If few columns are chosen, msgspec is faster, which skips the
other fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple, Required, TypedDict

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.reading.learned_types import PEOPLE_COLUMNS, Layout
from outreach_frames.reading.untyped_reader import (
    MAX_CELLS,
    MAX_UNDOCUMENTED_COLUMNS,
    RAW_SUFFIX,
    Path,
    as_lists,
    flatten_records,
    named_columns,
    parse_dates,
    typed_column,
)
from outreach_frames.tables.json_values import LARGEST_EXACT, LARGEST_INT64, LossyParseError

BOM: Final = b"\xef\xbb\xbf"
_BLOCK_BYTES: Final = 8 << 20
_ESCAPED_KEY: Final = r'\\[^"\\]+"\s*:'

_Fields = tuple[spec.Field, ...]
# Integers beyond 64 bits, whose text is kept, and deeper values are left to the untyped reader.
_INTEGER: Final = Annotated[int, msgspec.Meta(ge=-LARGEST_INT64 - 1, le=LARGEST_INT64)]
_SCALAR: Final[Any] = str | bool | _INTEGER | float | None
_VALUE: Final[Any] = _SCALAR | list[_SCALAR | dict[str, _SCALAR]]


class PageHead(NamedTuple):
    """The fields of one page, except its people."""

    rows: int  # number of people
    pagination: dict[str, Any]  # `_pagination` without nulls
    errors: list[Any]  # `_errors` as sent


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


def read_fast(bodies: Sequence[bytes], layout: Layout) -> PeoplePage:
    """Read bodies as one page; raise ValueError or ArrowTypeError if a value could change."""
    lines = [to_one_line(body) for body in bodies]
    document = _read_documents(lines, layout.options)
    document.validate()  # Arrow's reader builds lists of nulls with too few elements
    results = document.column(spec.RESULTS_KEY)
    errors = document.column(spec.ERRORS_KEY)
    if document.num_rows != len(lines) or results.null_count or len(pc.list_flatten(errors)):
        raise LossyParseError
    rows = pc.list_value_length(results).to_pylist()
    pagination = document.column(spec.PAGINATION_KEY).to_pylist()
    heads = [page_head(*each, None) for each in zip(rows, pagination, strict=True)]
    persons = pa.chunked_array([chunk.flatten() for chunk in results.chunks])
    _check_objects(persons, lines, rows, layout)
    people = pa.Table.from_struct_array(persons)
    for _ in range(layout.depth):
        people = people.flatten()
    columns = dict(zip(layout.columns, people.columns, strict=True))
    return PeoplePage(pa.table(_convert(columns, lines, layout)), heads)


def read_columns(bodies: Sequence[bytes], columns: tuple[str, ...]) -> PeoplePage:
    """Read documented columns of bodies as one page; raise ValueError if a value could change."""
    fields, decoder = _fields_and_decoder(columns)
    people: list[Any] = []
    heads: list[PageHead] = []
    for body in bodies:
        page = decoder.decode(to_one_line(body))
        results, pagination = page[spec.RESULTS_KEY], page[spec.PAGINATION_KEY]
        people += results
        heads.append(page_head(len(results), pagination, page.get(spec.ERRORS_KEY)))
    return PeoplePage(flatten_records(people, fields)[0], heads)


@lru_cache(8)
def _fields_and_decoder(columns: tuple[str, ...]) -> tuple[_Fields, msgspec.json.Decoder[Any]]:
    """Return the fields of these columns, and a decoder of pages that builds no others."""
    fields, person = _choose(spec.PERSON, columns)
    page = {
        spec.RESULTS_KEY: Required[list[person]],  # type: ignore[valid-type]
        spec.PAGINATION_KEY: Required[dict[str, _VALUE]],
        spec.ERRORS_KEY: _VALUE,
    }
    return fields, msgspec.json.Decoder(TypedDict("Page", page, total=False))  # type: ignore[operator]


def _choose(fields: _Fields, columns: Container[str], path: Path = ()) -> tuple[_Fields, Any]:
    """Return the fields of these columns, and the type of an object that has only these."""
    chosen: list[spec.Field] = []
    types: dict[str, Any] = {}
    for field in fields:
        place = (*path, field.name)
        if field.type == "object" and field.members:
            members, kind = _choose(field.members, columns, place)
            if members:
                chosen.append(replace(field, members=members))
                types[field.name] = kind
        elif "_".join(place) in columns:
            chosen.append(field)
            types[field.name] = _VALUE
    return tuple(chosen), TypedDict("Object", types, total=False) | None  # type: ignore[operator]


def _check_objects(
    persons: pa.ChunkedArray, lines: Sequence[bytes], rows: Sequence[int], layout: Layout
) -> None:
    """Raise LossyParseError if an undocumented object may be null on a whole page."""
    for path in layout.objects:
        found = pc.struct_field(persons, list(path))
        begin = 0
        for line, length in zip(lines, rows, strict=True):
            if found.slice(begin, length).null_count == length and _sent([line], [path[-1]]):
                raise LossyParseError
            begin += length


def _convert(
    people: dict[str, pa.ChunkedArray], lines: Sequence[bytes], layout: Layout
) -> dict[str, pa.Array]:
    """Convert columns as Arrow reads them to those of the untyped reader."""
    learned = {name: people[name].combine_chunks() for name in layout.learned}
    _check_numbers(people, learned)
    null_names = {
        name
        for column, path in layout.learned.items()
        for name in _null_members(learned[column], path[-1])
    }
    sent = _sent(lines, null_names)

    def was_sent(name: str) -> bool:
        if name in sent and layout.uses[name] > 1:
            raise LossyParseError  # the key may be of another object
        return name in sent

    columns: dict[str, pa.Array] = {}
    raws: list[tuple[str, pa.Array | None]] = []
    for name, column in people.items():
        field = PEOPLE_COLUMNS.get(name)
        if field is None:
            array = _narrow(learned[name], was_sent)
            if not pa.types.is_null(array.type) or was_sent(layout.learned[name][-1]):
                columns[name] = array
            continue
        raw = None
        if name in learned and field.members:
            known = [member.name for member in field.members]
            objects = _narrow_objects(learned[name].flatten(), known, was_sent)
            columns[name] = as_lists(pc.list_value_length(learned[name]), objects)
        elif name in learned:
            columns[name], raw = typed_column(learned[name].to_pylist(), field)
        elif field.format == "date":
            columns[name], raw = parse_dates(column, field)
        else:
            columns[name] = column
        raws.append((name + RAW_SUFFIX, raw))
    return named_columns(columns, [(name, raw) for name, raw in raws if raw is not None])


def _check_numbers(people: dict[str, pa.ChunkedArray], learned: dict[str, pa.Array]) -> None:
    """Raise LossyParseError if a number may have been rounded, such as an integer beyond 2^53."""
    leaves = [leaf for array in learned.values() for leaf in _leaves(array)]
    if sum(map(len, leaves)) > MAX_CELLS:
        raise LossyParseError  # the untyped reader builds text
    # One check of all columns is faster: a page has hundreds of columns and few rows.
    documented = (name for name in people.keys() - learned if PEOPLE_COLUMNS[name].type == "number")
    chunks = [chunk for name in documented for chunk in people[name].chunks]
    chunks += [leaf for leaf in leaves if pa.types.is_floating(leaf.type)]
    numbers = pa.chunked_array(chunks, pa.float64())
    if not pc.all(pc.less(pc.abs(numbers), float(LARGEST_EXACT)), min_count=0).as_py():
        raise LossyParseError


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield an array's values, or those of its elements or members."""
    if pa.types.is_struct(array.type):
        for values in array.flatten():
            yield from _leaves(values)
    elif pa.types.is_list(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _null_members(array: pa.Array, name: str) -> Iterator[str]:
    """Yield the name if all values are null, else the names of members that are null everywhere."""
    if array.null_count == len(array):
        yield name
    elif pa.types.is_struct(array.type):
        for member, values in zip(array.type, array.flatten(), strict=True):
            yield from _null_members(values, member.name)
    elif pa.types.is_list(array.type):
        yield from _null_members(array.flatten(), name)


def _sent(lines: Sequence[bytes], names: Collection[str]) -> set[str]:
    """Return the names that are keys; raise LossyParseError if other spellings are possible."""
    if not names:
        return set()
    texts = pa.array(lines, pa.large_binary())

    def has(pattern: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())

    # Only a key follows one of these characters and precedes a colon.
    keys = {name: rf'[{{,\s]"{re.escape(name)}"\s*:' for name in names}
    if not has("|".join([*keys.values(), _ESCAPED_KEY])):
        return set()
    if has(_ESCAPED_KEY):
        raise LossyParseError
    return {name for name, pattern in keys.items() if has(pattern)}


def _narrow(array: pa.Array, was_sent: Callable[[str], bool]) -> pa.Array:
    """Return an array of the type that the untyped reader infers from its values."""
    if array.null_count == len(array):
        return pa.nulls(len(array))
    if pa.types.is_floating(array.type):
        numbers = array.drop_null()
        if pc.all(pc.equal(numbers, pc.trunc(numbers))).as_py():
            raise LossyParseError  # they may be integers
    elif pa.types.is_list(array.type):
        values = array.flatten()
        narrow = _narrow(values, was_sent)
        return array if narrow is values else as_lists(pc.list_value_length(array), narrow)
    elif pa.types.is_struct(array.type):
        return _narrow_objects(array, (), was_sent)
    return array


def _narrow_objects(
    objects: pa.StructArray, known: Sequence[str], was_sent: Callable[[str], bool]
) -> pa.Array:
    """Narrow the members of objects, except the members `known`."""
    found = dict(zip((member.name for member in objects.type), objects.flatten(), strict=True))
    members: dict[str, pa.Array] = {}
    for name, values in found.items():
        members[name] = values if name in known else _narrow(values, was_sent)
        if pa.types.is_null(members[name].type) and not was_sent(name):
            del members[name]
    if not known:
        nulls = [np.asarray(values.is_null()) for values in members.values()]
        if (np.logical_and.reduce(nulls) & np.asarray(objects.is_valid())).any():
            raise LossyParseError  # an object may be empty, which the untyped reader makes text
    if members.keys() == found.keys() and all(members[name] is found[name] for name in found):
        return objects
    names = list(members)
    return pa.StructArray.from_arrays(list(members.values()), names, mask=objects.is_null())


def to_one_line(body: bytes) -> bytes:
    """Convert a body to one line; raise an error unless the body is UTF-8 and starts with {."""
    body = body.removeprefix(BOM).strip(b" \t\r\n")
    if not body.startswith(b"{"):
        raise LossyParseError  # Arrow's reader crashes the process on a bare null
    if not body.isascii():  # the readers do not check UTF-8, or not in skipped fields
        pa.array([body], pa.binary()).cast(pa.string())
    if b"\n" in body or b"\r" in body:
        # Tabs and line breaks are both white space between values and invalid inside strings.
        body = body.translate(bytes.maketrans(b"\r\n", b"\t\t"))
    return body


def _read_documents(bodies: Sequence[bytes], options: arrow_json.ParseOptions) -> pa.Table:
    """Read one-line bodies into a table with one row per body."""
    # Workers read pages in parallel, so further threads would only slow the workers down.
    block = max(max(map(len, bodies)) + 1, _BLOCK_BYTES if len(bodies) > 1 else 0)
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=block),
        parse_options=options,
    )
