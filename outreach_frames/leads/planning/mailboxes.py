"""Choose the account's mailbox that sends each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import listed, quoted
from outreach_frames.identity.keys import email_key
from outreach_frames.leads.planning.mapping import KEYS
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.tables.value_text import TEXT

ACTIVE: Final = spec.MAILBOX_STATUSES[0]


class AccountMailboxes:
    """An account's mailboxes by their address, and by their user's address or full name."""

    def __init__(self, mailboxes: Iterable[Mapping[Any, Any]]) -> None:
        self._of_address: dict[str, list[Mapping[Any, Any]]] = {}
        self._of_user: dict[str, list[Mapping[Any, Any]]] = {}
        # The users' names; a dict keeps their order.
        self._names: dict[str, None] = {}
        for mailbox in (one for one in mailboxes if isinstance(one["email"], str)):
            self._of_address.setdefault(_key(mailbox["email"]), []).append(mailbox)
            address, name = mailbox["user_email"], mailbox["user_name"]
            for key in {_key(text) for text in (address, name) if isinstance(text, str)}:
                self._of_user.setdefault(key, []).append(mailbox)
            self._names |= {name: None} if isinstance(name, str) else {}

    def choose(
        self, texts: pa.Array, identifiers: Mapping[str, pa.Array]
    ) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
        """Return each row's mailbox address, and (code, message) per row with an unusable mailbox.

        The row's email, or else profile URL, selects one of a user's mailboxes.
        """
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        found = [self._find(text) for text in distinct]
        # The last element belongs to missing texts.
        numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        counts = np.array([*(len(usable) for usable, *_ in found), 1])[numbers]
        first = [one[0][0] if one[0] else text for one, text in zip(found, distinct, strict=True)]
        addresses = np.array([*first, None], dtype=object)[numbers]
        several = np.flatnonzero(counts > 1)
        keys = [KEYS[name](known.take(pa.array(several))) for name, known in identifiers.items()]
        for row, person in zip(several.tolist(), pc.coalesce(*keys).to_pylist(), strict=True):
            addresses[row] = _preferred(person, found[numbers[row]][0])
        problems = {row: found[numbers[row]][1:] for row in np.flatnonzero(counts == 0).tolist()}
        return pa.array(addresses, TEXT), problems

    def _find(self, text: str) -> tuple[Sequence[str], str, str]:
        """Return the active mailboxes that a text names, or else a code and a message."""
        key = _key(text)
        own, of_user = self._of_address.get(key, []), self._of_user.get(key, [])
        named = own or of_user
        users = {mailbox["user_id"] or mailbox["user_email"] for mailbox in named}
        if not own and len(users) > 1:
            shared = f"{len(users)} users are called {quoted(text)}"
            boxes = ", ".join(mailbox["email"] for mailbox in named)
            return (), "ambiguous_mailbox", f"{shared}. Use the address of a mailbox: {boxes}."
        usable = {_key(one["email"]): one["email"] for one in named if one["status"] == ACTIVE}
        if usable:
            return list(usable.values()), "", ""
        if not named:
            lacking = f"The account has no mailbox or user called {quoted(text)}."
            close = suggestion(text, self._names)
            return (), "unknown_mailbox", f"{lacking}{close} The users: {listed(self._names)}."
        states = ", ".join(f"{one['email']} ({one['status'] or 'status unknown'})" for one in named)
        message = f"No mailbox of {quoted(text)} is {ACTIVE}: {states}."
        return (), "mailbox_unusable", f"{message} Reconnect a mailbox, or use another address."


def look_up_mailboxes(client: Client) -> AccountMailboxes:
    """List the account's mailboxes without the cache."""
    found = mailboxes(refresh=True, client=client).astype("object")
    return AccountMailboxes(found.where(found.notna(), None).to_dict(orient="records"))


def _key(text: str) -> str:
    """Return the normalised key of an address or a name."""
    return email_key(text) or " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _preferred(person: str | None, addresses: Sequence[str]) -> str:
    """Choose a person's mailbox by rendezvous hashing: a new mailbox changes few choices."""
    texts = {one: f"{_key(one)}\n{person}".encode() for one in addresses}
    return max(addresses, key=lambda one: blake2b(texts[one]).digest())
