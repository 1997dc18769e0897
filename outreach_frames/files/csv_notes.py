"""Write and read the metadata file of a CSV file that this package wrote.

The metadata file holds a checksum, which reveals edits, and the dtypes of a CSV file as an Arrow
schema.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from outreach_frames.common.atomic_files import replace_file
from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.provenance import ATTRS, MAX_METADATA_BYTES, VERSION

METADATA_SUFFIX: Final = "-metadata.json"
_FORMAT: Final = "outreach_frames CSV 4"
_SCHEMA: Final = "schema"
CHECKSUM: Final = "checksum"
_FORMAT_KEY: Final = "format"
_PIECE_BYTES: Final = 1 << 18
# Names of entries that do not describe columns.
OWN_ENTRIES: Final = frozenset({_FORMAT_KEY, CHECKSUM, ATTRS, VERSION})
# pandas, numpy and Arrow raise these errors on damaged dtypes.
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


def checksum(file: BinaryIO) -> str:
    """Return the length and CRC-32 of a file's content, to detect edits."""
    crc = 0
    while piece := file.read(_PIECE_BYTES):
        crc = zlib.crc32(piece, crc)
    return f"{file.tell()} {crc:08x}"


def write_notes(
    path: Path, metadata: Mapping[str, Any], new: Path, *, made_in: Path | None = None
) -> None:
    """Write the metadata file of `path` for its new content, the file `new`.

    Call it before the file is replaced: after a kill in between, the checksum differs, and only the
    dtypes are used.
    """
    with new.open("rb") as file:
        entries = {**metadata, _FORMAT_KEY: _FORMAT, CHECKSUM: checksum(file)}
    text = json.dumps(entries, ensure_ascii=False, indent=1)
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > MAX_METADATA_BYTES:
        raise InvalidInputError(
            f"The metadata of {path} would have {len(content):,} bytes, but "
            f"{MAX_METADATA_BYTES:,} is the maximum. Convert categorical columns to text."
        )
    replace_file(
        notes_path(path),
        lambda file: file.write(content),
        temporary_folder=made_in,
        mode_from=path,
    )


def noted_schema(table: pa.Table) -> dict[str, str]:
    """Return the entry of the metadata that holds a table's schema and categories."""
    empty = [column.slice(0, 0).combine_chunks() for column in table.columns]
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_batch(pa.record_batch(empty, table.schema))
    return {_SCHEMA: base64.b64encode(stream.getvalue()).decode()}


def noted_columns(metadata: Mapping[str, Any]) -> pa.RecordBatch:
    """Return the batch without rows that `noted_schema` stored in a file's metadata."""
    if _SCHEMA not in metadata:
        return pa.record_batch([], pa.schema([]))
    batch = pa.ipc.open_stream(base64.b64decode(metadata[_SCHEMA])).read_next_batch()
    batch.validate(full=True)
    return batch


def read_notes(path: Path) -> dict[str, Any]:
    """Read the metadata file of a CSV file; return no entries without a metadata file."""
    notes = notes_path(path)
    if not notes.is_file():
        return {}
    try:
        if (size := notes.stat().st_size) > MAX_METADATA_BYTES:
            raise ValueError(f"it has {size:,} bytes")
        metadata: Any = json.loads(notes.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged_notes(notes, error) from error
    if not isinstance(metadata, dict) or metadata.get(_FORMAT_KEY) != _FORMAT:
        raise InvalidInputError(
            f"{notes} was not written by this package. Move it to another folder to read {path}."
        )
    return dict(metadata)


def entries_of(metadata: Mapping[str, Any], content: str) -> Mapping[str, Any]:
    """Return the entries for the content with a checksum: only the dtypes if it was changed."""
    if describes(metadata, content):
        return metadata
    return {name: metadata[name] for name in (_FORMAT_KEY, _SCHEMA) if name in metadata}


def describes(metadata: Mapping[str, Any], content: str) -> bool:
    """Check whether the package wrote the content with a checksum and this metadata."""
    return metadata.get(CHECKSUM) == content


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Build the error for a metadata file that cannot be read."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read only the CSV file."
    )
