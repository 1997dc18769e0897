"""Overrides of the service's checks: per row, and nothing but a real boolean is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.arguments import is_missing, suggestion
from outreach_frames.common.text import quoted
from outreach_frames.leads.planning.mapping import OVERRIDES, LeadMapping
from outreach_frames.leads.planning.problems import Problem
from outreach_frames.tables.value_text import TEXT, python_values

NOT_BOOLEAN: Final = "override_not_boolean"
UNKNOWN: Final = "unknown_override"

_FIELD: Final = "overrides"

# Each combination of overrides as the lead's JSON; its place is the sum of their bits.
_TEXTS: Final = pa.array(
    [
        orjson.dumps(names).decode() if names else None
        for bits in range(1 << len(OVERRIDES))
        for names in [{name: True for bit, name in enumerate(OVERRIDES) if bits >> bit & 1}]
    ],
    TEXT,
)


def override_texts(frame: pd.DataFrame, mapping: LeadMapping, problems: list[Problem]) -> pa.Array:
    """Return each row's overrides as JSON, missing where none is true."""
    bits = np.zeros(len(frame), dtype=np.int64)
    for name, given in mapping.overrides.items():
        bit = 1 << OVERRIDES.index(name)
        if isinstance(given, bool):
            bits |= bit * given
        else:
            bits |= bit * _flags(frame[given], given, name, problems)
    if mapping.override_column is not None:
        bits |= _mixed(frame[mapping.override_column], mapping.override_column, problems)
    return _TEXTS.take(pa.array(bits))


def count_overrides(texts: pa.Array) -> dict[str, int]:
    """Count the rows that bring each override, for those that any brings."""
    counts: Counter[str] = Counter()
    for combination in pc.value_counts(texts.drop_null()).to_pylist():
        counts.update(dict.fromkeys(orjson.loads(combination["values"]), combination["counts"]))
    return dict(counts)


def _flags(
    cells: pd.Series[Any], column: Hashable, name: str, problems: list[Problem]
) -> np.ndarray[Any, Any]:
    """Read a column of booleans; a missing one is not given, so false."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype == bool:
        return cells.to_numpy().astype(np.int64)
    flags = np.zeros(len(cells), dtype=np.int64)
    for row, cell in enumerate(python_values(cells)):
        if isinstance(cell, bool | np.bool_):
            flags[row] = bool(cell)
        elif not is_missing(cell):
            problems.append(_not_boolean(row, column, name, cell))
    return flags


def _mixed(
    cells: pd.Series[Any], column: Hashable, problems: list[Problem]
) -> np.ndarray[Any, Any]:
    """Read a column of dicts, or of booleans that are for all overrides."""
    bits = np.zeros(len(cells), dtype=np.int64)
    for row, cell in enumerate(python_values(cells)):
        if isinstance(cell, bool | np.bool_):
            bits[row] = bool(cell) * (len(_TEXTS) - 1)
        elif isinstance(cell, Mapping):
            bits[row] = _bits(row, cell, column, problems)
        elif not is_missing(cell):
            problems.append(_not_boolean(row, column, "the overrides", cell))
    return bits


def _bits(row: int, cell: Mapping[Any, Any], column: Hashable, problems: list[Problem]) -> int:
    bits = 0
    for name, value in cell.items():
        if name not in OVERRIDES:
            message = (
                f"There is no override {quoted(name)}.{suggestion(str(name), OVERRIDES)} "
                f"There are: {', '.join(OVERRIDES)}."
            )
            problems.append(Problem(row, column, _FIELD, UNKNOWN, message))
        elif isinstance(value, bool | np.bool_):
            bits |= bool(value) << OVERRIDES.index(name)
        elif not is_missing(value):
            problems.append(_not_boolean(row, column, name, value))
    return bits


def _not_boolean(row: int, column: Hashable, name: str, cell: object) -> Problem:
    message = (
        f"{quoted(cell)} is not a boolean, so {name} would be a guess. Make the column boolean, "
        'for example with df[column].map({"yes": True, "no": False}).'
    )
    return Problem(row, column, _FIELD, NOT_BOOLEAN, message)
