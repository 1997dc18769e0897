"""A submission that is ready to be sent: exactly which leads, and why the other rows are not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.arguments import check_id
from outreach_frames.client import Client
from outreach_frames.leads import plan_view, statuses
from outreach_frames.leads.checks import PLACEHOLDER, Checked, check_rows
from outreach_frames.leads.duplicates import find_kept
from outreach_frames.leads.identity import email_keys, url_keys
from outreach_frames.leads.lines import lead_lines
from outreach_frames.leads.mapping import (
    EMAIL,
    PROFNET_URL,
    read_chunk_size,
    read_mapping,
    read_settings,
)
from outreach_frames.leads.names import EMAIL_COLUMN, PROFNET_URL_COLUMN
from outreach_frames.leads.sequence_status import SequenceStatus, look_up

if TYPE_CHECKING:
    from outreach_frames.leads.report import SubmissionReport

_KEYS = {EMAIL: email_keys, PROFNET_URL: url_keys}


@dataclass(frozen=True, eq=False, repr=False)
class SubmissionPlan:
    """A frame's way into a sequence, checked, and ready to be sent by `submit`.

    Nothing in it changes, whatever becomes of the frame that it was made from.

    Attributes
    ----------
    sequence_id : str
        Where the leads go.
    chunk_size : int
        How many leads one request has at the most.
    settings : mapping
        The request's settings, empty for the service's defaults.
    positions : ndarray of int64
        The rows that will be sent, by their position in the frame.
    sequence : SequenceStatus
        The sequence's name and status as far as they are known.
    """

    sequence_id: str
    client: Client | None
    chunk_size: int
    settings: Mapping[str, Any]
    positions: np.ndarray[Any, Any]
    sequence: SequenceStatus
    _frame: pd.DataFrame
    _problems: pd.DataFrame
    _unsent: pd.DataFrame
    _lines: Mapping[int, str]

    @property
    def frame(self) -> pd.DataFrame:
        """The analyst's frame as it was when the plan was made."""
        return self._frame.copy(deep=False)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per problem: row, index, column, field, code, message."""
        return self._problems.copy(deep=False)

    def chunks(self) -> list[np.ndarray[Any, Any]]:
        """Return the positions of each request, in the order of the frame."""
        return [
            self.positions[start : start + self.chunk_size]
            for start in range(0, len(self.positions), self.chunk_size)
        ]

    def leads(self, positions: Sequence[int] | np.ndarray[Any, Any]) -> list[dict[str, Any]]:
        """Return the leads of these rows, exactly as they are sent."""
        return [orjson.loads(self._lines[int(position)]) for position in positions]

    def payload(self, positions: Sequence[int] | np.ndarray[Any, Any]) -> dict[str, Any]:
        """Return the body of the request that sends these rows."""
        body: dict[str, Any] = {spec.LEADS_KEY: self.leads(positions)}
        if self.settings:
            body["settings"] = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.settings.items()
            }
        return body

    def payloads(self) -> Iterator[dict[str, Any]]:
        """Yield the body of each request.

        Examples
        --------
        >>> frame = pd.DataFrame({"email": ["anna@x.example", "unknown"]})
        >>> list(make_plan(frame, "seq_1").payloads())
        [{'leads': [{'email': 'anna@x.example'}]}]
        """
        return map(self.payload, self.chunks())

    def identifiers(self, position: int) -> tuple[str | None, str | None]:
        """Return the address and the profile URL of a row that is sent."""
        (lead,) = self.leads([position])
        return lead.get(EMAIL), lead.get(PROFNET_URL)

    def field_set(self, position: int) -> frozenset[str]:
        """Return the identifiers and data fields that a row brings."""
        (lead,) = self.leads([position])
        brought = [name for name in spec.LEAD_IDENTIFIERS if name in lead]
        return frozenset([*brought, *lead.get("data", {})])

    def outcome_of_unsent(self) -> pd.DataFrame:
        """Return every row that is not sent: position, status, detail, error_code."""
        return self._unsent.copy(deep=False)

    @cached_property
    def fingerprint(self) -> Mapping[str, str]:
        """What would be sent, and which rows would not, as digests of its parts."""
        settings = {"settings": dict(self.settings), "chunk_size": self.chunk_size}
        unsent = self._unsent[["position", "status", "error_code"]].to_dict("list")
        rows = hashlib.sha256(f"{len(self._frame)}\n".encode())
        rows.update(self.positions.astype("<i8").tobytes())
        rows.update("\n".join(self._lines.values()).encode())
        rows.update(orjson.dumps(unsent))
        return MappingProxyType(
            {
                "sequence": _digest(self.sequence_id),
                "settings": _digest(json.dumps(settings, sort_keys=True)),
                "rows": rows.hexdigest(),
            }
        )

    def submit(
        self,
        *,
        journal: str | Path | None = None,
        progress: bool | None = None,
        dry_run: bool = False,
    ) -> SubmissionReport:
        """Send exactly this plan."""
        from outreach_frames.leads.submit import submit  # noqa: PLC0415 - it works on plans

        return submit(self, journal=journal, progress=progress, dry_run=dry_run)

    def __repr__(self) -> str:
        return plan_view.as_text(self)

    def _repr_html_(self) -> str:
        return plan_view.as_html(self)


def make_plan(
    frame: pd.DataFrame,
    sequence_id: str,
    *,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    overrides: bool | Mapping[str, bool | str] | str | None = None,
    leads_distribution: Literal["sequence_senders", "custom_mailboxes"] | None = None,
    mailboxes: Sequence[str] | None = None,
    chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
    client: Client | None = None,
) -> SubmissionPlan:
    """Check a frame's rows, and plan how to add them to a sequence; nothing is sent."""
    sequence_id = check_id("sequence_id", sequence_id)
    settings = read_settings(leads_distribution, mailboxes)
    chunk_size = read_chunk_size(chunk_size)
    mapping = read_mapping(
        frame, email=email, profnet_url=profnet_url, data=data, overrides=overrides
    )
    checked = check_rows(frame, mapping)
    keys = {field: _KEYS[field](texts) for field, texts in checked.identifiers.items()}
    kept = find_kept(keys, checked.is_valid)
    positions = np.flatnonzero(checked.is_valid & (kept == np.arange(len(kept))))
    positions.setflags(write=False)
    return SubmissionPlan(
        sequence_id=sequence_id,
        client=client,
        chunk_size=chunk_size,
        settings=MappingProxyType(
            {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}
        ),
        positions=positions,
        sequence=look_up(sequence_id, client),
        _frame=frame.copy(deep=False),
        _problems=checked.problems,
        _unsent=_unsent(frame, checked, keys, kept),
        _lines=_lines(checked, positions),
    )


