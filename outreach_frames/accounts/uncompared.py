"""Find columns of addresses and profile URLs by their values, whatever their names."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.arguments import near_names
from outreach_frames.common.placeholders import are_filled
from outreach_frames.common.text import plural, quoted
from outreach_frames.identity.cells import Cells, texts_of
from outreach_frames.identity.keys import certain_keys, email_cells, profnet_url_cells
from outreach_frames.tables.value_text import strip_texts

# Per kind: the reading of cells, and a pattern of a part of each cell with such an identifier.
_READINGS: Final[dict[str, tuple[Callable[[pa.Array], Cells], str]]] = {
    spec.LEAD_IDENTIFIERS[0]: (email_cells, "[@\uff20]|%40"),
    spec.LEAD_IDENTIFIERS[1]: (profnet_url_cells, "(?i)(/|%2f)in(/|%2f)"),
}
# Columns of this package's frames with the addresses of colleagues, or of what was asked for.
_OWN_COLUMNS: Final = ("user_email", "created_by_user_email", "owner", "asked")
_SAMPLE: Final = 500
_FEW_CELLS: Final = 30
_MANY_CELLS: Final = 10


def columns_holding(
    kind: str, frame: pd.DataFrame, compared: Collection[Hashable] = ()
) -> dict[Hashable, int]:
    """Return the other columns that hold addresses or profile URLs, with the number of such cells.

    At least half of a column's filled cells hold one. In a column of many cells, at least half of
    them are distinct, unlike a column with a colleague's address in every row.

    >>> crm = pd.DataFrame({"Correo": ["ada@x.example", "n/a"], "Name": ["Ada", "Bo"]})
    >>> columns_holding("email", crm)
    {'Correo': 1}
    """
    holding: dict[Hashable, int] = {}
    for place, name in enumerate(frame.columns):
        if name not in compared and name not in _OWN_COLUMNS:
            number = _count_cells(kind, frame.iloc[:, place])
            if number:
                holding[name] = number
    return holding


def _count_cells(kind: str, column: pd.Series[Any]) -> int:
    """Return the number of cells with identifiers, or 0 if the column does not consist of them."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return 0
    read, part = _READINGS[kind]
    # Most columns are ruled out by some of their rows.
    some = texts_of(column.iloc[:: len(column) // _SAMPLE + 1])
    filled = some.filter(are_filled(strip_texts(some)))
    if len(filled) >= _FEW_CELLS and not pc.any(pc.match_substring_regex(filled, part)).as_py():
        return 0
    texts = texts_of(column)
    number_filled = pc.sum(are_filled(strip_texts(texts))).as_py() or 0
    # Reading long texts, such as notes, is slow.
    if 2 * (pc.sum(pc.match_substring_regex(texts, part)).as_py() or 0) < number_filled:
        return 0
    cells = read(texts)
    keys = cells.keys if kind == spec.LEAD_IDENTIFIERS[0] else certain_keys(cells.keys)
    rows = np.repeat(np.arange(len(texts)), cells.counts)
    is_whole = np.zeros(len(texts), dtype=bool)
    is_whole[rows[keys.is_valid().to_numpy(zero_copy_only=False)]] = True
    is_whole[cells.ambiguous] = False
    number = int(is_whole.sum())
    distinct = pc.count_distinct(keys).as_py()
    is_repeated = number_filled >= _MANY_CELLS and 2 * distinct < number_filled
    return 0 if 2 * number < number_filled or is_repeated else number


def describe_columns(table: str, columns: dict[Hashable, int]) -> list[str]:
    """Return a text for each column of a table, with its number of cells.

    >>> describe_columns("This table", {"Correo": 2})
    ["This table, column 'Correo': 2 cells"]
    """
    return [
        f"{table}, column {quoted(name)}: {plural(number, 'cell')}"
        for name, number in columns.items()
    ]


def call_with(kind: str, ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> str:
    """Return the argument that compares columns: a list for both tables, else a pair.

    >>> call_with("email", ["email"], ["Email", "Secondary Email"])
    'email=["Email", "Secondary Email"]'
    >>> call_with("email", ["Courriel"], ["Correo"])
    'email=("Courriel", "Correo")'
    """
    longer, shorter = (ours, theirs) if len(ours) > len(theirs) else (theirs, ours)
    if all(near_names(name, longer) for name in shorter):
        return f"{kind}={_written(longer)}"
    return f"{kind}=({_written(ours)}, {_written(theirs)})"


def _written(names: Sequence[Hashable]) -> str:
    texts = [
        json.dumps(name, ensure_ascii=False) if isinstance(name, str) else repr(name)
        for name in names
    ]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
