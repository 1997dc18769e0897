"""Build frames from records and pages of people, and concatenate tables."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain
from typing import Any, Final, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.untyped_reader import (
    FURTHER_FIELDS,
    MAX_UNDOCUMENTED_COLUMNS,
    as_lists,
    flatten_records,
    sort_members,
)
from outreach_frames.tables.json_values import parse_json
from outreach_frames.tables.schema import DtypeBackend, has_nested_nulls, to_frame
from outreach_frames.tables.value_text import json_text

__all__ = ["DtypeBackend"]  # exported again

# Undocumented columns of people that this process has read.
seen_columns: Final[set[str]] = set()
_DOCUMENTED: Final = spec.columns(spec.PERSON)
# The documented members of lists of objects, by column.
_LISTS_OF_OBJECTS: Final = {
    name: [member.name for member in field.members]
    for record in (spec.PERSON, spec.CONTACT)
    for name, field in spec.columns(record).items()
    if field.type == "array" and field.members
}


def check_dtype_backend(value: object) -> None:
    """Raise InvalidInputError for an unknown `dtype_backend`.

    >>> check_dtype_backend("pyarrow")
    """
    backends = get_args(DtypeBackend)
    if value not in backends:
        names = " or ".join(repr(backend) for backend in backends)
        raise InvalidInputError(f"dtype_backend is {value!r}. Pass {names}.")


def records_frame(
    records: Sequence[Any],
    fields: tuple[spec.Field, ...],
    dtype_backend: DtypeBackend = "numpy_nullable",
) -> pd.DataFrame:
    """Build a frame from parsed records of a documented resource, without their `_links`.

    >>> records_frame([{"id": "m1", "user": {"name": "Ada"}}], spec.MAILBOX)["user_name"].tolist()
    ['Ada']
    """
    check_dtype_backend(dtype_backend)
    table, _ = flatten_records(records, fields, drop=frozenset({spec.LINKS_KEY}))
    return to_frame(table, dtype_backend)


def undocumented_frame(
    records: Sequence[Any], dtype_backend: DtypeBackend = "numpy_nullable"
) -> pd.DataFrame:
    """Build a frame from parsed records of a resource whose fields are undocumented.

    >>> undocumented_frame([{"email": "a@b.co", "data": {"city": "Oslo"}}]).columns.tolist()
    ['email', 'data_city']
    """
    check_dtype_backend(dtype_backend)
    frame = to_frame(flatten_records(records, ())[0], dtype_backend)
    return frame if len(frame.columns) else pd.DataFrame(index=pd.RangeIndex(len(records)))


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; columns with different types get a common type or become text.

    >>> table = concat_tables([pa.table({"a": [1]}), pa.table({"a": ["x"], "b": [True]})])
    >>> table.to_pylist()
    [{'a': '1', 'b': None}, {'a': 'x', 'b': True}]
    """
    try:
        joined = pa.concat_tables(tables, promote_options="default")
        joined.validate()  # Arrow casts nested nulls to columns that are too short
        return joined
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # `column_names` builds a new list at each access.
        parts = [dict(zip(table.column_names, table.columns, strict=True)) for table in tables]
        names = dict.fromkeys(chain.from_iterable(parts))
        nulls = [pa.chunked_array([pa.nulls(len(table))]) for table in tables]
        columns = {
            name: [part.get(name, missing) for part, missing in zip(parts, nulls, strict=True)]
            for name in names
        }
        return pa.table({name: _concat_column(name, columns[name]) for name in names})


