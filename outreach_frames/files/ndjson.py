"""Write frames as NDJSON files: each row becomes a JSON object on one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.analysis.interface_columns import meanings
from outreach_frames.common.atomic_files import check_suffix
from outreach_frames.files.csv_file import check_columns, replace_csv
from outreach_frames.files.parquet import parquet_table
from outreach_frames.tables.value_text import column_texts

_ROWS_AT_ONCE = 1000


def write_ndjson(frame: pd.DataFrame, path: str | Path) -> Path:
    r"""Write a frame to an ``.ndjson`` file; nest people's fields as responses do.

    >>> import tempfile
    >>> frame = pd.DataFrame({"name": ["Ada"], "day": [pd.Timestamp("2026-03-02")]})
    >>> write_ndjson(frame, Path(tempfile.mkdtemp()) / "people.ndjson").read_text()
    '{"name":"Ada","day":"2026-03-02"}\n'
    """
    check_suffix(path, (".ndjson",), "NDJSON")
    check_columns(frame)
    table = parquet_table(frame.reset_index(drop=True), attrs=False)
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            texts = column_texts(frame[field.name]).texts
            table = table.set_column(position, field.name, texts)
    subject = meanings(table.column_names).get("id")
    is_people = subject is not None and subject.group == "person"
    leaves = spec.leaves(spec.PERSON) if is_people else ()
    paths = {"_".join(names): names for names, _ in leaves}

    def write(file: BinaryIO) -> None:
        for batch in table.to_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                nested: dict[str, Any] = {}
                for name, value in row.items():
                    *objects, last = paths.get(name, (name,))
                    place = nested
                    for each in objects:
                        place = place.setdefault(each, {})
                    place[last] = value
                file.write(orjson.dumps(nested, default=str, option=orjson.OPT_APPEND_NEWLINE))

    return replace_csv(path, write, {})
