"""What is noted beside a CSV file: its columns and their dtypes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError

METADATA_SUFFIX: Final = "-metadata.json"
_FORMAT: Final = "outreach_frames CSV 1"
# What pandas, numpy and Arrow raise where the notes on a frame's dtypes are damaged.
NOTES_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    pa.ArrowException,
)


def notes_path(path: Path) -> Path:
    """Return where the notes on a CSV file are."""
    return path.with_name(path.name + METADATA_SUFFIX)


def notes_bytes(metadata: Mapping[str, Any]) -> bytes:
    """Write notes; of none, nothing."""
    if not metadata:
        return b""
    return json.dumps({"format": _FORMAT, **metadata}, ensure_ascii=False, indent=1).encode()


def read_notes(path: Path) -> dict[str, Any]:
    """Read the notes on a CSV file; none where there are none."""
    notes = notes_path(path)
    if not notes.is_file():
        return {}
    try:
        metadata = json.loads(notes.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged_notes(notes, error) from error
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise InvalidInputError(
            f"{notes} was not written by this package. Move it away to read {path}."
        )
    return metadata


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Say that notes cannot be read, and what to do."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read without."
    )
