"""Write and read the metadata file of a CSV file that this package wrote.

The metadata file holds checksums, which reveal edits, and the dtypes of a CSV file as an Arrow
schema.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from outreach_frames.common.atomic_files import replace_file
from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.provenance import ATTRS, MAX_METADATA_BYTES, VERSION

METADATA_SUFFIX: Final = "-metadata.json"
_FORMAT: Final = "outreach_frames CSV 3"
_SCHEMA: Final = "schema"
CHECKSUMS: Final = "checksums"
# This entry holds the metadata of the old content while a program replaces the file.
OTHER: Final = "other"
_PIECE_BYTES: Final = 1 << 18
# Names of entries that do not describe columns.
OWN_ENTRIES: Final = frozenset({"format", CHECKSUMS, OTHER, ATTRS, VERSION})
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
    found = 0
    while piece := file.read(_PIECE_BYTES):
        found = zlib.crc32(piece, found)
    return f"{file.tell()} {found:08x}"


@contextmanager
def replacing_metadata(
    path: Path, metadata: Mapping[str, Any], new: Path, *, made_in: Path | None = None
) -> Iterator[None]:
    """Replace the metadata file of `path`, while the `with` block replaces `path` with `new`.

    During the replacement, the metadata describes both contents.
    """
    with new.open("rb") as file:
        entries = {**metadata, "format": _FORMAT, CHECKSUMS: [checksum(file)]}
    entries.pop(OTHER, None)

    def write_notes(notes: Mapping[str, Any]) -> None:
        text = json.dumps(notes, ensure_ascii=False, indent=1)
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

    if not path.exists():
        write_notes(entries)
        yield
        return
    before: dict[str, Any] = {}
    with suppress(*NOTES_ERRORS), path.open("rb") as file:  # the notes may be damaged
        before = read_notes(path)
        before = dict(entries_of(before, checksum(file))) if OTHER in before else before
        before.pop(OTHER, None)
    write_notes({**entries, OTHER: before})
    yield
    write_notes(entries)


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
    is_object = isinstance(metadata, dict) and isinstance(metadata.get(OTHER, {}), dict)
    if not is_object or metadata.get("format") != _FORMAT:
        raise InvalidInputError(
            f"{notes} was not written by this package. Move it to another folder to read {path}."
        )
    return dict(metadata)


def entries_of(metadata: Mapping[str, Any], content: str) -> Mapping[str, Any]:
    """Return the entries that describe the content with a checksum.

    While a program replaces the file, and after it was killed, the metadata describes two contents.
    """
    is_old = OTHER in metadata and not describes(metadata, content)
    return metadata[OTHER] if is_old else metadata


def describes(metadata: Mapping[str, Any], content: str) -> bool:
    """Check whether the package wrote the content with a checksum and this metadata."""
    known = metadata.get(CHECKSUMS)
    return isinstance(known, list) and content in known


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Build the error for a metadata file that cannot be read."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read only the CSV file."
    )
