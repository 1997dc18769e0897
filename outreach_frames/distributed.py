"""Read NDJSON exports of people as a Dask frame with fixed columns and dtypes."""

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
from outreach_frames.reading.flatten import concat_tables, people_frame
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
# Exceptions that Python's modules raise for damaged compressed files.
_DAMAGED: Final = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
_EMPTY: Final = empty_table(spec.PERSON)
_FIRST_COLUMN: Final = _EMPTY.schema.names[0]
_GLOB_CHARACTERS: Final = frozenset("*?[")
_MAX_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of a file that begin within a byte range."""

    file: OpenFile
    start: int
    length: int | None  # None reads to the end, as for every compressed file
    version: str  # changes with the file's content, so that a cluster does not reuse old results


def read_people(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    blocksize: int | str = "64MB",
    dtype_backend: DtypeBackend = "numpy_nullable",
    extra_column: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> dd.DataFrame:
    r"""Read NDJSON exports of people, one person per line, as a Dask frame.

    A folder of Parquet files from ``export_people("people")`` is much faster and does not need this
    package on the workers: ``dask.dataframe.read_parquet("people")``.

    The call reads only file sizes; Dask reads the files when it computes a result. Every worker
    must reach the files under the same paths.

    Parameters
    ----------
    paths : path, or several
        Files, folders, globs, or fsspec addresses such as ``s3://bucket/people-*.ndjson``. A folder
        means its ``.ndjson`` and ``.jsonl`` files, compressed or not; subfolders are ignored. A
        file that is passed twice is read once.
    blocksize : int or str, default "64MB"
        Bytes of a file per partition, extended to the end of a line. A compressed file
        (``.ndjson.gz``) is a single partition.
    dtype_backend : {"numpy_nullable", "pyarrow"}
        Use pandas' nullable dtypes, or Arrow dtypes in every column.
    extra_column : str, optional
        Name of an additional last column: the JSON text of a row's values that do not fit the
        documented columns, or missing. Such values are undocumented fields, values of another type
        (as ``<column>_raw``), and lists with undocumented members. Without `extra_column`, they
        raise an error.
    storage_options : mapping, optional
        Options for fsspec, such as credentials.
    columns : sequence of str, optional
        The columns to read, in this order; all by default. Other columns are not read, which is
        faster, and their values are not checked. Selecting columns of the returned frame has the
        same effect as `columns`.

    Returns
    -------
    dask.dataframe.DataFrame
        One row per person, in the order of files and lines, with the columns and dtypes of
        `search_people`, then the `extra_column`. Dask's option `dataframe.convert-string` has no
        effect. As with Dask's own readers, each partition's index starts at 0.

    Raises
    ------
    InvalidInputError
        A file or column does not exist. When Dask computes a result, this error means that a file
        cannot be read, a line is not one person, or values need an `extra_column`.
    ModuleNotFoundError
        Dask is not installed.

    Notes
    -----
    Interface: Person, Company and Contact define the columns' names and types.

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
            f"Reading on a cluster needs a package that is not installed ({error}). Install the "
            "package: "
            'pip install "outreach-frames[dask]"',
            name=error.name,
        ) from error

    meta = people_frame([], dtype_backend)
    if extra_column is not None:
        if extra_column in meta.columns:
            raise InvalidInputError(
                f"extra_column is {extra_column!r}, the name of an existing column; pass another "
                "name."
            )
        meta = to_frame(_EMPTY.append_column(extra_column, _texts([])), dtype_backend)
    for column in columns or ():
        check_one_of("columns", column, meta.columns)
    try:
        size = parse_bytes(blocksize)
    except (ValueError, AttributeError) as error:  # AttributeError: not a number or text
        raise InvalidInputError(
            f"blocksize is {blocksize!r}; pass a number of bytes, such as 64_000_000 or '64MB'."
        ) from error
    if size < 1:
        raise InvalidInputError(f"blocksize is {blocksize!r}; pass at least one byte.")
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
    """Split files into blocks of about the same length; an empty file is one block."""
    named = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = {_name(file): file for path in named for file in _files(os.fspath(path), options)}
    if not files:
        raise InvalidInputError("paths is empty; pass at least one file or folder.")
    for name, file in files.items():
        with _as_input_error(name):
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
    """Yield the files of an address; raise if there are no files."""
    from fsspec.core import OpenFile, url_to_fs  # noqa: PLC0415
    from fsspec.utils import infer_compression  # noqa: PLC0415

    try:
        system, path = url_to_fs(address, **options)
    except ValueError as error:
        raise InvalidInputError(
            f"{address} is not a readable address: {error}. Correct the address."
        ) from error
    with _as_input_error(address):
        if system.isdir(path):
            files = [file for file in system.find(path, maxdepth=1) if _is_export(file)]
        elif _GLOB_CHARACTERS & set(path) and not system.exists(path):
            found = system.glob(path, detail=True)
            files = [file for file in found if _is_visible_file(file, found[file])]
        else:
            files = [path]
    if not files:
        raise InvalidInputError(
            f"{address} has no file to read; the names of NDJSON exports end in .ndjson or "
            ".jsonl. Read a folder of Parquet files with dask.dataframe.read_parquet."
        )
    for file in sorted(files):
        compression = infer_compression(file)
        if compression is None and file.endswith(_COMPRESSED):
            raise InvalidInputError(
                f"{file} is compressed in a format whose package is not installed. Install the "
                "package, or decompress the file."
            )
        yield OpenFile(system, file, compression=compression)


