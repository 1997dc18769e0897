"""Leads as JSON, a column at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.json_text import write_json_texts

# Texts of some rows always fit into one Arrow array, whatever the number of all rows.
_ROWS = 10_000


def lead_lines(
    identifiers: Mapping[str, pa.Array], data: Mapping[str, pa.Array], overrides: pa.Array
) -> list[str]:
    """Return one JSON object per row; what is missing is left out."""
    lines: list[str] = []
    for start in range(0, len(overrides), _ROWS):
        pieces = [*_members(identifiers, start)]
        if data:
            values = _object([*_members(data, start)])
            pieces.append(_member("data", pc.if_else(pc.equal(values, "{}"), None, values)))
        pieces.append(_member("overrides", overrides.slice(start, _ROWS).cast(pa.string())))
        lines += _object(pieces).to_pylist()
    return lines


def _members(fields: Mapping[str, pa.Array], start: int) -> Iterator[pa.Array]:
    for name, texts in fields.items():
        part = texts.slice(start, _ROWS)
        values = pc.if_else(part.is_valid(), write_json_texts(part), pa.scalar(None, pa.string()))
        yield _member(name, values)


def _member(name: str, values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(f"{orjson.dumps(name).decode()}:", values, "")


def _object(members: list[pa.Array]) -> pa.Array:
    inner = pc.binary_join_element_wise(*members, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", inner, "}", "")
