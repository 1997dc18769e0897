"""Response bytes -> Arrow -> DataFrame, with no I/O.

Pages of people go through Arrow's JSON reader with the interface's types. Where that reader fails,
or could not be faithful, a page goes through `tolerant` instead: the same columns, types and
values, more slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.arrow_schema import (
    DtypeBackend,
    empty_table,
    to_frame,
    wire_schema,
    wire_type,
)
from outreach_frames.errors import InvalidInputError, InvalidResponseError
from outreach_frames.tolerant import (
    LARGEST_EXACT,
    RAW_SUFFIX,
    as_text,
    named_columns,
    parse_json,
    records_table,
    typed_dates,
)

__all__ = [
    "DtypeBackend",
    "PeoplePage",
    "check_dtype_backend",
    "free_frame",
    "people_frame",
    "read_people_page",
    "read_people_pages",
    "records_frame",
]

_PEOPLE_COLUMNS: Final = spec.columns(spec.PERSON)
_PEOPLE_DEPTH: Final = max(len(path) for path, _ in spec.leaves(spec.PERSON))
_NOT_SHOWN: Final = tuple(
    name for name, field in _PEOPLE_COLUMNS.items() if field.type == "array" and field.items is None
)
_RESULT: Final = tuple(
    field for field in spec.PEOPLE_SEARCH_RESULT if field.name != spec.ERRORS_KEY
)
# Where the interface is kept to, its types are enough; an unknown field stops the reader at once.
_STRICT: Final = arrow_json.ParseOptions(
    explicit_schema=wire_schema(_RESULT).append(pa.field(spec.ERRORS_KEY, pa.list_(pa.null()))),
    unexpected_field_behavior="error",
)
_BLOCK_BYTES: Final = 8 << 20
_GROUP_BYTES: Final = 64 << 20
# Arrow's reader recurses on unknown fields, and some 15,000 levels end the process.
_MAX_DEPTH: Final = 100
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))
_BOM: Final = b"\xef\xbb\xbf"
_EXCERPT_LENGTH: Final = 120


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """One page of people search.

    Attributes
    ----------
    people : pyarrow.Table
        One row per person: the columns of `spec.columns(spec.PERSON)`, then what else there was.
    pagination : dict
        The page's `_pagination`, less what was null.
    errors : list
        The page's `_errors`, as they came.
    """

    people: pa.Table
    pagination: dict[str, Any]
    errors: list[Any]


class _NotFaithfulError(ValueError):
    """The fast way would change a value."""


def check_dtype_backend(value: object) -> None:
    """Refuse a `dtype_backend` that there is not.

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
    text: an element that is no text is kept as JSON, names sorted and null members left out.
    A value that does not fit its column's type is missing there and kept as text in a column
    `<column>_raw`; a field that the interface does not know is kept as a column at the end.

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
        When the body is no people search result: no JSON, cut off, of another shape.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> page = read_people_page(b'{"results": [{"id": "1"}], "_pagination": {"total": 1}}')
    >>> page.people.num_rows, page.pagination
    (1, {'total': 1})
    """
    return read_people_pages([body])[0]


def read_people_pages(bodies: Sequence[bytes]) -> list[PeoplePage]:
    """Read several responses of people search at once, which is faster than one by one.

    Parameters
    ----------
    bodies : sequence of bytes
        JSON in UTF-8, as for `read_people_page`.

    Returns
    -------
    list of PeoplePage
        One per body, in the same order. A column that only some pages have may be in the others
        too, all missing.

    Raises
    ------
    InvalidResponseError
        When a body is no people search result.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> body = b'{"results": [], "_pagination": {"total": 0}}'
    >>> [page.people.num_rows for page in read_people_pages([body, body])]
    [0, 0]
    """
    pages: list[PeoplePage] = []
    for group in _groups(bodies):
        try:
            pages += _read_fast(group)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError, _NotFaithfulError):
            if len(group) > 1:
                pages += [page for body in group for page in read_people_pages([body])]
            else:
                pages.append(_read_tolerantly(group[0]))
    return pages


def people_frame(
    pages: Sequence[PeoplePage] | Sequence[pa.Table], dtype_backend: DtypeBackend = "numpy_nullable"
) -> pd.DataFrame:
    """Put pages of people into one frame.

    Parameters
    ----------
    pages : sequence of PeoplePage or pyarrow.Table
        What `read_people_page` gave, or the `people` of it. None at all makes an empty frame.
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
    return to_frame(concat_tables([empty_table(spec.PERSON), *tables]), dtype_backend)


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
        One row per record, nested objects flattened with `_`. A record that is no object becomes
        a row with a column `value`. Text stays text; values of several types in one column become
        text.

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
        names = dict.fromkeys(name for table in tables for name in table.column_names)
        columns = {name: _concat_column(tables, name) for name in names}
        return pa.table(columns)


