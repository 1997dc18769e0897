"""Values that search filters take."""

from __future__ import annotations

import uuid
from typing import Any

from outreach_frames import spec

GOOD = {"uuid": str(uuid.UUID(int=7)), "domain": "brightforge.example"}


def good_value(known: spec.Filter) -> Any:
    """Return a value that a filter takes."""
    text = GOOD.get(known.format, "some text")
    return {"string": text, "boolean": True, "array": [text]}[known.type]
