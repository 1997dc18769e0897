"""The result of `find_people`: the people, and the outcome of each account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.accounts.companies import (
    DUPLICATE,
    FOUND_STATUS,
    INVALID,
    NOBODY_STATUS,
    SEVERAL,
    SIMILAR_STATUS,
    STATUSES,
    RowResult,
    prefixed,
    row_label,
)
from outreach_frames.accounts.searches import PeopleBatch
from outreach_frames.analysis.brief import brief
from outreach_frames.client.client import Client
from outreach_frames.common.card import Card, Fact
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural
from outreach_frames.files.result import Result
from outreach_frames.identity.keys import filled_texts, profnet_url_keys
from outreach_frames.reading.flatten import (
    DtypeBackend,
    concat_people,
    concat_tables,
    select_columns,
)
from outreach_frames.resources.counts import count_searches
from outreach_frames.tables.columns import append_columns, text_names
from outreach_frames.tables.schema import empty_table, to_frame

ROW: Final = "account_row"
RANK: Final = "account_rank"
STATUS: Final = "account_status"
NAME_MATCH: Final = "name_match"
EQUAL: Final = "equal"
MATCHED: Final = "matched_seniority"
SENIORITIES: Final = "person_seniorities"

MEANINGS: Final = {
    FOUND_STATUS: "People match.",
    NOBODY_STATUS: "The search succeeded, but no person matches.",
    INVALID: "The row has no usable company identifier and was not searched.",
    DUPLICATE: "An earlier row names the same company and has its people.",
}
_FOUND_QUERY: Final = f"{STATUS} == '{FOUND_STATUS}' and {NAME_MATCH} == '{EQUAL}'"
NAMED_MEANINGS: Final = {
    FOUND_STATUS: "Exactly one person has this name.",
    SEVERAL: "More than one person may have this name.",
    SIMILAR_STATUS: "Only people with similar names, or at other companies, were found.",
    NOBODY_STATUS: "The search succeeded, but found nobody.",
    INVALID: "The row has no name or no usable company identifier and was not searched.",
    DUPLICATE: "An earlier row names the same person.",
}
# The columns that identify a person and the person's company.
IDENTITY: Final = ["id", "profnet_url", "company_id", "company_website", "company_profnet_url"]
_DETAILS_SHOWN: Final = 2
_COMPANIES_SHOWN: Final = 3


class AccountPeople(Result):
    """The people found at the companies of a table, and the outcome of each row of the table.

    Saved files contain the tables `people` and `accounts`. In a workbook, the sheet with people
    begins with the columns that `df.outreach.brief` selects.

    Attributes
    ----------
    people : DataFrame
        One row per person and account: the columns of `search_people`, then account_row (Int64, the
        position of the account's row), account_rank (Int64, 1 is best), matched_seniority (str, the
        first matching value of `person_seniorities`) and the column of `split_by`. With
        `person_name`, the last two are replaced by account_status and name_match (str).
    accounts : DataFrame
        The accounts with account_status, account_people, account_total, account_company_id,
        account_company_name and account_detail. If the table already has one of these columns, the
        new column gets the prefix `outreach_`.
    requests : int
        The number of requests, including those served from the cache.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        people: pd.DataFrame,
        outcomes: Mapping[int, RowResult],
        *,
        requests: int,
        client: Client,
        searches: Mapping[int, Mapping[str, Any]],
        columns: Sequence[str] | None = None,
        is_by_name: bool = False,
    ) -> None:
        self._is_by_name = is_by_name
        self.people: pd.DataFrame = people if columns is None else people[list(columns)]
        self._has_all_columns = columns is None
        self.requests: Final = requests
        self._client = client
        # The filters that find all people of a row's company.
        self._searches = searches
        self._outcomes = _outcome_table(len(frame), people, outcomes, is_by_name=is_by_name)
        self.accounts: pd.DataFrame = append_columns(frame, self._outcomes)

    def summary(self) -> pd.DataFrame:
        """Count the accounts and people per status; statuses without accounts are omitted.

        Returns
        -------
        DataFrame
            Columns `account_status` (str), `accounts` and `people` (Int64).
        """
        statuses = pd.CategoricalIndex(self._outcomes["account_status"], STATUSES)
        by_status = self._outcomes.groupby(statuses, dropna=False, observed=True)["account_people"]
        dtypes = {"account_status": STR, "accounts": "Int64", "people": "Int64"}
        counts = by_status.agg(["size", "sum"]).reset_index()
        return counts.set_axis(list(dtypes), axis=1).astype(dtypes)

    def explain_nobody(
        self, *, refresh: bool = False, progress: bool | None = None
    ) -> pd.DataFrame:
        """Count all people of the companies with the status `nobody`, whatever the filters.

        Each company takes one request, however many rows name it. A company without people either
        has none or is unknown to the service.

        Parameters
        ----------
        refresh : bool
            Ask the service even if the cache has a fresh response.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal.

        Returns
        -------
        DataFrame
            The rows of `.accounts` with the status `nobody`, and people_without_filters (Int64):
            the number of people at the company with the same identifier, including those at
            subsidiaries if the search included them.

        Raises
        ------
        ServiceError
            The service or the connection failed; the exception's `.partial` has the earlier rows.

        Notes
        -----
        Interface: POST /people/search.
        """
        rows_by_search = self._nobody_by_search()

        def framed(counts: list[int]) -> pd.DataFrame:
            people = {
                row: count
                for rows, count in zip(rows_by_search.values(), counts, strict=False)
                for row in rows
            }
            rows = sorted(people)
            counted = pd.array([people[row] for row in rows], dtype="Int64")
            added = pd.DataFrame({"people_without_filters": counted})
            return append_columns(self.accounts.iloc[rows], added)

        searches = [self._searches[rows[0]] for rows in rows_by_search.values()]
        return count_searches(self._client, searches, framed, refresh=refresh, progress=progress)

    def _nobody_by_search(self) -> dict[str, list[int]]:
        """Return the rows with the status `nobody` by the search for their company."""
        rows: dict[str, list[int]] = {}
        for row in np.flatnonzero(self._outcomes[STATUS].eq(NOBODY_STATUS)).tolist():
            rows.setdefault(repr(self._searches[row]), []).append(row)
        return rows

    def _sheets(self) -> dict[str, pd.DataFrame]:
        if not self._has_all_columns:
            return super()._sheets()
        first = list(brief(self.people).columns)
        people = self.people[[*first, *self.people.columns.drop(first)]]
        return {**super()._sheets(), "people": people}

    def _tables(self) -> dict[str, pd.DataFrame]:
        accounts = self.accounts.set_axis(text_names(self.accounts.columns), axis=1)
        return {"people": self.people, "accounts": accounts}

    def _card(self) -> Card:
        rows, requests = len(self.accounts), plural(self.requests, "request")
        advice = "Save both with .to_csv(folder) or .to_excel(path)."
        if self._is_by_name:
            found = self._outcomes[STATUS].eq(FOUND_STATUS).sum()
            return Card(
                f"{found:,} of {plural(rows, 'person', 'people')} found in {requests}",
                list(self._facts()),
                columns=("Status", "People", "What it means"),
                advice=f"The found people: .people.query({_FOUND_QUERY!r}). See also the similar "
                f"people in .people and each person's status in .accounts. {advice}",
            )
        people = plural(len(self.people), "person", "people")
        return Card(
            f"{people} at {plural(rows, 'account')}, found in {requests}",
            list(self._facts()),
            columns=("Status", "Accounts", "What it means"),
            advice=f"See the people in .people and each account's status in .accounts. {advice}",
        )

    def _facts(self) -> Iterator[Fact]:
        for status, accounts, _ in self.summary().itertuples(index=False):
            if pd.isna(status):
                rows = "rows" if self._is_by_name else "accounts"
                stopped = f"The search stopped before these {rows} were finished."
                yield Fact("(none)", stopped, accounts)
            else:
                advice = ""
                if status == NOBODY_STATUS:
                    people = (
                        "the people at their companies" if self._is_by_name else "all their people"
                    )
                    requests = plural(len(self._nobody_by_search()), "request")
                    advice = f"Count {people}: .explain_nobody(), in {requests}."
                meanings = NAMED_MEANINGS if self._is_by_name else MEANINGS
                yield Fact(status, meanings[status], accounts, self._details(status), advice)

    def _details(self, status: str) -> list[str]:
        is_shown = self._outcomes["account_status"].eq(status)
        is_shown &= self._outcomes["account_detail"].ne("")
        details = self._outcomes.loc[is_shown, "account_detail"]
        shown = details[:_DETAILS_SHOWN].tolist()
        more = len(details) - len(shown)
        return [*shown, f"and {plural(more, 'other')}"] if more else shown


