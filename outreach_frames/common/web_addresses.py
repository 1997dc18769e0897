"""Split web addresses that people type with or without a scheme."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def split_address(text: str) -> SplitResult | None:
    """Return the parts of a web address, or None if its host or port is invalid.

    >>> split_address("acme.example:8443/about").hostname, split_address("acme.example:x")
    ('acme.example', None)
    """
    try:
        parts = urlsplit(text if _SCHEME.match(text) else f"//{text}")
        _ = parts.port
    except ValueError:
        return None
    return parts