def _is_visible_file(path: str, info: Mapping[str, Any]) -> bool:
    """Check whether a glob's match is a visible file other than an export's metadata file."""
    hidden = PurePosixPath(path).match(".*") or path.endswith(".ndjson-metadata.json")
    return info["type"] != "directory" and not hidden


def _is_export(path: str) -> bool:
    """Check by name whether a file is an export; hidden files may be incomplete."""
    name = PurePosixPath(path).name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.endswith(_SUFFIXES) and not name.startswith((".", "_"))


def _name(file: OpenFile) -> str:
    return str(file.full_name).removeprefix("file://")


@contextmanager
def _as_input_error(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise InvalidInputError(f"{name} is damaged or truncated: {error}.") from error
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
    """Read one partition; Dask passes `columns` if a result needs only some columns."""
    from fsspec.utils import read_block  # noqa: PLC0415

    columns = chosen if columns is None else columns
    name = _name(block.file)
    try:
        with _as_input_error(name), copy(block.file) as file:
            content = read_block(file, block.start, block.length, delimiter=b"\n")
            start = file.tell() - len(content)
    except InvalidInputError as error:
        error.add_note("Every worker must reach the file under the same path.")
        raise
    # If the extra column is needed, read all columns: each may have values for it.
    subset = None if columns is None or extra_column in columns else [*columns] or [_FIRST_COLUMN]
    found = read_ndjson(content, name, start=start, columns=subset) or [_EMPTY]
    people = concat_tables(
        [_with_fixed_columns(table, name, extra_column, subset) for table in found]
    )
    return to_frame(people if columns is None else people.select(list(columns)), dtype_backend)


def _with_fixed_columns(
    table: pa.Table, name: str, extra_column: str | None, subset: Sequence[str] | None
) -> pa.Table:
    """Keep the documented columns or their `subset`; put other values into the extra column."""
    columns: list[pa.ChunkedArray | pa.Array] = []
    extras: dict[str, list[Any]] = {}
    schema = pa.schema([field for field in _EMPTY.schema if subset is None or field.name in subset])
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            values = column.to_pylist()
            column = pa.array(values, field.type)
            extras[field.name] = [
                None if json_text(value) == json_text(kept) else value
                for value, kept in zip(values, column.to_pylist(), strict=True)
            ]
        columns.append(column)
    misfits = tuple(f"{column}{RAW_SUFFIX}" for column in subset or ())
    for extra in table.schema.names:
        if extra not in _EMPTY.schema.names and (subset is None or extra.startswith(misfits)):
            extras[extra] = table.column(extra).to_pylist()
    people = pa.table(columns, schema=schema)
    if extra_column is not None and subset is not None:
        return people
    if extra_column is not None:
        return people.append_column(extra_column, _json_of_rows(extras, len(table)))
    names = [name for name, values in extras.items() if any(value is not None for value in values)]
    if names:
        raise InvalidInputError(_extra_column_needed(name, names))
    return people


def _json_of_rows(columns: Mapping[str, Sequence[Any]], length: int) -> pa.Array:
    """Convert each row's values to one JSON object; rows without values become missing."""
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


def _extra_column_needed(name: str, columns: Sequence[str]) -> str:
    shown = ", ".join(repr(column) for column in columns[:_MAX_SHOWN])
    more = f" and {len(columns) - _MAX_SHOWN} more" if len(columns) > _MAX_SHOWN else ""
    return (
        f"{name} has undocumented or unexpected values in {shown}{more}, "
        "but all partitions of a Dask frame have the same columns. Call read_people with "
        'extra_column="extra" to keep such values as JSON in a text column named extra.'
    )
