"""Response bytes -> Arrow -> DataFrame, with no I/O.

Pages of people go through Arrow's JSON reader with the interface's types. Where that reader fails,
or could not be faithful, a page goes through `tolerant_reader` instead: the same columns, types and
values, more slowly.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import Any, Final, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, InvalidResponseError
from outreach_frames.reading.fast_reader import (
    BOM,
    PeoplePage,
    check_size,
    head_of,
    read_fast,
)
from outreach_frames.reading.tolerant_reader import (
    FURTHER_FIELDS,
    MOST_FURTHER_COLUMNS,
    records_table,
)
from outreach_frames.tables.json_values import parse_json
from outreach_frames.tables.schema import DtypeBackend, empty_table, to_frame
from outreach_frames.tables.value_text import json_text, json_texts

__all__ = [
    "DtypeBackend",
    "PeoplePage",
    "as_one_page",
    "check_dtype_backend",
    "free_frame",
    "people_frame",
    "read_people_page",
    "read_people_pages",
    "records_frame",
]

_KNOWN: Final = frozenset(spec.columns(spec.PERSON))
_LISTS_OF_OBJECTS: Final = frozenset(
    name
    for record in (spec.PERSON, spec.CONTACT)
    for name, field in spec.columns(record).items()
    if field.type == "array" and field.members
)
_GROUP_BYTES: Final = 16 << 20
_EXCERPT_LENGTH: Final = 120


def check_dtype_backend(value: object) -> None:
    """Refuse an unknown `dtype_backend`.

    Parameters
    ----------
    value : object
        What the caller gave.

    Raises
    ------
    InvalidInputError
        When it is neither "numpy_nullable" nor "pyarrow".

    Examples
    --------
    >>> check_dtype_backend("pyarrow")
    """
    backends = get_args(DtypeBackend)
    if value not in backends:
        names = " or ".join(repr(backend) for backend in backends)
        raise InvalidInputError(f"dtype_backend is {value!r}; give {names}.")


def read_people_page(body: bytes) -> PeoplePage:
    """Read one response of people search.

    Arrays whose elements the interface does not show (`locations`, `technologies`) are lists of
    text: an element that is not text is kept as JSON, names sorted and null members left out.
    A value that does not fit its column's type is missing there and kept as text in a column
    `<column>_raw`; a field that the interface does not know is kept as a column at the end. Beyond
    1,000 such columns, a text column `further_fields` has the rest, each row's as a JSON object.
    That column also has objects with names of over 100 characters, and, of very many rows, fields
    that hardly any row has.

    Parameters
    ----------
    body : bytes
        JSON in UTF-8.

    Returns
    -------
    PeoplePage
        The people, `_pagination` and `_errors`.

    Raises
    ------
    InvalidResponseError
        When the body is not a people search result: not valid JSON, cut off, of another shape, or
        with more than a million values.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> page.people.num_rows, page.pagination
    (1, {'total': 1})
    """
    return read_people_pages([body])


def read_people_pages(bodies: Sequence[bytes], *, use_threads: bool = True) -> PeoplePage:
    """Read several responses of people search as one, which is faster than one by one.

    Parameters
    ----------
    bodies : sequence of bytes
        JSON in UTF-8, as for `read_people_page`; at least one.
    use_threads : bool, default True
        Read with several threads; where several read at the same time anyway, it only costs.

    Returns
    -------
    PeoplePage
        The people of all, the last `_pagination`, and all `_errors`.

    Raises
    ------
    InvalidResponseError
        When a body is not a people search result.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> body = b'{"results": [{"id": "1"}], "_pagination": {"total": 2}}'
    >>> read_people_pages([body, body]).people.num_rows
    2
    """
    pages: list[PeoplePage] = []
    for group in _groups(bodies):
        for body in group:
            check_size(body)
        try:
            pages += read_fast(group, use_threads=use_threads)
            continue
        except (ValueError, pa.ArrowTypeError):
            pass  # the exception keeps what was read so far in memory
        if len(group) > 1:
            pages += [read_people_page(body) for body in group]
        else:
            pages.append(_read_tolerantly(group[0]))
    return as_one_page(pages)


def as_one_page(pages: Sequence[PeoplePage]) -> PeoplePage:
    """Put pages that follow each other into one.

    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {}}')
    >>> as_one_page([page, page]).people.num_rows
    2
    """
    if len(pages) == 1:
        return pages[0]
    people = concat_people([page.people for page in pages])
    return PeoplePage(people, [head for page in pages for head in page.heads])


def people_frame(
    pages: Sequence[PeoplePage] | Sequence[pa.Table], dtype_backend: DtypeBackend = "numpy_nullable"
) -> pd.DataFrame:
    """Put pages of people into one frame.

    Parameters
    ----------
    pages : sequence of PeoplePage or pyarrow.Table
        What `read_people_page` gave, or the `people` of it, which may be some columns only. None at
        all makes an empty frame.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow in every column.

    Returns
    -------
    DataFrame
        One row per person. The columns of the interface in its order (``str``, ``Int64``,
        ``Float64``, ``boolean``, ``datetime64[us]``, Arrow lists), then what else there was.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> people_frame([]).shape
    (0, 262)
    """
    check_dtype_backend(dtype_backend)
    tables = [page.people if isinstance(page, PeoplePage) else page for page in pages]
    return to_frame(concat_people(tables or [empty_table(spec.PERSON)]), dtype_backend)


def records_frame(
    records: Sequence[Any],
    fields: tuple[spec.Field, ...],
    dtype_backend: DtypeBackend = "numpy_nullable",
) -> pd.DataFrame:
    """Put the records of a small resource into a frame.

    Parameters
    ----------
    records : sequence
        Parsed JSON objects; they are not changed.
    fields : tuple of Field
        The resource in `spec`, such as `spec.MAILBOX`.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow in every column.

    Returns
    -------
    DataFrame
        One row per record: the interface's columns, ``datetime64[us, UTC]`` for date-times (one
        without an offset is in UTC), then what else the records hold; `_links` is left out.

    Examples
    --------
    >>> records_frame([{"id": "m1", "user": {"name": "Ada"}}], spec.MAILBOX)["user_name"].tolist()
    ['Ada']
    """
    check_dtype_backend(dtype_backend)
    table = records_table(records, fields, leave_out=frozenset({spec.LINKS_KEY}))
    return to_frame(table, dtype_backend)


def free_frame(
    records: Sequence[Any], dtype_backend: DtypeBackend = "numpy_nullable"
) -> pd.DataFrame:
    """Put records that the interface does not show into a frame.

    Parameters
    ----------
    records : sequence
        Parsed JSON; they are not changed.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow in every column.

    Returns
    -------
    DataFrame
        One row per record, nested objects flattened with `_`. A record that is not an object
        becomes a row with a column `value`. Text stays text; values of several types in one column
        become text.

    Examples
    --------
    >>> free_frame([{"email": "ada@example.com", "data": {"city": "Oslo"}}]).columns.tolist()
    ['email', 'data_city']
    """
    check_dtype_backend(dtype_backend)
    frame = to_frame(records_table(records, ()), dtype_backend)
    return frame if len(frame.columns) else pd.DataFrame(index=pd.RangeIndex(len(records)))


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Put flat tables under one another; columns whose types differ take one that holds all.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        At least one.

    Returns
    -------
    pyarrow.Table
        All columns, in the order of first appearance. Types that have nothing in common become
        text.

    Examples
    --------
    >>> table = concat_tables([pa.table({"a": [1]}), pa.table({"a": ["x"], "b": [True]})])
    >>> table.to_pylist()
    [{'a': '1', 'b': None}, {'a': 'x', 'b': True}]
    """
    try:
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # `column_names` builds its list at each use.
        found = [dict(zip(table.column_names, table.columns, strict=True)) for table in tables]
        missing = [pa.chunked_array([pa.nulls(len(table))]) for table in tables]
        columns = {
            name: _concat_column(
                name, [each.get(name, nulls) for each, nulls in zip(found, missing, strict=True)]
            )
            for name in dict.fromkeys(chain.from_iterable(found))
        }
        return pa.table(columns)


