"""Convert other libraries' frames to pandas through Arrow's PyCapsule interface."""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import shorten
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
    if isinstance(given, list | tuple | set):
        return ' Pass a frame, such as pd.DataFrame({"email": [...]}).'
    attributes = getattr(given, "__dict__", {}).items()
    public = [name for name, value in attributes if isinstance(value, pd.DataFrame)]
    if tables := [f".{name}" for name in public if not name.startswith("_")]:
        return f" Pass one of its tables: {', '.join(tables)}."
    method = next((name for name in _FRAME_METHODS if callable(getattr(given, name, None))), None)
    return "" if method is None else f" Pass the result of its .{method}()."


def _read(given: Any) -> pa.Table:
    # After fetchone(), a DuckDB 1 relation exports only the remaining rows; an alias has all rows.
    if hasattr(given, "fetchone") and hasattr(given, "set_alias"):
        given = given.set_alias("rows")
    return pa.RecordBatchReader.from_stream(given).read_all()


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        table = table.set_column(place, name, _convert(name, column))
    return to_frame(table, "numpy_nullable")


def _convert(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to the package's type; raise for types that only one library knows."""
    if "extension<" in str(column.type):
        raise InvalidInputError(
            f"The column {name!r} has the type {column.type}, which other libraries cannot read. "
            "Cast it to another type, such as text, or drop it."
        )
    target = _package_type(column.type)
    # Compare types as text, because Arrow's comparison ignores the names of list elements.
    if str(target) != str(column.type):
        column = _cast(column, target)
    if not pa.types.is_floating(target):
        return column
    # Pandas 2 would keep NaN beside missing values.
    return pc.if_else(pc.is_nan(column), pa.scalar(None, target), column)


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
    if isinstance(kind, _LISTS):
        return pa.list_(_member_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(_member_type(member.type)) for member in kind])
    if kind in _INTEGERS:
        return pa.int64()
    if kind in _TEXTS:
        return pa.string()
    return pa.binary() if kind == pa.binary_view() else kind


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    kind = column.type
    # Arrow cannot take string views, and casts list views and nested nulls to wrong values.
    if pa.types.is_dictionary(kind) or has_nested_nulls(kind) or "list_view" in str(kind):
        return pa.chunked_array([pa.array(column.to_pylist(), target)])
    return column.cast(target)
