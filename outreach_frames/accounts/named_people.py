"""Search for people by name at the companies of a table, and check the names that come back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.accounts.companies import (
    DUPLICATE,
    FOUND_STATUS,
    INVALID,
    NOBODY_STATUS,
    SEVERAL,
    SIMILAR_STATUS,
    RowResult,
    SearchedAccount,
    cell_texts,
    row_accounts,
    row_label,
)
from outreach_frames.accounts.finder import Finder
from outreach_frames.accounts.result import (
    EQUAL,
    MATCHED,
    NAME_MATCH,
    ROW,
    STATUS,
    merged,
    people_table,
    person_keys,
)
from outreach_frames.accounts.searches import CompanyProgress, CompanySearch, PeopleBatch
from outreach_frames.common import terms
from outreach_frames.common.placeholders import are_missing_texts, are_placeholder_texts
from outreach_frames.common.text import plural, quoted
from outreach_frames.common.warnings import warn
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.keys import company_name_cells
from outreach_frames.identity.person_names import PersonName, is_same_person, read_person_name
from outreach_frames.reading.flatten import DtypeBackend
from outreach_frames.tables.column_checks import column_of, require_name
from outreach_frames.tables.columns import columns_text, usual_names

PERSON_NAME: Final = "person_name"
SIMILAR: Final = "similar"
# The people columns with names.
NAMES: Final = ("name", "first_name", "last_name")
# The maximum number of similar people per row.
_SIMILAR_LISTED: Final = 10
_SHOWN: Final = 2
# Small tables with all columns take much more memory than their people.
_MAX_BATCHES: Final = 50


def check_name_columns(frame: pd.DataFrame, person_name: object) -> list[Hashable]:
    """Return the column of full names, or the columns of first and last names."""
    if person_name is True:
        return _usual_name_columns(frame)
    columns = [*person_name] if isinstance(person_name, list | tuple) else [person_name]
    for name in columns:
        require_name(PERSON_NAME, name, ", or a list of two columns with first and last names")
        if name not in frame.columns:
            in_filters = terms.argument("filters", {PERSON_NAME: name})
            raise InvalidInputError(
                f"{terms.argument(PERSON_NAME)} takes the column with names, or the two with first "
                f"and last names, but {quoted(name)} is not a column of the table. To filter by a "
                f"name, pass {terms.wording(in_filters, in_shell='a saved search with --filters')}."
                f" {columns_text(frame)}"
            )
    if len(columns) not in (1, 2):
        raise InvalidInputError(
            f"{terms.argument(PERSON_NAME)} takes the column with names, or the two with first and "
            f"last names, not {quoted(person_name)}."
        )
    return columns


def _usual_name_columns(frame: pd.DataFrame) -> list[Hashable]:
    first, last, full = (
        usual_names(kind, frame.columns) for kind in ("first_name", "last_name", PERSON_NAME)
    )
    if len(first) == len(last) == 1:
        columns = [*first, *last]
    elif len(full) == 1:
        columns = full
    else:
        raise InvalidInputError(
            "The table has no single column with a usual name of people, and no pair of first and "
            f"last names. Pass them as {terms.argument(PERSON_NAME)}. {columns_text(frame)}"
        )
    warn(f"The people are identified by {terms.argument(PERSON_NAME, columns)}.")
    return columns


def read_people(
    frame: pd.DataFrame, name_columns: Sequence[Hashable], columns: Mapping[str, Hashable]
) -> tuple[list[SearchedAccount], dict[int, PersonName], dict[int, RowResult]]:
    """Return the company and the name of each person to search, and the other rows' outcomes."""
    table = f"{terms.name(PERSON_NAME)}: the table of accounts"
    texts = [cell_texts(column_of(frame, name, table)) for name in name_columns]
    cells = [_without_placeholders(column).to_pylist() for column in texts]
    accounts: dict[Any, SearchedAccount] = {}
    names: dict[int, PersonName] = {}
    outcomes: dict[int, RowResult] = {}
    for row, account in enumerate(row_accounts(frame, columns)):
        name = read_person_name(*(column[row] for column in cells))
        if name is None:
            outcomes[row] = RowResult(INVALID, "the row has no name")
        elif isinstance(account, RowResult):
            outcomes[row] = account
        else:
            names[row] = name
            first = accounts.setdefault((name.key, account.kind.argument, account.key), account)
            if first.row != row:
                label = row_label(frame.index, first.row)
                outcomes[row] = RowResult(DUPLICATE, f"same person as row {label}")
    return list(accounts.values()), names, outcomes


def _without_placeholders(texts: pa.Array) -> pa.Array:
    is_empty = pc.or_(are_missing_texts(texts), are_placeholder_texts(texts))
    return pc.if_else(is_empty, "", texts).fill_null("")


