"""Records as Python objects -> a flat Arrow table, whatever the records hold.

The slow and sure way beside `fast_reader`: the two give the same columns, types and values. A value
that does not fit its column's type is missing there, and kept as text in a column `<column>_raw` at
the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.text import unique_name
from outreach_frames.errors import InvalidResponseError
from outreach_frames.tables.json_values import (
    LARGEST_EXACT,
    LARGEST_INT64,
    LossyParseError,
    is_exact,
    without_lone_surrogates,
)
from outreach_frames.tables.schema import DATE, DATE_TIME, column_type, wire_type
from outreach_frames.tables.value_text import json_text, sent_text

RAW_SUFFIX: Final = "_raw"
LONE_VALUE: Final = "value"
FURTHER_FIELDS: Final = "further_fields"
# Columns that the interface does not know; what is beyond them is JSON in one more.
MOST_FURTHER_COLUMNS: Final = 1_000
_MOST_CELLS: Final = 10_000_000
# Where a table is larger, at least a tenth of it is values.
_MOST_SPARSE_CELLS: Final = 2_000_000
# Beyond so many characters, an object is not made into columns that all begin with its name.
_LONGEST_PREFIX: Final = 100
_FIRST_DATE: Final = datetime(1, 1, 1)
# Patterns are text: `re` compiles one when it is first used, and importing is to be quick.
_DATE: Final = r"(?a)\d{4}-\d\d-\d\d"
_DATE_TIME: Final = (
    r"(?a)(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)([Zz]|[+-]\d\d(?::?\d\d)?)?"
)


class _MisfitError(ValueError):
    """A value is not of its field's type."""


def records_table(
    records: Sequence[Any],
    fields: tuple[spec.Field, ...],
    *,
    leave_out: frozenset[str] = frozenset(),
    ready: Mapping[str, pa.ChunkedArray] | None = None,
) -> pa.Table:
    """Flatten records into a table: the fields' columns in order, then what else the records hold.

    Of the latter at most 1,000 are columns, and fewer where that would be a huge table of hardly
    any values; a text column `further_fields` has the others, each row's as one JSON object.

    Parameters
    ----------
    records : sequence
        Parsed JSON. A record that is not an object becomes a row with a column `value`.
    fields : tuple of Field
        What the interface knows of the records; empty where it does not show them.
    leave_out : frozenset of str
        Names of top-level fields to drop.
    ready : mapping of str to pyarrow.ChunkedArray, optional
        Columns of the fields that were read in another way, with dates still as text; the records
        were then parsed by another way than `parse_json`.

    Returns
    -------
    pyarrow.Table
        One row per record.

    Raises
    ------
    InvalidResponseError
        When a record is nested too deeply.
    LossyParseError
        With `ready`, when a number may have been rounded.
    """
    rows = [
        record if isinstance(record, dict) else {} if record is None else {LONE_VALUE: record}
        for record in records
    ]
    try:
        most = _most_further_columns(rows)
        found = _Columns(leave_out, ready or {}, most, [{} for _ in rows])
        return _flatten(rows, fields, found)
    except UnicodeEncodeError:
        found = _Columns(leave_out, {}, most, [{} for _ in rows])
        return _flatten([without_lone_surrogates(row) for row in rows], fields, found)
    except RecursionError as error:
        raise InvalidResponseError(
            "The response is nested too deeply to make a table of it."
        ) from error


def typed_dates(text: pa.Array, field: spec.Field) -> tuple[pa.Array, pa.Array | None]:
    """Read a text column as dates; what cannot be read comes back as text in a second column.

    A date is exactly YYYY-MM-DD. A date-time is ISO 8601 with seconds and offset optional; one
    without an offset is in UTC, and digits beyond the microsecond are cut.
    """
    if field.format == "date":
        try:
            dates = text.cast(pa.date32()).cast(DATE)
        except pa.ArrowInvalid:
            return _dates_one_by_one(text, _read_date, DATE)
        if pc.any(pc.less(dates, pa.scalar(_FIRST_DATE, DATE))).as_py():
            return _dates_one_by_one(text, _read_date, DATE)
        return dates, None
    return _dates_one_by_one(text, _read_date_time, DATE_TIME)


