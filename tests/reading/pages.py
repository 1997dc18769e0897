"""Bodies of people search responses."""

from __future__ import annotations

import json
from typing import Any


def body(*persons: Any, **more: Any) -> bytes:
    """Write a search result."""
    return json.dumps({"results": persons, "_pagination": {"page": 1}, **more}).encode()
