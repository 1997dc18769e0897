"""Record in a file which search made the file's table: the `.attrs` as JSON, and the version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from outreach_frames.common.warnings import warn

ATTRS: Final = "attrs"
VERSION: Final = "version"
# Larger metadata is not parsed, because JSON of many small lists needs 40 times its size in memory.
MAX_METADATA_BYTES: Final = 16 << 20
_MAX_CHARACTERS: Final = 1 << 17
# The custom property of a workbook with the package's version.
PROPERTY: Final = "outreach_frames"


def package_version() -> str:
    """Return this package's version."""
    return version("outreach-frames")


def plain_attrs(attrs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the entries of `.attrs` that JSON can hold."""
    return {key: value for key, value in attrs.items() if _is_plain({key: value})}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps([[[value]]])  # files hold the attrs within other objects
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def record(attrs: Mapping[Any, Any]) -> dict[str, str]:
    """Return the entries to write to a file's metadata; warn if `.attrs` are too large."""
    entries = {VERSION: package_version()}
    text = json.dumps(attrs, separators=(",", ":"))
    if len(text) > _MAX_CHARACTERS:
        warn(
            f"The .attrs were not written, because their JSON has more than {_MAX_CHARACTERS:,} "
            "characters. Write Parquet to keep them."
        )
    elif attrs:
        entries[ATTRS] = text
    return entries


def recorded_attrs(text: Any, source: Path) -> dict[Any, Any]:
    """Parse the `.attrs` that a file's metadata has as JSON; warn if they are unusable."""
    attrs: Any = None
    with suppress(TypeError, ValueError, RecursionError):
        attrs = json.loads(text) if len(text) <= _MAX_CHARACTERS else None
    if isinstance(attrs, dict):
        return attrs
    warn(f"The .attrs of {source} are too large or not a JSON object, and were ignored.")
    return {}


def attrs_in_parquet(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    """Return the `.attrs` that pandas stored in Parquet metadata; warn if they are unusable."""
    text = (metadata or {}).get(b"pandas", b"{}")
    if len(text) > MAX_METADATA_BYTES:
        raise ValueError(f"its pandas metadata has {len(text):,} bytes")
    notes = json.loads(text)
    if not isinstance(notes, dict):
        raise ValueError("its pandas metadata is not a JSON object")
    attrs = notes.get("attributes", {})
    if isinstance(attrs, dict) and isinstance(attrs.get("filters", {}), dict):
        return attrs
    warn(f"The .attrs of {path}, or the filters in them, are not a JSON object and were ignored.")
    return {}
