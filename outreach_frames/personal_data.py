"""Find the files on this machine that contain a person, and clean the cache: `forget`."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from outreach_frames.client.cache import default_path, remove_entries
from outreach_frames.client.client import Client
from outreach_frames.client.connect import current
from outreach_frames.common.arguments import check_ids
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.sqlite_file import read_header
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.export.checkpoint import Span, read_span
from outreach_frames.export.formats import part_texts
from outreach_frames.identity.keys import email_key, profnet_url_key
from outreach_frames.identity.persons import Identifiers, identifiers
from outreach_frames.leads.sending.journal import count_leads
from outreach_frames.leads.sending.journal_place import is_journal
from outreach_frames.reading.stored_pages import is_packed, unpack_page

_COLUMNS: Final = {"path": "str", "kind": "str", "rows": "Int64", "removed": "boolean"}
_CACHE, _JOURNAL, _CHECKPOINT, _EXPORT = "cache", "journal", "checkpoint", "export"
_TEXT_FILES: Final = frozenset({".csv", ".tsv", ".txt", ".ndjson", ".jsonl", ".json"})
_JSON_ESCAPE: Final = re.compile(r"\\u([0-9a-f]{4})")
_UNREADABLE: Final = (OSError, ValueError, sqlite3.Error, pa.ArrowException, zipfile.BadZipFile)

Holds = Callable[[str], bool]


class _People(NamedTuple):
    """The people to search for: in text, and by hash in journals."""

    holds: Holds
    identifiers: Identifiers

    def holds_response(self, body: bytes) -> bool:
        """Check whether a stored response contains one of the people or cannot be read."""
        if not is_packed(body):
            return self.holds(body.decode(errors="replace"))
        page = unpack_page(body)
        if page is None:
            return True
        batches = page.people.to_batches()
        return self.holds(str(page.errors)) or any(_matches(batch, self.holds) for batch in batches)


def forget(
    *,
    email: str | Iterable[str] | None = None,
    profnet_url: str | Iterable[str] | None = None,
    folder: str | Path | None = None,
    dry_run: bool = False,
    client: Client | None = None,
) -> pd.DataFrame:
    """Remove people from the package's caches, and list the files that contain them.

    Parameters
    ----------
    email, profnet_url : str or iterable of str, optional
        The email addresses and profile URLs of the people. At least one.
    folder : str or Path, optional
        The folder with your files. Journals, exports, snapshots, checkpoints and tables under it
        that contain the people, and caches of other clients, are listed but not changed.
    dry_run : bool
        List what would be removed, and remove nothing.
    client : Client, optional
        A client whose cache is cleaned too; by default that of the last `connect`.

    Returns
    -------
    DataFrame
        One row per file that contains any of the people: `path` and `kind` (str: cache, journal,
        checkpoint, export), `rows` (Int64: stored responses, leads or rows that contain them) and
        `removed` (boolean). Empty if no file does.

    Raises
    ------
    InvalidInputError
        No person is given, a value is not an address or URL, the folder does not exist, or a cache
        is in use and cannot be cleaned.

    Notes
    -----
    Whole stored responses are removed, also from free pages and the write-ahead log; later reads
    fetch them again. Nothing is deleted from the service itself. Frames and reports in memory, and
    notebooks, are not searched.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.forget(email="nobody@brightforge.example", dry_run=True).columns.tolist()
    ['path', 'kind', 'rows', 'removed']
    """
    people = _people(email, profnet_url)
    place = None if folder is None else expanded(folder)
    if place is not None:
        require_readable_file(place)
    if place is not None and not place.is_dir():
        raise InvalidInputError(f"{place} is not a folder. Pass the folder with your files.")
    found: list[tuple[str, str, int, bool]] = []
    for path in _caches(client):
        count = _clean(path, people.holds_response, dry_run)
        if count:
            found.append((str(path), _CACHE, count, not dry_run))
    if place is not None:
        cleaned = {path.resolve() for path in _caches(client)}
        for path in sorted(_files(place)):
            if path.resolve() in cleaned:
                continue
            kind, count = _search(path, people)
            if count:
                found.append((str(path), kind, count, False))
    return pd.DataFrame(found, columns=list(_COLUMNS)).astype(_COLUMNS)


def clear_cache(*, client: Client | None = None) -> None:
    """Remove the stored responses of all accounts.

    Parameters
    ----------
    client : Client, optional
        A client whose cache is cleared beside the default one; by default that of the last
        `connect`.

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
        raise InvalidInputError("forget() was given no person. Pass email=, profnet_url= or both.")
    patterns: list[tuple[str, re.Pattern[str]]] = []
    emails: list[str] = []
    urls: list[str] = []
    for text in [] if email is None else check_ids("email", email):
        key = email_key(text)
        if not key:
            raise InvalidInputError(f"email={text!r} is not an email address; correct it.")
        emails.append(key)
        name, _, domain = key.rpartition("@")
        spellings = {key, text.lower(), f"{name}@{_ascii(domain)}"}
        patterns += [(one, _delimited(one, before=r"[\w.+%-]")) for one in spellings]
    for text in [] if profnet_url is None else check_ids("profnet_url", profnet_url):
        key = profnet_url_key(text)
        if not key:
            raise InvalidInputError(f"profnet_url={text!r} is not a profile URL; correct it.")
        urls.append(key)
        spellings = {_without_scheme(key), _without_scheme(text.lower())}
        patterns += [(one, _delimited(one, before=r"[\w-]")) for one in spellings]

    def holds(text: str) -> bool:
        lowered = text.lower()
        if "\\" in lowered:
            plain = lowered.replace("\\/", "/")
            lowered = _JSON_ESCAPE.sub(lambda code: chr(int(code[1], 16)), plain).lower()
        return any(one in lowered and pattern.search(lowered) for one, pattern in patterns)

    # One row per identifier: a weak URL identifies only rows without other identifiers.
    keys = [[*emails, *[None] * len(urls)], [*[None] * len(emails), *urls]]
    return _People(holds, identifiers(*(pa.array(column, pa.large_string()) for column in keys)))


