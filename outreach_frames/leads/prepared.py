"""Leads that are checked and ready to be sent: what planning makes and sending reads."""

from __future__ import annotations

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
from outreach_frames.leads.planning.checks import Checked
from outreach_frames.leads.planning.fingerprint import digests
from outreach_frames.leads.planning.lines import lead_lines
from outreach_frames.leads.planning.overrides import count_overrides
from outreach_frames.leads.planning.sequence_status import SequenceStatus

Positions = np.ndarray[Any, Any]

_PROFNET_URL = spec.LEAD_IDENTIFIERS[1]
LEADS, SETTINGS = (field.name for field in spec.ADD_LEADS_BODY)
# How many more requests than needed may keep leads apart that share a URL.
_MORE_REQUESTS = 10


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
    checked : Checked
        What every row of the frame would send; JSON is made of it for each request, and is nowhere
        kept.
    keys : RecordBatch
        One row per position: what the lead's `email` and `profnet_url` are compared by.
    brings : RecordBatch
        One row per position: for each identifier and data field, whether the lead has it.
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
    brings: pa.RecordBatch
    _frame: pd.DataFrame
    _problems: pd.DataFrame
    _unsent: pd.DataFrame
    submissions: dict[str, tuple[str, object]] = field(default_factory=dict, init=False)

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
        return count_overrides(self.checked.overrides.take(pa.array(self.positions)))

    def outcome_of_unsent(self) -> pd.DataFrame:
        """Return every row that is not sent: position, status, detail, error_code."""
        return self._unsent.copy(deep=False)

    def only(self, positions: Positions) -> Self:
        """Return the same with no other leads than those of these rows."""
        kept = np.intersect1d(self.positions, positions)
        kept.setflags(write=False)
        places = pa.array(self._places(kept))
        keys, brings = self.keys.take(places), self.brings.take(places)
        return replace(self, positions=kept, keys=keys, brings=brings)

    def chunks(self, positions: Sequence[int] | None = None) -> list[Positions]:
        """Return the positions of each request, of some rows or of all.

        Leads with one URL and different addresses go into different requests, as far as a few more
        will do: of those in one request, the service would skip all but one.
        """
        rows = self.positions if positions is None else np.array(positions, dtype=np.int64)
        urls = self.keys.column(_PROFNET_URL).take(pa.array(self._places(rows)))
        if pc.count_distinct(urls).as_py() == len(urls) - urls.null_count:
            starts = range(0, len(rows), self.chunk_size)
            return [rows[start : start + self.chunk_size] for start in starts]
        chunks = _apart(rows.tolist(), urls.to_pylist(), self.chunk_size)
        return [np.array(chunk, dtype=np.int64) for chunk in chunks]

    def body(self, positions: Sequence[int] | Positions) -> bytes:
        """Return the JSON of the request that sends these rows."""
        self._places(positions)
        leads = b",".join(self._lines(positions, ","))
        settings = orjson.dumps(dict(self.settings))
        more = b',"%b":%b' % (SETTINGS.encode(), settings) if self.settings else b""
        return b'{"%b":[%b]%b}' % (LEADS.encode(), leads, more)

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
        self._places([position])
        given = self.checked.identifiers
        email, profnet_url = (
            given[name][position].as_py() if name in given else None
            for name in spec.LEAD_IDENTIFIERS
        )
        return email, profnet_url

    @cached_property
    def fingerprint(self) -> Mapping[str, str]:
        """What would be sent, and which rows would not, as digests of its parts."""
        return digests(
            sequence_id=self.sequence_id,
            settings=self.settings,
            rows=len(self._frame),
            positions=self.positions,
            leads=list(self._lines(self.positions, "\n")),
            unsent=self._unsent,
        )

    def _lines(self, positions: Sequence[int] | Positions, separator: str) -> Iterator[pa.Buffer]:
        """Yield the JSON of rows, some thousands at a time with a separator between them."""
        for lines in lead_lines(self.checked, np.asarray(positions, dtype=np.int64)):
            yield _joined(lines, separator)

    def _places(self, positions: Sequence[int] | Positions) -> Positions:
        """Return where these rows are in `sent`."""
        places = np.searchsorted(self.positions, positions)
        if not np.array_equal(self.positions.take(places, mode="clip"), positions):
            raise KeyError("a row that is not sent has no lead")
        return places


def _joined(texts: pa.Array, separator: str) -> pa.Buffer:
    """Return the bytes of texts in one, with a separator between them."""
    every = pa.LargeListArray.from_arrays(pa.array([0, len(texts)], pa.int64()), texts)
    return pc.binary_join(every, pa.scalar(separator, texts.type))[0].as_buffer()


def _apart(rows: Sequence[int], urls: Sequence[str | None], size: int) -> list[list[int]]:
    """Cut rows into chunks so that those with one URL are apart, with a few more chunks at most."""
    most = math.ceil(len(rows) / size) + _MORE_REQUESTS
    chunks: list[list[int]] = [[]]
    with_room = 0
    after_last: dict[str, int] = {}
    for row, url in zip(rows, urls, strict=True):
        if len(chunks[with_room]) == size:
            with_room = next(
                (place for place in range(with_room, len(chunks)) if len(chunks[place]) < size),
                len(chunks),
            )
        place = with_room
        if url is not None:
            place = max(with_room, after_last.get(url, 0))
            while place < len(chunks) and len(chunks[place]) == size:
                place += 1
            if place == most:
                place = with_room
            after_last[url] = max(place + 1, after_last.get(url, 0))
        if place == len(chunks):
            chunks.append([])
        chunks[place].append(row)
    return chunks
