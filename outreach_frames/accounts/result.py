"""The result of `find_people`: the people, and the outcome of each account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.accounts.companies import DUPLICATE, FOUND, INVALID, NOBODY, STATUSES, Outcome
from outreach_frames.accounts.finder import PeopleBatch
from outreach_frames.analysis.brief import brief
from outreach_frames.common.arguments import Headcount
from outreach_frames.common.card import Card, Fact
from outreach_frames.common.text import plural
from outreach_frames.files.result import Result
from outreach_frames.reading.flatten import DtypeBackend, concat_tables, people_frame
from outreach_frames.resources.people import with_headcount
from outreach_frames.tables.columns import append_columns, text_names
from outreach_frames.tables.schema import empty_table

ROW: Final = "account_row"
RANK: Final = "account_rank"

MEANINGS: Final = {
    FOUND: "People match.",
    NOBODY: "Searched, but no person matches.",
    INVALID: "Not searched: the row has no usable company identifier.",
    DUPLICATE: "Same company as an earlier row, which has the people.",
}
_DETAILS_SHOWN: Final = 2
_COMPANIES_SHOWN: Final = 3


class AccountPeople(Result):
    """The people found at the companies of a table, and the outcome of each of its rows.

    Files contain the tables `people` and `accounts`. A workbook's people sheet begins with the
    columns of `df.outreach.brief`.

    Attributes
    ----------
    people : DataFrame
        One row per person and account: the columns of `search_people`, then account_row (Int64, the
        row's position among the accounts), account_rank (Int64, 1 is best) and the column of
        `split_by`.
    accounts : DataFrame
        The accounts with account_status, account_people, account_total, account_company_id,
        account_company_name and account_detail; a name that is taken gets the prefix `outreach_`.
    requests : int
        The number of requests, including those served from the cache.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        people: pd.DataFrame,
        outcomes: Mapping[int, Outcome],
        *,
        requests: int,
    ) -> None:
        self.people: pd.DataFrame = people
        self.requests: Final = requests
        self._outcomes = _outcome_table(len(frame), people, outcomes)
        self.accounts: pd.DataFrame = append_columns(frame, self._outcomes)

    def summary(self) -> pd.DataFrame:
        """Count the accounts of each status that occurs, and their people.

        Returns
        -------
        DataFrame
            Columns `account_status` (str), `accounts` and `people` (Int64).
        """
        statuses = pd.CategoricalIndex(self._outcomes["account_status"], STATUSES)
        by_status = self._outcomes.groupby(statuses, observed=True, dropna=False)["account_people"]
        dtypes = {"account_status": "str", "accounts": "Int64", "people": "Int64"}
        counts = by_status.agg(["size", "sum"]).reset_index()
        return counts.set_axis(list(dtypes), axis=1).astype(dtypes)

    def _sheets(self) -> dict[str, pd.DataFrame]:
        first = list(brief(self.people).columns)
        people = self.people[[*first, *self.people.columns.drop(first)]]
        return {**super()._sheets(), "people": people}

    def _tables(self) -> dict[str, pd.DataFrame]:
        accounts = self.accounts.set_axis(text_names(self.accounts.columns), axis=1)
        return {"people": self.people, "accounts": accounts}

    def _card(self) -> Card:
        accounts, people = len(self.accounts), len(self.people)
        return Card(
            f"{plural(people, 'person', 'people')} at {plural(accounts, 'account')}, "
            f"found in {plural(self.requests, 'request')}",
            list(self._facts()),
            columns=("Status", "Accounts", "What it means"),
            advice="The people: .people; each account with its status: .accounts; "
            "as files: .to_csv(folder), .to_excel(path).",
        )

    def _facts(self) -> Iterator[Fact]:
        summary = self.summary()
        for status, accounts, people in summary.itertuples(index=False):
            if pd.isna(status):
                yield Fact("(none)", "Not finished before the failure.", accounts)
            elif status == FOUND:
                yield Fact(status, f"{plural(people, 'person', 'people')} found.", accounts)
            else:
                yield Fact(status, MEANINGS[status], accounts, self._details(status))

    def _details(self, status: str) -> list[str]:
        details = self._outcomes.loc[self._outcomes["account_status"] == status, "account_detail"]
        shown = details[:_DETAILS_SHOWN].tolist()
        more = len(details) - len(shown)
        return [*shown, f"and {plural(more, 'other')}"] if more else shown


def people_table(
    batches: Sequence[PeopleBatch],
    headcount: Headcount,
    dtype_backend: DtypeBackend,
    split_by: str | None,
    values: Sequence[Any],
) -> pd.DataFrame:
    """Combine the people of all searches into one frame, ordered by account and rank."""
    rows = np.concatenate([np.empty(0, np.int64), *(batch.account_rows for batch in batches)])
    order = np.argsort(rows, kind="stable")
    tables = [batch.people for batch in batches] or [empty_table(spec.PERSON)]
    people = people_frame([concat_tables(tables).take(pa.array(order))], dtype_backend)
    added = pd.DataFrame({ROW: rows[order]})
    added[RANK] = added.groupby(ROW).cumcount() + 1
    integer = pd.ArrowDtype(pa.int64()) if dtype_backend == "pyarrow" else "Int64"
    added = added.astype({ROW: integer, RANK: integer})
    if split_by is not None:
        codes = np.concatenate(
            [
                np.empty(0, np.int64),
                *(np.full(len(batch.people), values.index(batch.value)) for batch in batches),
            ]
        )
        added[split_by] = pd.Categorical.from_codes(
            codes[order].astype(np.int64), pd.Index(values), ordered=True
        )
    return append_columns(with_headcount(people, headcount), added)


def _outcome_table(
    size: int, people: pd.DataFrame, outcomes: Mapping[int, Outcome]
) -> pd.DataFrame:
    listed = [outcomes[row] for row in range(size)]
    found = people[[ROW, "company_id", "company_name"]].astype(
        {ROW: "int64", "company_id": "str", "company_name": "str"}
    )
    by_account = found.groupby(ROW)
    best = by_account.nth(0).set_index(ROW).reindex(range(size))
    companies = found.drop_duplicates([ROW, "company_id"]).groupby(ROW)["company_name"].agg(list)
    details = [
        "; ".join(filter(None, [outcome.detail, _name_several(companies.get(row, []))]))
        for row, outcome in enumerate(listed)
    ]
    return pd.DataFrame(
        {
            "account_status": pd.array([outcome.status for outcome in listed], dtype="str"),
            "account_people": by_account.size().reindex(range(size), fill_value=0).astype("Int64"),
            "account_total": pd.array([outcome.total for outcome in listed], dtype="Int64"),
            "account_company_id": best["company_id"].to_numpy(),
            "account_company_name": best["company_name"].to_numpy(),
            "account_detail": pd.array(details, dtype="str"),
        }
    ).astype({"account_company_id": "str", "account_company_name": "str"})


def _name_several(companies: Sequence[str]) -> str:
    """Describe the companies where people were found; empty for a single company."""
    if len(companies) < 2:
        return ""
    shown = ", ".join(str(name) for name in companies[:_COMPANIES_SHOWN])
    more = ", ..." if len(companies) > _COMPANIES_SHOWN else ""
    return f"{len(companies)} companies: {shown}{more}"
