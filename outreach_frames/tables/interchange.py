"""Frames of other libraries as pandas frames, by way of Arrow's PyCapsule interface."""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.schema import DATE, to_frame

A_FRAME: Final = "a frame (pandas, Polars, a DuckDB relation or an Arrow table)"
_STREAM: Final = "__arrow_c_stream__"
# What makes a frame of what is none yet: of Spark, of Polars, of Dask, of a reader, of a column.
_MAKES_FRAME: Final = ("toPandas", "collect", "compute", "read_all", "to_frame")
# What DuckDB calls it.
_UTC: Final = "Etc/UTC"
_TEXTS: Final = (pa.string(), pa.large_string(), pa.string_view())
_DATES: Final = (pa.date32(), pa.date64())
_LISTS: Final = (
    pa.ListType,
    pa.LargeListType,
    pa.FixedSizeListType,
    pa.ListViewType,
    pa.LargeListViewType,
)
_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())
_OWN: Final = {
    **dict.fromkeys(_INTEGERS, pa.int64()),
    **dict.fromkeys((*_TEXTS, pa.uuid()), pa.string()),
    pa.binary_view(): pa.binary(),
    pa.bool8(): pa.bool_(),
}
# What Arrow cannot cast; of lists in views it makes other lists, and does not say so.
_BY_VALUE: Final = ("list_view", "arrow.uuid")


class ArrowStream(Protocol):
    """A table of a library that exports it by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table."""
        ...


FrameLike: TypeAlias = pd.DataFrame | ArrowStream


def is_frame(given: object) -> bool:
    """Return whether this is a frame, or a column, of pandas or of a library with that interface.

    >>> is_frame(pa.table({"a": [1]})), is_frame({"a": [1]})
    (True, False)
    """
    return hasattr(given, _STREAM)


def as_frame(given: object, who: str = "This", takes: str = A_FRAME) -> pd.DataFrame:
    """Return a frame of any library as a pandas frame.

    Parameters
    ----------
    given : FrameLike
        It is read once; a DuckDB relation may have its rows in another order the next time.
    who, takes : str
        Who takes what, for the message about something else.

    Returns
    -------
    DataFrame
        A pandas frame itself. Of any other, its rows in their order with this package's dtypes:
        str, Int64 (UInt64 where it was), Float64, boolean, datetime64, categories; lists, objects
        and decimals as in Arrow. The index is row numbers, or what pandas noted in an Arrow table.

    Raises
    ------
    InvalidInputError
        It is not a frame, or cannot be read.

    Examples
    --------
    >>> as_frame(pa.table({"n": pa.array([1, None], pa.int8())}))["n"].dtype
    Int64Dtype()
    """
    if isinstance(given, pd.DataFrame):
        return given
    kind = _kind(given)
    # A reader would have no rows the second time, and nobody would notice.
    reads_once = isinstance(given, pa.RecordBatchReader)
    if not is_frame(given) or hasattr(given, "to_frame") or reads_once:
        raise InvalidInputError(f"{who} takes {takes}, not {kind}.{_way_to_frame(given)}")
    try:
        if "Object" in map(str, getattr(given, "dtypes", ())):
            # They would come as their addresses in memory.
            raise InvalidInputError(
                f"The {kind} has a column of Python objects (Object), which no other library can "
                "read. Cast it to another type, or drop it."
            )
        return _converted(_read(given))
    except InvalidInputError:
        raise
    except Exception as error:
        # The query that a relation stands for may fail in any way.
        problem = shorten(str(error)).rstrip(".")
        raise InvalidInputError(
            f"{who} takes {takes}, and this {kind} cannot be read as one: {problem}. "
            "Mend the query, or cast the column to a type that Arrow has."
        ) from error


def _kind(given: object) -> str:
    """Name a type with its library, as several have a DataFrame."""
    library = type(given).__module__.partition(".")[0].removeprefix("_")
    name = type(given).__name__
    return name if library == "builtins" else f"{library}.{name}"


