"""Flatten Python records of any form into an Arrow table.

This is slower than `fast_reader`, with the same columns, types and values. If a value does not fit
its column's type, the cell is missing, and the column `<column>_raw` at the end has the value as
text. Further members of listed objects follow the documented members in alphabetical order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.text import unique_name
from outreach_frames.errors import InvalidResponseError
from outreach_frames.tables.json_values import (
    LARGEST_EXACT,
    LARGEST_INT64,
    without_lone_surrogates,
)
from outreach_frames.tables.schema import DATE, DATE_TIME, wire_type
from outreach_frames.tables.value_text import json_text, sent_text

RAW_SUFFIX: Final = "_raw"
VALUE_COLUMN: Final = "value"
FURTHER_FIELDS: Final = "further_fields"
# Fields beyond this number of columns go to FURTHER_FIELDS as JSON.
MAX_UNDOCUMENTED_COLUMNS: Final = 1_000
MAX_CELLS: Final = 10_000_000
# An object with a longer name is not flattened, as each of its columns would repeat the name.
_MAX_PREFIX_LENGTH: Final = 100
_FIRST_DATE: Final = datetime(1, 1, 1)
# The patterns are text: `re` compiles them at first use, which keeps the import fast.
# A date, also as a date-time at midnight.
_DATE: Final = r"(?a)(\d{4}-\d\d-\d\d)(T00:00(:00(\.0+)?)?(Z|[+-]00:?00)?)?"
_DATE_TIME: Final = (
    r"(?a)(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)([Zz]|[+-]\d\d(?::?\d\d)?)?"
)


SCALAR_TYPES: Final[Mapping[type, pa.DataType]] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
}
_PYTHON_TYPES: Final[Mapping[str, Set[type]]] = {
    "string": {str},
    "integer": {int},
    "number": {float},
    "boolean": {bool},
}
_MISSING: Final = type(None)
_LISTS: Final = {list, _MISSING}
_DATE_FORMATS: Final = ("date", "date-time")
_OBJECTS: Final = {dict, _MISSING}
# The names that lead to a field.
Path = tuple[str, ...]


class _TypeMismatchError(ValueError):
    """A value does not have the type of its field."""


def flatten_records(
    records: Sequence[Any],
    fields: tuple[spec.Field, ...],
    *,
    drop: frozenset[str] = frozenset(),
) -> tuple[pa.Table, dict[Path, pa.DataType]]:
    """Flatten parsed records without the top-level fields `drop`: documented columns first.

    Also return the types with which Arrow can read the records' fields.
    """
    rows = [
        record if isinstance(record, dict) else {} if record is None else {VALUE_COLUMN: record}
        for record in records
    ]
    try:
        found = _Columns(drop, [{} for _ in rows])
        return _flatten(rows, fields, found), found.types
    except UnicodeEncodeError:
        found = _Columns(drop, [{} for _ in rows])
        rows = [without_lone_surrogates(row) for row in rows]
        return _flatten(rows, fields, found), found.types
    except RecursionError as error:
        raise InvalidResponseError(
            "The response is nested too deeply to build a table from it."
        ) from error


def parse_dates(text: pa.Array, field: spec.Field) -> tuple[pa.Array, pa.Array | None]:
    """Parse a text column as dates; return unreadable text as a second column."""
    # A date is YYYY-MM-DD. A date-time is ISO 8601 with optional seconds and offset; the default
    # offset is UTC. Times are cut to microseconds.
    if field.format == "date":
        try:
            dates = text.cast(pa.date32()).cast(DATE)
        except pa.ArrowInvalid:
            return _parse_one_by_one(text, _parse_date, DATE)
        if pc.any(pc.less(dates, pa.scalar(_FIRST_DATE, DATE))).as_py():
            return _parse_one_by_one(text, _parse_date, DATE)
        return dates, None
    return _parse_one_by_one(text, _parse_date_time, DATE_TIME)


def named_columns(
    known: Mapping[str, pa.Array], extras: Iterable[tuple[str, pa.Array]]
) -> dict[str, pa.Array]:
    """Append extra columns to the known columns; add a number to duplicate names."""
    columns = dict(known)
    for name, array in extras:
        columns[unique_name(name, columns)] = array
    return columns


@dataclass(slots=True)
class _Columns:
    """The columns found so far."""

    drop: frozenset[str]  # names of top-level fields
    overflow: list[dict[str, Any]]  # each row's fields beyond MAX_UNDOCUMENTED_COLUMNS
    types: dict[Path, pa.DataType] = field(default_factory=dict)  # of values, by path
    documented: dict[str, pa.Array] = field(default_factory=dict)
    undocumented: list[tuple[str, pa.Array]] = field(default_factory=list)
    raws: list[tuple[str, pa.Array]] = field(default_factory=list)  # values that do not fit


def _flatten(
    rows: list[dict[str, Any]], fields: tuple[spec.Field, ...], found: _Columns
) -> pa.Table:
    _flatten_object(rows, fields, (), found)
    if any(found.overflow):
        texts = [json_text(values) if values else None for values in found.overflow]
        found.undocumented.append((FURTHER_FIELDS, pa.array(texts, pa.string())))
    order = (name for name in spec.columns(fields) if name in found.documented)
    documented = {name: found.documented[name] for name in order}
    columns = named_columns(documented, [*found.undocumented, *found.raws])
    if not columns:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _flatten_object(
    parents: Sequence[Mapping[str, Any] | None],
    fields: tuple[spec.Field, ...],
    path: Path,
    found: _Columns,
) -> None:
    """Flatten the objects that the records have at one path."""
    documented = [member for member in fields if member.name not in found.drop]
    columns, others = _members(parents, [member.name for member in documented])
    for member, values in zip(documented, columns, strict=True):
        place = (*path, member.name)
        name = "_".join(place)
        if member.type == "object" and member.members:
            objects, misfits = _split_objects(values)
            _flatten_object(objects, member.members, place, found)
            raw = _raw_column(misfits)
        else:
            found.documented[name], raw = typed_column(values, member)
            kind = _sent_type(values, member, found.documented[name])
            if kind is not None:
                found.types[place] = kind
        if raw is not None:
            found.raws.append((name + RAW_SUFFIX, raw))
    undocumented = [name for name in others if name not in found.drop]
    _flatten_undocumented(parents, undocumented, path, found)


def _sent_type(values: Sequence[Any], field: spec.Field, column: pa.Array) -> pa.DataType | None:
    """Return the type with which Arrow can read a documented field's values exactly, if any."""
    if field.type == "array" and field.items == "object":
        return column.type
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {list}:
        kind = infer_column(values).type
        is_text = field.type == "array" and field.items is None  # JSON text, without nulls
        is_exact = is_text or not re.search("double|struct", str(kind))
        return kind if is_exact and not str(kind).endswith("null>") else None
    if float in kinds and kinds <= {int, float}:
        return pa.float64() if field.type in {"integer", "number"} else None
    if kinds == {int} and field.type == "number":
        return pa.float64()
    return SCALAR_TYPES.get(kinds.pop()) if len(kinds) == 1 else None


