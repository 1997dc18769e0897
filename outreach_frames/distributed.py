"""NDJSON exports of people -> a Dask frame, flattened on any Dask cluster with no inference."""

from __future__ import annotations

import gzip
import itertools
import lzma
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common.arguments import check_one_of
from outreach_frames.common.atomic_files import require_readable_file, unreadable
from outreach_frames.errors import InvalidInputError
from outreach_frames.reading.flatten import check_dtype_backend, concat_tables, people_frame
from outreach_frames.reading.lenient_reader import RAW_SUFFIX
from outreach_frames.reading.ndjson import read_ndjson
from outreach_frames.tables.schema import DtypeBackend, empty_table, to_frame
from outreach_frames.tables.value_text import json_text

if TYPE_CHECKING:
    import dask.dataframe as dd
    from fsspec.core import OpenFile

__all__ = ["read_people"]

_SUFFIXES: Final = (".ndjson", ".jsonl")
_COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst")
# What Python's own modules raise where a compressed file is damaged.
_DAMAGED: Final = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
_NOBODY: Final = empty_table(spec.PERSON)
_FIRST: Final = _NOBODY.schema.names[0]
_MAGIC: Final = frozenset("*?[")
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of a file in a range of its bytes; one that is cut belongs to where it begins.

    Attributes
    ----------
    file : OpenFile
        What to read, in the worker too.
    start, length : int
        The range; a length of None is all the rest, and a compressed file is one block.
    version : str
        Another one for another content of the file, so that results kept by a cluster are told
        apart.
    """

    file: OpenFile
    start: int
    length: int | None
    version: str


def read_people(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    blocksize: int | str = "64MB",
    dtype_backend: DtypeBackend = "numpy_nullable",
    extra_column: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> dd.DataFrame:
    r"""Read NDJSON exports of people, one person on each line, as a Dask frame.

    A folder of Parquet parts, which ``export_people("people")`` writes, is faster by far and needs
    nothing of this package on the workers: ``dask.dataframe.read_parquet("people")``.

    Nothing is read but the files' sizes until a result is computed. Every worker must reach the
    files under the same paths.

    Parameters
    ----------
    paths : path, or several
        Files, folders (their ``.ndjson`` and ``.jsonl`` files, compressed ones too, without
        subfolders), globs, or addresses that fsspec knows, such as ``s3://bucket/people-*.ndjson``.
        A file that is named twice is read once.
    blocksize : int or str, default "64MB"
        Bytes of a file for one partition, to the end of the last line there. A compressed file
        (``.ndjson.gz``) is one partition, whatever its size.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        pandas' own nullable dtypes, or Arrow in every column.
    extra_column : str, optional
        Name of a text column, the last, for what has no place in the columns of the interface:
        JSON of an object with the names and values of the columns that `read_prospects` would add
        (fields that the interface does not know, and ``<column>_raw`` for values that do not fit),
        and of the list columns of which the interface does not know all members. It is missing
        where there is nothing. Without it such a value is an error when it is met.
    storage_options : mapping, optional
        For fsspec: credentials and the like.
    columns : sequence of str, optional
        Which columns to read, in this order; all by default. The others are not looked at, which is
        faster, and values there that do not fit are no error. Selecting columns of the frame
        afterwards does the same.

    Returns
    -------
    dask.dataframe.DataFrame
        One row per person, in the order of files and lines. The columns and dtypes of
        `search_people`, whatever `dataframe.convert-string` says, and the `extra_column`. As with
        Dask's own readers the index counts from 0 in each partition.

    Raises
    ------
    InvalidInputError
        When there is no such file or column. When a result is computed: when a file cannot be read,
        a line is not one person, or there are values for which `extra_column` is needed.
    ModuleNotFoundError
        When Dask is not installed.

    Notes
    -----
    Interface: Person, Company and Contact give the columns' names and types.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from outreach_frames.distributed import read_people
    >>> path = Path(tempfile.mkdtemp()) / "people.ndjson"
    >>> lines = [json.dumps({"id": str(n), "company": {"is_b2b": n > 2}}) for n in range(10)]
    >>> _ = path.write_text("\n".join(lines))
    >>> people = read_people(path, blocksize=100)
    >>> people.groupby("company_is_b2b").size().compute(scheduler="threads").tolist()
    [3, 7]
    """
    try:
        import dask  # noqa: PLC0415
        import dask.dataframe as dd  # noqa: PLC0415
        from dask.utils import parse_bytes  # noqa: PLC0415
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Reading on a cluster needs a package that is not installed ({error}): "
            'pip install "outreach-frames[dask]"',
            name=error.name,
        ) from error

    check_dtype_backend(dtype_backend)
    meta = people_frame([], dtype_backend)
    if extra_column is not None:
        if extra_column in meta.columns:
            raise InvalidInputError(
                f"extra_column is {extra_column!r}, which is a column already; give another name."
            )
        meta = to_frame(_NOBODY.append_column(extra_column, _texts([])), dtype_backend)
    for column in columns or ():
        check_one_of("columns", column, meta.columns)
    try:
        size = parse_bytes(blocksize)
    except (ValueError, AttributeError) as error:  # the latter for what is neither number nor text
        raise InvalidInputError(
            f"blocksize is {blocksize!r}; give bytes, such as 64_000_000 or '64MB'."
        ) from error
    if size < 1:
        raise InvalidInputError(f"blocksize is {blocksize!r}; give at least one byte.")
    blocks = list(_blocks(paths, size, storage_options or {}))
    with dask.config.set({"dataframe.convert-string": False}):
        people: dd.DataFrame = dd.from_map(
            _read_block,
            blocks,
            meta=meta if columns is None else meta[list(columns)],
            label="read-people",
            dtype_backend=dtype_backend,
            extra_column=extra_column,
            chosen=None if columns is None else tuple(columns),
        )
    return people


def _blocks(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    size: int,
    options: Mapping[str, Any],
) -> Iterator[_Block]:
    """Cut files into ranges of about the same length; an empty file is one range too."""
    named = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = {_name(file): file for path in named for file in _files(os.fspath(path), options)}
    if not files:
        raise InvalidInputError("There are no paths to read; give at least one file or folder.")
    for name, file in files.items():
        with _saying_what_is_unreadable(name):
            about = file.fs.info(file.path)
            length = about["size"]
            version = file.fs.ukey(file.path)
        if about["type"] == "other":
            require_readable_file(Path(file.path))
        if file.compression or length is None:
            yield _Block(file, 0, None, version)
            continue
        count = max(1, math.ceil(length / size))
        bounds = [length * number // count for number in range(count + 1)]
        for start, end in itertools.pairwise(bounds):
            yield _Block(file, start, end - start, version)


def _files(address: str, options: Mapping[str, Any]) -> Iterator[OpenFile]:
    """Yield the files that an address stands for; at least one."""
    from fsspec.core import OpenFile, url_to_fs  # noqa: PLC0415
    from fsspec.utils import infer_compression  # noqa: PLC0415

    try:
        system, path = url_to_fs(address, **options)
    except ValueError as error:
        raise InvalidInputError(
            f"{address} is not an address that can be read: {error}."
        ) from error
    with _saying_what_is_unreadable(address):
        if system.isdir(path):
            files = [file for file in system.find(path, maxdepth=1) if _is_export(file)]
        elif _MAGIC & set(path) and not system.exists(path):
            found = system.glob(path, detail=True)
            files = [file for file in found if _is_visible_file(file, found[file])]
        else:
            files = [path]
    if not files:
        raise InvalidInputError(
            f"{address} has no file to read; exports of people end in .ndjson or .jsonl. "
            "A folder of Parquet parts is read by dask.dataframe.read_parquet."
        )
    for file in sorted(files):
        compression = infer_compression(file)
        if compression is None and file.endswith(_COMPRESSED):
            raise InvalidInputError(f"{file} needs a package that reads its compression.")
        yield OpenFile(system, file, compression=compression)


def _is_visible_file(path: str, info: Mapping[str, Any]) -> bool:
    """Say whether a pattern matches a file; as in a shell, not hidden ones."""
    return info["type"] != "directory" and not PurePosixPath(path).name.startswith(".")


def _is_export(path: str) -> bool:
    """Say whether a folder's file is one to read; hidden ones may be half written."""
    name = PurePosixPath(path).name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.endswith(_SUFFIXES) and not name.startswith((".", "_"))