def _delimited(text: str, *, before: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{before}){re.escape(text)}(?![\w%~-]|\.\w)")


def _ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode()
    except UnicodeError:
        return domain


def _without_scheme(url: str) -> str:
    return url.partition("://")[2].rstrip("/") if "://" in url else url.rstrip("/")


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder; warn about folders that cannot be read."""
    for place, _, names in os.walk(folder, onerror=_warn_unreadable):
        for path in (Path(place, name) for name in names):
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    yield path
            except PermissionError as error:
                _warn_unreadable(error)
            except OSError:
                pass  # a broken link


def _warn_unreadable(error: OSError) -> None:
    warn(f"{error.filename} cannot be read ({error.strerror}). Check whether it contains them.")


def _search(path: Path, people: _People) -> tuple[str, int]:
    """Return a file's kind and the number of its rows that contain one of the people."""
    kind, count = _EXPORT, 0
    suffix = path.suffix.lower()
    try:
        if path.name == "rows" and path.parent.suffix == ".partial":
            kind, count = _CHECKPOINT, sum(map(people.holds, _checkpoint_texts(path)))
        elif is_journal(path):
            kind, count = _JOURNAL, count_leads(path, people.identifiers, people.holds)
        elif read_header(path) is not None:
            kind, count = _CACHE, remove_entries(path, people.holds_response, dry_run=True)
        elif suffix in _TEXT_FILES:
            with path.open(encoding="utf-8", errors="replace") as file:
                count = sum(map(people.holds, file))
        elif suffix == ".parquet":
            with pq.ParquetFile(path) as table:
                count = sum(_matches(batch, people.holds) for batch in table.iter_batches())
        elif suffix == ".xlsx":
            count = sum(map(people.holds, _workbook_texts(path)))
    except _UNREADABLE as error:
        warn(f"{path} cannot be read ({error}). Check whether it contains them.")
    return kind, count


def _matches(batch: pa.RecordBatch, holds: Holds) -> int:
    """Count the rows of a batch that contain one of the people."""
    hit = [False] * batch.num_rows
    for column in batch.columns:
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not is_text and not pa.types.is_nested(column.type):
            continue
        texts = column if is_text else pa.array([str(cell) for cell in column.to_pylist()])
        # Most cells contain neither an address nor a URL.
        likely = pc.fill_null(pc.match_substring_regex(texts, r"[@/]"), fill_value=False)
        for position in pc.indices_nonzero(likely).to_pylist():
            hit[position] = hit[position] or holds(texts[position].as_py())
    return sum(hit)


def _workbook_texts(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as workbook:
        for name in workbook.namelist():
            if name.endswith(".xml") and name.startswith("xl/"):
                text = workbook.read(name).decode(errors="replace")
                yield from map(unescape, re.findall(r"<t[^>]*>([^<]*)</t>", text))


def _checkpoint_texts(path: Path) -> Iterator[str]:
    """Yield the people of an interrupted export as text."""
    journal = path.parent / "journal.sqlite"
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
        spans = database.execute("SELECT begins, ends FROM parts ORDER BY number").fetchall()
    target = path.parent.name.removeprefix(".").removesuffix(".partial")
    for begins, ends in spans:
        yield from part_texts(target, read_span(path, Span(begins, ends)))
