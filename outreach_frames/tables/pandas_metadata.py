"""Keep the dtypes of a frame in Arrow's metadata, in the form of pandas, and restore them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.common.pandas_versions import dtype_named
from outreach_frames.common.text import unique_name
from outreach_frames.tables.schema import is_text, to_array

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
    columns: dict[str, pa.ChunkedArray],
    rows: int,
    metadata: Mapping[bytes, bytes] | None,
    unknown: Iterable[str] = (),
) -> pd.DataFrame:
    """Build a frame with the dtypes and index in the metadata; other columns have our own dtypes.

    So do columns in `unknown`. `columns` is emptied, so that memory holds little more than a copy.
    """
    notes = json.loads((metadata or {}).get(_PANDAS, b"{}"))
    dtypes = {one["field_name"]: one["numpy_type"] for one in notes.get("columns", [])}
    nested = json.loads((metadata or {}).get(OWN_METADATA, b"[]"))
    dtypes |= dict.fromkeys(nested, _ARROW_DTYPE) | dict.fromkeys(unknown)
    # In the metadata, a RangeIndex is a dict instead of a column name.
    levels = [name for name in notes.get("index_columns", []) if isinstance(name, str)]
    names = [name for name in columns if name not in levels]
    of_numpy = {
        name: columns.pop(name)
        for name in list(columns)
        if name in levels or _is_numpy(dtypes.get(name), columns[name])
    }
    frame = _frame_of_numpy(of_numpy, rows, notes)
    arrays = {
        name: frame[name] if name in frame else _restored(columns.pop(name), dtypes.get(name))
        for name in names
    }
    result = pd.DataFrame(arrays, index=frame.index, copy=False)
    result.columns = pd.Index(names, dtype=None if names else "object")
    headers = notes.get("column_indexes", [])
    result.columns.name = headers[0]["name"] if len(headers) == 1 else None
    return result


def _is_numpy(dtype_name: str | None, column: pa.ChunkedArray) -> bool:
    """Check whether a column has a dtype of numpy or is categorical, and fits the dtype."""
    if dtype_name is None or dtype_name.endswith(_ARROW_DTYPE):
        return False
    dtype = dtype_named(dtype_name)
    has_gaps = column.null_count and not pa.types.is_dictionary(column.type)
    return isinstance(dtype, np.dtype) and not (has_gaps and dtype.kind in "iub")


def _frame_of_numpy(
    columns: dict[str, pa.ChunkedArray], rows: int, notes: Mapping[str, Any]
) -> pd.DataFrame:
    """Let Arrow convert columns as pandas' metadata describes."""
    if not notes:
        return pd.DataFrame(index=pd.RangeIndex(rows))
    described = [column for column in notes["columns"] if column["field_name"] in columns]
    kept = {**notes, "columns": described, "column_indexes": [], "attributes": {}}
    # Add a column, because to_pandas would lose the number of rows of a table without columns.
    table = pa.table({**columns, unique_name("rows", columns): pa.nulls(rows)})
    frame: pd.DataFrame = table.replace_schema_metadata({_PANDAS: json.dumps(kept)}).to_pandas()
    return frame


def _restored(column: pa.ChunkedArray, dtype_name: str | None) -> Any:
    """Convert a column to a dtype that numpy does not have."""
    if dtype_name is None:
        return to_array(column, "numpy_nullable")
    if dtype_name.endswith(_ARROW_DTYPE):
        return pd.arrays.ArrowExtensionArray(column)
    dtype: Any = dtype_named(dtype_name)
    if isinstance(dtype, np.dtype):
        # An integer or a boolean with missing values.
        kind = pa.int64() if dtype.kind == "i" else column.type
        return to_array(column.cast(kind), "numpy_nullable")
    if isinstance(dtype, pd.StringDtype) and not is_text(column.type):
        return to_array(column, "numpy_nullable")
    return dtype.__from_arrow__(column)
