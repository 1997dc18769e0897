"""Keep the dtypes of a frame in Arrow's metadata, in the form of pandas, and restore them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.common.pandas_versions import dtype_named
from outreach_frames.common.text import unique_name
from outreach_frames.tables.schema import is_text, nullable_dtype, with_dtype

OWN_METADATA: Final = b"outreach_frames"
_PANDAS: Final = b"pandas"
_ARROW_DTYPE: Final = "[pyarrow]"


def arrow_table(frame: pd.DataFrame, *, index: bool | None = None) -> pa.Table:
    """Convert a frame to a table with pandas' metadata.

    Nested columns are objects in the metadata, because pandas cannot parse nested dtype names.
    """
    table = pa.Table.from_pandas(frame, preserve_index=index)
    noted = table.schema.pandas_metadata
    nested = []
    for column in noted["columns"]:
        if column["numpy_type"].endswith(_ARROW_DTYPE) and pa.types.is_nested(
            table.schema.field(column["field_name"]).type
        ):
            column["numpy_type"] = "object"
            nested.append(column["name"])
    notes = {_PANDAS: json.dumps(noted), OWN_METADATA: json.dumps(nested)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **notes})


def restore_frame(
    columns: Iterable[tuple[str, pa.ChunkedArray]],
    rows: int,
    metadata: Mapping[bytes, bytes] | None,
    unknown: Container[str] = (),
) -> pd.DataFrame:
    """Build a frame with the dtypes and index in the metadata.

    Columns without metadata, and columns in `unknown`, have this package's dtypes.
    """
    notes = json.loads((metadata or {}).get(_PANDAS, b"{}"))
    dtypes = {note["field_name"]: note["numpy_type"] for note in notes.get("columns", [])}
    dtypes |= dict.fromkeys(json.loads((metadata or {}).get(OWN_METADATA, b"[]")), _ARROW_DTYPE)
    arrays: dict[str, Any] = {}
    levels: dict[str, pa.ChunkedArray] = {}
    for name, column in columns:
        if name in notes.get("index_columns", []):
            levels[name] = column
        else:
            arrays[name] = _restored(column, None if name in unknown else dtypes.get(name))
    index = _restored_index(levels, rows, notes) if notes else pd.RangeIndex(rows)
    frame = pd.DataFrame(arrays, index=index, copy=False)
    frame.columns = pd.Index(list(arrays), dtype=None if arrays else "object")
    headers = notes.get("column_indexes", [])
    frame.columns.name = headers[0]["name"] if len(headers) == 1 else None
    return frame


def _restored(column: pa.ChunkedArray, dtype_name: str | None) -> Any:
    """Convert a column to a dtype, or to our own dtype if the dtype is unknown or does not fit."""
    if dtype_name is not None and dtype_name.endswith(_ARROW_DTYPE):
        return pd.arrays.ArrowExtensionArray(column)
    if pa.types.is_null(column.type) and dtype_name is None:
        column = column.cast(pa.string())
    own: Any = nullable_dtype(column.type)
    dtype: Any = own if dtype_name is None else dtype_named(dtype_name)
    if isinstance(dtype, np.dtype):
        has_gaps = column.null_count and not pa.types.is_dictionary(column.type)
        if has_gaps and dtype.kind in "iub":
            dtype = pd.Int64Dtype() if dtype.kind == "i" else own
    elif isinstance(dtype, pd.StringDtype) != is_text(column.type):
        dtype = own
    return with_dtype(column, dtype)


def _restored_index(
    levels: Mapping[str, pa.ChunkedArray], rows: int, notes: Mapping[str, Any]
) -> pd.Index[Any]:
    """Let Arrow build the index that pandas' metadata describes."""
    described = [column for column in notes["columns"] if column["field_name"] in levels]
    kept = {**notes, "columns": described, "column_indexes": [], "attributes": {}}
    # Add a column, because to_pandas would lose the number of rows of a table without columns.
    table = pa.table({**levels, unique_name("rows", levels): pa.nulls(rows)})
    frame: pd.DataFrame = table.replace_schema_metadata({_PANDAS: json.dumps(kept)}).to_pandas()
    return frame.index
