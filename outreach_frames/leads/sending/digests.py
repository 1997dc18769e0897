"""Keyed hashes of identifiers and data, equal in all journals of a sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NewType

import msgspec
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.identity.keys import email_keys
from outreach_frames.identity.persons import Identifiers
from outreach_frames.leads.planning.mapping import EMAIL, MAILBOX, PROFNET_URL
from outreach_frames.leads.prepared import CheckedFrame

Digest = NewType("Digest", bytes)
# Email, certain URL and weak URL of a row.
RowIdentifiers = tuple[Digest | None, Digest | None, Digest | None]

DIGEST_BYTES: Final = 16
NO_DIGEST: Final = Digest(bytes(DIGEST_BYTES))


class Content(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A lead as sent: digests of its texts, and its overrides as JSON."""

    mailbox: Digest | None
    email: Digest | None
    profnet_url: Digest | None
    overrides: str | None
    # The data fields of the call, and their digests one after the other; zeros without a text.
    fields: tuple[str, ...]
    data: bytes

    def text_of(self, field: str) -> Digest:
        """Return the digest of a data field, zeros without a text."""
        if field not in self.fields:
            return NO_DIGEST
        start = self.fields.index(field) * DIGEST_BYTES
        return Digest(self.data[start : start + DIGEST_BYTES])


class Digests:
    """The digests of one sequence's texts; each distinct text is hashed once."""

    def __init__(self, base_url: str, sequence_id: str) -> None:
        self._key = hashlib.sha256(msgspec.json.encode([base_url, sequence_id])).digest()
        self._known: dict[str, dict[str | None, Digest | None]] = {}

    def column(self, kind: str, texts: Sequence[str | None]) -> list[Digest | None]:
        """Return the digests of texts of one kind, such as email; missing texts have none."""
        known = self._known.setdefault(kind, {None: None})
        base = hashlib.blake2b(f"{kind}\n".encode(), key=self._key, digest_size=DIGEST_BYTES)
        for text in texts:
            if text is not None and text not in known:
                hashed = base.copy()
                hashed.update(text.encode(errors="surrogatepass"))
                known[text] = Digest(hashed.digest())
        return [known[text] for text in texts]

    def rows(self, columns: Identifiers) -> list[RowIdentifiers]:
        """Return the digests of each row's email, certain URL and weak URL."""
        kinds = (EMAIL, PROFNET_URL, PROFNET_URL)
        digests = (
            self.column(kind, column.to_pylist())
            for kind, column in zip(kinds, columns, strict=True)
        )
        return list(zip(*digests, strict=True))

    def contents(self, rows: CheckedFrame, positions: Sequence[int]) -> list[Content]:
        """Return what a request has, or would have, of these rows."""
        checked, places = rows.checked, pa.array(positions, pa.int64())
        nothing: list[Digest | None] = [None] * len(positions)
        texts = [
            self.column(kind, checked.identifiers[kind].take(places).to_pylist())
            if kind in checked.identifiers
            else nothing
            for kind in spec.LEAD_IDENTIFIERS
        ]
        overrides = None
        if rows.lead_overrides:
            overrides = msgspec.json.encode(dict(rows.lead_overrides)).decode()
        fields, data = tuple(checked.data), self.data(rows, positions)
        mailboxes = nothing
        if checked.mailboxes is not None:
            mailboxes = self.column(MAILBOX, email_keys(checked.mailboxes.take(places)).to_pylist())
        columns = zip(mailboxes, *texts, data, strict=True)
        return [
            Content(mailbox, email, url, overrides, fields, digests)
            for mailbox, email, url, digests in columns
        ]

    def data(self, rows: CheckedFrame, positions: Sequence[int]) -> list[bytes]:
        """Return the digests of these rows' data fields, as in `Content`."""
        places = pa.array(positions, pa.int64())
        columns = [
            [
                digest or NO_DIGEST
                for digest in self.column(f"data {field}", texts.take(places).to_pylist())
            ]
            for field, texts in rows.checked.data.items()
        ]
        return [*map(b"".join, zip(*columns, strict=True))] or [b""] * len(positions)
