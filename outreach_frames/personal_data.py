"""`forget` and `clear_cache`: remove people from caches and files on this machine."""

from __future__ import annotations

import os
import sqlite3
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.client.cache import default_path, is_cache, remove_entries
from outreach_frames.client.client import Client
from outreach_frames.client.connect import current
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.export.checkpoint import read_part
from outreach_frames.files.csv_notes import (
    METADATA_SUFFIX,
    NOTES_ERRORS,
    OTHER,
    models_in,
    notes_path,
    read_notes,
)
from outreach_frames.files.csv_read import separator
from outreach_frames.files.csv_text import wide_encoding
from outreach_frames.files.excel_read import read_all_cells
from outreach_frames.files.provenance import ATTRS
from outreach_frames.files.remove_rows import (
    NAMED,
    category_texts,
    holding_rows,
    removal,
)
from outreach_frames.identity.texts import People, people_of
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.journal_file import count_leads, erase_texts, is_journal
from outreach_frames.reading.fast_reader import BOM
from outreach_frames.reading.pages import is_packed, unpack_page

_COLUMNS: Final = {"path": STR, "kind": STR, "rows": "Int64", "removed": "boolean"}
_REASON: Final = "reason"
_CACHE, _JOURNAL, _CHECKPOINT, _EXPORT = "cache", "journal", "checkpoint", "export"
_PARQUET: Final = frozenset({".parquet", ".pq"})
_WORKBOOKS: Final = frozenset({".xlsx", ".xlsm"})
# Killed writers leave .tmp files of any format.
_TEXT_TABLES: Final = frozenset({".csv", ".tsv", ".tmp"})
# Files beside a table, a cache or a journal.
_SIDE_FILES: Final = (METADATA_SUFFIX, "-journal", "-shm", "-wal")
_ROWS_AT_ONCE: Final = 10_000
_HASHES: Final = "salted hashes stay, so that the people are not contacted again"
_NOT_READ: Final = "not read"
_NOT_SEARCHED: Final = "not searched"
_ONLY_OURS: Final = "only tables and files that this package writes are searched"
_LINKED: Final = (
    "the file has further names (hard links), which would keep the people; delete these names and "
    "call forget again"
)
_UNREADABLE: Final = (
    *(OSError, EOFError, sqlite3.Error, zipfile.BadZipFile, zlib.error, OutreachError),
    *NOTES_ERRORS,
)


def _holds_response(people: People, body: bytes) -> bool:
    """Check whether a stored response contains any of the people or cannot be read."""
    if not is_packed(body):
        return people.holds(body.decode(errors="replace"))
    page = unpack_page(body)
    if page is None:
        return True
    batches = page.people.to_batches()
    return people.holds(str(page.errors)) or any(
        holding_rows(batch, people.holds).any() for batch in batches
    )


def forget(
    *,
    email: str | Iterable[str] | None = None,
    profnet_url: str | Iterable[str] | None = None,
    folder: str | Path | None = None,
    files: bool = False,
    dry_run: bool = False,
    client: Client | None = None,
) -> pd.DataFrame:
    """Remove people from the package's caches and files, and list the files that contain them.

    Parameters
    ----------
    email : str or iterable of str, optional
        The people's email addresses.
    profnet_url : str or iterable of str, optional
        The people's profile URLs. Pass at least one email address or URL.
    folder : str or Path, optional
        The folder with your files. Its files that contain the people are listed: journals, exports,
        snapshots, checkpoints, other clients' caches, and CSV, Parquet and Excel tables. All other
        files are counted by kind, and not searched.
    files : bool
        Remove the people from this package's files in the folder too: rows from CSV,
        Parquet and Excel files, exports and snapshots; addresses from the service's messages in
        journals; and stored responses from caches. Interrupted exports, files of other programs and
        files that were changed later are only listed.
    dry_run : bool
        List the files without changing them.
    client : Client, optional
        A client whose cache is cleaned too; by default the client of the last `connect`.

    Returns
    -------
    DataFrame
        One row per file that contains any of the people: `path` and `kind` (str: cache, journal,
        checkpoint, export), `rows` (Int64: the number of stored responses, leads or rows that
        contain the people) and `removed` (boolean). With `files`, also `reason` (str): why a file
        still contains the people, such as "this package did not write it". Then one row of kind
        "not read" per unreadable table, and one of kind "not searched" per kind of other files:
        `path` is their ending below the folder, `rows` their number.

    Raises
    ------
    InvalidInputError
        No person is passed, a value is not an address or URL, the folder does not exist, `files` is
        passed without `folder`, or a cache is in use and cannot be cleaned.

    Warns
    -----
    OutreachWarning
        Some files were not searched or not read.

    Notes
    -----
    All spellings of an address or URL are found. From caches, whole responses are removed, also
    from free pages and the write-ahead log; later reads fetch these responses again. Nothing is
    deleted from the service itself. Frames and reports in memory are not searched.

    With `files`, a row is removed if all addresses or all URLs of a cell belong to the forgotten
    people, in a column named email or profnet_url (in any spelling, such as E-Mail). A URL other
    than `/in/<name>` counts only if the row has no address and no `/in/<name>`. Other rows with the
    person stay, and the file's `reason` reports this. Each file is replaced atomically, and keeps
    its other rows, dtypes and permissions. Journals keep salted hashes of the identifiers, so that
    the person is not contacted again.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.forget(email="nobody@brightforge.example", dry_run=True).columns.tolist()
    ['path', 'kind', 'rows', 'removed']
    """
    people = people_of(email, profnet_url)
    holds_response = partial(_holds_response, people)
    if files and folder is None:
        raise InvalidInputError("files=True needs a folder. Pass folder=.")
    place = None if folder is None else expanded(folder)
    if place is not None:
        require_readable_file(place)
        if not place.is_dir():
            raise InvalidInputError(f"{place} is not a folder. Pass the folder with your files.")
    found: list[tuple[Path, str, Any, bool, str | None]] = []
    listed: list[tuple[Path, str, Any, bool, str | None]] = []
    if not dry_run:
        memory.erase_texts(people.erase)
    for path in _caches(client):
        count = _clean(path, holds_response, dry_run)
        if count:
            found.append((path, _CACHE, count, not dry_run, None))
    if place is not None:
        cleaned = {path.resolve() for path in _caches(client)}
        unread: list[tuple[Path, str]] = []
        others: Counter[str] = Counter()
        # Process links and temporary files last: removal from other files may clean or delete them.
        paths = sorted(_files(place, unread))
        for path in sorted(paths, key=lambda path: path.is_symlink() or path.suffix == ".tmp"):
            if path.resolve() in cleaned or not path.exists():
                continue
            try:
                kind, count = _search(path, people)
            except _UNREADABLE as error:
                unread.append((path, shorten(" ".join(str(error).split()))))
                continue
            if kind == _NOT_SEARCHED:
                others[path.suffix.lower()] += 1
            elif count:
                reason = _remove(path, kind, people, dry_run=dry_run) if files else ""
                is_gone = files and not dry_run and reason in {None, _HASHES}
                listed.append((path, kind, count, is_gone, reason))
        found += sorted(listed)
        found += [(path, _NOT_READ, pd.NA, False, why) for path, why in sorted(unread)]
        found += [
            (place / f"*{suffix}", _NOT_SEARCHED, number, False, _ONLY_OURS)
            for suffix, number in sorted(others.items())
        ]
        _warn_of_others(unread, others.total())
    table = pd.DataFrame(found, columns=[*_COLUMNS, _REASON])
    # A file name may have bytes that are not text.
    table["path"] = [os.fsencode(path).decode(errors="replace") for path in table["path"]]
    table = table.astype({**_COLUMNS, _REASON: STR})
    return table if files else table.drop(columns=_REASON)


def _remove(path: Path, kind: str, people: People, *, dry_run: bool) -> str | None:
    """Remove people from a file of this package; return why it still contains any of them."""
    if path.is_symlink():
        return "the path is a link; pass the folder of the linked file"
    if any(folder.match(".*.partial") for folder in path.parents):
        return "an interrupted export; resume it or delete its folder, then call forget again"
    try:
        if kind == _CACHE:
            remove_entries(path, partial(_holds_response, people), dry_run=dry_run)
        elif kind == _JOURNAL:
            if not dry_run:
                erase_texts(path, people.erase)
            return _HASHES
        elif path.stat().st_nlink > 1:
            return _LINKED
        else:
            remove = removal(path, people.holds, people.have)
            if not dry_run:
                remove()
    except _UNREADABLE as error:
        return str(error)
    return NAMED if not dry_run and _search(path, people)[1] else None


def clear_cache(*, client: Client | None = None) -> None:
    """Remove the stored responses of all accounts.

    Parameters
    ----------
    client : Client, optional
        A client whose cache is cleared in addition to the default cache; by default the client of
        the last `connect`.

    Returns
    -------
    None
        The caches are empty.

    Raises
    ------
    InvalidInputError
        A cache is in use and cannot be cleared.

    Notes
    -----
    No request is sent. The next read fetches its data from the service.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.clear_cache()
    """
    for path in _caches(client):
        _clean(path, lambda _: True, dry_run=False)


def _caches(client: Client | None) -> list[Path]:
    connected = current() if client is None else client
    paths = [default_path()]
    if connected is not None and connected.cache is not None:
        paths.append(connected.cache.path)
    return list(dict.fromkeys(path for path in map(expanded, paths) if path.is_file()))


def _clean(path: Path, holds: Callable[[bytes], bool], dry_run: bool) -> int:
    try:
        return remove_entries(path, holds, dry_run=dry_run)
    except (sqlite3.Error, OSError) as error:
        raise InvalidInputError(
            f"The cache {path} cannot be cleaned: {error}. Close the program that uses it and try "
            "again, or delete the file."
        ) from error


