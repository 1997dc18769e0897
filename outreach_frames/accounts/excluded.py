"""Read the tables and journals with the people to exclude."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from glob import has_magic
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames.common.arguments import check_day, is_day
from outreach_frames.common.atomic_files import expanded, require_readable_file
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.header import is_identifier
from outreach_frames.files.read import frame_or_file, is_table_path
from outreach_frames.leads.sending.journal_file import ReachedPeople, is_journal, reached_people
from outreach_frames.tables.interchange import FrameLike

_TAKES: Final = "frames, and the paths of tables (.csv, .xlsx, .parquet) and journals"

# A table, or the path or pattern of tables and journals.
Excluded = FrameLike | str | Path
Since = str | date | timedelta


class Source(NamedTuple):
    """A table or journal with people to exclude, and its name in messages."""

    frame: pd.DataFrame  # empty for a journal
    name: str
    journal: ReachedPeople | None


def read_sources(
    others: Iterable[Excluded | Sequence[Excluded]], since: Since | None
) -> list[Source]:
    """Read tables and journals; of journals, only the people reached since then."""
    tables = [*_expand(others)]
    if not tables:
        raise InvalidInputError("Pass at least one table with the people to exclude.")
    first_day = None if since is None else _first_day(since)
    sources = [_read(table, place, first_day) for place, table in enumerate(tables, 1)]
    if since is not None and not any(source.journal for source in sources):
        raise InvalidInputError("since= applies to journals. Pass a journal, or omit since=.")
    return sources


def _expand(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield each table and path in lists, and each file that a pattern matches."""
    for table in tables:
        if isinstance(table, list | tuple):
            yield from _expand(table)
        elif not isinstance(table, str | Path):
            yield table
        elif is_identifier(str(table)) and not expanded(table).exists():
            raise InvalidInputError(
                f"{quoted(str(table))} is a person, not a table. Pass a frame, such as "
                'pd.DataFrame({"email": [...]}).'
            )
        elif has_magic(str(table)) and not (path := expanded(table)).exists():
            paths = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            if not paths:
                raise InvalidInputError(f"No file matches {table}. Correct the path.")
            yield from paths
        else:
            yield table


def _first_day(since: Since) -> pd.Timestamp:
    """Return midnight in UTC of a day, or of the day that is a span back from now."""
    now = pd.Timestamp.now("UTC")
    first: pd.Timestamp | None = None
    if isinstance(since, date) or is_day(str(since)):
        first = check_day("since", since).tz_localize("UTC")
    elif not str(since).isdigit():  # without a unit, pandas would read nanoseconds
        with suppress(ValueError, TypeError):
            first = now - pd.Timedelta(since)
    if first is None or not first <= now:
        raise InvalidInputError(
            f"since={quoted(since)} is not a past day or a span. Pass a day as YYYY-MM-DD, or "
            '"90D" for the last 90 days.'
        )
    return first.floor("D")


def _read(table: Any, place: int, since: pd.Timestamp | None) -> Source:
    if isinstance(table, str | Path) and not is_table_path(table):
        path = expanded(table)
        require_readable_file(path)
        if is_journal(path):
            name = f"The journal {path.name}"
            return Source(pd.DataFrame(), name, reached_people(path, since))
    return Source(frame_or_file(table, "without()", _TAKES), f"Table {place}", None)
