"""Keyed hashes of identifiers and data, equal in all journals of a sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NewType

import msgspec
import numpy as np
import pyarrow as pa

from outreach_frames import spec
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
        found = []
        for text in texts:
            digest = known.get(text)
            if digest is None and text is not None:
                hashed = base.copy()
                hashed.update(text.encode(errors="surrogatepass"))
                digest = known[text] = Digest(hashed.digest())
            found.append(digest)
        return found

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
        checked, at = rows.checked, np.array(positions, dtype=np.int64)
        places, size = pa.array(at), len(at)

        def column(kind: str, texts: pa.Array | None) -> list[Digest | None]:
            if texts is None:
                return [None] * size
            return self.column(kind, texts.take(places).to_pylist())

        texts = [column(kind, checked.identifiers.get(kind)) for kind in spec.LEAD_IDENTIFIERS]
        mailboxes = self.column(MAILBOX, [rows.mailbox_keys[position] for position in positions])
        overrides = checked.overrides.take(places).to_pylist()
        fields = tuple(checked.data)
        columns = [column(f"data {field}", checked.data[field]) for field in fields]
        every = (
            (b"".join(one or NO_DIGEST for one in row) for row in zip(*columns, strict=True))
            if columns
            else iter([b""] * size)
        )
        return [
            Content(mailbox, email, url, chosen, fields, data)
            for mailbox, email, url, chosen, data in zip(
                mailboxes, *texts, overrides, every, strict=True
            )
        ]
