"""Valid values of search filters."""

from __future__ import annotations

import uuid
from typing import Any

from outreach_frames import spec

GOOD = {"uuid": str(uuid.UUID(int=7)), "domain": "brightforge.example"}


def good_value(known: spec.Filter) -> Any:
    """Return a valid value for a filter."""
    text = GOOD.get(known.format, "some text")
    return {"string": text, "boolean": True, "array": [text]}[known.type]