def validate(
    frame: pd.DataFrame,
    *,
    email: Hashable | None = EMAIL_COLUMN,
    profnet_url: Hashable | None = PROFNET_URL_COLUMN,
    data: Sequence[str] | Mapping[str, Hashable] | None = None,
    overrides: bool | Mapping[str, bool | str] | str | None = None,
) -> pd.DataFrame:
    """Check a frame's rows against the rules for leads; nothing is sent."""
    mapping = read_mapping(
        frame, email=email, profnet_url=profnet_url, data=data, overrides=overrides
    )
    return check_rows(frame, mapping).problems


def _lines(checked: Checked, positions: np.ndarray[Any, Any]) -> Mapping[int, str]:
    sent = pa.array(positions)
    lines = lead_lines(
        {field: texts.take(sent) for field, texts in checked.identifiers.items()},
        {field: texts.take(sent) for field, texts in checked.data.items()},
        checked.overrides.take(sent),
    )
    return dict(zip(positions.tolist(), lines, strict=True))


def _unsent(
    frame: pd.DataFrame,
    checked: Checked,
    keys: Mapping[str, pa.Array],
    kept: np.ndarray[Any, Any],
) -> pd.DataFrame:
    duplicates = np.flatnonzero(kept != np.arange(len(kept)))
    wrong = checked.problems[~checked.is_valid[checked.problems["row"].to_numpy(dtype=np.int64)]]
    serious = wrong[wrong["code"] != PLACEHOLDER]
    details = wrong.groupby("row")["message"].agg(" ".join)
    codes = serious.groupby("row")["code"].first()
    invalid = pd.DataFrame(
        {
            "position": details.index.astype("int64"),
            "status": statuses.INVALID,
            "detail": details.array,
            "error_code": codes.array,
        }
    )
    same = pd.DataFrame(
        {
            "position": duplicates.astype("int64"),
            "status": statuses.DUPLICATE_IN_FRAME,
            "detail": [_same(frame, keys, row, int(kept[row])) for row in duplicates.tolist()],
            "error_code": None,
        }
    )
    dtypes = {"position": "int64", "status": "str", "detail": "str", "error_code": "str"}
    both = pd.concat([invalid.astype(dtypes), same.astype(dtypes)])
    return both.sort_values("position", ignore_index=True)


def _same(frame: pd.DataFrame, keys: Mapping[str, pa.Array], row: int, kept: int) -> str:
    """Say what a duplicate has in common with the row that is kept."""
    label = "" if isinstance(frame.index, pd.RangeIndex) else f" (index {frame.index[kept]!r})"
    for field, column in keys.items():
        if column[row].is_valid and column[row].equals(column[kept]):
            return f"same {field} as row {kept}{label}"
    return f"same person as row {kept}{label}, by way of other rows"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
