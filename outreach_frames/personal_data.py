"""`forget` and `clear_cache`: remove people from caches and files on this machine."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import re
import sqlite3
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from outreach_frames.client.cache import default_path, remove_entries
from outreach_frames.client.client import Client
from outreach_frames.client.connect import current
from outreach_frames.common.arguments import check_ids
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.sqlite_file import read_header
from outreach_frames.common.text import plural, visible
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.export.checkpoint import Span, read_span
from outreach_frames.export.formats import part_texts
from outreach_frames.files.csv_notes import (
    METADATA_SUFFIX,
    NOTES_ERRORS,
    OTHER,
    models_in,
    read_notes,
)
from outreach_frames.files.csv_text import wide_encoding
from outreach_frames.files.excel_notes import read_properties
from outreach_frames.files.remove_rows import (
    MAY_HOLD,
    NAMED,
    Holds,
    category_texts,
    holding_rows,
    removal,
)
from outreach_frames.identity.keys import (
    email_key,
    emails_in,
    is_certain,
    profnet_url_key,
    profnet_urls_in,
)
from outreach_frames.identity.persons import Identifiers, identifiers
from outreach_frames.leads.sending import memory
from outreach_frames.leads.sending.journal_file import count_leads, erase_texts, is_journal
from outreach_frames.reading.stored_pages import is_packed, unpack_page

_COLUMNS: Final = {"path": "str", "kind": "str", "rows": "Int64", "removed": "boolean"}
_REASON: Final = "reason"
_CACHE, _JOURNAL, _CHECKPOINT, _EXPORT = "cache", "journal", "checkpoint", "export"
_PARQUET: Final = frozenset({".parquet", ".pq"})
_WORKBOOKS: Final = frozenset({".xlsx", ".xlsm"})
# Detect the format of these files from their first bytes. Killed writers leave .tmp files.
_NO_FORMAT: Final = frozenset({".tmp", ""})
_TEXT_FILES: Final = (
    _NO_FORMAT
    | {".csv", ".tsv", ".txt", ".ndjson", ".jsonl", ".json", ".gz"}
    | {".ipynb", ".html", ".htm", ".md", ".log", ".xml", ".vcf", ".eml"}
)
_UNSEARCHED: Final = frozenset(
    {".xls", ".xlsb", ".ods", ".numbers", ".feather", ".arrow", ".pkl", ".pickle", ".zip", ".7z"}
    | {".bz2", ".xz", ".zst", ".rar", ".tar", ".tgz", ".db", ".sqlite", ".duckdb", ".pdf", ".docx"}
)
_PARTS: Final = re.compile(r"[/?#&=]")
# Matches at the end of an address or URL.
_END: Final = r"(?![\w%~-]|\.\w)"
_JSON_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_ERASED: Final = "[removed]"
_HASHES: Final = "salted hashes stay, so that the people are not contacted again"
_ANSI: Final = "outreach_frames.ansi"
_UNREADABLE: Final = (
    *(OSError, EOFError, sqlite3.Error, zipfile.BadZipFile, zlib.error, OutreachError),
    *NOTES_ERRORS,
)


def _as_ansi(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows-1252, Excel's ANSI."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_ANSI, _as_ansi)


def _overlap(key: str, other: str) -> bool:
    """Check whether two keys are equal or one is part of the other, as in `Sales/ada@x.example`."""
    return key in (other, *_PARTS.split(other)) or other in _PARTS.split(key)


class _People(NamedTuple):
    """The people to search for in texts and, by hash, in journals."""

    holds: Holds
    erase: Callable[[str], str]
    identifiers: Identifiers
    keys: set[str]

    def have(self, cells: Sequence[str]) -> bool:
        """Check whether a row is theirs; `cells` are the row's cells with identifiers.

        All emails, or all URLs, of a cell must be theirs. A weak URL counts only if the row has no
        other email or certain URL.
        """
        if not any(map(self.holds, cells)):
            return False
        found = [set(read(cell).keys) for cell in cells for read in (emails_in, profnet_urls_in)]
        own = self.keys & set().union(*found)
        others = [
            {key for key in keys if not any(_overlap(key, one) for one in own)} for keys in found
        ]
        is_alone = not any(map(is_certain, set().union(*others)))
        return any(
            keys & own and not rest and (is_alone or any(map(is_certain, keys & own)))
            for keys, rest in zip(found, others, strict=True)
        )

    def holds_response(self, body: bytes) -> bool:
        """Check whether a stored response contains any of the people or cannot be read."""
        if not is_packed(body):
            return self.holds(body.decode(errors="replace"))
        page = unpack_page(body)
        if page is None:
            return True
        batches = page.people.to_batches()
        return self.holds(str(page.errors)) or any(
            holding_rows(batch, self.holds).any() for batch in batches
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
    email, profnet_url : str or iterable of str, optional
        The people's email addresses and profile URLs, at least one in total.
    folder : str or Path, optional
        The folder with your files. Its files that contain the people are listed: journals, exports,
        snapshots, checkpoints, tables and other clients' caches.
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
        contain the people) and `removed` (boolean). The frame is empty if no file contains the
        people. With `files`, also `reason` (str): why a file still contains the people, such as
        "this package did not write it".

    Raises
    ------
    InvalidInputError
        No person is passed, a value is not an address or URL, the folder does not exist, `files` is
        passed without `folder`, or a cache is in use and cannot be cleaned.

    Warns
    -----
    OutreachWarning
        Some files were not read: archives, databases, old workbooks, damaged files, or links to
        folders.

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
    people = _people(email, profnet_url)
    if files and folder is None:
        raise InvalidInputError("files=True needs a folder. Pass folder=.")
    place = None if folder is None else expanded(folder)
    if place is not None:
        require_readable_file(place)
        if not place.is_dir():
            raise InvalidInputError(f"{place} is not a folder. Pass the folder with your files.")
    found: list[tuple[Path, str, int, bool, str | None]] = []
    listed: list[tuple[Path, str, int, bool, str | None]] = []
    if not dry_run:
        memory.erase_texts(people.erase)
    for path in _caches(client):
        count = _clean(path, people.holds_response, dry_run)
        if count:
            found.append((path, _CACHE, count, not dry_run, None))
    if place is not None:
        cleaned = {path.resolve() for path in _caches(client)}
        unread: list[str] = []
        # Process links and temporary files last: removal from other files may clean or delete them.
        paths = sorted(_files(place, unread))
        for path in sorted(paths, key=lambda path: path.is_symlink() or path.suffix == ".tmp"):
            if path.resolve() in cleaned or not path.exists():
                continue
            kind, count = _search(path, people, unread)
            if count:
                reason = _remove(path, kind, people, dry_run=dry_run) if files else ""
                is_gone = files and not dry_run and reason in {None, _HASHES}
                listed.append((path, kind, count, is_gone, reason))
        found += sorted(listed)
        if unread:
            warn(
                f"{plural(len(unread), 'file or folder', 'files or folders')} not read. Check "
                + "\n".join(["whether they contain the people:", *unread])
            )
    table = pd.DataFrame(found, columns=[*_COLUMNS, _REASON])
    # A file name may have bytes that are not text.
    table["path"] = [os.fsencode(path).decode(errors="replace") for path in table["path"]]
    table = table.astype({**_COLUMNS, _REASON: "str"})
    return table if files else table.drop(columns=_REASON)


def _remove(path: Path, kind: str, people: _People, *, dry_run: bool) -> str | None:
    """Remove people from a file of this package; return why it still contains any of them."""
    if path.is_symlink():
        return "the path is a link; pass the folder of the linked file"
    if any(folder.match(".*.partial") for folder in path.parents):
        return "an interrupted export; resume it or delete its folder, then call forget again"
    try:
        if kind == _CACHE:
            remove_entries(path, people.holds_response, dry_run=dry_run)
        elif kind == _JOURNAL:
            if not dry_run:
                erase_texts(path, people.erase)
            return _HASHES
        else:
            remove = removal(path, people.holds, people.have)
            if not dry_run:
                remove()
    except _UNREADABLE as error:
        return str(error)
    return NAMED if not dry_run and _search(path, people, [])[1] else None


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


def _people(email: str | Iterable[str] | None, profnet_url: str | Iterable[str] | None) -> _People:
    if email is None and profnet_url is None:
        raise InvalidInputError("forget() needs people. Pass email=, profnet_url= or both.")
    patterns: list[tuple[str, re.Pattern[str]]] = []
    emails: list[str] = []
    urls: list[str] = []
    for text in [] if email is None else check_ids("email", email):
        key = email_key(text)
        if not key:
            raise InvalidInputError(f"email={text!r} is not an email address; correct it.")
        emails.append(key)
        name, _, domain = _plain(key).rpartition("@")
        hosts = "|".join(map(re.escape, {domain, _ascii(domain)}))
        patterns.append((name, re.compile(rf"(?<![\w.+%-]){re.escape(name)}@(?:{hosts}){_END}")))
    for text in [] if profnet_url is None else check_ids("profnet_url", profnet_url):
        key = profnet_url_key(text)
        if not key:
            raise InvalidInputError(f"profnet_url={text!r} is not a profile URL; correct it.")
        urls.append(key)
        host, _, path = _plain(key).rpartition("://")[2].partition("/")
        folders = "/+".join(map(re.escape, path.split("/")))
        url = rf"(?<![\w-]){re.escape(host)}(?::\d+)?/+{folders}{_END}"
        patterns.append((path.rpartition("/")[2], re.compile(url)))

    def holds(text: str) -> bool:
        if text.isascii() and not MAY_HOLD.search(text):
            return False
        if "\\" in text:
            text = _JSON_ESCAPE.sub(lambda code: chr(int(code[1], 16)), text.replace("\\/", "/"))
            # A character beyond 16 bits consists of two escapes.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        plain = _plain(text)
        if (shown := visible(plain)) != plain:
            plain = f"{plain}\n{shown}"
        return any(part in plain and pattern.search(plain) for part, pattern in patterns)

    def erase(text: str) -> str:
        for _, pattern in patterns:
            text = re.sub(pattern.pattern, _ERASED, text, flags=re.IGNORECASE)
        return _ERASED if holds(text) else text

    # Use one row per identifier, since a weak URL identifies only rows without other identifiers.
    keys = [[*emails, *[None] * len(urls)], [*[None] * len(emails), *urls]]
    return _People(
        holds,
        erase,
        identifiers(*(pa.array(column, pa.large_string()) for column in keys)),
        {*emails, *urls},
    )


def _plain(text: str) -> str:
    """Normalise a text's case, percent-encoding and Unicode form."""
    # Decode twice, for redirect links that contain another link.
    text = unquote(unquote(text)) if "%" in text else text
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def _ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode()
    except UnicodeError:
        return domain