def _way_to_frame(given: object) -> str:
    way = next((name for name in _MAKES_FRAME if callable(getattr(given, name, None))), None)
    return "" if way is None else f" Pass what its .{way}() returns."


def _read(given: Any) -> pa.Table:
    # Where rows of it were fetched, a relation of DuckDB 1 gives the rest; by another name, all.
    if hasattr(given, "fetchone") and hasattr(given, "set_alias"):
        given = given.set_alias("rows")
    return pa.RecordBatchReader.from_stream(given).read_all()


def _converted(table: pa.Table) -> pd.DataFrame:
    noted = table.schema.pandas_metadata or {}
    if opaque := [field for field in table.schema if isinstance(field.type, pa.OpaqueType)]:
        raise InvalidInputError(
            f"The column {opaque[0].name!r} has the type {opaque[0].type.type_name}, which other "
            "libraries cannot read. Cast it to another type, or drop it."
        )
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, name, _with_categories(column))
            continue
        own = _own_type(column.type)
        # By name, as lists are alike to Arrow whatever their entries are called.
        if str(own) != str(column.type):
            table = table.set_column(place, name, _cast(column, own))
    frame = to_frame(table, "numpy_nullable")
    frame.attrs = dict(noted.get("attributes") or {})
    return _with_index(frame, noted)


def _with_categories(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Leave out of a dictionary what categories of pandas cannot have: gaps, and an entry twice."""
    own = _own_type(column.type.value_type)
    entries = [
        _cast(pa.chunked_array([one.dictionary]), own).combine_chunks() for one in column.chunks
    ]
    chunks = zip(entries, column.chunks, strict=True)
    values = pa.chunked_array([known.take(one.indices) for known, one in chunks], own)
    if pa.types.is_nested(own):
        return values
    categories = pa.chunked_array(entries, own).unique()
    is_missing = pc.is_null(categories, nan_is_null=True)
    if len(categories) == sum(map(len, entries)) and not pc.any(is_missing, min_count=0).as_py():
        return column
    categories = categories.filter(pc.invert(is_missing))
    numbers = pc.index_in(values, value_set=categories)
    is_ordered = column.type.ordered
    encode = pa.DictionaryArray.from_arrays
    return pa.chunked_array(
        [encode(one, categories, ordered=is_ordered) for one in numbers.chunks],
        pa.dictionary(numbers.type, own, is_ordered),
    )


def _with_index(frame: pd.DataFrame, noted: dict[str, Any]) -> pd.DataFrame:
    """Make an index of the columns in which pandas stored one; row numbers are in none."""
    levels = [name for name in noted.get("index_columns", []) if isinstance(name, str)]
    if not levels or not all(frame.columns.tolist().count(name) == 1 for name in levels):
        return frame
    names = {one["field_name"]: one["name"] for one in noted["columns"]}
    return frame.set_index(levels).rename_axis([names[level] for level in levels])


def _own_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which this package's frames hold a column of a type."""
    if kind in _TEXTS:
        # Offsets of 32 bits count 2 GB, which a whole column may exceed.
        return pa.large_string()
    if kind in _DATES:
        return DATE
    if pa.types.is_timestamp(kind) and kind.tz == _UTC:
        return pa.timestamp(kind.unit, "UTC")
    return _member_type(kind)


def _member_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType) and kind not in _OWN:
        return _member_type(kind.storage_type)
    if isinstance(kind, _LISTS):
        return pa.list_(_member_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_member_type(one.type)) for one in kind])
    return _OWN.get(kind, kind)


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if any(name in str(column.type) for name in _BY_VALUE):
        values = column.to_pylist()
        if pa.types.is_string(target):
            values = [None if value is None else str(value) for value in values]
        return pa.chunked_array([pa.array(values, target)])
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    return column.cast(target)
