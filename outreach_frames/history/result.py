"""The result of `compare_people`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd

from outreach_frames.common.card import Card, Details, Fact
from outreach_frames.common.pandas_versions import STR
from outreach_frames.common.text import plural
from outreach_frames.files.result import Result
from outreach_frames.history.headcounts import Headcounts

_NEW: Final = "Only in the later table."
_NOT_LEFT: Final = "Only in the earlier table; this does not prove that they left."


class PeopleComparison(Result):
    """The differences between two tables of people.

    `to_excel` and `to_csv` write all tables and the summary.

    Attributes
    ----------
    appeared : DataFrame
        People only in the later table, with all its columns.
    disappeared : DataFrame
        People only in the earlier table, with all its columns.
    changed : DataFrame
        One row per person and changed field: person_id (the profile URL for people without id),
        name, field, before and after (all str; dates in ISO 8601, lists as JSON). Company fields
        are excluded.
    employer_changes : DataFrame
        One row per person with a different employer: person_id, name, company_before,
        company_after, title_before, title_after, profnet_url (from the later table if known),
        company_id_before, company_id_after (all str) and current_position_start_date (datetime64,
        from the later table). Columns that the tables lack have missing values. Employers are
        compared by id, else profile URL, else name; employers with the same profile URL are one,
        despite different ids or names. People whose employer is missing in one table are counted
        in `notes` instead. To add the people of this table to a sequence by their profile URLs,
        call its `.outreach.plan(...)` with data={"title": "title_after"}.
    notes : list of str
        Differences between the searches, and rows and columns that were not compared.
    """

    def __init__(
        self,
        *,
        appeared: pd.DataFrame,
        disappeared: pd.DataFrame,
        changed: pd.DataFrame,
        employer_changes: pd.DataFrame,
        headcounts: Headcounts,
        sizes: tuple[int, int, int],  # number of rows before, after, and in both tables
        totals: tuple[int | None, int | None],  # the service's counts of people
        notes: Sequence[str],
    ) -> None:
        self.appeared: pd.DataFrame = appeared
        self.disappeared: pd.DataFrame = disappeared
        self.changed: pd.DataFrame = changed
        self.employer_changes: pd.DataFrame = employer_changes
        self.notes: list[str] = list(notes)
        self._headcounts = headcounts
        self._sizes = sizes
        self._totals = totals

    @property
    def headcount(self) -> pd.DataFrame:
        """The companies' headcounts, each company once.

        Returns
        -------
        DataFrame
            One row per company and department: company_id, company, department (str), before,
            after, change (Int64; missing for companies in only one table) and growth (Float64,
            change / before). If a table has a company's headcount in other departments, a missing
            department counts as 0, unless its column was not read.
        """
        return self._headcounts.table

    @property
    def headline(self) -> str:
        """Return the result in one line."""
        return (
            f"{len(self.appeared):,} appeared, {len(self.disappeared):,} disappeared, "
            f"{len(self.employer_changes):,} changed employers"
        )

    def summary(self) -> pd.DataFrame:
        """Count the differences, with a note on each count.

        Returns
        -------
        DataFrame
            Columns `item` (str), `count` (Int64) and `note` (str).
        """
        notes = " ".join(self.notes)
        facts = [
            (fact.name, fact.number, _joined(fact.text, notes if fact.name == "after" else ""))
            for fact in self._facts()
        ]
        counts = pd.DataFrame(facts, columns=["item", "count", "note"])
        return counts.astype({"item": STR, "count": "Int64", "note": STR})

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {
            "summary": self.summary(),
            "appeared": self.appeared,
            "disappeared": self.disappeared,
            "changed": self.changed,
            "employer_changes": self.employer_changes,
            "headcount": self.headcount,
        }

    def _card(self) -> Card:
        return Card(
            self.headline,
            list(self._facts()),
            columns=("", "Count", "What it means"),
            details=[Details("Notes", self.notes)],
            advice="The tables: .appeared, .disappeared, .changed, .employer_changes, .headcount; "
            "as files: .to_excel(path), .to_csv(folder).",
        )

    def _facts(self) -> Iterator[Fact]:
        before, after, both = self._sizes
        people = self.changed["person_id"].nunique()
        fields = self.changed["field"].nunique()
        counted = [
            "" if total is None else f"The service counted {total:,}." for total in self._totals
        ]
        yield Fact("before", _joined("Rows in the earlier table.", counted[0]), before)
        yield Fact("after", _joined("Rows in the later table.", counted[1]), after)
        yield Fact("in_both", "People in both tables.", both)
        yield Fact("appeared", _NEW, len(self.appeared))
        yield Fact("disappeared", _NOT_LEFT, len(self.disappeared))
        values = f"{plural(len(self.changed), 'value')} in {plural(fields, 'field')}"
        yield Fact("changed", f"People with changes, {values} in total.", people)
        yield Fact("employer_changes", "People who changed employers.", len(self.employer_changes))
        companies = plural(self._headcounts.compared, "company", "companies")
        yield Fact(
            "headcount",
            f"Companies with a changed headcount, of {companies} in both tables.",
            self._headcounts.changed,
        )


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
