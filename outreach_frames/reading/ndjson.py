"""Parse NDJSON bytes, one person per line, into flat Arrow tables; no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, InvalidResponseError
from outreach_frames.reading.fast_reader import BOM
from outreach_frames.reading.pages import read_people_page

_LINES_PER_GROUP: Final = 500
_BODY: Final = f'{{"{spec.RESULTS_KEY}":[%b],"{spec.PAGINATION_KEY}":{{}}}}'.encode()


def read_ndjson(
    content: bytes, name: str, *, start: int = 0, columns: Sequence[str] | None = None
) -> list[pa.Table]:
    r"""Read people from whole NDJSON lines and skip blank lines; `columns` limits the columns.

    >>> [table.num_rows for table in read_ndjson(b'{"id": "1"}\n\n{"id": "2"}', "people.ndjson")]
    [2]
    """
    # `start` is the content's offset in the file `name`.
    lines = [line for line in _without_bom(content, start).split(b"\n") if line.strip()]
    tables = []
    for first in range(0, len(lines), _LINES_PER_GROUP):
        group = lines[first : first + _LINES_PER_GROUP]
        # Lines that are too large together may still be readable one by one.
        found = (
            (_read_lines(group, columns) if columns else [])
            or _read_lines(group)
            or [table for line in group for table in _read_lines([line])]
        )
        if sum(table.num_rows for table in found) != len(group):
            raise InvalidInputError(_explain_first_bad_line(content, name, start))
        tables += found
    return tables


def _read_lines(lines: Sequence[bytes], columns: Sequence[str] | None = None) -> list[pa.Table]:
    """Read lines as one table of people; return no table unless each line is one person.

    With `columns`, read only these columns; return no table if this fails.
    """
    from outreach_frames.reading.some_columns import read_columns  # noqa: PLC0415 - imports msgspec

    body = _BODY % b",".join(lines)
    try:
        page = read_columns([body], columns) if columns else read_people_page(body)
    except (InvalidResponseError, ValueError):
        return []
    people = page.people
    return [people] if people.num_rows == len(lines) and all(map(_is_object, lines)) else []


def _without_bom(content: bytes, start: int) -> bytes:
    return content if start else content.removeprefix(BOM)


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{")


def _explain_first_bad_line(content: bytes, name: str, start: int) -> str:
    """Return an error message for the first line that is not one person."""
    offset = start
    lines: Sequence[bytes] = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        problem = _problem(_without_bom(line, offset))
        if problem:
            place = f"the line at byte {offset:,}" if start else f"line {number:,}"
            return f"{name}: {place} {problem}. Write one person per line, each a JSON object."
        offset += len(line) + 1
    return f"{name} does not have one person per line. Write each person as one JSON object."


def _problem(line: bytes) -> str | None:
    if not line.strip():
        return None
    try:
        if not isinstance(json.loads(line.decode()), dict):
            return "is not a JSON object"
        return None if _read_lines([line]) else "has too many values or is nested too deeply"
    except (ValueError, RecursionError) as error:
        return f"is not valid JSON ({error})"
