"""Choose the account's mailbox that sends each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final

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

_ACTIVE: Final = spec.ACTIVE_MAILBOX_STATUS


class AccountMailboxes:
    """An account's mailboxes by their address, and by their user's address or full name."""

    def __init__(self, mailboxes: Iterable[Mapping[Any, Any]]) -> None:
        self._of_address: dict[str, list[Mapping[Any, Any]]] = {}
        self._of_user: dict[str, list[Mapping[Any, Any]]] = {}
        # The users' names; a dict keeps their order.
        self._names: dict[str, None] = {}
        for mailbox in mailboxes:
            if not isinstance(mailbox["email"], str):
                continue
            self._of_address.setdefault(_key(mailbox["email"]), []).append(mailbox)
            address, name = mailbox["user_email"], mailbox["user_name"]
            for key in {_key(text) for text in (address, name) if isinstance(text, str)}:
                self._of_user.setdefault(key, []).append(mailbox)
            if isinstance(name, str):
                self._names[name] = None

    def choose(
        self, texts: pa.Array, identifiers: Mapping[str, pa.Array]
    ) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
        """Return each row's mailbox address, and (code, message) per row with an unusable mailbox.

        The row's email, or else profile URL, selects one of a user's mailboxes.
        """
        addresses: list[str | None] = texts.to_pylist()
        problems: dict[int, tuple[str, str]] = {}
        look_up = cache(self._find)
        keys = pc.coalesce(*(KEYS[kind](column) for kind, column in identifiers.items()))
        for row, (text, person) in enumerate(zip(addresses, keys.to_pylist(), strict=True)):
            if text is None:
                continue
            usable, code, message = look_up(text)
            if not usable:
                problems[row] = code, message
            else:
                addresses[row] = _preferred(person, usable) if len(usable) > 1 else usable[0]
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
        active = [mailbox["email"] for mailbox in named if mailbox["status"] == _ACTIVE]
        if active:
            # A repeated address keeps its last spelling.
            return list({_key(address): address for address in active}.values()), "", ""
        if not named:
            lacking = f"The account has no mailbox or user called {quoted(text)}."
            close = suggestion(text, self._names)
            return (), "unknown_mailbox", f"{lacking}{close} The users: {listed(self._names)}."
        states = [f"{box['email']} ({box['status'] or 'status unknown'})" for box in named]
        message = f"No mailbox of {quoted(text)} is {_ACTIVE}: {', '.join(states)}."
        return (), "mailbox_unusable", f"{message} Reconnect a mailbox, or use another address."


def look_up_mailboxes(client: Client) -> AccountMailboxes:
    """List the account's mailboxes without the cache."""
    table = mailboxes(refresh=True, client=client).astype("object")
    return AccountMailboxes(table.where(table.notna(), None).to_dict(orient="records"))


def _key(text: str) -> str:
    """Return the normalised key of an address or a name."""
    return email_key(text) or " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _preferred(person: str | None, addresses: Sequence[str]) -> str:
    """Choose a person's mailbox by rendezvous hashing: a new mailbox changes few choices."""
    return max(
        addresses, key=lambda address: blake2b(f"{_key(address)}\n{person}".encode()).digest()
    )