def _warn_of_others(unread: Sequence[tuple[Path, str]], others: int) -> None:
    """Warn of files that were not read or not searched."""
    texts = []
    if unread:
        path, why = unread[0]
        more = f", and {len(unread) - 1:,} more in the result" if len(unread) > 1 else ""
        texts.append(f"Not read: {path} ({why}){more}.")
    if others:
        texts.append(f"Not searched: {plural(others, 'file')} of other kinds, listed by ending.")
    if texts:
        warn(" ".join([*texts, "Check whether they contain the people."]))


def _files(folder: Path, unread: list[tuple[Path, str]]) -> Iterator[Path]:
    """Yield the files below a folder; add unreadable paths to `unread`."""

    def add(error: OSError) -> None:
        unread.append((Path(error.filename), error.strerror or ""))

    for place, folders, names in os.walk(folder, onerror=add):
        links = [name for name in folders if Path(place, name).is_symlink()]
        unread += [(Path(place, name), "a link to a folder") for name in links]
        for path in (Path(place, name) for name in names):
            try:
                found = path.stat()
                if stat.S_ISREG(found.st_mode) and found.st_size:
                    yield path
            except OSError as error:
                add(error)


def _search(path: Path, people: People) -> tuple[str, int]:
    """Return a file's kind and the number of rows that contain any of the people."""
    if path.parent.suffix == ".partial":
        texts = _checkpoint_texts(path) if path.name == "journal.sqlite" else ()
        return _CHECKPOINT, sum(map(people.holds, texts))
    if is_journal(path):
        return _JOURNAL, count_leads(path, people.identifiers, people.holds)
    if is_cache(path):
        return _CACHE, remove_entries(path, partial(_holds_response, people), dry_run=True)
    return _search_table(path, people)


def _search_table(path: Path, people: People) -> tuple[str, int]:
    """Search a CSV, Parquet or Excel file; metadata and SQLite's files belong to another file."""
    mains = (path.with_name(path.name.removesuffix(end)) for end in _SIDE_FILES)
    if any(main != path and main.is_file() for main in mains):
        return _EXPORT, 0
    suffix, rows = path.suffix.lower(), 0
    start = _first_bytes(path) if suffix in {".tmp", ""} else b""
    if suffix in _PARQUET or start == b"PAR1":
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches():
                found = int(holding_rows(batch, people.holds).sum())
                unused = category_texts(batch.columns) if not found else []
                rows += found or any(map(people.holds, unused))
            rows += any(map(people.holds, _schema_texts(parquet.schema_arrow)))
    elif suffix in _WORKBOOKS or start == b"PK\3\4":
        cells = (row for sheet in read_all_cells(path) for row in sheet)
        rows = sum(any(people.holds(cell) for cell in row if type(cell) is str) for row in cells)
    elif METADATA_SUFFIX not in path.name and (
        suffix in _TEXT_TABLES or notes_path(path).is_file()
    ):
        rows = sum(int(holding_rows(batch, people.holds).sum()) for batch in _csv_batches(path))
        rows += any(map(people.holds, _noted_texts(path)))
    else:
        return _NOT_SEARCHED, 0
    return _EXPORT, rows


def _first_bytes(path: Path, size: int = 4) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _csv_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file as text, the header included."""
    start = _first_bytes(path, 4096)
    if encoding := wide_encoding(start):
        raise InvalidInputError(f"it is in {encoding}, not in UTF-8")
    options: dict[str, Any] = {
        "sep": separator(start.removeprefix(BOM)),
        "encoding": "utf-8-sig",
        "header": None,
        "dtype": str,
        "keep_default_na": False,
    }
    with pd.read_csv(path, chunksize=_ROWS_AT_ONCE, **options) as reader:
        for chunk in reader:
            texts = chunk.rename(columns=str)
            yield pa.RecordBatch.from_pandas(texts, preserve_index=False)


def _noted_texts(path: Path) -> Iterator[str]:
    """Yield the `.attrs` and categories in a CSV file's metadata."""
    if notes_path(path).is_file():
        models, metadata = read_notes(path)
        other = metadata.get(OTHER, {})
        yield f"{metadata.get(ATTRS)} {other.get(ATTRS)}"
        for each in (models, models_in(other)):
            yield from category_texts([model.column(0) for model in each.values()])


def _schema_texts(schema: pa.Schema) -> Iterator[str]:
    """Yield a Parquet file's column names, and the metadata of the file and its columns."""
    yield from schema.names
    for notes in (schema.metadata, *(field.metadata for field in schema)):
        yield from (value.decode(errors="replace") for value in (notes or {}).values())


def _checkpoint_texts(journal: Path) -> Iterator[str]:
    """Yield the people of an interrupted export as text."""
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
        query = "SELECT value FROM export UNION ALL SELECT value FROM errors"
        yield from (value for (value,) in database.execute(query).fetchall())
        for (part,) in database.execute("SELECT people FROM parts"):
            yield from (str(list(row.values())) for row in read_part(part).to_pylist())
