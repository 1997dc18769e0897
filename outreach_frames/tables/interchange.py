"""Convert other libraries' frames to pandas through Arrow's PyCapsule interface."""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.schema import DATE, has_nested_nulls, to_frame

A_FRAME: Final = "a frame (pandas, Polars, a DuckDB relation or an Arrow table)"
_STREAM: Final = "__arrow_c_stream__"
# Methods that return a frame: of Spark, lazy Polars, Dask, Arrow readers and columns.
_FRAME_METHODS: Final = ("toPandas", "collect", "compute", "read_all", "to_frame")
_DUCKDB_UTC: Final = "Etc/UTC"
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
_PACKAGE_TYPES: Final = {
    **dict.fromkeys(_INTEGERS, pa.int64()),
    **dict.fromkeys((*_TEXTS, pa.uuid()), pa.string()),
    pa.binary_view(): pa.binary(),
    pa.bool8(): pa.bool_(),
}
# Arrow cannot cast these types; casting list views even changes their values silently.
_UNCASTABLE: Final = ("list_view", "arrow.uuid")


class ArrowStream(Protocol):
    """A table of any library that exports tables through Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table."""
        ...


FrameLike: TypeAlias = pd.DataFrame | ArrowStream


def is_frame(given: object) -> bool:
    """Return whether the object is a frame or column with Arrow's PyCapsule interface.

    >>> is_frame(pa.table({"a": [1]})), is_frame({"a": [1]})
    (True, False)
    """
    return hasattr(given, _STREAM)


def as_frame(given: object, who: str = "This", takes: str = A_FRAME) -> pd.DataFrame:
    """Convert any library's frame to pandas; error messages contain `who` and `takes`.

    >>> as_frame(pa.table({"n": pa.array([1, None], pa.int8())}))["n"].dtype
    Int64Dtype()
    """
    # Read a frame only once: a DuckDB relation may return the rows in another order next time.
    if isinstance(given, pd.DataFrame):
        return given
    kind = _type_name(given)
    # Reject Arrow readers, which silently have no rows when read a second time.
    reads_once = isinstance(given, pa.RecordBatchReader)
    if not is_frame(given) or hasattr(given, "to_frame") or reads_once:
        raise InvalidInputError(f"{who} takes {takes}, not {kind}.{_conversion_advice(given)}")
    try:
        if "Object" in map(str, getattr(given, "dtypes", ())):
            # Polars exports the memory addresses of Python objects instead of the objects.
            raise InvalidInputError(
                f"The {kind} has a column of Python objects (Object), which no other library can "
                "read. Cast it to another type, or drop it."
            )
        return _to_pandas(_read(given))
    except InvalidInputError:
        raise
    except Exception as error:
        # A DuckDB relation runs its query when it is read, which may raise any error.
        problem = shorten(str(error)).rstrip(".")
        raise InvalidInputError(
            f"{who} takes {takes}, but this {kind} cannot be read as a frame: {problem}. "
            "Correct the query, or cast the column to an Arrow type."
        ) from error


def _type_name(given: object) -> str:
    """Return a type's name with its library, because several libraries have a DataFrame."""
    library = type(given).__module__.partition(".")[0].removeprefix("_")
    name = type(given).__name__
    return name if library == "builtins" else f"{library}.{name}"


def _conversion_advice(given: object) -> str:
    method = next((name for name in _FRAME_METHODS if callable(getattr(given, name, None))), None)
    return "" if method is None else f" Pass the result of its .{method}()."


def _read(given: Any) -> pa.Table:
    # After fetchone(), a DuckDB 1 relation exports only the remaining rows; an alias has all rows.
    if hasattr(given, "fetchone") and hasattr(given, "set_alias"):
        given = given.set_alias("rows")
    return pa.RecordBatchReader.from_stream(given).read_all()


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    metadata = table.schema.pandas_metadata or {}
    if opaque := [field for field in table.schema if isinstance(field.type, pa.OpaqueType)]:
        raise InvalidInputError(
            f"The column {opaque[0].name!r} has the type {opaque[0].type.type_name}, which other "
            "libraries cannot read. Cast it to another type, or drop it."
        )
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        target = _package_type(column.type)
        # Compare types as text, because Arrow's comparison ignores the names of list elements.
        if str(target) != str(column.type):
            table = table.set_column(place, name, _cast(column, target))
    for place, column in enumerate(table.columns):
        if pa.types.is_floating(column.type):
            # Pandas 2 would keep NaN beside missing values.
            plain = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            table = table.set_column(place, table.column_names[place], plain)
    frame = to_frame(table, "numpy_nullable")
    attrs = metadata.get("attributes") or {}
    if isinstance(attrs, dict):
        frame.attrs = dict(attrs)
    else:
        warn("The .attrs in the table's metadata were ignored, because they are not a JSON object.")
    return _restore_index(frame, metadata)


def _restore_index(frame: pd.DataFrame, metadata: dict[str, Any]) -> pd.DataFrame:
    """Set the index to the columns that pandas' metadata lists as index columns."""
    # Skip a RangeIndex, which is not a column: its entry is not a string.
    levels = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    if not levels or not all(frame.columns.tolist().count(name) == 1 for name in levels):
        return frame
    names = {one["field_name"]: one["name"] for one in metadata["columns"]}
    return frame.set_index(levels).rename_axis([names[level] for level in levels])


def _package_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type to which the package converts columns of a type."""
    if pa.types.is_dictionary(kind):
        return _package_type(kind.value_type)
    if kind in _TEXTS:
        # The text of a column may exceed 2 GB, the maximum with 32-bit offsets.
        return pa.large_string()
    if kind in _DATES:
        return DATE
    if pa.types.is_timestamp(kind) and kind.tz == _DUCKDB_UTC:
        return pa.timestamp(kind.unit, "UTC")
    return _member_type(kind)


def _member_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType) and kind not in _PACKAGE_TYPES:
        return _member_type(kind.storage_type)
    if isinstance(kind, _LISTS):
        return pa.list_(_member_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_member_type(one.type)) for one in kind])
    return _PACKAGE_TYPES.get(kind, kind)


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        # Cast the distinct values, because Arrow cannot take string views.
        parts = [(_cast(pa.chunked_array([one.dictionary]), target), one) for one in column.chunks]
        taken = [values.combine_chunks().take(one.indices) for values, one in parts]
        return pa.chunked_array(taken, target)
    if has_nested_nulls(column.type) or any(name in str(column.type) for name in _UNCASTABLE):
        values = column.to_pylist()
        if pa.types.is_string(target):
            values = [None if value is None else str(value) for value in values]
        return pa.chunked_array([pa.array(values, target)])
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    return column.cast(target)
