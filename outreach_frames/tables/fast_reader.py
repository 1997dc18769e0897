"""Pages of people by Arrow's JSON reader: the fast way, which refuses what it could not keep.

It is strict first: the interface's types, and an unknown field stops it at once. Only then are
further fields inferred, which is where Arrow's reader may round or reinterpret, so it is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.tables.json_columns import with_elements
from outreach_frames.tables.schema import wire_schema, wire_type
from outreach_frames.tables.tolerant_reader import (
    LARGEST_EXACT,
    RAW_SUFFIX,
    as_text,
    named_columns,
    parse_json,
    typed_dates,
)

BOM: Final = b"\xef\xbb\xbf"
_PEOPLE_COLUMNS: Final = spec.columns(spec.PERSON)
_PEOPLE_DEPTH: Final = max(len(path) for path, _ in spec.leaves(spec.PERSON))
_NOT_SHOWN: Final = tuple(
    name for name, field in _PEOPLE_COLUMNS.items() if field.type == "array" and field.items is None
)
_RESULT: Final = tuple(
    field for field in spec.PEOPLE_SEARCH_RESULT if field.name != spec.ERRORS_KEY
)
# Where the interface is kept to, its types are enough; an unknown field stops the reader at once.
_STRICT: Final = arrow_json.ParseOptions(
    explicit_schema=wire_schema(_RESULT).append(pa.field(spec.ERRORS_KEY, pa.list_(pa.null()))),
    unexpected_field_behavior="error",
)
_BLOCK_BYTES: Final = 8 << 20
# Arrow's reader recurses on unknown fields, and some 15,000 levels end the process.
MAX_DEPTH: Final = 100
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """One page of people search, or several that were read as one.

    Attributes
    ----------
    people : pyarrow.Table
        One row per person: the columns of `spec.columns(spec.PERSON)`, then what else there was.
    pagination : dict
        The last page's `_pagination`, less what was null.
    errors : list
        The pages' `_errors`, as they came.
    """

    people: pa.Table
    pagination: dict[str, Any]
    errors: list[Any]


class LossyParseError(ValueError):
    """The fast way would change a value."""


def read_fast(bodies: Sequence[bytes]) -> PeoplePage:
    """Read bodies by Arrow's JSON reader: one row of the document table per body."""
    bodies = [one_line(body) for body in bodies]
    try:
        document = _read_documents(bodies, _STRICT)
        inferred = False
    except pa.ArrowInvalid:
        if any(depth(body) > MAX_DEPTH for body in bodies):
            raise LossyParseError from None
        document = _read_inferring(bodies)
        inferred = True
    if document.num_rows != len(bodies):
        raise LossyParseError
    results = document.column(spec.RESULTS_KEY)
    pagination = document.column(spec.PAGINATION_KEY)
    if results.null_count or pagination.null_count:
        raise LossyParseError
    persons = pa.chunked_array([chunk.flatten() for chunk in results.chunks])
    people = _typed_people(_flat_inferred(persons) if inferred else _flat_strict(persons))
    errors = [
        error
        for body, has_errors in zip(
            bodies, _have_errors(document.column(spec.ERRORS_KEY)), strict=True
        )
        if has_errors
        for error in list_of_errors(parse_json(body.decode())[spec.ERRORS_KEY])
    ]
    last = pagination[-1].as_py()
    return PeoplePage(
        people, {key: value for key, value in last.items() if value is not None}, errors
    )


def _have_errors(errors: pa.ChunkedArray) -> list[bool]:
    if not pa.types.is_list(errors.type):
        return [error is not None for error in errors.to_pylist()]
    return [bool(length) for length in pc.list_value_length(errors).to_pylist()]


def list_of_errors(errors: Any) -> list[Any]:
    """Give `_errors` as a list, whatever the service sent."""
    if errors is None:
        return []
    return errors if isinstance(errors, list) else [errors]


def one_line(body: bytes) -> bytes:
    """Make a body one line that is certainly an object in UTF-8, as Arrow's reader wants it."""
    body = body.removeprefix(BOM).strip(b" \t\r\n")
    if not body.startswith(b"{"):
        raise LossyParseError  # Arrow's reader ends the process on a bare null
    pa.array([body], pa.binary()).cast(pa.string())  # its strings are not checked otherwise
    if b"\n" in body or b"\r" in body:
        # A tab is white space too, and as wrong inside a string as a line break.
        body = body.translate(bytes.maketrans(b"\r\n", b"\t\t"))
    return body


def depth(body: bytes) -> int:
    """Give the depth to which brackets are nested; those inside strings count too."""
    level = deepest = 0
    for bracket in body.translate(None, _NO_BRACKETS):
        level += 1 if bracket in b"{[" else -1
        deepest = max(deepest, level)
    return deepest


def _read_documents(bodies: Sequence[bytes], options: arrow_json.ParseOptions) -> pa.Table:
    block = max(max(map(len, bodies)) + 1, _BLOCK_BYTES if len(bodies) > 1 else 0)
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(use_threads=len(bodies) > 1, block_size=block),
        parse_options=options,
    )


