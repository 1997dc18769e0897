"""Convert pandas frames to frames of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "duckdb": duckdb.from_df,
    "arrow": pa.table,
}
