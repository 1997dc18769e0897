"""Leads as JSON, a column at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.leads.planning.checks import Checked
from outreach_frames.tables.json_columns import write_json_texts

_ROWS = 10_000


def lead_lines(checked: Checked, rows: pa.Array) -> Iterator[pa.Array]:
    """Yield the leads of these rows, one JSON object each; what is missing is left out.

    They come some thousands at a time: as JSON they take more memory than the frame.
    """
    for start in range(0, len(rows), _ROWS):
        part = rows.slice(start, _ROWS)
        members = list(_members(checked.identifiers, part))
        if checked.data:
            values = _object(list(_members(checked.data, part)))
            is_empty = pc.equal(values, "{}")
            members.append(_member("data", pc.if_else(is_empty, None, values)))
        members.append(_member("overrides", checked.overrides.take(part).cast(pa.string())))
        yield _object(members)


def _members(fields: Mapping[str, pa.Array], rows: pa.Array) -> Iterator[pa.Array]:
    for name, column in fields.items():
        texts = column.take(rows)
        values = pc.if_else(texts.is_valid(), write_json_texts(texts), pa.scalar(None, pa.string()))
        yield _member(name, values)


def _member(name: str, values: pa.Array) -> pa.Array:
    """Return `,"name":value` for each row, and nothing where the value is missing."""
    pairs = pc.binary_join_element_wise(f",{orjson.dumps(name).decode()}:", values, "")
    return pc.fill_null(pairs, "")


def _object(members: list[pa.Array]) -> pa.Array:
    # Not null_handling="skip": that leaves out the rows in which all members are missing.
    inner = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), start=1)
    return pc.binary_join_element_wise("{", inner, "}", "")