def merged(batches: Sequence[PeopleBatch]) -> PeopleBatch:
    """Combine the people of all searches."""
    no_people = PeopleBatch(empty_table(spec.PERSON), np.empty(0, np.int64), np.empty(0, object))
    batches = batches or [no_people]
    return PeopleBatch(
        concat_tables([batch.people for batch in batches]),
        np.concatenate([batch.account_rows for batch in batches]),
        np.concatenate([batch.values for batch in batches]),
    )


def list_once(
    batch: PeopleBatch, outcomes: Mapping[int, RowResult], index: pd.Index[Any]
) -> tuple[np.ndarray[Any, Any], dict[int, RowResult]]:
    """Assign each person to the first account row that found the person; repetitions get -1.

    An account without a person of its own is a duplicate of the account that has its people.
    """
    rows = batch.account_rows
    people = pd.DataFrame({"person": person_keys(batch.people), ROW: rows})
    first = people.groupby("person")[ROW].transform("min")
    # Per account row, the rows that list its people.
    listing_rows: dict[Any, set[int]] = first.groupby(people[ROW]).agg(set).to_dict()
    explained = dict(outcomes)
    for row, listing in listing_rows.items():
        outcome = outcomes[row]
        if listing == {row}:
            continue
        label = row_label(index, min(listing - {row}))
        if row in listing or outcome.status is None:
            explained[row] = _noted(outcome, f"some people belong to row {label}")
        else:
            noted = _noted(outcome, f"same company as row {label}")
            explained[row] = replace(noted, status=DUPLICATE, total=None)
    # A search may find a person twice.
    is_repeated = people.duplicated() | (people[ROW] != first)
    return np.where(is_repeated, -1, rows), explained


def person_keys(people: pa.Table, prefix: str = "#") -> list[str]:
    """Return each person's id, else profile URL, else a unique text with this prefix."""
    ids, urls = (
        filled_texts(people.column(name).cast(pa.large_string()).combine_chunks())
        for name in ("id", "profnet_url")
    )
    numbers = pa.array([f"{prefix}{number}" for number in range(len(ids))], pa.large_string())
    keys: list[str] = pc.coalesce(ids, profnet_url_keys(urls), numbers).to_pylist()
    return keys


def _noted(outcome: RowResult, note: str) -> RowResult:
    return replace(outcome, detail="; ".join(filter(None, [outcome.detail, note])))


def people_table(
    batch: PeopleBatch,
    rows: np.ndarray[Any, Any],
    dtype_backend: DtypeBackend,
    split_by: str | None,
    filters: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the people as a frame, ordered by account and rank."""
    order = np.argsort(rows, kind="stable")
    order = order[rows[order] >= 0]
    table = batch.people if columns is None else select_columns(batch.people, columns)
    people = to_frame(concat_people([table.take(pa.array(order))]), dtype_backend)
    found_by = batch.values[order]
    matched = found_by if split_by in {None, SENIORITIES} else [None] * len(order)
    account_rows = pd.Series(rows[order])
    ranks = account_rows.groupby(account_rows).cumcount() + 1
    texts = pa.array(matched, pa.string())
    added = to_frame(pa.table({ROW: account_rows, RANK: ranks, MATCHED: texts}), dtype_backend)
    if split_by is not None:
        categories = list(dict.fromkeys(filters[split_by]))
        added[split_by] = pd.Categorical(found_by, categories, ordered=True)
    return append_columns(people, added)


def add_account_columns(
    people: pd.DataFrame, columns: Mapping[str, pd.Series[Any]]
) -> pd.DataFrame:
    """Append columns of the table of accounts to the people found at the accounts."""
    rows = people[ROW].astype("int64")
    added = {
        # An array of objects would lose its dtype.
        prefixed(name, people.columns): column.iloc[rows].set_axis(people.index)
        for name, column in columns.items()
    }
    return append_columns(people, pd.DataFrame(added, people.index)) if added else people


def _outcome_table(
    size: int, people: pd.DataFrame, outcomes: Mapping[int, RowResult], *, is_by_name: bool
) -> pd.DataFrame:
    listed = [outcomes[row] for row in range(size)]
    # A similar person may be at another company.
    fitting = people[people[NAME_MATCH].eq(EQUAL)] if is_by_name else people
    employers = fitting[[ROW, "company_id", "company_name"]].astype(
        {ROW: "int64", "company_id": STR, "company_name": STR}
    )
    by_account = employers.groupby(ROW)
    best = by_account.nth(0).set_index(ROW).reindex(range(size))
    numbers = people[ROW].astype("int64").value_counts().reindex(range(size), fill_value=0)
    distinct = employers.drop_duplicates([ROW, "company_id"])
    companies = distinct.groupby(ROW)["company_name"].agg(list)
    details = [
        "; ".join(filter(None, [outcome.detail, _name_several(companies.get(row, []))]))
        for row, outcome in enumerate(listed)
    ]
    return pd.DataFrame(
        {
            "account_status": pd.array([outcome.status for outcome in listed], dtype=STR),
            "account_people": numbers.astype("Int64").array,
            "account_total": pd.array([outcome.total for outcome in listed], dtype="Int64"),
            "account_company_id": best["company_id"].to_numpy(),
            "account_company_name": best["company_name"].to_numpy(),
            "account_detail": pd.array(details, dtype=STR),
        }
    ).astype({"account_company_id": STR, "account_company_name": STR})


def _name_several(companies: Sequence[str]) -> str:
    """Describe the companies where people were found; return no text for a single company."""
    if len(companies) < 2:
        return ""
    shown = ", ".join(str(name) for name in companies[:_COMPANIES_SHOWN])
    more = ", ..." if len(companies) > _COMPANIES_SHOWN else ""
    return f"{len(companies)} companies: {shown}{more}"