def _name(file: OpenFile) -> str:
    return str(file.full_name).removeprefix("file://")


@contextmanager
def _saying_what_is_unreadable(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise InvalidInputError(f"{name} is damaged, or cut off: {error}.") from error
    except OSError as error:
        raise unreadable(name, error) from error


def _read_block(
    block: _Block,
    *,
    columns: Sequence[str] | None = None,
    dtype_backend: DtypeBackend,
    extra_column: str | None,
    chosen: Sequence[str] | None,
) -> pd.DataFrame:
    """Make one partition; Dask asks for some of the chosen columns where a result needs no more."""
    from fsspec.utils import read_block  # noqa: PLC0415

    columns = chosen if columns is None else columns
    name = _name(block.file)
    try:
        with _saying_what_is_unreadable(name), copy(block.file) as file:
            content = read_block(file, block.start, block.length, delimiter=b"\n")
            start = file.tell() - len(content)
    except InvalidInputError as error:
        error.add_note("Every worker needs to reach the file under the same path.")
        raise
    # What goes into the extra column may stand anywhere.
    known = None if columns is None or extra_column in columns else [*columns] or [_FIRST]
    found = read_ndjson(content, name, start=start, columns=known) or [_NOBODY]
    people = concat_tables(
        [_with_fixed_columns(table, name, extra_column, known) for table in found]
    )
    return to_frame(people if columns is None else people.select(list(columns)), dtype_backend)


def _with_fixed_columns(
    table: pa.Table, name: str, extra_column: str | None, known: Sequence[str] | None
) -> pa.Table:
    """Give people exactly the interface's columns, and the rest as JSON in one more.

    Where only some columns are known, the rest is what does not fit these.
    """
    columns: list[pa.ChunkedArray | pa.Array] = []
    left: dict[str, list[Any]] = {}
    schema = pa.schema([field for field in _NOBODY.schema if known is None or field.name in known])
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            values = column.to_pylist()
            column = pa.array(values, field.type)
            left[field.name] = [
                None if json_text(value) == json_text(kept) else value
                for value, kept in zip(values, column.to_pylist(), strict=True)
            ]
        columns.append(column)
    misfits = tuple(f"{column}{RAW_SUFFIX}" for column in known or ())
    for extra in table.schema.names:
        if extra not in _NOBODY.schema.names and (known is None or extra.startswith(misfits)):
            left[extra] = table.column(extra).to_pylist()
    people = pa.table(columns, schema=schema)
    if extra_column is not None and known is not None:
        return people
    if extra_column is not None:
        return people.append_column(extra_column, _json_of_rows(left, len(table)))
    names = [name for name, values in left.items() if any(value is not None for value in values)]
    if names:
        raise InvalidInputError(_no_place(name, names))
    return people


def _json_of_rows(columns: Mapping[str, Sequence[Any]], length: int) -> pa.Array:
    """Write each row's values as one JSON object; missing where it has none."""
    if not columns:
        return _texts([None] * length)
    rows = zip(*columns.values(), strict=True)
    found = (
        {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        for row in rows
    )
    return _texts([json_text(row) if row else None for row in found])


def _texts(values: Sequence[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def _no_place(name: str, columns: Sequence[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_NAMED])
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return (
        f"{name} has values that the interface does not know or that do not fit, in {shown}{more}, "
        "and all parts of a Dask frame have the same columns. Call read_people with "
        'extra_column="extra" to keep such values as JSON in a text column of that name.'
    )
