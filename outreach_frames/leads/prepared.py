"""Leads that are checked and ready to be sent: what planning makes and sending reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.leads.planning.fingerprint import digests
from outreach_frames.leads.planning.overrides import count_overrides
from outreach_frames.leads.planning.sequence_status import SequenceStatus

Positions = np.ndarray[Any, Any]

LEADS, SETTINGS = (field.name for field in spec.ADD_LEADS_BODY)
# Columns of `sent` beside the identifiers: a lead's overrides, and the whole lead.
OVERRIDES, JSON = "overrides", "json"


@dataclass(frozen=True, eq=False, repr=False)
class PreparedLeads:
    """The leads of a frame that will be sent, and why the other rows will not.

    Nothing in it changes, whatever becomes of the frame that it was made from.

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
    sent : RecordBatch
        One row per position: `email` and `profnet_url` as sent, `overrides` and the whole lead
        (`json`) as JSON.
    brings : RecordBatch
        One row per position: for each identifier and data field, whether the lead has it.
    submissions : dict
        By which submission it went to which service, so that it goes there once.
    """

    sequence_id: str
    client: Client | None
    chunk_size: int
    settings: Mapping[str, Any]
    sequence: SequenceStatus
    positions: Positions
    sent: pa.RecordBatch
    brings: pa.RecordBatch
    _frame: pd.DataFrame
    _problems: pd.DataFrame
    _unsent: pd.DataFrame
    submissions: dict[str, object] = field(default_factory=dict, init=False)

    @property
    def frame(self) -> pd.DataFrame:
        """The analyst's frame as it was when the plan was made."""
        return self._frame.copy(deep=False)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per problem: row, index, column, field, code, message."""
        return self._problems.copy(deep=False)

    @property
    def overrides(self) -> dict[str, int]:
        """How many leads bring which override."""
        return count_overrides(self.sent.column(OVERRIDES))

    def outcome_of_unsent(self) -> pd.DataFrame:
        """Return every row that is not sent: position, status, detail, error_code."""
        return self._unsent.copy(deep=False)

    def only(self, positions: Positions) -> Self:
        """Return the same with no other leads than those of these rows."""
        kept = np.intersect1d(self.positions, positions)
        kept.setflags(write=False)
        places = pa.array(self._places(kept))
        return replace(
            self, positions=kept, sent=self.sent.take(places), brings=self.brings.take(places)
        )

    def chunks(self) -> list[Positions]:
        """Return the positions of each request, in the order of the frame."""
        return [
            self.positions[start : start + self.chunk_size]
            for start in range(0, len(self.positions), self.chunk_size)
        ]

    def body(self, positions: Sequence[int] | Positions) -> bytes:
        """Return the JSON of the request that sends these rows."""
        places = pa.array(self._places(positions))
        leads = ",".join(self.sent.column(JSON).take(places).to_pylist())
        settings = orjson.dumps(dict(self.settings)).decode()
        more = f',"{SETTINGS}":{settings}' if self.settings else ""
        return f'{{"{LEADS}":[{leads}]{more}}}'.encode()

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
        """Return the leads of these rows, exactly as they are sent."""
        leads: list[dict[str, Any]] = self.payload(positions)[LEADS]
        return leads

    def identifiers(self, position: int) -> tuple[str | None, str | None]:
        """Return the address and the profile URL of a row that is sent."""
        (place,) = self._places([position]).tolist()
        email, profnet_url = (
            self.sent.column(name)[place].as_py() for name in spec.LEAD_IDENTIFIERS
        )
        return email, profnet_url

    def field_set(self, position: int) -> frozenset[str]:
        """Return the identifiers and data fields that a row brings."""
        (place,) = self._places([position]).tolist()
        return frozenset(
            name for name in self.brings.schema.names if self.brings.column(name)[place].as_py()
        )

    @cached_property
    def fingerprint(self) -> Mapping[str, str]:
        """What would be sent, and which rows would not, as digests of its parts."""
        return digests(
            sequence_id=self.sequence_id,
            settings=self.settings,
            rows=len(self._frame),
            positions=self.positions,
            lines=self.sent.column(JSON).to_pylist(),
            unsent=self._unsent,
        )

    def _places(self, positions: Sequence[int] | Positions) -> Positions:
        """Return where these rows are in `sent`."""
        places = np.searchsorted(self.positions, positions)
        if not np.array_equal(self.positions.take(places, mode="clip"), positions):
            raise KeyError("a row that is not sent has no lead")
        return places
