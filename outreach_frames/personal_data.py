"""`forget` and `clear_cache`: remove people from this package's stores, and list their files."""

from __future__ import annotations

import json
import lzma
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
from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames.client.cache import (
    DAMAGED,
    default_path,
    is_cache,
    is_table,
    remove_entries,
    unpack_table,
)
from outreach_frames.client.client import Client
from outreach_frames.client.connect import current
from outreach_frames.common import sqlite_file
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural, shorten
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.export.checkpoint import CHECKPOINT_FILE, read_part
from outreach_frames.files.csv_notes import METADATA_SUFFIX, NOTES_ERRORS
from outreach_frames.files.search_table import WORKBOOKS, row_texts, search_table
from outreach_frames.history.snapshots import PARTITION_KEY
from outreach_frames.identity.texts import PeopleToForget, people_to_forget
from outreach_frames.leads.sending.journal_file import count_leads, is_journal

_COLUMNS: Final = {"path": STR, "kind": STR, "rows": "Int64", "removed": "boolean", "how": STR}
_CACHE, _JOURNAL, _CHECKPOINT = "cache", "journal", "checkpoint"
_TABLE, _SNAPSHOT, _NOT_READ, _NOT_SEARCHED = "table", "snapshot", "not read", "not searched"
# Files beside a table, a cache or a journal.
_SIDE_FILES: Final = (METADATA_SUFFIX, "-journal", "-shm", "-wal")
_HOW: Final = {
    _CACHE: "forget removes these responses, except in a dry run",
    _JOURNAL: "keyed hashes stay, so that the people are not contacted again",
    _CHECKPOINT: "resume the interrupted export or delete this folder, then call forget again",
}
_ROWS: Final = (
    "read the file, drop the people with .outreach.without() and write it again; edit other cells "
    "that name them"
)
_LINK: Final = "this is a link; pass the folder of the linked file"
_TEMPORARY: Final = "a killed program left this temporary file; delete it"
_OUTSIDE_ROWS: Final = (
    "rename the columns and categories that name the people; write .attrs with attrs=False"
)
_OUTSIDE_CELLS: Final = "edit the comments, links, sheets and properties that name the people"
_ROWS_AT_ONCE: Final = 1_000
_ONLY_OURS: Final = "only tables and files that this package writes are searched"
_UNREADABLE: Final = (
    *(OSError, EOFError, sqlite3.Error, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OutreachError, *NOTES_ERRORS),
)


class _ResultRow(NamedTuple):
    """A row of the result."""

    path: Path
    kind: str
    rows: Any
    removed: bool = False
    how: str | None = None


def _holds_body(holds: Callable[[str], bool], body: bytes) -> bool:
    """Check whether a stored response or table names any of the people or cannot be read."""
    if not is_table(body):
        return holds(body.decode(errors="replace"))
    try:
        table, notes = unpack_table(body)
    except DAMAGED:
        return True
    batches = table.to_batches(_ROWS_AT_ONCE)
    texts = (text for batch in batches for text in row_texts(batch))
    return holds("\n".join([*table.column_names, json.dumps(notes)])) or any(map(holds, texts))


def forget(
    *,
    email: str | Iterable[str] | None = None,
    profnet_url: str | Iterable[str] | None = None,
    folder: str | Path | None = None,
    dry_run: bool = False,
    client: Client | None = None,
) -> pd.DataFrame:
    """Remove people from what this package stores by itself, and list the files that name them.

    People are removed from caches. Journals, which hold no readable identifiers, and tables,
    snapshots and checkpoints are listed, and never changed.

    Parameters
    ----------
    email : str or iterable of str, optional
        The people's email addresses.
    profnet_url : str or iterable of str, optional
        The people's profile URLs. Pass at least one email address or URL.
    folder : str or Path, optional
        The folder with your files, searched with all its subfolders: caches, journals, checkpoints,
        and CSV, Parquet and Excel tables. All other files are counted by kind, and not searched.
    dry_run : bool
        List everything and remove nothing.
    client : Client, optional
        A client whose cache is cleaned too; by default the client of the last `connect`.

    Returns
    -------
    DataFrame
        One row per file that names any of the people: `path` and `kind` (str: cache, journal,
        checkpoint, table, snapshot), `rows` (Int64: the number of stored responses, leads or rows,
        at least 1; rows of a CSV file are lines), `removed` (boolean), and `how` (str): how to
        remove the people from this file. Then one row of kind "not read" per file of which a part
        cannot be read, with the reason in `how`, and one of kind "not searched" per kind of other
        files: `path` is their ending below the folder, `rows` their number.

    Raises
    ------
    InvalidInputError
        No person is passed, a value is not an address or URL, the folder does not exist, or the
        default cache is in use and cannot be cleaned.

    Warns
    -----
    OutreachWarning
        Some files were not searched or not read.

    Notes
    -----
    All spellings of an address or URL are found; names are not searched. From caches, whole
    responses are removed, also from free pages and the write-ahead log; later reads fetch these
    responses again. Journals keep keyed hashes of the identifiers, so that the person is not
    contacted again. Column names, categories, `.attrs` and, in workbooks, links, comments,
    formulas, names of sheets and properties are searched, but not pictures. Nothing is deleted from
    the service itself. Frames and reports in memory are not searched.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.forget(email="nobody@brightforge.example", dry_run=True).columns.tolist()
    ['path', 'kind', 'rows', 'removed', 'how']
    """
    people = people_to_forget(email, profnet_url)
    place = None if folder is None else expanded(folder)
    if place is not None:
        require_readable_file(place)
        if not place.is_dir():
            raise InvalidInputError(f"{place} is not a folder. Pass the folder with your files.")
    rows: list[_ResultRow] = []
    for path in _caches(client):
        count = _clean(path, partial(_holds_body, people.holds), dry_run)
        if count:
            how = _HOW[_CACHE] if dry_run else None
            rows.append(_ResultRow(path, _CACHE, count, not dry_run, how))
    if place is not None:
        cleaned = {path.resolve() for path in _caches(client)}
        rows += _search_folder(place, people, cleaned, dry_run=dry_run)
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    # A file name may have bytes that are not text.
    table["path"] = [os.fsencode(path).decode(errors="replace") for path in table["path"]]
    return table.astype(_COLUMNS)


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
    if connected is not None and connected._session.cache is not None:
        paths.append(connected._session.cache.path)
    return list(dict.fromkeys(path for path in map(expanded, paths) if path.is_file()))