def named_columns(
    known: Mapping[str, pa.Array], extras: Iterable[tuple[str, pa.Array]]
) -> dict[str, pa.Array]:
    """Put extra columns behind the known ones; a name that is taken gets a number."""
    columns = dict(known)
    for name, array in extras:
        columns[unique_name(name, columns)] = array
    return columns


@dataclass(slots=True)
class _Columns:
    """The columns found so far: the interface's, further ones, and texts of misfits.

    `ready` has columns of the interface that need no reading, `read` the values that did, `most` is
    how many further columns there may be, and `rest` what each row has beyond them.
    """

    leave_out: frozenset[str]
    ready: Mapping[str, pa.ChunkedArray]
    most: int
    rest: list[dict[str, Any]]
    read: list[Any] = field(default_factory=list)
    known: dict[str, pa.Array] = field(default_factory=dict)
    extras: list[tuple[str, pa.Array]] = field(default_factory=list)
    raws: list[tuple[str, pa.Array]] = field(default_factory=list)


def _flatten(
    rows: list[dict[str, Any]], fields: tuple[spec.Field, ...], found: _Columns
) -> pa.Table:
    _flatten_object(rows, fields, "", found)
    if found.ready and not is_exact([found.read, found.rest]):
        raise LossyParseError
    if any(found.rest):
        texts = [json_text(values) if values else None for values in found.rest]
        found.extras.append((FURTHER_FIELDS, pa.array(texts, pa.string())))
    columns = named_columns(found.known, [*found.extras, *found.raws])
    if not columns:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _flatten_object(
    parents: Sequence[Mapping[str, Any] | None],
    fields: tuple[spec.Field, ...],
    prefix: str,
    found: _Columns,
) -> None:
    """Flatten the objects that stand in one place of all records."""
    shown = [member for member in fields if member.name not in found.leave_out]
    for member in shown:
        name = prefix + member.name
        if member.type == "object" and member.members:
            objects, others = _objects_and_others(_members(parents, member.name))
            _flatten_object(objects, member.members, f"{name}_", found)
            raw = _raw(others)
        else:
            found.known[name], raw = _column(parents, member, name, found)
        if raw is not None:
            found.raws.append((name + RAW_SUFFIX, raw))
    known_names = found.leave_out.union(member.name for member in shown)
    _flatten_extras(parents, _keys(parents, known_names), prefix, found)


def _column(
    parents: Sequence[Mapping[str, Any] | None], member: spec.Field, name: str, found: _Columns
) -> tuple[pa.Array, pa.Array | None]:
    """Make a known field's column, and the text of what does not fit it."""
    ready = found.ready.get(name)
    if ready is None or _has_further_members(parents, member):
        values = _members(parents, member.name)
        found.read.append(values)
        return _typed(values, member)
    is_date = pa.types.is_string(ready.type) and column_type(member) != ready.type
    return typed_dates(ready, member) if is_date else (ready, None)


def _has_further_members(parents: Sequence[Mapping[str, Any] | None], lists: spec.Field) -> bool:
    """Tell whether objects in lists hold what the interface does not show."""
    shown = {member.name for member in lists.members}
    return (
        lists.type == "array"
        and lists.items == "object"
        and any(
            element and not shown.issuperset(element)
            for cell in _members(parents, lists.name)
            for element in cell or ()
        )
    )


def _flatten_extras(
    parents: Sequence[Mapping[str, Any] | None],
    keys: Sequence[str],
    prefix: str,
    found: _Columns,
) -> None:
    """Flatten fields that the interface does not know, as long as there may be more columns."""
    for position, key in enumerate(keys):
        if len(found.extras) >= found.most:
            rest = set(keys[position:])
            for parent, values in zip(parents, found.rest, strict=True):
                for name, value in (parent or {}).items():
                    if name in rest and value is not None:
                        values[prefix + name] = value
            return
        _flatten_extra(_members(parents, key), prefix + key, found)


