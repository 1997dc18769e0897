"""Check a client's options, except its address and token."""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, Final

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from outreach_frames.common import terms
from outreach_frames.common.atomic_files import expanded
from outreach_frames.common.text import quoted
from outreach_frames.errors import ConfigurationError, InvalidInputError

# Defaults of `connect` and `Client`.
DEFAULT_CACHE: Final = "default"
TIMEOUT: Final = 30
WORKERS: Final = 4
MAX_WAIT: Final = 300
PROXY_VARIABLE: Final = "OUTREACH_PROXY"
CA_BUNDLE_VARIABLE: Final = "OUTREACH_CA_BUNDLE"
_A_YEAR = 31_536_000
_PROXY_KEYS: Final = ("http", "https", "all")
_PROXY_SCHEMES: Final = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


def with_environment(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's options with the environment's proxy and certificates, if none are set."""
    options = dict(chosen)
    proxy, bundle = os.environ.get(PROXY_VARIABLE), os.environ.get(CA_BUNDLE_VARIABLE)
    if proxy and options.get("proxies") is None:
        options["proxies"] = dict.fromkeys(("http", "https"), _checked_proxy(PROXY_VARIABLE, proxy))
    if bundle and options.get("verify", True) is True:
        options["verify"] = checked_verify(bundle, CA_BUNDLE_VARIABLE)
    return options


def checked_seconds(name: str, value: float, at_least: float = 0) -> float:
    """Return the seconds, or raise ConfigurationError if they are out of range."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and at_least <= value <= _A_YEAR:
        return value
    raise ConfigurationError(
        f"{name} takes seconds from {at_least:g} to {_A_YEAR:,}, not {quoted(value)}."
    )


def checked_rate(value: float | None) -> float:
    """Return the requests per minute, infinite for None, or raise ConfigurationError."""
    if value is None:
        return math.inf
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 < value < math.inf:
        return value
    raise ConfigurationError(
        f"{terms.name('requests_per_minute')} takes a number above 0, or None, not {quoted(value)}."
    )


def checked_workers(value: int) -> int:
    """Return the number of parallel requests, or raise ConfigurationError if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"workers takes a whole number, 1 or more, not {quoted(value)}.")
    return value


def checked_proxies(proxies: Mapping[str, str] | None) -> dict[str, str]:
    """Return proxy addresses by scheme; messages hide them, because they may hold passwords."""
    if proxies is None:
        return {}
    if not isinstance(proxies, Mapping) or not all(
        isinstance(text, str) for pair in proxies.items() for text in pair
    ):
        raise ConfigurationError(
            'proxies takes addresses by scheme, such as {"https": "http://proxy.example:3128"}.'
        )
    for key in proxies:
        # The HTTP library ignores other keys.
        if key.lower().partition("://")[0] not in _PROXY_KEYS:
            raise ConfigurationError(
                f"proxies has an address for {quoted(key)}, which is not a scheme. Use http, https "
                "or all."
            )
    return {
        key.lower(): _checked_proxy(f"proxies[{quoted(key)}]", address)
        for key, address in proxies.items()
    }


def _checked_proxy(source: str, address: str) -> str:
    url = address if "://" in address else f"http://{address}"
    try:
        parts = parse_url(url)
    except LocationParseError:
        parts = None
    # A # or / in a password ends the host, so the rest of the password would be a path.
    if (
        parts is None
        or not parts.host
        or len(url.split()) > 1  # older versions of urllib3 accept a blank
        or parts.scheme not in _PROXY_SCHEMES
        or (parts.path or "/", parts.query, parts.fragment) != ("/", None, None)
    ):
        raise ConfigurationError(
            f"{source} is not a proxy's address, such as "
            "http://user:password@proxy.example:3128. Percent-encode special characters in the "
            "password, such as %23 for #."
        )
    if parts.scheme.startswith("socks") and find_spec("socks") is None:
        raise ConfigurationError(
            f"{source} is a SOCKS proxy, which needs an extra package. Install it: "
            'pip install "requests[socks]"'
        )
    return url


def checked_verify(verify: bool | str | PathLike[str], source: str = "verify") -> bool | str:
    """Return a boolean unchanged, or the absolute path of a file of certificate authorities."""
    if isinstance(verify, bool):
        return verify
    try:
        path = expanded(verify)
        problem = _certificate_problem(path) if path.exists() else "does not exist"
        if not problem:
            return str(path.absolute())
        problem = f"{path} {problem}"
    except (InvalidInputError, OSError) as error:
        problem = str(error).removesuffix(".")
    values = "True, False, or a file" if source == "verify" else "a file"
    raise ConfigurationError(f"{source} takes {values} of certificate authorities: {problem}.")


def _certificate_problem(path: Path) -> str:
    """Return why a file has no certificates in PEM form and the remedy, or an empty text."""
    if path.is_dir():
        return ""
    content = path.read_bytes()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        if not content.strip():
            return "is empty"
        if b"PRIVATE KEY-----" in content and b"BEGIN CERTIFICATE" not in content:
            return "has a private key and no certificate"
        # DER and PFX begin with a sequence, whose first byte is 0x30.
        if content.isascii() or content[0] != 0x30:
            return "has no valid certificate, which begins with -----BEGIN CERTIFICATE-----"
        return (
            "is binary and not in PEM form. Convert it: `openssl x509 -inform der -in FILE -out "
            "ca.pem` for DER (.cer), or `openssl pkcs12 -in FILE -nokeys -out ca.pem` for PFX"
        )
    return ""
