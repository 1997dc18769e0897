"""Leads that earlier runs have settled: who they are, and what became of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames.identity.persons import first_rows, identifiers, numbers_of

Rows = np.ndarray[Any, Any]


class SettledLeads(NamedTuple):
    """Leads that are not sent again, whatever the columns that identify leads are now.

    Attributes
    ----------
    rows : ndarray of int64
        For each row of `keys`, the row of the frame that it was.
    keys : RecordBatch
        What the leads were compared by when they were sent: `email` and `profnet_url`.
    outcomes : DataFrame
        What became of each of these rows: position, status, detail, error_code.
    """

    rows: Rows
    keys: pa.RecordBatch
    outcomes: pd.DataFrame

    def find_kept(self, emails: pa.Array, urls: pa.Array, is_valid: Rows) -> Rows:
        """Return for each row the row that is kept of the same person, a settled one first.

        The arguments are those of `duplicates.find_kept`.
        """
        is_settled = np.isin(np.arange(len(is_valid)), self.rows)
        order = np.argsort(~is_settled, kind="stable")
        then_and_now = [
            pa.chunked_array([then, now.take(pa.array(order))]).combine_chunks()
            for then, now in zip(self.keys.columns, (emails, urls), strict=True)
        ]
        are_valid = np.concatenate([np.ones(len(self.rows), dtype=bool), is_valid[order]])
        first = first_rows(numbers_of(identifiers(*then_and_now), are_valid))
        kept = np.empty(len(order), dtype=np.int64)
        kept[order] = np.concatenate([self.rows, order])[first[len(self.rows) :]]
        kept[self.rows] = self.rows
        return kept

    def with_outcomes(self, unsent: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that are not sent, those that are settled with what became of them."""
        others = unsent[~unsent["position"].isin(self.rows)]
        return pd.concat([others, self.outcomes]).sort_values("position", ignore_index=True)
