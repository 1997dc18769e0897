"""Convert frames to JSON for other programs."""

from __future__ import annotations

import msgspec
import pandas as pd
import pyarrow as pa

from outreach_frames.files.csv_columns import csv_form, storable
from outreach_frames.tables.pandas_metadata import arrow_table


def json_records(frame: pd.DataFrame) -> str:
    r"""Return a frame's rows as a list of JSON objects; missing cells are null.

    >>> json_records(pd.DataFrame({"day": [pd.Timestamp("2026-03-02")], "size": [None]}))
    '[\n  {\n    "day": "2026-03-02",\n    "size": null\n  }\n]\n'
    """
    cells = {name: storable(column) for name, column in frame.items()}
    table = arrow_table(pd.DataFrame(cells), index=False)
    columns = [
        column if pa.types.is_nested(column.type) else csv_form(column) for column in table.columns
    ]
    records = pa.table(columns, table.column_names).to_pylist()
    return msgspec.json.format(msgspec.json.encode(records)).decode() + "\n"