def concat_people(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables of people; undocumented columns beyond 1,000 become JSON text.

    Documented columns come first; undocumented columns follow in alphabetical order.

    >>> wide = [pa.table({f"{page}_{n}": [n] for n in range(600)}) for page in "ab"]
    >>> concat_people(wide).num_columns
    1001
    """
    schema = tables[0].schema
    present = set(schema.names)
    if _DOCUMENTED.keys() >= present and all(table.schema.equals(schema) for table in tables):
        people = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        order = [name for name in _DOCUMENTED if name in present]
        return people if order == schema.names else people.select(order)
    # In alphabetical order, which does not depend on how rows are split into tables.
    names = {name for table in tables for name in table.column_names} - {FURTHER_FIELDS}
    undocumented = sorted(names - _DOCUMENTED.keys())
    excess = set(undocumented[MAX_UNDOCUMENTED_COLUMNS:])
    folded = [fold_columns(table, excess) for table in tables] if excess else tables
    people = folded[0] if len(folded) == 1 else concat_tables(folded)
    order = [*_DOCUMENTED, *undocumented[:MAX_UNDOCUMENTED_COLUMNS], FURTHER_FIELDS]
    # `column_names` builds a new list at each access.
    present = set(people.column_names)
    return people.select([name for name in order if name in present])


def select_columns(people: pa.Table, names: Sequence[str]) -> pa.Table:
    """Select columns in this order; a column that the table lacks has only missing values.

    >>> select_columns(pa.table({"a": [1], "b": [2]}), ["b", "c"]).to_pylist()
    [{'b': 2, 'c': None}]
    """
    columns = dict(zip(people.column_names, people.columns, strict=True))
    missing = pa.chunked_array([pa.nulls(len(people))])
    return pa.table({name: columns.get(name, missing) for name in names})


def fold_columns(table: pa.Table, names: Container[str]) -> pa.Table:
    """Move the named columns into `further_fields`, a column of JSON objects.

    >>> fold_columns(pa.table({"a": [1, 2], "b": [3, None]}), {"b"}).to_pylist()
    [{'a': 1, 'further_fields': '{"b":3}'}, {'a': 2, 'further_fields': None}]
    """
    folded = [name for name in table.column_names if name in names and name != FURTHER_FIELDS]
    if not folded:
        return table
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    if FURTHER_FIELDS in table.column_names:
        for row, text in zip(rows, table.column(FURTHER_FIELDS).to_pylist(), strict=True):
            row.update(_parse_further_fields(text))
        table = table.drop_columns(FURTHER_FIELDS)
    for name in folded:
        for row, value in zip(rows, table.column(name).to_pylist(), strict=True):
            if value is not None:
                row[name] = value
    texts = pa.array([json_text(row) if row else None for row in rows], pa.string())
    return table.drop_columns(folded).append_column(FURTHER_FIELDS, texts)


def _parse_further_fields(text: Any) -> dict[str, Any]:
    """Parse a cell of `further_fields`; put text other than a JSON object into a dict."""
    try:
        fields = parse_json(text)
    except (TypeError, ValueError):
        fields = text
    if isinstance(fields, dict):
        return fields
    return {} if text is None else {FURTHER_FIELDS: text}


def _concat_column(name: str, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    kinds = {part.type for part in parts}
    if len(kinds) == 1:
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    documented = _LISTS_OF_OBJECTS.get(name, ())
    try:
        return concat_promoted(parts, documented)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass
    if documented and all(_is_object_list(kind) or kind == pa.null() for kind in kinds):
        return _concat_object_lists([part.combine_chunks() for part in parts], documented)
    texts = ([json_text(value) for value in part.to_pylist()] for part in parts)
    return pa.chunked_array(texts, pa.string())


def concat_promoted(parts: Sequence[pa.ChunkedArray], first: Sequence[str] = ()) -> pa.ChunkedArray:
    """Concatenate columns in a common type; raise an Arrow error if there is no such type.

    The members of listed objects are in alphabetical order, after the members `first`.

    >>> parts = [pa.array([[None, None]]), pa.array([[1]])]
    >>> concat_promoted(list(map(pa.chunked_array, zip(parts)))).to_pylist()
    [[None, None], [1]]
    """
    schema = pa.unify_schemas(
        [pa.schema([("", part.type)]) for part in parts], promote_options="permissive"
    )
    kind = sort_members(schema.field(0).type, first)
    parts = [
        pa.chunked_array([pa.array(part.to_pylist(), kind)])
        if has_nested_nulls(part.type) and part.type != kind
        else part
        for part in parts
    ]
    # Arrow keeps the order of the first table's members.
    tables = [pa.table({"": part}) for part in (pa.chunked_array([], kind), *parts)]
    return pa.concat_tables(tables, promote_options="permissive").column(0)


def _is_object_list(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.ListType) and isinstance(kind.value_type, pa.StructType)


def _concat_object_lists(parts: Sequence[pa.Array], first: Sequence[str]) -> pa.ChunkedArray:
    """Concatenate lists of objects; only members whose types differ become text."""
    objects = [part.flatten() for part in parts if _is_object_list(part.type)]
    members = concat_tables(
        [pa.table(part.flatten(), names=[field.name for field in part.type]) for part in objects]
    ).combine_chunks()
    members = members.select([*first, *sorted({*members.column_names}.difference(first))])
    values = pa.StructArray.from_arrays(
        [column.combine_chunks() for column in members.columns],
        names=members.column_names,
        mask=pa.concat_arrays([part.is_null() for part in objects]),
    )
    lengths = pa.concat_arrays(
        [
            pc.list_value_length(part) if _is_object_list(part.type) else part.cast(pa.int32())
            for part in parts
        ]
    )
    return pa.chunked_array([as_lists(lengths, values)])
