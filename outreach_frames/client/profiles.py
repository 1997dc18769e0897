"""Keep addresses and tokens in the system's keyring, one entry per profile.

An entry contains the token and the only address that may receive it. Like the token in `Token`, an
entry is a `memoryview`, so that no variable holds it as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from outreach_frames import spec
from outreach_frames.client.credentials import TOKEN_KEY, Token
from outreach_frames.client.request import checked_base_url
from outreach_frames.common import terms
from outreach_frames.common.text import quoted
from outreach_frames.errors import ConfigurationError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

DEFAULT_PROFILE: Final = "default"
# The options that a profile keeps with address and token, and their defaults in `connect`.
OPTIONS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "proxies": None,
        "verify": True,
        "network_name": spec.NETWORK_NAME,
        "requests_per_minute": None,
    }
)
_SERVICE: Final = "outreach_frames"
_ADDRESS: Final = "base_url"
_NAME: Final = r"\w[\w.@-]{0,63}"
_INSTEAD: Final = "set OUTREACH_BASE_URL and OUTREACH_API_KEY instead"


class Profile(NamedTuple):
    """An address with its token, and the options that differ from their defaults."""

    base_url: str
    token: Token
    options: dict[str, Any]

    def with_options(self, given: Mapping[str, Any]) -> Profile:
        """Return the profile with the given options, ignoring default values."""
        chosen = {name: value for name, value in given.items() if value != OPTIONS[name]}
        return self._replace(options=self.options | chosen)


def check_name(name: object) -> None:
    """Raise ConfigurationError if a profile's name is invalid."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise ConfigurationError(
            f"{terms.name('profile')} takes a name of up to 64 letters, digits, . _ @ or -, not "
            f"{quoted(name)}."
        )


def load(name: str, *, replaces: bool = False) -> Profile | None:
    """Return a stored profile, or None if the keyring does not have it.

    Raise ConfigurationError if its entry is damaged, unless the caller `replaces` it.
    """
    check_name(name)
    entry = _run(_keyring().get_password, name)
    profile = _parsed(entry)
    if entry and profile is None and not replaces:
        raise ConfigurationError(
            f"The system's keyring has a damaged entry for the profile {name!r}. With this "
            f"profile, {terms.function('login')} replaces it, and {terms.function('logout')} "
            "removes it."
        )
    return profile


def store(name: str, profile: Profile) -> None:
    """Write a profile as one entry, replacing an earlier entry."""
    entry = profile.token.entry({_ADDRESS: profile.base_url, **profile.options})
    _run(_keyring().set_password, name, entry)


def remove(name: str) -> None:
    """Remove a profile, if the keyring has it."""
    check_name(name)
    ring = _keyring()
    if _run(ring.get_password, name):
        _run(ring.delete_password, name)


def _parsed(entry: memoryview) -> Profile | None:
    """Return the profile of an entry, or None if the entry is damaged."""
    try:
        token = Token(msgspec.json.decode(entry)[TOKEN_KEY])
        token.check()
        kept = {key: value for key, value in msgspec.json.decode(entry).items() if key != TOKEN_KEY}
        base_url = checked_base_url(kept.pop(_ADDRESS))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    is_valid = kept.keys() <= OPTIONS.keys() and isinstance(kept.get("verify", ""), str)
    return Profile(base_url, token, kept) if is_valid else None


def _run(method: Callable[..., str | None], name: str, *entry: memoryview) -> memoryview:
    """Call a keyring's method and return the entry; no traceback of an error shows the entry."""
    raised: BaseException
    try:
        texts = (str(part, "utf-8") for part in entry)
        return memoryview((method(_SERVICE, name, *texts) or "").encode("utf-8", "surrogatepass"))
    except KeyboardInterrupt:
        raised = KeyboardInterrupt()
    except Exception as error:  # noqa: BLE001 - each backend has its own errors
        raised = ConfigurationError(
            f"The system's keyring cannot be used ({type(error).__name__}). Unlock it and try "
            f"again, or {_INSTEAD}."
        )
    raise raised


def _keyring() -> KeyringBackend:
    ring = find_keyring()
    if isinstance(ring, str):
        raise ConfigurationError(ring)
    return ring


def find_keyring() -> KeyringBackend | str:
    """Return the keyring to use, or the error message if no keyring is usable."""
    try:
        import keyring  # noqa: PLC0415 - slow to import, and an optional extra
        from keyring.backends.chainer import ChainerBackend  # noqa: PLC0415
    except ImportError:
        return (
            f"Profiles need the library keyring; without it, {_INSTEAD}. Install it: "
            'pip install "outreach-frames[login]"'
        )
    with suppress(Exception):  # each backend has its own errors
        ring = keyring.get_keyring()
        # A chain of keyrings could pass an entry on to a keyring that stores plain text.
        chain: list[KeyringBackend] = ring.backends if isinstance(ring, ChainerBackend) else [ring]
        # Prefer the keyrings of operating systems.
        chain = sorted(chain, key=lambda ring: not type(ring).__module__.startswith("keyring."))
        return next(filter(_encrypts, chain))
    return f"This machine has no keyring that encrypts. Start its keyring, or {_INSTEAD}."


def _encrypts(ring: KeyringBackend) -> bool:
    """Return whether the library recommends a keyring; reject keyrings that store plain text."""
    kinds = type(ring).__mro__
    return ring.priority >= 1 and not any(
        kind.__module__.startswith("keyrings.alt") or "plain" in kind.__name__.lower()
        for kind in kinds
    )
