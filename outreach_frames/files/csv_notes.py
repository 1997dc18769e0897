"""Write and read the metadata file of a CSV file that this package wrote.

The metadata file holds checksums, which reveal edits, and the dtypes of a CSV file as an Arrow
schema.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from outreach_frames.common.atomic_files import replace_file
from outreach_frames.common.text import shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.provenance import ATTRS, MAX_METADATA_BYTES, VERSION

METADATA_SUFFIX: Final = "-metadata.json"
_FORMAT: Final = "outreach_frames CSV 2"
_MODELS: Final = "models"
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


def is_unchanged(file: BinaryIO, metadata: Mapping[str, Any]) -> bool:
    """Check whether a file has the content that the package wrote with this metadata."""
    known = metadata.get(CHECKSUMS)
    return isinstance(known, list) and checksum(file) in known


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
    with suppress(*NOTES_ERRORS):  # damaged notes
        before = read_notes(path)[1]
        before.pop(OTHER, None)
    write_notes({**entries, OTHER: before})
    yield
    write_notes(entries)


def with_models(models: Sequence[pa.RecordBatch], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Add the models of the columns, encoded as text, to the metadata of a file."""
    notes = dict(metadata)
    if models:
        schema = pa.schema([model.schema.field(0) for model in models])
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, schema) as writer:
            writer.write_batch(pa.record_batch([model.column(0) for model in models], schema))
        notes[_MODELS] = base64.b64encode(stream.getvalue()).decode()
    return notes


def read_notes(path: Path) -> tuple[dict[str, pa.RecordBatch], dict[str, Any]]:
    """Read the metadata file of a CSV file; return the models by column name, and all entries."""
    notes = notes_path(path)
    if not notes.is_file():
        return {}, {}
    try:
        if (size := notes.stat().st_size) > MAX_METADATA_BYTES:
            raise ValueError(f"it has {size:,} bytes")
        metadata = json.loads(notes.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged_notes(notes, error) from error
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise InvalidInputError(
            f"{notes} was not written by this package. Move it to another folder to read {path}."
        )
    try:
        # Another program is replacing the file, or was killed before replacing it.
        if OTHER in metadata and path.is_file():
            with path.open("rb") as file:
                if not is_unchanged(file, metadata):
                    metadata = {**metadata[OTHER], OTHER: metadata}
        return models_in(metadata), metadata
    except (*NOTES_ERRORS, OSError, StopIteration) as error:
        raise damaged_notes(notes, error) from error


def models_in(metadata: Mapping[str, Any]) -> dict[str, pa.RecordBatch]:
    """Return the models in a file's metadata by column name, as `with_models` stored them."""
    if _MODELS not in metadata:
        return {}
    batch = pa.ipc.open_stream(base64.b64decode(metadata[_MODELS])).read_next_batch()
    batch.validate(full=True)
    return {name: batch.select([name]) for name in batch.schema.names}


def damaged_notes(notes: Path, error: Exception) -> InvalidInputError:
    """Build the error for a metadata file that cannot be read."""
    return InvalidInputError(
        f"{notes} is damaged ({shorten(str(error))}). Delete it to read only the CSV file."
    )