def _files(folder: Path, unread: list[str]) -> Iterator[Path]:
    """Yield the files below a folder; add unreadable paths to `unread`."""

    def add(error: OSError) -> None:
        unread.append(f"{error.filename} cannot be read ({error.strerror})")

    for place, folders, names in os.walk(folder, onerror=add):
        links = [name for name in folders if Path(place, name).is_symlink()]
        unread += [f"{Path(place, name)} is not read (a link to a folder)" for name in links]
        for path in (Path(place, name) for name in names):
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    yield path
            except OSError as error:
                if error.errno != errno.ELOOP:  # a link to itself
                    add(error)


def _search(path: Path, people: _People, unread: list[str]) -> tuple[str, int]:
    """Return a file's kind and the number of rows that contain any of the people."""
    kind, count = _EXPORT, 0
    suffix = path.suffix.lower()
    try:
        if path.name == "rows" and path.parent.suffix == ".partial":
            kind, count = _CHECKPOINT, sum(map(people.holds, _checkpoint_texts(path)))
        elif (is_database := read_header(path) is not None) and is_journal(path):
            kind, count = _JOURNAL, count_leads(path, people.identifiers, people.holds)
        elif is_database:
            kind, count = _CACHE, remove_entries(path, people.holds_response, dry_run=True)
        elif suffix in _UNSEARCHED:
            unread.append(f"{path} is not read (a {suffix} file)")
        elif suffix in _PARQUET or _starts(path, b"PAR1"):
            with pq.ParquetFile(path) as table:
                for batch in table.iter_batches():
                    found = int(holding_rows(batch, people.holds).sum())
                    unused = category_texts(batch.columns) if not found else []
                    count += found or any(map(people.holds, unused))
                count += any(map(people.holds, _schema_texts(table.schema_arrow)))
        elif suffix in _WORKBOOKS or _starts(path, b"PK\3\4"):
            count = sum(map(people.holds, _workbook_texts(path)))
        elif suffix in _TEXT_FILES:
            count = sum(map(people.holds, _text_lines(path)))
    except _UNREADABLE as error:
        unread.append(f"{path} cannot be read ({error})")
    return kind, count