@dataclass
class NamedPeopleFinder(Finder):
    """Searches people by name, one request each, and keeps those whose names fit."""

    names: Mapping[int, PersonName] = field(default_factory=dict)  # by row
    _outcomes: dict[int, RowResult] = field(default_factory=dict)
    # The first row of each person with an equal name.
    _first_rows: dict[str, int] = field(default_factory=dict)

    def people(
        self, outcomes: Mapping[int, RowResult], dtype_backend: DtypeBackend
    ) -> tuple[pd.DataFrame, dict[int, RowResult]]:
        """Return the people found so far, and the outcome of each row."""
        stopped = RowResult(None, "the search stopped before this person was searched")
        rows = [company.account.row for company in self.companies]
        explained = {**outcomes, **dict.fromkeys(rows, stopped), **self._outcomes}
        batch = merged(self.batches)
        people = people_table(
            batch, batch.account_rows, dtype_backend, None, {}, columns=self.columns
        ).rename(columns={MATCHED: NAME_MATCH})
        statuses = people[ROW].map(lambda row: explained[row].status)
        people.insert(people.shape[1] - 1, STATUS, statuses.astype(people[NAME_MATCH].dtype))
        return people, explained

    def run(self) -> None:
        """Search each person."""
        requests = ((self._search_name(company), 1) for company in self.companies)
        with closing(self._read(requests)) as searches:
            for search in searches:
                row = search.companies[0].account.row
                self._outcomes[row] = self._judge(row, search)
                self.on_finished(1)

    def _search_name(self, company: CompanyProgress) -> CompanySearch:
        name = self.names[company.account.row].searched
        return CompanySearch([company], {**self.filters, PERSON_NAME: name}, columns=self.columns)

    def _judge(self, row: int, search: CompanySearch) -> RowResult:
        """Keep the people who fit a row, and return the row's outcome."""
        name, account = self.names[row], search.companies[0].account
        # The place of each person in the results.
        equal: dict[str, int] = {}
        similar: dict[str, int] = {}
        keys = person_keys(search.people, prefix=f"#{row}-")
        for place, is_equal in enumerate(_have_name(name, account, search.people)):
            (equal if is_equal else similar).setdefault(keys[place], place)
        new = {key: place for key, place in equal.items() if key not in self._first_rows}
        earlier = [self._first_rows[key] for key in equal if key not in new]
        if equal and not new:
            label = row_label(self.index, min(earlier))
            return RowResult(DUPLICATE, f"same person as row {label}", search.total)
        notes = []
        if not search.is_complete:
            counted = "more people" if search.total is None else f"{search.total:,} people"
            notes.append(f"the service counted {counted}; {search.received} were read")
        if len(equal) == 1 and not notes:
            status = FOUND_STATUS
            similar = {}
        elif equal:
            status = SEVERAL
            notes.append(f"{plural(len(equal), 'person', 'people')} of this name")
            if earlier:
                notes.append(f"some people belong to row {row_label(self.index, min(earlier))}")
        elif similar:
            status = SIMILAR_STATUS
            notes.append(_describe(search.people.take([*similar.values()][:_SHOWN]), len(similar)))
        else:
            status = NOBODY_STATUS
            notes.append(f"nobody matches {name.searched} at {account.label}")
        if len(similar) > _SIMILAR_LISTED:
            notes.append(f"{len(similar) - _SIMILAR_LISTED} other similar people are not listed")
        self._first_rows.update(dict.fromkeys(new, row))
        self._add(row, search.people, [*new.values()], [*similar.values()][:_SIMILAR_LISTED])
        return RowResult(status, "; ".join(notes), search.total)

    def _add(self, row: int, people: pa.Table, equal: list[int], similar: list[int]) -> None:
        """Add people of a row by their places in the results."""
        if equal or similar:
            kept = people.take(pa.array([*equal, *similar]))
            matches = np.array([EQUAL] * len(equal) + [SIMILAR] * len(similar), dtype=object)
            self.batches.append(PeopleBatch(kept, np.full(len(kept), row), matches))
        if len(self.batches) > _MAX_BATCHES:
            batch = merged(self.batches)
            self.batches = [replace(batch, people=batch.people.combine_chunks())]


def _have_name(name: PersonName, account: SearchedAccount, people: pa.Table) -> list[bool]:
    """Return whether each person has the name; a company's name must be equal, too."""
    columns = (people.column(column).fill_null("").to_pylist() for column in NAMES)
    are_equal = [is_same_person(name, *parts) for parts in zip(*columns, strict=True)]
    if account.kind.column is not None or not any(are_equal):
        return are_equal
    # Lists shorten companies' names, and the service may find other companies by them.
    companies = [account.label, *people.column("company_name").to_pylist()]
    listed, *keys = company_name_cells(pa.array(companies, pa.large_string())).single_keys()
    return [
        is_equal and key.is_valid and key.equals(listed)
        for is_equal, key in zip(are_equal, keys, strict=True)
    ]


def _describe(people: pa.Table, number: int) -> str:
    """Return the names and companies of similar people."""
    columns = (people.column(name).to_pylist() for name in ("name", "company_name"))
    shown = [f"{name or '?'} at {company or '?'}" for name, company in zip(*columns, strict=True)]
    return f"similar: {', '.join(shown)}{', ...' if number > _SHOWN else ''}"