def concat_people(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables of people under one another; at most 1,000 columns are beyond the interface's.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        At least one.

    Returns
    -------
    pyarrow.Table
        As `concat_tables` makes it. What the first 1,000 further columns do not hold is in a text
        column `further_fields`, each row's as one JSON object.

    Examples
    --------
    >>> wide = [pa.table({f"{page}_{n}": [n] for n in range(600)}) for page in "ab"]
    >>> concat_people(wide).num_columns
    1001
    """
    schema = tables[0].schema
    if all(table.schema.equals(schema) for table in tables):
        return pa.concat_tables(tables)
    names = dict.fromkeys(name for table in tables for name in table.schema.names)
    further = [name for name in names if name not in _KNOWN and name != FURTHER_FIELDS]
    rest = set(further[MOST_FURTHER_COLUMNS:])
    return concat_tables([with_folded(table, rest) for table in tables] if rest else tables)


def with_folded(table: pa.Table, names: Container[str]) -> pa.Table:
    """Move columns into the one that has further fields as JSON, if the table has such columns.

    >>> with_folded(pa.table({"a": [1, 2], "b": [3, None]}), {"b"}).to_pylist()
    [{'a': 1, 'further_fields': '{"b":3}'}, {'a': 2, 'further_fields': None}]
    """
    folded = [name for name in table.column_names if name in names and name != FURTHER_FIELDS]
    if not folded:
        return table
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    if FURTHER_FIELDS in table.column_names:
        for row, text in zip(rows, table.column(FURTHER_FIELDS).to_pylist(), strict=True):
            row.update(_object(text))
        table = table.drop_columns(FURTHER_FIELDS)
    for name in folded:
        for row, value in zip(rows, table.column(name).to_pylist(), strict=True):
            if value is not None:
                row[name] = value
    texts = pa.array([json_text(row) if row else None for row in rows], pa.string())
    return table.drop_columns(folded).append_column(FURTHER_FIELDS, texts)


def _object(text: Any) -> dict[str, Any]:
    """Give the fields that a cell has; what the service itself sent under that name is one."""
    try:
        fields = parse_json(text)
    except (TypeError, ValueError):
        fields = text
    if isinstance(fields, dict):
        return fields
    return {} if text is None else {FURTHER_FIELDS: text}


def _concat_column(name: str, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    if len({part.type for part in parts}) == 1:
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    try:
        tables = [pa.table({"": part}) for part in parts]
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass
    is_known = name in _LISTS_OF_OBJECTS
    if is_known and all(_has_objects(part.type) or part.type == pa.null() for part in parts):
        return _concat_lists([part.combine_chunks() for part in parts])
    return pa.chunked_array([json_texts(part) for part in parts], pa.string())


def _has_objects(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.ListType) and isinstance(kind.value_type, pa.StructType)


def _concat_lists(parts: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Put lists of objects under one another; members whose types differ become text, no more."""
    known = [part for part in parts if _has_objects(part.type)]
    objects = [part.flatten() for part in known]
    members = concat_tables(
        [pa.table(one.flatten(), names=[field.name for field in one.type]) for one in objects]
    ).combine_chunks()
    values = pa.StructArray.from_arrays(
        [column.combine_chunks() for column in members.columns],
        names=members.column_names,
        mask=pa.concat_arrays([one.is_null() for one in objects]),
    )
    lengths = pa.concat_arrays(
        [
            pc.list_value_length(part) if _has_objects(part.type) else part.cast(pa.int32())
            for part in parts
        ]
    )
    offsets = np.concatenate([[0], np.cumsum(lengths.fill_null(0))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), values, mask=lengths.is_null())
    return pa.chunked_array([lists])


def _groups(bodies: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Split bodies into groups that are read at once."""
    group: list[bytes] = []
    size = 0
    for body in bodies:
        if group and size + len(body) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(body)
        size += len(body)
    if group:
        yield group


def _read_tolerantly(body: bytes) -> PeoplePage:
    """Read a body by way of Python objects."""
    try:
        result = parse_json(body.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise _invalid(body, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except ValueError as error:
        raise _invalid(body, f"is not valid JSON, or is cut off ({error})") from error
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    if not isinstance(result, dict):
        raise _invalid(body, "is not a JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _invalid(body, f"has no list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _invalid(body, f"has no object `{spec.PAGINATION_KEY}`")
    return PeoplePage(records_table(people, spec.PERSON), [head_of(result)])


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The response to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )
