"""What a frame's rows would send, and everything that is wrong with them, all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import PLACEHOLDERS, quoted
from outreach_frames.identity.keys import are_placeholder_urls
from outreach_frames.leads.planning import syntax
from outreach_frames.leads.planning.mapping import (
    EMAIL,
    OVERRIDES,
    PROFNET_URL,
    LeadMapping,
    no_such_override,
)
from outreach_frames.tables.value_text import TEXT, column_texts, python_values, strip_texts

PLACEHOLDER: Final = "placeholder"
NOT_PLAIN: Final = "not_a_plain_value"

# What programs write for a missing value, which no lead's text should say; people may be called
# Nan or Null, and NA is a country.
_WRITTEN_BY_PROGRAMS: Final = ("nan", "NaN", "<NA>", "None", "NaT", "null", "NULL")

# Each combination of overrides as the lead's JSON; its place is the sum of their bits.
_TEXTS: Final = pa.array(
    [
        orjson.dumps(names).decode() if names else None
        for bits in range(1 << len(OVERRIDES))
        for names in [{name: True for bit, name in enumerate(OVERRIDES) if bits >> bit & 1}]
    ],
    TEXT,
)


class Problem(NamedTuple):
    """One thing that is wrong with one row; `column` and `field` are None for the whole row."""

    row: int
    column: str | None
    field: str | None
    code: str
    message: str


# How an identifier is checked: a whole column for what is certainly right, then each other text.
_CHECKS: Final = {
    EMAIL: (syntax.is_simple_email, syntax.email_problem),
    PROFNET_URL: (syntax.is_simple_url, syntax.url_problem),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """All rows of a frame as text, by field, with their problems.

    `overrides` has one text per row: the lead's overrides as JSON, missing where it has none.
    """

    identifiers: Mapping[str, pa.Array]
    data: Mapping[str, pa.Array]
    overrides: pa.Array
    problems: pd.DataFrame
    is_valid: np.ndarray[Any, Any]


def check_rows(frame: pd.DataFrame, mapping: LeadMapping) -> Checked:
    """Check every row of a frame against every rule."""
    problems: list[Problem] = []
    identifiers = {
        field: _identifier(_Column(frame[column], field, column, problems))
        for field, column in mapping.identifiers.items()
    }
    data = {
        field: _data_field(_Column(frame[column], field, column, problems))
        for field, column in mapping.data.items()
    }
    chosen = _override_texts(frame, mapping, problems)
    # An identifier that cannot be text is wrong, not missing.
    unreadable = [each for each in problems if each.code == NOT_PLAIN]
    is_given = np.zeros(len(frame), dtype=bool)
    is_given[[each.row for each in unreadable if each.field in identifiers]] = True
    for texts in identifiers.values():
        is_given |= texts.is_valid().to_numpy(zero_copy_only=False)
    message = _missing_message(mapping, data)
    problems += [
        Problem(row, None, None, "missing_identifier", message)
        for row in np.flatnonzero(~is_given).tolist()
    ]
    is_valid = np.ones(len(frame), dtype=bool)
    is_valid[[problem.row for problem in problems if problem.code != PLACEHOLDER]] = False
    return Checked(identifiers, data, chosen, _problems_frame(problems, frame.index), is_valid)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with the lead's field that it gives, and where its problems are reported."""

    cells: pd.Series[Any]
    field: str
    name: Hashable
    problems: list[Problem]

    def report(self, row: int, code: str, message: str) -> None:
        """Report a problem of one cell."""
        self.problems.append(Problem(row, str(self.name), self.field, code, message))

    def texts(self) -> pa.Array:
        """Return the cells as text; report those that cannot be text."""
        written = column_texts(self.cells)
        for row, why in written.unreadable.items():
            self.report(row, NOT_PLAIN, f"{self.field}: {why}")
        return written.texts

    def without(self, texts: pa.Array, placeholders: pa.Array) -> pa.Array:
        """Take placeholders as missing, and report them."""
        rows = _rows(placeholders)
        if not rows:
            return texts
        for row in rows:
            message = f"{quoted(texts[row].as_py())} is a placeholder and was treated as missing."
            self.report(row, PLACEHOLDER, message)
        return pc.if_else(placeholders, pa.scalar(None, TEXT), texts)


