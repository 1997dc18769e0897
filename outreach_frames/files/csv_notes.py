"""What is noted beside a CSV file: its columns and their dtypes, as Arrow writes a schema."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError

METADATA_SUFFIX: Final = "-metadata.json"
_FORMAT: Final = "outreach_frames CSV 2"
_MODELS: Final = "models"
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


def notes_bytes(models: Sequence[pa.RecordBatch], metadata: Mapping[str, Any]) -> bytes:
    """Write notes on columns and on the whole file; nothing where there are none."""
    notes = dict(metadata)
    if models:
        schema = pa.schema([model.schema.field(0) for model in models])
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, schema) as writer:
            writer.write_batch(pa.record_batch([model.column(0) for model in models], schema))
        notes[_MODELS] = base64.b64encode(stream.getvalue()).decode()
    if not notes:
        return b""
    return json.dumps({"format": _FORMAT, **notes}, ensure_ascii=False, indent=1).encode()


def read_notes(path: Path) -> tuple[dict[str, pa.RecordBatch], dict[str, Any]]:
    """Read the notes on a CSV file: models of columns by their names, and the rest."""
    notes = notes_path(path)
    if not notes.is_file():
        return {}, {}
    content = notes.read_bytes()
    try:
        metadata = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged_notes(notes, error) from error
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise InvalidInputError(
            f"{notes} was not written by this package. Move it away to read {path}."
        )
    try:
        return _models(metadata[_MODELS]) if _MODELS in metadata else {}, metadata
    except (*NOTES_ERRORS, OSError, StopIteration) as error:
        raise damaged_notes(notes, error) from error


def _models(text: str) -> dict[str, pa.RecordBatch]:
    batch = pa.ipc.open_stream(base64.b64decode(text)).read_next_batch()
    batch.validate(full=True)
    return {name: batch.select([name]) for name in batch.schema.names}


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Say that notes cannot be read, and what to do."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read without."
    )