def _flatten_undocumented(
    parents: Sequence[Mapping[str, Any] | None],
    keys: Sequence[str],
    path: Path,
    found: _Columns,
) -> None:
    """Flatten undocumented fields up to the maximum number of columns."""
    for position, key in enumerate(keys):
        if len(found.undocumented) >= MAX_UNDOCUMENTED_COLUMNS:
            excess = set(keys[position:])
            for parent, values in zip(parents, found.overflow, strict=True):
                for name, value in (parent or {}).items():
                    if name in excess and value is not None:
                        values["_".join((*path, name))] = value
            return
        _flatten_undocumented_field(_values(parents, key), (*path, key), found)


def _flatten_undocumented_field(values: Sequence[Any], path: Path, found: _Columns) -> None:
    """Flatten the values of one undocumented field."""
    name = "_".join(path)
    objects, others = _split_objects(values)
    has_objects = any(value is not None for value in objects)
    has_others = any(value is not None for value in others)
    if has_others or not has_objects:
        column = infer_column(others)
        found.undocumented.append((name, column))
        if not has_objects:
            found.types[path] = column.type
    if has_objects and len(name) > _MAX_PREFIX_LENGTH:
        for value, overflow in zip(objects, found.overflow, strict=True):
            if value is not None:
                overflow[name] = value
    elif has_objects:
        keys = _keys(objects)
        if not keys and not has_others:
            found.types[path] = pa.struct([])
        _flatten_undocumented(objects, keys, path, found)


def _members(
    objects: Sequence[Mapping[str, Any] | None], names: Sequence[str]
) -> tuple[Sequence[Sequence[Any]], Sequence[str]]:
    """Return the members with these names, a sequence per name, and the other names."""
    # Faster, if each object has all these members and no others.
    if len(names) > 1 and objects:
        members_of: Callable[[Any], Any] = itemgetter(*names)
        with suppress(KeyError, TypeError):
            columns = [*zip(*map(members_of, objects), strict=True)]
            if sum(len(item) for item in objects if item) == len(objects) * len(names):
                return columns, ()
    return [_values(objects, name) for name in names], _keys(objects, {*names})


