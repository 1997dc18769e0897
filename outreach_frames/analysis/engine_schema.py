"""Describe the columns of tables with the data types of other engines."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.analysis.interface_columns import TABLES
from outreach_frames.common.arguments import check_one_of
from outreach_frames.tables.schema import empty_table, to_frame, wire_schema

FORMS: Final = ("flat", "nested")

# Maps each Arrow type to its DuckDB name and Spark name.
_TYPE_NAMES: Final[Mapping[pa.DataType, tuple[str, str]]] = MappingProxyType(
    {
        pa.string(): ("VARCHAR", "string"),
        pa.large_string(): ("VARCHAR", "string"),
        pa.int64(): ("BIGINT", "long"),
        pa.float64(): ("DOUBLE", "double"),
        pa.bool_(): ("BOOLEAN", "boolean"),
        pa.timestamp("us"): ("TIMESTAMP", "timestamp_ntz"),
        pa.timestamp("us", "UTC"): ("TIMESTAMP WITH TIME ZONE", "timestamp"),
    }
)


def schema(engine: str = "arrow", *, table: str = "people", form: str = "flat") -> Any:
    """Return the columns of a table with the data types of another engine.

    Parameters
    ----------
    engine : {"arrow", "duckdb", "polars", "spark"}
        The engine for which to return types.
    table : {"people", "companies", "contacts", "mailboxes", "sequences"}
        The table to describe.
    form : {"flat", "nested"}
        "flat" describes the columns of frames and of Parquet files from `export_people`. "nested"
        describes the objects in the service's responses and in NDJSON lines; dates are text.

    Returns
    -------
    pyarrow.Schema, dict, polars.Schema, or pyspark.sql.types.StructType
        For DuckDB, a dict of column to type, as DuckDB's `columns=` expects. For Spark, the
        StructType, or its JSON text if pyspark is not installed.

    Raises
    ------
    InvalidInputError
        The engine, table or form is unknown.
    ModuleNotFoundError
        Polars is not installed.

    Notes
    -----
    Interface: Person, Company, Contact, Mailbox, Sequence. Undocumented entries of `locations` and
    `technologies` have the type text; in DuckDB's "nested" form, the type JSON.

    Examples
    --------
    >>> import outreach_frames as of
    >>> str(of.schema().field("company_founded_year").type)
    'int64'
    >>> of.schema("duckdb", form="nested")["languages"]
    'STRUCT("object" VARCHAR, "language" VARCHAR, "iso_code" VARCHAR, "proficiency" VARCHAR)[]'
    """
    convert = _ENGINES[check_one_of("engine", engine, _ENGINES)]
    _, fields = spec.FRAMES[check_one_of("table", table, spec.FRAMES)]
    if check_one_of("form", form, FORMS) == "nested":
        undocumented = {
            path[-1] for path, one in spec.leaves(fields) if one.type == "array" and not one.items
        }
        return convert(wire_schema(fields), undocumented)
    # Convert through a frame, because frames and files use Arrow's large_string type.
    frame = to_frame(empty_table(TABLES[table]), "numpy_nullable")
    return convert(pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata(), set())


def _as_arrow(columns: pa.Schema, _undocumented: Set[str]) -> pa.Schema:
    return columns


def _as_duckdb(columns: Iterable[pa.Field], undocumented: Set[str]) -> dict[str, str]:
    return {
        one.name: "JSON[]" if one.name in undocumented else _duckdb_type(one.type, undocumented)
        for one in columns
    }


def _duckdb_type(kind: pa.DataType, undocumented: Set[str]) -> str:
    if pa.types.is_list(kind):
        return f"{_duckdb_type(kind.value_type, undocumented)}[]"
    if pa.types.is_struct(kind):
        members = [f'"{name}" {one}' for name, one in _as_duckdb(kind, undocumented).items()]
        return f"STRUCT({', '.join(members)})"
    return _TYPE_NAMES[kind][0]


def _as_polars(columns: pa.Schema, _undocumented: Set[str]) -> Any:
    try:
        polars = importlib.import_module("polars")
    except ImportError as error:
        raise ModuleNotFoundError(
            f"A schema for Polars needs a package that is not installed ({error}): "
            "pip install polars",
            name=error.name,
        ) from error
    return polars.Schema(polars.from_arrow(columns.empty_table()).schema)


def _as_spark(columns: pa.Schema, _undocumented: Set[str]) -> Any:
    described = _spark_type(pa.struct(list(columns)))
    try:
        types = importlib.import_module("pyspark.sql.types")
    except ImportError:
        return json.dumps(described)
    return types.StructType.fromJson(described)


def _spark_type(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        element = _spark_type(kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    if pa.types.is_struct(kind):
        fields = [
            {"name": one.name, "type": _spark_type(one.type), "nullable": True, "metadata": {}}
            for one in kind
        ]
        return {"type": "struct", "fields": fields}
    return _TYPE_NAMES[kind][1]


_ENGINES: Final[Mapping[str, Callable[[pa.Schema, Set[str]], Any]]] = MappingProxyType(
    {"arrow": _as_arrow, "duckdb": _as_duckdb, "polars": _as_polars, "spark": _as_spark}
)
