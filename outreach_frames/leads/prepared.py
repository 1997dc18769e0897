"""Checked leads, which `planning` builds and `sending` sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.pandas_versions import STR, copy_frame
from outreach_frames.common.text import quoted
from outreach_frames.identity.persons import Identifiers, Mask, identifiers
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import HARMLESS, CheckedRows
from outreach_frames.leads.planning.mapping import DISTRIBUTION, MAILBOXES
from outreach_frames.leads.planning.sequence_status import SequenceStatus

Positions = np.ndarray[Any, Any]

LEADS, SETTINGS = (field.name for field in spec.ADD_LEADS_BODY)


class RunTarget(NamedTuple):
    """The service and the journal file of a plan's run, which later runs must use."""

    base_url: str
    journal: Path | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CheckedFrame:
    """A frame's checked rows, and the row that represents each person.

    Later changes of the frame do not affect the rows.
    """

    # All rows; each request's JSON is built from these rows when needed.
    checked: CheckedRows
    # For each row, the position of the row that is sent for the same person.
    kept: Positions
    _frame: pd.DataFrame
    # The overrides of all leads; each value is True.
    lead_overrides: Mapping[str, bool]
    # A text with the number of cells that clean=True repaired.
    repaired: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """A copy of the frame from the time of planning."""
        return copy_frame(self._frame)

    @property
    def emails(self) -> pa.Array:
        """Each row's email as sent, or missing."""
        none = pa.nulls(len(self._frame), pa.large_string())
        return self.checked.identifiers.get(spec.LEAD_IDENTIFIERS[0], none)

    def sent_from(self, mailboxes: Mapping[int, str]) -> Self:
        """Return the frame with other mailboxes for these rows."""
        if not mailboxes or self.checked.mailboxes is None:
            return self
        addresses = self.checked.mailboxes.to_pylist()
        for row, address in mailboxes.items():
            addresses[row] = address
        array = pa.array(addresses, self.checked.mailboxes.type)
        return replace(self, checked=replace(self.checked, mailboxes=array))

    @property
    def problems(self) -> pd.DataFrame:
        """One row per problem: row, index, column, field, code, message."""
        return copy_frame(self.checked.problems)

    @cached_property
    def unsent(self) -> pd.DataFrame:
        """Position, status, detail and error_code of the unsent rows."""
        outcomes = sorted(self.unsent_outcomes(self.kept).items())
        rows = [(position, *outcome) for position, outcome in outcomes]
        dtypes = {"position": "int64", "status": STR, "detail": STR, "error_code": STR}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def unsent_outcomes(self, kept: Positions) -> dict[int, tuple[str, str, str | None]]:
        """Return each unsent row's status, detail and error_code; `kept` as in the plan."""
        problems = self.checked.problems
        details: dict[int, list[str]] = {}
        codes: dict[int, str] = {}
        columns = (problems[name].to_list() for name in ("row", "code", "message"))
        for row, code, message in zip(*columns, strict=True):
            if not self.checked.is_valid[row]:
                details.setdefault(row, []).append(message)
                if code not in HARMLESS:
                    codes.setdefault(row, code)
        invalid = {
            row: (statuses.INVALID, " ".join(texts), codes[row]) for row, texts in details.items()
        }
        rows = np.flatnonzero(kept != np.arange(len(kept)))
        reasons = _duplicate_reasons(self._frame.index, self.checked.keys, rows, kept[rows])
        duplicates = zip(rows.tolist(), reasons, strict=True)
        return invalid | {row: (statuses.DUPLICATE_IN_FRAME, why, None) for row, why in duplicates}

    def identifiers(
        self, positions: Sequence[int] | Positions
    ) -> list[tuple[str | None, str | None]]:
        """Return the emails and profile URLs exactly as sent."""
        rows, given = self._rows(positions), self.checked.identifiers
        emails, urls = (
            given[name].take(rows).to_pylist() if name in given else [None] * len(rows)
            for name in spec.LEAD_IDENTIFIERS
        )
        return list(zip(emails, urls, strict=True))

    @cached_property
    def identifier_columns(self) -> Identifiers:
        """The identifiers of all rows."""
        return identifiers(*self.checked.keys.columns)

    def _rows(self, positions: Sequence[int] | Positions) -> pa.Array:
        """Convert positions to Arrow; raise an error for rows without valid identifiers."""
        rows = np.asarray(positions, dtype=np.int64)
        if not self.checked.is_identified[rows].all():
            raise KeyError("a row without valid identifiers has no lead")
        return pa.array(rows)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PreparedLeads(CheckedFrame):
    """The leads to send, and why the other rows of the frame are not sent."""

    sequence_id: str
    client: Client | None
    chunk_size: int
    settings: Mapping[str, Any]
    sequence: SequenceStatus
    # The rows to send, by ascending position in the frame.
    positions: Positions
    # The plan's runs; plans that are derived from this plan share the list.
    runs: list[RunTarget] = field(default_factory=list)

    @property
    def overrides(self) -> dict[str, int]:
        """The number of leads with each override."""
        return dict.fromkeys(self.lead_overrides, len(self.positions))

    @property
    def mailboxes(self) -> dict[str, int]:
        """The number of leads per mailbox, for rows with a mailbox, largest number first."""
        if self.checked.mailboxes is None:
            return {}
        own = self.checked.mailboxes.take(pa.array(self.positions)).drop_null()
        return dict(Counter(own.to_pylist()).most_common())

    def only(self, positions: Positions) -> Self:
        """Restrict the plan to rows at `positions`."""
        positions.setflags(write=False)
        return replace(self, positions=positions)

    def is_planned(self, rows: Positions) -> Mask:
        """Return, per row, whether this plan sends a row of the same person."""
        return np.isin(self.kept[rows], self.kept[self.positions])

    def chunks(self, positions: Sequence[int] | Positions | None = None) -> list[Positions]:
        """Return each request's row positions, by default for all planned rows.

        Leads of different mailboxes go into separate requests.
        """
        rows = self.positions if positions is None else np.array(positions, dtype=np.int64)
        if self.checked.mailboxes is None:
            return self._chunks(rows)
        mailboxes = self.checked.mailboxes.take(pa.array(rows)).dictionary_encode("encode")
        numbers = mailboxes.indices.to_numpy()
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(np.diff(numbers[order])) + 1
        return [chunk for part in np.split(rows[order], ends) for chunk in self._chunks(part)]

    def _chunks(self, rows: Positions) -> list[Positions]:
        starts = range(0, len(rows), self.chunk_size)
        return [rows[start : start + self.chunk_size] for start in starts]

    def body(self, positions: Sequence[int] | Positions) -> bytes:
        """Return the JSON body of the request with these rows."""
        mailbox = self.mailbox_of(positions)
        own = {DISTRIBUTION: spec.MAILBOXES_LEADS_DISTRIBUTION, MAILBOXES: [mailbox]}
        settings = dict(self.settings) if mailbox is None else own
        body = {LEADS: self.leads(positions), SETTINGS: settings}
        return msgspec.json.encode({name: part for name, part in body.items() if part})

    def mailbox_of(self, positions: Sequence[int] | Positions) -> str | None:
        """Return the common mailbox of a request's rows, or None without a mailbox."""
        if self.checked.mailboxes is None:
            return None
        rows = pa.array(positions, pa.int64())
        mailbox: str | None
        (mailbox,) = self.checked.mailboxes.take(rows).unique().to_pylist()
        return mailbox

    def payloads(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON body of each request.

        Examples
        --------
        >>> frame = pd.DataFrame({"email": ["anna@x.example", "unknown"]})
        >>> list(frame.outreach.plan("seq_1").payloads())
        [{'leads': [{'email': 'anna@x.example'}]}]
        """
        return (msgspec.json.decode(self.body(chunk)) for chunk in self.chunks())

    def leads(self, positions: Sequence[int] | Positions) -> list[dict[str, Any]]:
        """Return the leads exactly as sent, without missing cells."""
        rows, checked = self._rows(positions), self.checked
        leads = _row_fields(checked.identifiers, rows)
        every_data = _row_fields(checked.data, rows)
        for lead, data in zip(leads, every_data, strict=True):
            if data:
                lead["data"] = data
            if self.lead_overrides:
                lead["overrides"] = dict(self.lead_overrides)
        return leads

    def fields(self, positions: Sequence[int] | Positions) -> dict[int, int]:
        """Return, per row, a bit set of the identifiers and data fields that the row has."""
        rows, every = self._rows(positions), {**self.checked.identifiers, **self.checked.data}
        bits = np.zeros(len(rows), dtype=np.int64)
        for place, texts in enumerate(every.values()):
            has_text = texts.take(rows).is_valid().to_numpy(zero_copy_only=False)
            bits |= has_text * np.int64(1 << place)
        return dict(zip(rows.to_pylist(), bits.tolist(), strict=True))


def _duplicate_reasons(
    index: pd.Index,
    keys: pa.RecordBatch,
    duplicates: np.ndarray[Any, Any],
    kept: np.ndarray[Any, Any],
) -> list[str]:
    """Return why each row is a duplicate, with the position of the sent row."""
    reasons = ["same person, linked by other rows or records,"] * len(duplicates)
    for name in reversed(keys.schema.names):
        mine, theirs = (keys.column(name).take(pa.array(rows)) for rows in (duplicates, kept))
        for place in np.flatnonzero(pc.equal(mine, theirs).fill_null(False)).tolist():
            reasons[place] = f"same {name}"
    has_labels = not isinstance(index, pd.RangeIndex)
    labels = index.to_flat_index().take(kept).tolist()
    return [
        f"{reason} as row {row}" + (f" (index {quoted(label)})" if has_labels else "")
        for reason, row, label in zip(reasons, kept.tolist(), labels, strict=True)
    ]


def _row_fields(fields: Mapping[str, pa.Array], rows: pa.Array) -> list[dict[str, Any]]:
    """Return each row's fields without missing values."""
    fields_of_rows: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    for name, texts in fields.items():
        for row, text in zip(fields_of_rows, texts.take(rows).to_pylist(), strict=True):
            if text is not None:
                row[name] = text
    return fields_of_rows
