"""In-memory keyrings, and how to select one as a user does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """A user-configured keyring that records each change."""

    priority = 1  # the lowest that the library recommends

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}
        self.changes: list[str] = []

    def get_password(self, service: str, username: str) -> str | None:
        """Return an entry, or None."""
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store an entry."""
        self.entries[service, username] = password
        self.changes.append(username)

    def delete_password(self, service: str, username: str) -> None:
        """Remove an existing entry."""
        if (service, username) not in self.entries:
            raise PasswordDeleteError("not found")
        del self.entries[service, username]
        self.changes.append(username)


class PlaintextKeyring(MemoryKeyring):
    """A keyring whose name shows that it does not encrypt."""


class NotRecommendedKeyring(MemoryKeyring):
    """A keyring that its library does not recommend."""

    priority = 0.5  # type: ignore[assignment]


class FailingKeyring(MemoryKeyring):
    """A keyring whose errors show the stored value."""

    def __init__(self, fault: type[BaseException]) -> None:
        super().__init__()
        self.fault = fault

    def set_password(self, service: str, username: str, password: str) -> None:
        """Raise an error that shows the password."""
        raise self.fault(service, username, password)


@contextmanager
def using(ring: KeyringBackend) -> Iterator[Any]:
    """Select a keyring for this process."""
    before = keyring.get_keyring()
    keyring.set_keyring(ring)
    try:
        yield ring
    finally:
        keyring.set_keyring(before)
