"""Write and read a CSV file's metadata file, which holds its dtypes as an Arrow schema."""

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
# Raised by pandas, numpy and Arrow on damaged dtypes.
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
    """Return the path of a CSV file's metadata file."""
    return path.with_name(path.name + METADATA_SUFFIX)


def notes_bytes(models: Sequence[pa.RecordBatch], metadata: Mapping[str, Any]) -> bytes:
    """Return the content of a metadata file; empty if no file is needed."""
    notes = with_models(models, metadata)
    if not notes:
        return b""
    return json.dumps({"format": _FORMAT, **notes}, ensure_ascii=False, indent=1).encode()


def with_models(models: Sequence[pa.RecordBatch], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's metadata with its columns' models as text."""
    notes = dict(metadata)
    if models:
        schema = pa.schema([model.schema.field(0) for model in models])
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, schema) as writer:
            writer.write_batch(pa.record_batch([model.column(0) for model in models], schema))
        notes[_MODELS] = base64.b64encode(stream.getvalue()).decode()
    return notes


def read_notes(path: Path) -> tuple[dict[str, pa.RecordBatch], dict[str, Any]]:
    """Read a CSV file's metadata file: the columns' models by name, and all entries."""
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
            f"{notes} was not written by this package. Move it elsewhere to read {path}."
        )
    try:
        return models_in(metadata), metadata
    except (*NOTES_ERRORS, OSError, StopIteration) as error:
        raise damaged_notes(notes, error) from error


def models_in(metadata: Mapping[str, Any]) -> dict[str, pa.RecordBatch]:
    """Return the models in the metadata of `with_models` by column name."""
    if _MODELS not in metadata:
        return {}
    batch = pa.ipc.open_stream(base64.b64decode(metadata[_MODELS])).read_next_batch()
    batch.validate(full=True)
    return {name: batch.select([name]) for name in batch.schema.names}


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Return the error for a metadata file that cannot be read."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read the CSV file without it."
    )