def _identifier(column: _Column) -> pa.Array:
    texts = strip_texts(column.texts())
    placeholders = pc.is_in(pc.utf8_lower(texts), pa.array(sorted(PLACEHOLDERS), TEXT))
    if column.field == PROFNET_URL:
        placeholders = pc.or_(placeholders, are_placeholder_urls(texts))
    texts = column.without(texts, placeholders)
    is_simple, problem_of = _CHECKS[column.field]
    others = pc.invert(is_simple(texts)).fill_null(False)
    # Each distinct text once: this is slow.
    problem = cache(problem_of)
    for row, text in zip(_rows(others), texts.filter(others).to_pylist(), strict=True):
        if wrong := problem(text):
            column.report(row, f"invalid_{column.field}", wrong)
    return texts


def _data_field(column: _Column) -> pa.Array:
    texts = column.texts()
    texts = column.without(texts, pc.is_in(texts, pa.array(_WRITTEN_BY_PROGRAMS, TEXT)))
    lengths = pc.utf8_length(texts)
    for row in _rows(pc.greater(lengths, spec.MAX_DATA_VALUE_LENGTH).fill_null(False)):
        message = (
            f"The text has {lengths[row].as_py():,} characters; a value of {column.field} has "
            f"{spec.MAX_DATA_VALUE_LENGTH:,} at most. Shorten it."
        )
        column.report(row, "data_value_too_long", message)
    return texts


def _missing_message(mapping: LeadMapping, data: Mapping[str, pa.Array]) -> str:
    message = f"The row has no {' and no '.join(mapping.identifiers)}. Fill it in"
    if PROFNET_URL not in mapping.identifiers:
        for field, texts in data.items():
            if pc.any(syntax.is_simple_url(texts), min_count=0).as_py():
                column = quoted(mapping.data[field])
                return f"{message}, or let {column} identify the lead: {PROFNET_URL}={column}."
    return f"{message}, or leave the row out."


def _rows(mask: pa.Array) -> list[int]:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()


def _override_texts(frame: pd.DataFrame, mapping: LeadMapping, problems: list[Problem]) -> pa.Array:
    """Return each row's overrides as JSON, missing where none is true."""
    bits = np.zeros(len(frame), dtype=np.int64)
    for name, given in mapping.overrides.items():
        if isinstance(given, bool):
            bits |= _bits_of(name) * given
            continue
        column = _Column(frame[given], "overrides", given, problems)
        if isinstance(column.cells.dtype, np.dtype) and column.cells.dtype == bool:
            bits |= column.cells.to_numpy() * np.int64(_bits_of(name))
            continue
        for row, cell in enumerate(python_values(column.cells)):
            bits[row] |= _cell_bits(cell, name, row, column)
    return _TEXTS.take(pa.array(bits))


def _bits_of(name: str | None) -> int:
    """Return the bit of an override; of all overrides for None."""
    return len(_TEXTS) - 1 if name is None else 1 << OVERRIDES.index(name)


def _cell_bits(cell: object, name: str | None, row: int, column: _Column) -> int:
    """Read a cell: a boolean for one override, or a boolean or dict for all; missing is false."""
    if isinstance(cell, bool | np.bool_):
        return bool(cell) * _bits_of(name)
    if isinstance(cell, Mapping) and name is None:
        bits = 0
        for key, value in cell.items():
            if key in OVERRIDES:
                bits |= _cell_bits(value, key, row, column)
            else:
                column.report(row, "unknown_override", no_such_override(key))
        return bits
    if not is_missing(cell):
        message = (
            f"{quoted(cell)} is not a boolean, so {name or 'the overrides'} would be a guess. Make "
            'the column boolean, for example with df[column].map({"yes": True, "no": False}).'
        )
        column.report(row, "override_not_boolean", message)
    return 0


def count_overrides(texts: pa.Array) -> dict[str, int]:
    """Count the rows that bring each override, for those that any brings."""
    counts: Counter[str] = Counter()
    for combination in pc.value_counts(texts.drop_null()).to_pylist():
        counts.update(dict.fromkeys(orjson.loads(combination["values"]), combination["counts"]))
    return dict(counts)


def _problems_frame(problems: Sequence[Problem], index: pd.Index) -> pd.DataFrame:
    """Return one row per problem in the order of the rows, with the labels of these."""
    ordered = sorted(problems, key=lambda problem: problem.row)
    dtypes = {"row": "Int64", **dict.fromkeys(Problem._fields[1:], "str")}
    table = pd.DataFrame(ordered, columns=list(dtypes), dtype="object").astype(dtypes)
    labels = index.to_flat_index().take([problem.row for problem in ordered])
    table.insert(1, "index", pd.Series(labels))
    return table