def _starts(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _text_lines(path: Path) -> Iterator[str]:
    """Yield a text file's lines, also from UTF-16 or gzip, and the categories in its metadata."""
    if path.name.endswith(METADATA_SUFFIX):
        models, metadata = read_notes(path.with_name(path.name.removesuffix(METADATA_SUFFIX)))
        for each in (models, models_in(metadata.get(OTHER, {}))):
            yield from category_texts([model.column(0) for model in each.values()])
    opened = gzip.open if _starts(path, b"\x1f\x8b") else open
    with opened(path, "rb") as file:
        encoding = wide_encoding(file.read(4096)) or "utf-8"
    with opened(path, "rt", encoding=encoding, errors=_ANSI) as lines:
        yield from lines


def _schema_texts(schema: pa.Schema) -> Iterator[str]:
    """Yield a Parquet file's column names, and the metadata of the file and its columns."""
    yield from schema.names
    for notes in (schema.metadata, *(field.metadata for field in schema)):
        yield from (value.decode(errors="replace") for value in (notes or {}).values())


def _workbook_texts(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as workbook:
        for name in workbook.namelist():
            if name.endswith((".xml", ".rels")) and name.startswith("xl/"):
                text = workbook.read(name).decode(errors="replace")
                yield from map(unescape, re.findall(r"(?<=>)[^<]+(?=<)|(?<=Target=\")[^\"]+", text))
        for notes in read_properties(workbook)["sheets"].values():
            yield from category_texts([model.column(0) for model in models_in(notes).values()])


def _checkpoint_texts(path: Path) -> Iterator[str]:
    """Yield the people of an interrupted export as text."""
    journal = path.parent / "journal.sqlite"
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
        spans = database.execute("SELECT begins, ends FROM parts ORDER BY number").fetchall()
        query = "SELECT value FROM export UNION ALL SELECT value FROM errors"
        yield from (value for (value,) in database.execute(query).fetchall())
    for begins, ends in spans:
        yield from part_texts(read_span(path, Span(begins, ends)))