def _read_inferring(bodies: Sequence[bytes]) -> pa.Table:
    """Read bodies with fields that the interface does not show; their text stays text."""
    schema = pa.schema([pa.field(field.name, _open_type(field)) for field in _RESULT])
    document = _read_documents(bodies, arrow_json.ParseOptions(explicit_schema=schema))
    if any(_holds_dates(arrow_type) for arrow_type in document.schema.types):
        schema = pa.schema([pa.field(f.name, _dates_as_text(f.type)) for f in document.schema])
        document = _read_documents(bodies, arrow_json.ParseOptions(explicit_schema=schema))
    document.validate()  # a list with nothing but nulls is read with too few of them
    if spec.ERRORS_KEY not in document.column_names:
        document = document.append_column(spec.ERRORS_KEY, pa.nulls(len(document)))
    return document


def _open_type(field: spec.Field) -> pa.DataType:
    """Give a field's type less the members whose elements the interface does not show."""
    if field.members:
        shown = [m for m in field.members if m.type != "array" or m.items is not None]
        struct = pa.struct([pa.field(member.name, _open_type(member)) for member in shown])
        return pa.list_(struct) if field.type == "array" else struct
    return wire_type(field)


def _holds_dates(arrow_type: pa.DataType) -> bool:
    return bool(_dates_as_text(arrow_type) != arrow_type)


def _dates_as_text(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, _dates_as_text(f.type)) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(_dates_as_text(arrow_type.value_type))
    return pa.string() if pa.types.is_temporal(arrow_type) else arrow_type


def _flat_strict(persons: pa.ChunkedArray) -> pa.Table:
    people = pa.Table.from_struct_array(persons)
    for _ in range(_PEOPLE_DEPTH - 1):
        people = people.flatten()
    return people.rename_columns(list(_PEOPLE_COLUMNS))


def _flat_inferred(persons: pa.ChunkedArray) -> pa.Table:
    """Flatten people with further fields: known columns in order, the others behind them."""
    known: dict[str, pa.Array] = {}
    extras: list[tuple[str, pa.Array]] = []
    _flatten_struct(persons.combine_chunks(), spec.PERSON, "", known, extras)
    for name in _NOT_SHOWN:
        known[name] = _list_of_text(known[name])
    for _, array in extras:
        _check_exact(array)
    ordered = {name: known[name] for name in _PEOPLE_COLUMNS}
    return pa.table(named_columns(ordered, extras))


def _flatten_struct(
    struct: pa.StructArray,
    fields: tuple[spec.Field, ...],
    prefix: str,
    known: dict[str, pa.Array],
    extras: list[tuple[str, pa.Array]],
) -> None:
    children = dict(zip((f.name for f in struct.type), struct.flatten(), strict=True))
    for field in fields:
        name = prefix + field.name
        child = children.pop(field.name, None)
        if child is None:
            child = pa.nulls(len(struct), wire_type(field))
        if field.type == "object" and field.members:
            _flatten_struct(child, field.members, f"{name}_", known, extras)
        else:
            known[name] = child
            if field.members:
                _check_exact(child)
    for key, child in children.items():
        if pa.types.is_struct(child.type):
            _flatten_struct(child, (), f"{prefix}{key}_", known, extras)
        else:
            missing = pa.types.is_null(child.type)
            extras.append((prefix + key, pa.nulls(len(struct)) if missing else child))


def _list_of_text(lists: pa.Array) -> pa.Array:
    """Turn lists of anything into lists of text."""
    if pa.types.is_null(lists.type):
        return lists.cast(pa.list_(pa.string()))
    if not pa.types.is_list(lists.type):
        raise LossyParseError
    if pa.types.is_string(lists.type.value_type):
        return lists
    _check_exact(lists)
    texts = with_elements(lists, as_text)
    return pc.if_else(lists.is_valid(), texts, pa.scalar(None, texts.type))


def _check_exact(array: pa.Array) -> None:
    """Refuse what the reader may have rounded, as integers beyond 2^53, and objects of no names."""
    if pa.types.is_struct(array.type):
        if not array.type.num_fields:
            raise LossyParseError
        for child in array.flatten():
            _check_exact(child)
    elif pa.types.is_list(array.type):
        _check_exact(array.flatten())
    elif pa.types.is_float64(array.type):
        exact = pc.less(pc.abs(array), float(LARGEST_EXACT))
        if not pc.all(exact, min_count=0).as_py():
            raise LossyParseError


def _typed_people(people: pa.Table) -> pa.Table:
    """Turn text into dates where the interface has dates; the interface's columns come first."""
    raws: list[tuple[str, pa.Array]] = []
    for position, (name, field) in enumerate(_PEOPLE_COLUMNS.items()):
        if field.format == "date":
            dates, raw = typed_dates(people.column(position), field)
            people = people.set_column(position, name, dates)
            if raw is not None:
                raws.append((name + RAW_SUFFIX, raw))
        elif field.type == "number":
            _check_exact(people.column(position))
    if not raws:
        return people
    columns = dict(zip(people.column_names, people.columns, strict=True))
    return pa.table(named_columns(columns, raws))
