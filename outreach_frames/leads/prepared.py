"""Leads that are checked and ready to be sent: what planning makes and sending reads."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.text import quoted
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import PLACEHOLDER, Checked, count_overrides
from outreach_frames.leads.planning.sequence_status import SequenceStatus

Positions = np.ndarray[Any, Any]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_PROFNET_URL = spec.LEAD_IDENTIFIERS[1]
LEADS, SETTINGS = (field.name for field in spec.ADD_LEADS_BODY)
# How many more requests than needed may keep leads apart that share a URL.
_MORE_REQUESTS = 10


@dataclass(frozen=True, eq=False, repr=False)
class PreparedLeads:
    """The leads of a frame that will be sent, and why the other rows will not.

    It does not change with the frame that it was made from.

    Attributes
    ----------
    sequence_id : str
        Where the leads go.
    client : Client or None
        The service that they go to; None where none was connected.
    chunk_size : int
        How many leads one request holds at most.
    settings : mapping
        The request's settings, empty for the service's defaults.
    sequence : SequenceStatus
        The sequence's name and status as far as they are known.
    positions : ndarray of int64
        The rows that will be sent, by their position in the frame, in ascending order.
    checked : Checked
        What every row of the frame would send; JSON is made of it for each request, and is nowhere
        kept.
    keys : RecordBatch
        The keys of every row's `email` and `profnet_url`; missing where the row is invalid.
    earlier_keys : tuple of RecordBatch
        The same by the columns of plans of this frame that were sent before.
    kept : ndarray of int64
        For each row, the row that is sent for its person.
    submissions : dict
        The "first" one, as its service and journal, so that there is no other.
    """

    sequence_id: str
    client: Client | None
    chunk_size: int
    settings: Mapping[str, Any]
    sequence: SequenceStatus
    positions: Positions
    checked: Checked
    keys: pa.RecordBatch
    earlier_keys: tuple[pa.RecordBatch, ...]
    kept: Positions
    _frame: pd.DataFrame
    _unsent: pd.DataFrame
    submissions: dict[str, tuple[str, Any]] = field(default_factory=dict, init=False)

    @property
    def frame(self) -> pd.DataFrame:
        """The analyst's frame as it was when the plan was made."""
        return self._frame.copy(deep=False)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per problem: row, index, column, field, code, message."""
        return self.checked.problems.copy(deep=False)

    @property
    def overrides(self) -> dict[str, int]:
        """How many leads bring which override."""
        return count_overrides(self.checked.overrides.take(pa.array(self.positions)))

    def outcome_of_unsent(self, kept: Positions | None = None) -> pd.DataFrame:
        """Return every row that is not sent: position, status, detail, error_code.

        `kept` says for each row which one is sent for its person, where it is not the plan's.
        """
        if kept is None or kept is self.kept:
            return self._unsent.copy(deep=False)
        linked_by = "other rows or the journal"
        return unsent_rows(self._frame.index, self.checked, self.keys, kept, linked_by)

    def only(self, positions: Positions, unsent: pd.DataFrame) -> Self:
        """Restrict the plan to rows; `unsent` are the outcomes of the others."""
        positions.setflags(write=False)
        return replace(self, positions=positions, _unsent=unsent)

    def is_planned(self, rows: Positions) -> Mask:
        """Return whether this plan sends a row's person."""
        return np.isin(self.kept[rows], self.kept[self.positions])

    def chunks(self, positions: Sequence[int] | Positions | None = None) -> list[Positions]:
        """Return the positions of each request, of some rows or of all.

        Leads with one URL and different addresses go into different requests, as far as a few more
        will do: of those in one request, the service would skip all but one.
        """
        rows = self.positions if positions is None else np.array(positions, dtype=np.int64)
        urls = self.keys.column(_PROFNET_URL).take(pa.array(rows))
        if pc.count_distinct(urls).as_py() == len(urls) - urls.null_count:
            starts = range(0, len(rows), self.chunk_size)
            return [rows[start : start + self.chunk_size] for start in starts]
        chunks = _apart(rows.tolist(), urls.to_pylist(), self.chunk_size)
        return [np.array(chunk, dtype=np.int64) for chunk in chunks]

    def body(self, positions: Sequence[int] | Positions) -> bytes:
        """Return the JSON of the request that sends these rows."""
        settings = {SETTINGS: dict(self.settings)} if self.settings else {}
        return orjson.dumps({LEADS: self.leads(positions), **settings})

    def payload(self, positions: Sequence[int] | Positions) -> dict[str, Any]:
        """Return the body of the request that sends these rows."""
        body: dict[str, Any] = orjson.loads(self.body(positions))
        return body

    def payloads(self) -> Iterator[dict[str, Any]]:
        """Yield the body of each request.

        Examples
        --------
        >>> frame = pd.DataFrame({"email": ["anna@x.example", "unknown"]})
        >>> list(frame.outreach.plan("seq_1").payloads())
        [{'leads': [{'email': 'anna@x.example'}]}]
        """
        return map(self.payload, self.chunks())

    def leads(self, positions: Sequence[int] | Positions) -> list[dict[str, Any]]:
        """Return the leads of these rows, exactly as they are sent, without missing cells."""
        rows, checked = self._rows(positions), self.checked
        leads = _members(checked.identifiers, rows)
        overrides = checked.overrides.take(rows).to_pylist()
        for lead, data, chosen in zip(leads, _members(checked.data, rows), overrides, strict=True):
            if data:
                lead["data"] = data
            if chosen is not None:
                lead["overrides"] = orjson.loads(chosen)
        return leads

    def identifiers(
        self, positions: Sequence[int] | Positions
    ) -> list[tuple[str | None, str | None]]:
        """Return the email and the profile URL of rows, exactly as they are sent."""
        rows, given = self._rows(positions), self.checked.identifiers
        emails, urls = (
            given[name].take(rows).to_pylist() if name in given else [None] * len(rows)
            for name in spec.LEAD_IDENTIFIERS
        )
        return list(zip(emails, urls, strict=True))

    def fields(self, positions: Sequence[int] | Positions) -> dict[int, int]:
        """Return the identifiers and data fields that rows have, as the bits of a number."""
        rows, every = self._rows(positions), {**self.checked.identifiers, **self.checked.data}
        bits = np.zeros(len(rows), dtype=np.int64)
        for place, texts in enumerate(every.values()):
            has_text = texts.take(rows).is_valid().to_numpy(zero_copy_only=False)
            bits |= has_text * np.int64(1 << place)
        return dict(zip(rows.to_pylist(), bits.tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> Mapping[str, str]:
        """Digests of the sequence and the settings: equal for equal submissions."""
        return {
            "sequence": _digest(self.sequence_id.encode()),
            SETTINGS: _digest(orjson.dumps(dict(self.settings), option=orjson.OPT_SORT_KEYS)),
        }

    def _rows(self, positions: Sequence[int] | Positions) -> pa.Array:
        """Return rows that may be sent."""
        rows = np.asarray(positions, dtype=np.int64)
        if not self.checked.is_valid[rows].all():
            raise KeyError("an invalid row has no lead")
        return pa.array(rows)


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _apart(rows: Sequence[int], urls: Sequence[str | None], size: int) -> list[list[int]]:
    """Cut rows into chunks so that those with one URL are apart, with a few more chunks at most."""
    most = math.ceil(len(rows) / size) + _MORE_REQUESTS
    chunks: list[list[int]] = [[]]
    with_room = 0
    after_last: dict[str | None, int] = {}

    def room_from(place: int) -> int:
        while place < len(chunks) and len(chunks[place]) == size:
            place += 1
        return place

    for row, url in zip(rows, urls, strict=True):
        with_room = room_from(with_room)
        place = room_from(max(with_room, after_last.get(url, 0)))
        if place == most:
            place = with_room
        if url is not None:
            after_last[url] = max(place + 1, after_last.get(url, 0))
        if place == len(chunks):
            chunks.append([])
        chunks[place].append(row)
    return chunks


def unsent_rows(
    index: pd.Index,
    checked: Checked,
    keys: pa.RecordBatch,
    kept: np.ndarray[Any, Any],
    linked_by: str = "other rows",
) -> pd.DataFrame:
    """Return every row that is not sent: position, status, detail, error_code."""
    problems = checked.problems
    wrong = problems[~checked.is_valid[problems["row"].to_numpy(dtype=np.int64)]]
    codes = wrong[wrong["code"] != PLACEHOLDER].groupby("row")["code"].first()
    details = wrong.groupby("row")["message"].agg(" ".join)
    invalid = pd.DataFrame({"status": statuses.INVALID, "detail": details, "error_code": codes})
    duplicates = np.flatnonzero(kept != np.arange(len(kept)))
    reasons = _reasons(index, keys, duplicates, kept[duplicates], linked_by)
    others = pd.DataFrame(
        {"status": statuses.DUPLICATE_IN_FRAME, "detail": reasons, "error_code": None},
        index=duplicates,
    )
    unsent = pd.concat([invalid, others]).astype("str").sort_index()
    return unsent.rename_axis("position").reset_index().astype({"position": "int64"})


def _reasons(
    index: pd.Index,
    keys: pa.RecordBatch,
    duplicates: np.ndarray[Any, Any],
    kept: np.ndarray[Any, Any],
    linked_by: str,
) -> list[str]:
    """Return what each duplicate has in common with the row that is kept."""
    reasons = [f"same person, linked by {linked_by},"] * len(duplicates)
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


def _members(fields: Mapping[str, pa.Array], rows: pa.Array) -> list[dict[str, Any]]:
    """Return the fields that each row has, with their texts."""
    members: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    for name, texts in fields.items():
        for member, text in zip(members, texts.take(rows).to_pylist(), strict=True):
            if text is not None:
                member[name] = text
    return members