def _flatten_extra(values: list[Any], name: str, found: _Columns) -> None:
    """Flatten the values of a field that the interface does not know."""
    objects, others = _objects_and_others(values)
    has_objects = any(value is not None for value in objects)
    if not has_objects or any(value is not None for value in others):
        found.read.append(others)
        found.extras.append((name, inferred(others)))
    if has_objects and len(name) > _LONGEST_PREFIX:
        for value, values_beyond in zip(objects, found.rest, strict=True):
            if value is not None:
                values_beyond[name] = value
    elif has_objects:
        _flatten_extras(objects, _keys(objects), f"{name}_", found)


def _most_further_columns(rows: Sequence[dict[str, Any]]) -> int:
    """Return how many columns there may be, so that cells stay in proportion to values."""
    if len(rows) * MOST_FURTHER_COLUMNS <= _MOST_SPARSE_CELLS:
        return MOST_FURTHER_COLUMNS
    cells = _MOST_SPARSE_CELLS + 10 * sum(map(_count_members, rows))
    return min(MOST_FURTHER_COLUMNS, cells // len(rows))


def _count_members(value: Any) -> int:
    """Count the members of an object, and of those within it."""
    if not isinstance(value, dict):
        return 0
    return len(value) + sum(map(_count_members, value.values()))


def _members(objects: Sequence[Mapping[str, Any] | None], name: str) -> list[Any]:
    return [item.get(name) if item else None for item in objects]


def _objects_and_others(values: list[Any]) -> tuple[list[dict[str, Any] | None], list[Any]]:
    if values.count(None) == len(values):
        return values, values
    objects = [value if isinstance(value, dict) else None for value in values]
    return objects, [None if isinstance(value, dict) else value for value in values]


def _typed(values: Sequence[Any], field: spec.Field) -> tuple[pa.Array, pa.Array | None]:
    """Make a known field's column, and the text of what does not fit it."""
    fitting: list[Any] = []
    misfits: list[Any] = []
    for value in values:
        try:
            fitting.append(_fit(value, field))
            misfits.append(None)
        except _MisfitError:
            fitting.append(None)
            misfits.append(value)
    raw = _raw(misfits)
    if field.type == "array" and field.items == "object":
        return _list_of_objects(fitting, field), raw
    array = pa.array(fitting, wire_type(field))
    if column_type(field) == array.type:
        return array, raw
    dates, unreadable = typed_dates(array, field)
    if raw is None or unreadable is None:
        return dates, raw if unreadable is None else unreadable
    return dates, pc.coalesce(raw, unreadable)


def _fit(value: Any, field: spec.Field) -> Any:
    """Convert a value to its field's type."""
    if value is None:
        return None
    if field.type == "array":
        if not isinstance(value, list):
            raise _MisfitError
        if field.items is None:
            return [json_text(element) for element in value]
        element_field = spec.Field("", type=field.items, members=field.members)
        return [_fit(element, element_field) for element in value]
    if field.type == "object":
        if not isinstance(value, dict):
            raise _MisfitError
        documented = {
            member.name: _fit(value[member.name], member)
            for member in field.members
            if member.name in value
        }
        return value | documented if documented else value
    return _FITS[field.type](value)


def _fit_string(value: Any) -> str:
    if type(value) is not str:
        raise _MisfitError
    return value


def _fit_integer(value: Any) -> int:
    if type(value) is float and value.is_integer() and abs(value) <= LARGEST_EXACT:
        return int(value)
    if type(value) is not int or not -LARGEST_INT64 - 1 <= value <= LARGEST_INT64:
        raise _MisfitError
    return value


def _fit_number(value: Any) -> float:
    if type(value) is int and abs(value) <= LARGEST_EXACT:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise _MisfitError
    return value


def _fit_boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _MisfitError
    return value


_FITS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _fit_string,
    "integer": _fit_integer,
    "number": _fit_number,
    "boolean": _fit_boolean,
}