def _clean(path: Path, holds: Callable[[bytes], bool], dry_run: bool) -> int:
    try:
        return remove_entries(path, holds, dry_run=dry_run)
    except (sqlite3.Error, OSError) as error:
        raise InvalidInputError(
            f"The cache {path} cannot be cleaned: {error}. Close the program that uses it and try "
            "again, or delete the file."
        ) from error


def _search_folder(
    folder: Path, people: PeopleToForget, cleaned: set[Path], *, dry_run: bool
) -> list[_ResultRow]:
    """Clean caches below a folder, and list all files that name the people."""
    rows: list[_ResultRow] = []
    unread: list[tuple[Path, str]] = []
    others: Counter[str] = Counter()
    # Search links last, because their file may be in the folder, too.
    for path in sorted(_files(folder, unread), key=lambda path: (path.is_symlink(), path)):
        if path.resolve() in cleaned or _is_side_file(path):
            continue
        kind, hits = "", list[bool]()
        try:
            kind, hits_in_file = _search(path, people)
            if hits_in_file is None:
                others[path.suffix.lower()] += 1
                continue
            hits.extend(hits_in_file)
        except _UNREADABLE as error:
            # The hits before the error are listed, too.
            unread.append((path, shorten(" ".join(str(error).split()))))
        if hits:
            rows.append(_listed(path, kind, hits, people, dry_run))
    rows.sort(key=lambda row: row.path)
    rows += [_ResultRow(path, _NOT_READ, pd.NA, how=why) for path, why in sorted(unread)]
    for suffix, number in sorted(others.items()):
        rows.append(_ResultRow(folder / f"*{suffix}", _NOT_SEARCHED, number, how=_ONLY_OURS))
    _warn_of_others(unread, others.total())
    return rows


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
                status = path.stat()
                if stat.S_ISREG(status.st_mode) and status.st_size:
                    yield path
            except OSError as error:
                add(error)


def _is_side_file(path: Path) -> bool:
    """Check whether a file is searched together with the file that it belongs to."""
    mains = (path.with_name(path.name.removesuffix(end)) for end in _SIDE_FILES)
    return any(main != path and main.is_file() for main in mains)


def _search(path: Path, people: PeopleToForget) -> tuple[str, Iterable[bool] | None]:
    """Return a file's kind and its hits, which are True for rows; None if it is not searched."""
    if path.name == CHECKPOINT_FILE and path.parent.suffix == ".partial":
        return _CHECKPOINT, _search_checkpoint(path, people.holds)
    if is_journal(path):
        return _JOURNAL, [True] * count_leads(path, people.identifiers)
    if is_cache(path):
        count = remove_entries(path, partial(_holds_body, people.holds), dry_run=True)
        return _CACHE, [True] * count
    kind = _SNAPSHOT if path.parent.name.startswith(f"{PARTITION_KEY}=") else _TABLE
    return kind, search_table(path, people.holds)


def _search_checkpoint(path: Path, holds: Callable[[str], bool]) -> Iterator[bool]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        sqlite_file.require_tables(database)
        query = "SELECT value FROM export UNION ALL SELECT value FROM errors"
        if any(holds(value) for (value,) in database.execute(query)):
            yield False
        for (part,) in database.execute("SELECT people FROM parts"):
            for batch in read_part(part).to_batches():
                yield from (True for text in row_texts(batch) if holds(text))


def _listed(
    path: Path, kind: str, hits: Sequence[bool], people: PeopleToForget, dry_run: bool
) -> _ResultRow:
    """Return the result's row of a file, after removing the people from a cache."""
    how: str | None = _how(path, kind, hits)
    is_removed = False
    if kind == _CACHE and not dry_run and not path.is_symlink():
        try:
            remove_entries(path, partial(_holds_body, people.holds), dry_run=False)
            how, is_removed = None, True
        except _UNREADABLE as error:
            how = str(error)
    place = path.parent if kind == _CHECKPOINT else path
    return _ResultRow(place, kind, max(1, sum(hits)), is_removed, how)


def _how(path: Path, kind: str, hits: Sequence[bool]) -> str:
    """Return how to remove people from a file."""
    if path.is_symlink():
        return _LINK
    if kind in _HOW:
        return _HOW[kind]
    if path.suffix == ".tmp":
        return _TEMPORARY
    elsewhere = _OUTSIDE_CELLS if path.suffix.lower() in WORKBOOKS else _OUTSIDE_ROWS
    ways = []
    if any(hits):
        ways.append(_ROWS)
    if not all(hits):
        ways.append(elsewhere)
    return "; ".join(ways)
