"""Convert list columns to text, for spreadsheets and plain pandas methods."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.pandas_versions import STR, copy_frame
from outreach_frames.errors import InvalidInputError
from outreach_frames.tables.schema import is_list
from outreach_frames.tables.value_text import TEXT

# Fields that do not help a reader: constants, ids and URLs.
_DROPPED_MEMBERS: Final = frozenset({"object", "id"})
_DROPPED_SUFFIX: Final = "_url"
_MEMBER_SEPARATOR: Final = ", "
_START, _END, _EMPLOYER = "start_date", "end_date", "company_name"


def unlist(frame: pd.DataFrame, *, sep: str = "; ") -> pd.DataFrame:
    """Return the frame with all list columns converted to text.

    pandas' `drop_duplicates`, `value_counts` and `groupby`, which fail on lists, work on the
    result.

    Parameters
    ----------
    frame : DataFrame
        Any frame; the function does not change it.
    sep : str
        The separator between the entries of a list.

    Returns
    -------
    DataFrame
        The same rows, columns and index; every list column has the dtype str. An object in a list
        becomes its field values separated by commas, without id and URLs (child tables, such as
        `experiences()`, have all fields). Its start and end are a period: "2018-01-01 to
        2020-06-30", "to 2020-06-30" or, for a current position, "2018-01-01 to now". An empty list
        becomes empty text; a missing list stays missing.

    Raises
    ------
    InvalidInputError
        `sep` is not text.

    Notes
    -----
    Interface: the arrays of Person, Company and Contact.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> people.outreach.unlist().drop_duplicates().shape
    (20, 262)
    """
    if not isinstance(sep, str):
        raise InvalidInputError(f"sep must be text, not {type(sep).__name__}.")
    converted = [
        pd.Series(join_lists(lists, sep).to_pylist(), frame.index, STR, column.name)
        if (lists := as_lists(column)) is not None
        else column
        for _, column in frame.items()
    ]
    if not converted:
        return copy_frame(frame)
    result = pd.concat(converted, axis="columns")
    result.columns = frame.columns
    result.attrs = dict(frame.attrs)
    return result


def as_lists(column: pd.Series[Any]) -> pa.Array | None:
    """Return a column of lists as an Arrow array, or None for any other column."""
    if isinstance(column.dtype, pd.ArrowDtype):
        if not is_list(column.dtype.pyarrow_dtype):
            return None
    elif column.dtype != object or not _first_is_list(column):
        return None
    try:
        array = pa.array(column.array, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return array if is_list(array.type) else None


def join_lists(lists: pa.Array, sep: str) -> pa.Array:
    """Join the entries of each list to one text, without missing entries.

    >>> join_lists(pa.array([[1, None, 2], [], None]), "; ").to_pylist()
    ['1; 2', '', None]
    """
    entries = _to_texts(pc.list_flatten(lists))
    present = entries.is_valid()
    parents = pc.list_parent_indices(lists).filter(present).to_numpy()
    offsets = np.searchsorted(parents, np.arange(len(lists) + 1)).astype("int64")
    kept = pa.LargeListArray.from_arrays(pa.array(offsets), entries.filter(present))
    texts = pc.binary_join(kept, pa.scalar(sep, pa.large_string()))
    return pc.if_else(lists.is_null(), pa.scalar(None, pa.large_string()), texts)


def _to_texts(values: pa.Array) -> pa.Array:
    """Convert values of any type to text."""
    kind = values.type
    if is_list(kind):
        return join_lists(values, _MEMBER_SEPARATOR)
    if pa.types.is_struct(kind):
        return _join_members(values)
    try:
        return values.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in values.to_pylist()]
        return pa.array(texts, pa.large_string())


def _join_members(values: pa.StructArray) -> pa.Array:
    names = [field.name for field in values.type]
    if not names:
        return pa.nulls(len(values), pa.large_string())
    kept = [
        name
        for name in names
        if name not in _DROPPED_MEMBERS and not name.endswith(_DROPPED_SUFFIX)
    ] or names
    fields = {name: _to_texts(pc.struct_field(values, [names.index(name)])) for name in kept}
    if _START in fields and _END in fields:
        end = fields.pop(_END)
        fields[_START] = _periods(fields[_START], end, is_position=_EMPLOYER in names)
    # Arrow would drop a row whose texts are all missing, so each row begins with an empty text.
    empty, separator = pa.scalar("", TEXT), pa.scalar(_MEMBER_SEPARATOR, TEXT)
    joined = pc.binary_join_element_wise(empty, *fields.values(), separator, null_handling="skip")
    lines = pc.utf8_slice_codeunits(joined, len(_MEMBER_SEPARATOR))
    return pc.if_else(pc.equal(lines, ""), pa.scalar(None, TEXT), lines)


def _periods(starts: pa.Array, ends: pa.Array, *, is_position: bool) -> pa.Array:
    """Join starts and ends to periods; only a position without an end is current."""
    to, now, space, missing = (pa.scalar(text, TEXT) for text in ("to", "now", " ", None))
    if is_position:
        ends = pc.coalesce(ends, pc.if_else(starts.is_valid(), now, missing))
    periods = pc.binary_join_element_wise(starts, to, ends, space, null_handling="skip")
    return pc.if_else(ends.is_valid(), periods, starts)


def _first_is_list(column: pd.Series[Any]) -> bool:
    first = next((cell for cell in column.array if cell is not None and cell is not pd.NA), None)
    return isinstance(first, list | tuple | np.ndarray)