def _list_of_objects(
    lists: Sequence[list[dict[str, Any] | None] | None], field: spec.Field
) -> pa.Array:
    """Make a list column of objects; what they hold beyond the interface becomes more members."""
    elements = [element for cell in lists if cell is not None for element in cell]
    members = {
        member.name: pa.array(
            _members(elements, member.name),
            wire_type(member),
        )
        for member in field.members
    }
    further = _keys(elements, members.keys())
    if _are_too_many(further, len(elements)):
        # One after the other: as dicts, all of them take far more memory than as text.
        rest = (
            element and {key: value for key, value in element.items() if key not in members}
            for element in elements
        )
        texts = [json_text(item or None) for item in rest]
        members[FURTHER_FIELDS] = pa.array(texts, pa.string())
        further = []
    for key in further:
        members[key] = inferred(_members(elements, key))
    structs = pa.StructArray.from_arrays(
        list(members.values()),
        names=list(members),
        mask=pa.array([element is None for element in elements], pa.bool_()),
    )
    offsets: list[int | None] = []
    end = 0
    for cell in lists:
        offsets.append(None if cell is None else end)
        end += len(cell or ())
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), structs)


def inferred(values: Sequence[Any]) -> pa.Array:
    """Make the column of an unknown field: typed where all values agree, else text."""
    if _cells(values, len(values)) <= _MOST_CELLS:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError):
            pass  # integers beyond 64 bits, or beyond what a float column holds exactly
    return pa.array([json_text(value) for value in values], pa.string())


def _cells(values: Iterable[Any], rows: int) -> float:
    """Count the cells of the one Arrow type that holds the values as they are, if there is one."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {list}:
        elements = [element for value in present for element in value]
        return rows + _cells(elements, len(elements))
    if kinds == {dict}:
        members: dict[str, list[Any]] = {}
        for value in present:
            for key, member in value.items():
                members.setdefault(key, []).append(member)
        # Files cannot hold an object with no names at all.
        if not members or _are_too_many(members, rows):
            return math.inf
        return sum(_cells(values, rows) for values in members.values())
    return rows if len(kinds) <= 1 or kinds == {int, float} else math.inf


def _are_too_many(members: Collection[str], rows: int) -> bool:
    return len(members) > MOST_FURTHER_COLUMNS or len(members) * rows > _MOST_CELLS


def _raw(misfits: Sequence[Any]) -> pa.Array | None:
    if misfits.count(None) == len(misfits):
        return None
    return pa.array([sent_text(value) for value in misfits], pa.string())


def _keys(objects: Iterable[Mapping[str, Any] | None], known: Set[str] = frozenset()) -> list[str]:
    """List the names in some objects but the known ones, in the order of first appearance."""
    names: dict[str, Any] = {}
    for item in objects:
        if item and not item.keys() <= known:
            names.update(item)  # a name keeps its first position
    return [name for name in names if name not in known]


def _dates_one_by_one(
    text: pa.Array, read: Callable[[str], datetime | None], arrow_type: pa.DataType
) -> tuple[pa.Array, pa.Array | None]:
    texts = text.to_pylist()
    dates = [None if value is None else read(value) for value in texts]
    unreadable = [
        value if moment is None else None for value, moment in zip(texts, dates, strict=True)
    ]
    return pa.array(dates, arrow_type), _raw(unreadable)


def _read_date(text: str) -> datetime | None:
    if not re.fullmatch(_DATE, text):
        return None
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time())
    except ValueError:
        return None


def _read_date_time(text: str) -> datetime | None:
    if not (match := re.fullmatch(_DATE_TIME, text)):
        return None
    day, time, offset = match.groups()
    try:
        return datetime.fromisoformat(f"{day}T{time}{offset or 'Z'}".upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