def _values(objects: Sequence[Mapping[str, Any] | None], name: str) -> list[Any]:
    return [item.get(name) if item else None for item in objects]


def _split_objects(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Split values into objects and others, each with missing values in the other's rows."""
    if {*map(type, values)} <= _OBJECTS:
        return values, [None] * len(values)
    objects = [value if isinstance(value, dict) else None for value in values]
    return objects, [None if isinstance(value, dict) else value for value in values]


def typed_column(values: Sequence[Any], field: spec.Field) -> tuple[pa.Array, pa.Array | None]:
    """Build a documented field's column, and the raw text of values that do not fit its type."""
    array, raw = _fitting_array(values, field), None
    if array is None:
        fitting: list[Any] = []
        mismatches: list[Any] = []
        for value in values:
            try:
                fitting.append(_convert(value, field))
                mismatches.append(None)
            except _TypeMismatchError:
                fitting.append(None)
                mismatches.append(value)
        raw = _raw_column(mismatches)
        array = _fitting_array(fitting, field)
        if array is None:
            array = pa.array(fitting, wire_type(field))
    if field.format not in _DATE_FORMATS:
        return array, raw
    dates, unreadable = parse_dates(array, field)
    if raw is None or unreadable is None:
        return dates, raw if unreadable is None else unreadable
    return dates, pc.coalesce(raw, unreadable)


def _fitting_array(values: Sequence[Any], field: spec.Field) -> pa.Array | None:
    """Build a field's array at once, or return None if a value may not have the field's type."""
    kinds, kind = {*map(type, values)}, field.type
    if kind == "array" and kinds <= _LISTS:
        elements = [*chain.from_iterable(filter(None, values))]
        kinds, kind = {*map(type, elements)}, field.items or "string"
        if kind == "object":
            return _object_list_column(values, elements, field) if kinds <= _OBJECTS else None
    # Arrow alone would cut numbers to integers, and take booleans for numbers and text for a list.
    if not kinds <= {*_PYTHON_TYPES.get(kind, ()), _MISSING}:
        return None
    if float in kinds and not all(math.isfinite(value) for value in _numbers(values)):
        return None
    with suppress(OverflowError):
        return pa.array(values, wire_type(field))
    return None


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    """Yield the numbers among values and in lists of them."""
    for value in values:
        if isinstance(value, list):
            yield from _numbers(value)
        elif value is not None:
            yield value


def _convert(value: Any, field: spec.Field) -> Any:
    """Convert a value to its field's type."""
    if value is None:
        return None
    if field.type == "array":
        if not isinstance(value, list):
            raise _TypeMismatchError
        if field.items is None:
            return [json_text(element) for element in value]
        element_field = spec.Field("", type=field.items, members=field.members)
        return [_convert(element, element_field) for element in value]
    if field.type == "object":
        if not isinstance(value, dict):
            raise _TypeMismatchError
        documented = {
            member.name: _convert(value[member.name], member)
            for member in field.members
            if member.name in value
        }
        return value | documented if documented else value
    return _convert_scalar(value, field.type)


def _convert_scalar(value: Any, kind: str) -> Any:
    found = type(value)
    if kind == "integer" and found is float and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    if kind == "number" and found is int and abs(value) <= LARGEST_EXACT:
        return float(value)
    is_out_of_range = (found is int and not -LARGEST_INT64 - 1 <= value <= LARGEST_INT64) or (
        found is float and not math.isfinite(value)
    )
    if found not in _PYTHON_TYPES[kind] or is_out_of_range:
        raise _TypeMismatchError
    return value


def _object_list_column(
    lists: Sequence[list[dict[str, Any] | None] | None],
    elements: Sequence[dict[str, Any] | None],
    field: spec.Field,
) -> pa.Array | None:
    """Build a list column of objects; undocumented fields become further members.

    Return None if a documented member may have another type.
    """
    columns, others = _members(elements, [member.name for member in field.members])
    members: dict[str, pa.Array] = {}
    for member, values in zip(field.members, columns, strict=True):
        array = _fitting_array(values, member)
        if array is None:
            return None
        members[member.name] = array
    undocumented = sorted(others)
    if _are_too_many(undocumented, len(elements)):
        # A generator saves memory: the dicts take far more than their text.
        excess = (
            element and {key: value for key, value in element.items() if key not in members}
            for element in elements
        )
        texts = [json_text(item or None) for item in excess]
        members[FURTHER_FIELDS] = pa.array(texts, pa.string())
        undocumented = []
    for key in undocumented:
        members[key] = infer_column(_values(elements, key))
    structs = pa.StructArray.from_arrays(
        list(members.values()),
        names=list(members),
        mask=pa.array([element is None for element in elements], pa.bool_()),
    )
    lengths = [None if cell is None else len(cell) for cell in lists]
    return as_lists(pa.array(lengths, pa.int32()), structs)


def as_lists(lengths: pa.Int32Array, values: pa.Array) -> pa.ListArray:
    """Build lists of these lengths from consecutive values; a null length makes a null.

    >>> as_lists(pa.array([2, None], pa.int32()), pa.array(["a", "b"])).to_pylist()
    [['a', 'b'], None]
    """
    offsets = np.concatenate([[0], np.cumsum(lengths.fill_null(0))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=lengths.is_null())


def infer_column(values: Sequence[Any]) -> pa.Array:
    """Build an undocumented field's column: typed if all values have one type, else text."""
    if _count_cells(values, len(values)) <= MAX_CELLS:
        try:
            column = pa.array(values)
            kind = sort_members(column.type)
            return column if kind == column.type else pa.array(values, kind)
        except (pa.ArrowInvalid, OverflowError):
            pass  # integers beyond 64 bits, or too large to be exact in a float column
    return pa.array([json_text(value) for value in values], pa.string())


def sort_members(kind: pa.DataType, first: Sequence[str] = ()) -> pa.DataType:
    """Sort the members of listed objects by name, after the members `first`.

    >>> sort_members(pa.list_(pa.struct([("b", pa.int64()), ("a", pa.string())])))
    ListType(list<item: struct<a: string, b: int64>>)
    """
    if pa.types.is_list(kind):
        return pa.list_(sort_members(kind.value_type, first))
    if not pa.types.is_struct(kind):
        return kind
    order = {name: place for place, name in enumerate(first)}
    members = sorted(kind, key=lambda member: (order.get(member.name, len(order)), member.name))
    return pa.struct([(member.name, sort_members(member.type)) for member in members])


def _count_cells(values: Iterable[Any], rows: int) -> float:
    """Count the Arrow cells that the values take; return infinity if the values must be text."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {list}:
        elements = [element for value in present for element in value]
        return rows + _count_cells(elements, len(elements))
    if kinds == {dict}:
        members: dict[str, list[Any]] = {}
        for value in present:
            for key, member in value.items():
                members.setdefault(key, []).append(member)
        # Files cannot store an object without members.
        if not members or _are_too_many(members, rows):
            return math.inf
        return sum(_count_cells(values, rows) for values in members.values())
    return rows if len(kinds) <= 1 or kinds == {int, float} else math.inf


def _are_too_many(members: Collection[str], rows: int) -> bool:
    return len(members) > MAX_UNDOCUMENTED_COLUMNS or len(members) * rows > MAX_CELLS


def _raw_column(mismatches: Sequence[Any]) -> pa.Array | None:
    if mismatches.count(None) == len(mismatches):
        return None
    return pa.array([sent_text(value) for value in mismatches], pa.string())


def _keys(objects: Iterable[Mapping[str, Any] | None], known: Set[str] = frozenset()) -> list[str]:
    """List the objects' keys that are not `known`, in order of first appearance."""
    names: dict[str, Any] = {}
    for item in objects:
        if item and not item.keys() <= known:
            names.update(item)  # a repeated name keeps its first position
    return [name for name in names if name not in known]


def _parse_one_by_one(
    text: pa.Array, read: Callable[[str], datetime | None], arrow_type: pa.DataType
) -> tuple[pa.Array, pa.Array | None]:
    texts = text.to_pylist()
    dates = [None if value is None else read(value) for value in texts]
    unreadable = [
        value if moment is None else None for value, moment in zip(texts, dates, strict=True)
    ]
    return pa.array(dates, arrow_type), _raw_column(unreadable)


def _parse_date(text: str) -> datetime | None:
    if not (match := re.fullmatch(_DATE, text)):
        return None
    try:
        return datetime.fromisoformat(match[1])
    except ValueError:
        return None


def _parse_date_time(text: str) -> datetime | None:
    if not (match := re.fullmatch(_DATE_TIME, text)):
        return None
    day, time, offset = match.groups()
    try:
        return datetime.fromisoformat(f"{day}T{time}{offset or 'Z'}".upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