def _concat_column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    parts = [
        table.select([name]) if name in table.column_names else _missing_column(name, len(table))
        for table in tables
    ]
    try:
        return pa.concat_tables(parts, promote_options="permissive").column(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.chunked_array([as_text(part.column(0)) for part in parts], pa.string())


def _missing_column(name: str, length: int) -> pa.Table:
    return pa.table({name: pa.nulls(length)})


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


def _read_fast(bodies: Sequence[bytes]) -> list[PeoplePage]:
    """Read bodies by Arrow's JSON reader: one row of the document table per body."""
    bodies = [_one_line(body) for body in bodies]
    try:
        document = _read_documents(bodies, _STRICT)
        inferred = False
    except pa.ArrowInvalid:
        if any(_depth(body) > _MAX_DEPTH for body in bodies):
            raise _NotFaithfulError from None
        document = _read_inferring(bodies)
        inferred = True
    if document.num_rows != len(bodies):
        raise _NotFaithfulError
    results = document.column(spec.RESULTS_KEY)
    pagination = document.column(spec.PAGINATION_KEY)
    if results.null_count or pagination.null_count:
        raise _NotFaithfulError
    persons = pa.chunked_array([chunk.flatten() for chunk in results.chunks])
    people = _typed_people(_flat_inferred(persons) if inferred else _flat_strict(persons))
    ends = accumulate(pc.list_value_length(results).to_pylist(), initial=0)
    errors = document.column(spec.ERRORS_KEY)
    return [
        PeoplePage(
            people.slice(start, end - start),
            {key: value for key, value in page.items() if value is not None},
            _errors(parse_json(body.decode())[spec.ERRORS_KEY]) if has_errors else [],
        )
        for (start, end), page, has_errors, body in zip(
            pairwise(ends), pagination.to_pylist(), _have_errors(errors), bodies, strict=True
        )
    ]


def _have_errors(errors: pa.ChunkedArray) -> list[bool]:
    if pa.types.is_list(errors.type):
        return pc.fill_null(pc.greater(pc.list_value_length(errors), 0), False).to_pylist()
    return errors.is_valid().to_pylist()


def _errors(errors: Any) -> list[Any]:
    if errors is None:
        return []
    return errors if isinstance(errors, list) else [errors]


def _one_line(body: bytes) -> bytes:
    """Make a body one line that is certainly an object in UTF-8, as Arrow's reader wants it."""
    body = body.removeprefix(_BOM).strip(b" \t\r\n")
    if not body.startswith(b"{"):
        raise _NotFaithfulError  # Arrow's reader ends the process on a bare null
    pa.array([body], pa.binary()).cast(pa.string())  # its strings are not checked otherwise
    if b"\n" in body or b"\r" in body:
        # A tab is white space too, and as wrong inside a string as a line break.
        body = body.translate(bytes.maketrans(b"\r\n", b"\t\t"))
    return body


def _depth(body: bytes) -> int:
    """Give the depth to which brackets are nested; those inside strings count too."""
    depth = deepest = 0
    for bracket in body.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"{[" else -1
        deepest = max(deepest, depth)
    return deepest


def _read_documents(bodies: Sequence[bytes], options: arrow_json.ParseOptions) -> pa.Table:
    block = max(max(map(len, bodies)) + 1, _BLOCK_BYTES if len(bodies) > 1 else 0)
    return arrow_json.read_json(
        pa.BufferReader(b"\n".join(bodies)),
        read_options=arrow_json.ReadOptions(use_threads=len(bodies) > 1, block_size=block),
        parse_options=options,
    )


def _read_inferring(bodies: Sequence[bytes]) -> pa.Table:
    """Read bodies with fields that the interface does not show; their text stays text."""
    schema = pa.schema([pa.field(field.name, _open_type(field)) for field in _RESULT])
    document = _read_documents(bodies, arrow_json.ParseOptions(explicit_schema=schema))
    if any(_holds_dates(arrow_type) for arrow_type in document.schema.types):
        schema = pa.schema([pa.field(f.name, _dates_as_text(f.type)) for f in document.schema])
        document = _read_documents(bodies, arrow_json.ParseOptions(explicit_schema=schema))
    if spec.ERRORS_KEY not in document.column_names:
        document = document.append_column(spec.ERRORS_KEY, pa.nulls(len(document)))
    return document


def _open_type(field: spec.Field) -> pa.DataType:
    """Give a field's type less the members whose elements the interface does not show."""
    if field.members:
        shown = [m for m in field.members if m.type != "array" or m.items is not None]
        struct = pa.struct([pa.field(member.name, _open_type(member)) for member in shown])
        return pa.list_(struct) if field.type == "array" else struct
    return wire_type(field)


def _holds_dates(arrow_type: pa.DataType) -> bool:
    if pa.types.is_nested(arrow_type):
        return any(_holds_dates(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    return pa.types.is_temporal(arrow_type)


def _dates_as_text(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, _dates_as_text(f.type)) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(_dates_as_text(arrow_type.value_type))
    return pa.string() if pa.types.is_temporal(arrow_type) else arrow_type


def _flat_strict(persons: pa.ChunkedArray) -> pa.Table:
    people = pa.Table.from_struct_array(persons)
    for _ in range(_PEOPLE_DEPTH - 1):
        people = people.flatten()
    return people.rename_columns(list(_PEOPLE_COLUMNS))


def _flat_inferred(persons: pa.ChunkedArray) -> pa.Table:
    """Flatten people with further fields: known columns in order, the others behind them."""
    known: dict[str, pa.Array] = {}
    extras: list[tuple[str, pa.Array]] = []
    _flatten_struct(persons.combine_chunks(), spec.PERSON, "", known, extras)
    for name in _NOT_SHOWN:
        known[name] = _list_of_text(known[name])
    for _, array in extras:
        _check_exact(array)
    ordered = {name: known[name] for name in _PEOPLE_COLUMNS}
    return pa.table(named_columns(ordered, extras))


def _flatten_struct(
    struct: pa.StructArray,
    fields: tuple[spec.Field, ...],
    prefix: str,
    known: dict[str, pa.Array],
    extras: list[tuple[str, pa.Array]],
) -> None:
    children = dict(zip((f.name for f in struct.type), struct.flatten(), strict=True))
    for field in fields:
        name = prefix + field.name
        child = children.pop(field.name, None)
        if child is None:
            child = pa.nulls(len(struct), wire_type(field))
        if field.type == "object" and field.members:
            _flatten_struct(child, field.members, f"{name}_", known, extras)
        else:
            known[name] = child
            if field.members:
                _check_exact(child)
    for key, child in children.items():
        if pa.types.is_struct(child.type):
            _flatten_struct(child, (), f"{prefix}{key}_", known, extras)
        else:
            extras.append((prefix + key, child))


def _list_of_text(lists: pa.Array) -> pa.Array:
    """Turn lists of anything into lists of text."""
    if pa.types.is_null(lists.type):
        return lists.cast(pa.list_(pa.string()))
    if not pa.types.is_list(lists.type):
        raise _NotFaithfulError
    if pa.types.is_string(lists.type.value_type):
        return lists
    _check_exact(lists)
    return pa.ListArray.from_arrays(
        lists.offsets, as_text(lists.values), pa.list_(pa.string()), mask=lists.is_null()
    )


def _check_exact(array: pa.Array) -> None:
    """Refuse numbers that the reader may have rounded: an integer beyond 2^53 became a float."""
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            _check_exact(child)
    elif pa.types.is_list(array.type):
        _check_exact(array.flatten())
    elif pa.types.is_float64(array.type):
        exact = pc.less_equal(pc.abs(array), float(LARGEST_EXACT))
        if not pc.all(exact, min_count=0).as_py():
            raise _NotFaithfulError


def _typed_people(people: pa.Table) -> pa.Table:
    """Turn text into dates where the interface has dates."""
    raws: list[tuple[str, pa.Array]] = []
    columns = dict(zip(people.column_names, people.columns, strict=True))
    for name, field in _PEOPLE_COLUMNS.items():
        if field.format == "date":
            dates, raw = typed_dates(columns[name], field)
            columns[name] = dates
            if raw is not None:
                raws.append((name + RAW_SUFFIX, raw))
        elif field.type == "number":
            _check_exact(columns[name])
    return pa.table(named_columns(columns, raws))


def _read_tolerantly(body: bytes) -> PeoplePage:
    """Read a body by way of Python objects."""
    try:
        result = parse_json(body.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        raise _invalid(body, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except ValueError as error:
        raise _invalid(body, f"is no JSON, or is cut off ({error})") from error
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    if not isinstance(result, dict):
        raise _invalid(body, "is no JSON object")
    people, pagination = result.get(spec.RESULTS_KEY), result.get(spec.PAGINATION_KEY)
    if not isinstance(people, list):
        raise _invalid(body, f"has no list `{spec.RESULTS_KEY}`")
    if not isinstance(pagination, dict):
        raise _invalid(body, f"has no object `{spec.PAGINATION_KEY}`")
    try:
        table = records_table(people, spec.PERSON)
    except RecursionError as error:
        raise _invalid(body, "is nested too deeply") from error
    return PeoplePage(
        table,
        {key: value for key, value in pagination.items() if value is not None},
        _errors(result.get(spec.ERRORS_KEY)),
    )


def _invalid(body: bytes, problem: str) -> InvalidResponseError:
    start = body[:_EXCERPT_LENGTH].decode("utf-8", "backslashreplace")
    ellipsis = "…" if len(body) > _EXCERPT_LENGTH else ""
    return InvalidResponseError(
        f"The service's answer to {spec.SEARCH_PEOPLE.label} {problem}. "
        f"It has {len(body):,} bytes and starts with: {start!r}{ellipsis}"
    )
