"""Choose the account's mailbox that sends each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.text import listed, quoted
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import OutreachError
from outreach_frames.identity.keys import email_key
from outreach_frames.leads.planning.mapping import KEYS
from outreach_frames.resources.mailboxes import mailboxes
from outreach_frames.tables.value_text import TEXT

_ACTIVE: Final = spec.ACTIVE_MAILBOX_STATUS


class UserMailboxes(NamedTuple):
    """The addresses of a user's mailboxes, and of the active ones among them."""

    every: tuple[str, ...]
    active: tuple[str, ...]


class _Named(NamedTuple):
    """What a text names: the active mailboxes, or a code and a message; a user's mailboxes."""

    active: tuple[str, ...] = ()
    code: str = ""
    message: str = ""
    user: UserMailboxes | None = None


class AccountMailboxes:
    """An account's mailboxes by their address, and by their user's address or full name."""

    def __init__(self, mailboxes: Iterable[Mapping[Any, Any]]) -> None:
        self._of_address: dict[str, list[Mapping[Any, Any]]] = {}
        self._of_user: dict[str, list[Mapping[Any, Any]]] = {}
        # The users' names; a dict keeps their order.
        self._names: dict[str, None] = {}
        self._address_of_id: dict[object, str] = {}
        for mailbox in mailboxes:
            if not isinstance(mailbox["email"], str):
                continue
            self._address_of_id[mailbox.get("id")] = mailbox["email"]
            self._of_address.setdefault(_key(mailbox["email"]), []).append(mailbox)
            address, name = mailbox["user_email"], mailbox["user_name"]
            for key in {_key(text) for text in (address, name) if isinstance(text, str)}:
                self._of_user.setdefault(key, []).append(mailbox)
            if isinstance(name, str):
                self._names[name] = None

    def choose(
        self, texts: pa.Array, identifiers: Mapping[str, pa.Array]
    ) -> tuple[pa.Array, dict[int, tuple[str, str]], dict[int, UserMailboxes]]:
        """Return each row's mailbox address, and (code, message) per row with an unusable mailbox.

        The row's email, or else profile URL, selects one of a user's mailboxes. The user's
        mailboxes are returned per row that names a user.
        """
        addresses: list[str | None] = texts.to_pylist()
        problems: dict[int, tuple[str, str]] = {}
        users: dict[int, UserMailboxes] = {}
        look_up = cache(self._find)
        keys = pc.coalesce(*(KEYS[kind](column) for kind, column in identifiers.items()))
        for row, (text, person) in enumerate(zip(addresses, keys.to_pylist(), strict=True)):
            if text is None:
                continue
            named = look_up(text)
            if named.user is not None:
                users[row] = named.user
            if not named.active:
                problems[row] = named.code, named.message
            else:
                is_choice = len(named.active) > 1
                addresses[row] = _preferred(person, named.active) if is_choice else named.active[0]
        return pa.array(addresses, TEXT), problems, users

    def _find(self, text: str) -> _Named:
        """Return the active mailboxes that a text names, or else a code and a message."""
        key = _key(text)
        own, of_user = self._of_address.get(key, []), self._of_user.get(key, [])
        named = own or of_user
        users = {mailbox["user_id"] or mailbox["user_email"] for mailbox in named}
        if not own and len(users) > 1:
            shared = f"{len(users)} users are called {quoted(text)}"
            boxes = ", ".join(mailbox["email"] for mailbox in named)
            message = f"{shared}. Use the address of a mailbox: {boxes}."
            return _Named(code="ambiguous_mailbox", message=message)
        # A repeated address keeps its last spelling.
        active = tuple(
            {_key(box["email"]): box["email"] for box in named if box["status"] == _ACTIVE}.values()
        )
        user = None
        if named and not own:
            user = UserMailboxes(tuple(box["email"] for box in named), active)
        if active:
            return _Named(active, user=user)
        if not named and (address := self._address_of_id.get(text)):
            message = f"{quoted(text)} is a mailbox's id. Use its address, {quoted(address)}."
            return _Named(code="unknown_mailbox", message=message)
        if not named:
            lacking = f"The account has no mailbox or user called {quoted(text)}."
            close = suggestion(text, self._names)
            message = f"{lacking}{close} The users: {listed(self._names)}."
            return _Named(code="unknown_mailbox", message=message)
        states = [f"{box['email']} ({box['status'] or 'status unknown'})" for box in named]
        message = f"No mailbox of {quoted(text)} is {_ACTIVE}: {', '.join(states)}."
        message = f"{message} Reconnect a mailbox, or use another address."
        return _Named(code="mailbox_unusable", message=message, user=user)


def look_up_mailboxes(client: Client) -> AccountMailboxes:
    """List the account's mailboxes without the cache."""
    table = mailboxes(refresh=True, client=client).astype("object")
    return AccountMailboxes(table.where(table.notna(), None).to_dict(orient="records"))


def address_of_id(client: Client | None, identity: str) -> str | None:
    """Return the address of the mailbox with this id, or None if it is unknown."""
    if client is not None and "@" not in identity:
        with suppress(OutreachError), collect_warnings():
            listed = mailboxes(client=client)
            return next(iter(listed.loc[listed["id"].eq(identity), "email"].dropna()), None)
    return None


def _key(text: str) -> str:
    """Return the normalised key of an address or a name."""
    return email_key(text) or " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _preferred(person: str | None, addresses: Sequence[str]) -> str:
    """Choose a person's mailbox by rendezvous hashing: a new mailbox changes few choices."""
    return max(
        addresses, key=lambda address: blake2b(f"{_key(address)}\n{person}".encode()).digest()
    )
